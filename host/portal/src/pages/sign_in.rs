//! `/`, `/sign-in` and `/sign-out`: pages to start and end a session.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderValue, StatusCode};
use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::sessions::{self, SESSION_MS, SignIn, SignInStep, SignedIn};
use packhouse_api::portal::{self, Visitor};
use packhouse_app::sso::SsoSettings;
use packhouse_identity::Secret;
use packhouse_store::OrganizationId;
use packhouse_wire::catalogue;

use super::{Routes, login};
use crate::field::{Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::guest::{self, GuestContext};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, confirm, draft, fault, parts, policy};

pub(super) fn routes() -> Routes {
    vec![
        ("/", visit::page(|_| async { Ok(see_other("/home")) })),
        ("/sign-in", guest::page(show).merge(guest::form(sign_in))),
        ("/sign-out", visit::page(confirm_sign_out).merge(visit::form(sign_out))),
    ]
}

async fn show(guest: Arc<GuestContext>) -> PageResult {
    if Visitor::of(guest.app(), &guest.headers).await?.is_some() {
        return Ok(see_other(policy::return_to(guest.query.get("return_to"))));
    }
    form(&guest, None).await
}

/// Sign-in providers that the page offers.
struct Providers {
    /// Link to the organization's provider and the provider's origin, if only one organization is
    /// possible.
    one: Option<(String, Option<String>)>,
    /// True if there are several organizations and at least one has a provider.
    of_several: bool,
}

async fn form(guest: &GuestContext, wrong: Option<&ApiError>) -> PageResult {
    let named = guest.form.get("return_to").or(guest.query.get("return_to"));
    let return_to = policy::return_to(named);
    let providers = providers(guest, return_to).await?;
    let several = wrong
        .is_some_and(|wrong| wrong.code().is_some_and(|code| code.code == "organization_required"))
        || guest.form.has("organization");
    let filled = Filled::new(&guest.form, wrong);
    let email = Text {
        label: "E-mail",
        name: "email",
        kind: "email",
        autocomplete: "username",
        required: true,
        ..Text::default()
    };
    let password = Text {
        label: "Password",
        name: "password",
        kind: "password",
        autocomplete: "current-password",
        required: true,
        ..Text::default()
    };
    let organization = Text {
        label: "Organization",
        name: "organization",
        hint: "The name of the organization to sign in to. Your e-mail address belongs to several.",
        autocomplete: "organization",
        required: true,
        ..Text::default()
    };
    let fields = html! {
        (filled.text(email))
        (filled.text(password))
        @if several { (filled.text(organization)) }
        button.go type="submit" { "Sign in" }
    };
    let body = html! {
        form.card method="post" action="/sign-in" {
            (guest.form_tokens())
            (parts::hidden("return_to", return_to))
            (filled.with_error(fields))
        }
        (provider_links(&providers, return_to))
    };
    let status = wrong.map_or(StatusCode::OK, fault::status);
    let issuer = providers.one.and_then(|(_, issuer)| issuer);
    Ok(guest.page(Sheet { status, issuer, ..Sheet::of("Sign in") }, &body))
}

fn provider_links(providers: &Providers, return_to: &str) -> Markup {
    html! {
        @if let Some((url, _)) = &providers.one {
            p { a.button href=(url) { "Sign in with your organization" } }
        }
        @if providers.of_several {
            form.card method="get" action="/v1/sso/start" {
                (parts::hidden("return_to", return_to))
                div.field {
                    label for="provider" { "Name of your organization" }
                    input id="provider" name="organization" autocomplete="organization" required;
                }
                button type="submit" { "Sign in with your organization" }
            }
        }
    }
}

async fn providers(guest: &GuestContext, return_to: &str) -> Result<Providers, ApiError> {
    let store = &guest.app().store;
    let all = store.organizations().await?;
    let of_login = login::organization(&guest.origin, return_to).await?;
    let only = match all.as_slice() {
        [only] => Some(only.id),
        _ => of_login,
    };
    if let Some(id) = only {
        let settings = settings(guest, id).await?;
        let back: String = url::form_urlencoded::byte_serialize(return_to.as_bytes()).collect();
        let way = |settings: SsoSettings| {
            let url = format!("/v1/sso/start?organization={id}&return_to={back}");
            (url, confirm::issuer_origin(&settings.issuer))
        };
        return Ok(Providers { one: settings.map(way), of_several: false });
    }
    for organization in &all {
        if settings(guest, organization.id).await?.is_some() {
            return Ok(Providers { one: None, of_several: true });
        }
    }
    Ok(Providers { one: None, of_several: false })
}

async fn settings(
    guest: &GuestContext,
    organization: OrganizationId,
) -> Result<Option<SsoSettings>, ApiError> {
    let json = guest.app().store.sso_settings(organization).await?;
    Ok(json.as_deref().and_then(SsoSettings::read))
}

async fn sign_in(guest: Arc<GuestContext>) -> PageResult {
    let return_to = policy::return_to(guest.form.get("return_to")).to_owned();
    if let Some(pending) = guest.form.get("pending") {
        return enter_code(&guest, &Secret::new(pending), &return_to).await;
    }
    let named = Some(guest.form.text("organization").to_owned()).filter(|name| !name.is_empty());
    let of_login = login::organization(&guest.origin, &return_to).await?.map(|id| id.to_string());
    let request = SignIn {
        email: guest.form.text("email").to_owned(),
        password: Secret::new(guest.form.get("password").unwrap_or_default()),
        code: confirm::code(&guest.form),
        organization: named.or(of_login),
    };
    match sessions::begin_sign_in(&guest.origin, request).await {
        Ok(SignInStep::Done(signed_in)) => signed_in_response(&guest, &signed_in, &return_to),
        Ok(SignInStep::CodeRequired(pending)) => Ok(code_form(&guest, &pending, &return_to, None)),
        Err(wrong @ ApiError::Refused { .. }) if fault::status(&wrong).is_client_error() => {
            form(&guest, Some(&wrong)).await
        }
        Err(other) => Err(other),
    }
}

/// Continues a sign-in with the code of the second factor.
async fn enter_code(guest: &GuestContext, pending: &Secret, return_to: &str) -> PageResult {
    let code = Secret::new(guest.form.text("code"));
    let refused = |sentence: &str| ApiError::Refused {
        code: &catalogue::INVALID_CREDENTIALS,
        message: sentence.to_owned(),
        retry_after: None,
    };
    match sessions::resume(&guest.origin, pending, &code).await {
        Ok(Some(signed_in)) => signed_in_response(guest, &signed_in, return_to),
        Ok(None) => {
            let sentence = "The code was entered too late. Enter your password again.";
            form(guest, Some(&refused(sentence))).await
        }
        Err(wrong @ ApiError::Refused { .. }) if fault::status(&wrong).is_client_error() => {
            // The password was right, so a refusal of the credentials is about the code.
            let about_code =
                wrong.code().is_some_and(|code| std::ptr::eq(code, &catalogue::INVALID_CREDENTIALS));
            let sentence = catalogue::INVALID_SECOND_FACTOR_CODE.sentence;
            let wrong = if about_code { refused(sentence) } else { wrong };
            Ok(code_form(guest, pending, return_to, Some(&wrong)))
        }
        Err(other) => Err(other),
    }
}

/// Builds the page that asks for the code after a right password. `pending` is the sealed state of
/// the sign-in.
fn code_form(guest: &GuestContext, pending: &Secret, return_to: &str, wrong: Option<&ApiError>) -> Response {
    let fields = Fields::default();
    let filled = Filled::new(&fields, wrong);
    let body = html! {
        form.card method="post" action="/sign-in" {
            (guest.form_tokens())
            (parts::hidden("return_to", return_to))
            (parts::hidden("pending", pending.reveal()))
            (filled.with_error(html! { (filled.text(confirm::CODE)) button.go type="submit" { "Sign in" } }))
            p { a href=(policy::sign_in(return_to)) { "Start again" } }
        }
    };
    let status = wrong.map_or(StatusCode::OK, fault::status);
    guest.page(Sheet { status, ..Sheet::of("Enter your code") }, &body)
}

fn signed_in_response(guest: &GuestContext, signed_in: &SignedIn, return_to: &str) -> PageResult {
    let mut answer = see_other(return_to);
    let cookie = portal::signed_in(guest.app(), &signed_in.secret, SESSION_MS / 1000)?;
    answer.headers_mut().append(SET_COOKIE, cookie);
    Ok(answer)
}

async fn confirm_sign_out(ctx: Arc<PageContext>) -> PageResult {
    let button = html! { button.go type="submit" { "Sign out" } };
    let body = html! { p { "You are signed in as " (parts::isolated(&ctx.actor.member().email)) "." } (parts::action_button(&ctx, "/sign-out", &[], &button)) };
    Ok(frame::page(&ctx, Sheet::of("Sign out"), &body))
}

async fn sign_out(ctx: Arc<PageContext>) -> PageResult {
    sessions::sign_out(&ctx.actor).await?;
    let app = &ctx.portal.app;
    let mut answer =
        (StatusCode::SEE_OTHER, [(LOCATION, HeaderValue::from_static("/sign-in"))]).into_response();
    for cookie in [portal::signed_out(app)?, portal::forget_confirmation(app)?, draft::forget(app)?] {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(answer)
}
