//! `/account/second-factor`: the member's own second factor. The member adds a secret to an
//! authenticator app, confirms it with a first code, and gets recovery codes.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::organization;
use packhouse_api::operations::second_factor::{self, NewSecondFactor, SecondFactorState};
use packhouse_identity::Secret;
use packhouse_wire::catalogue;

use super::Routes;
use crate::field::{Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::{PageResult, confirm, fault, parts, policy, visit};

const TITLE: &str = "Second factor";
/// Field for the code of an authenticator app that is being set up.
const FIRST_CODE: Text<'static> = Text {
    label: "Code",
    name: "code",
    kind: "",
    hint: "The six digits that the app shows now.",
    autocomplete: "one-time-code",
    required: true,
    first: "",
};

pub(super) fn routes() -> Routes {
    vec![(policy::SECOND_FACTOR, visit::page(show).merge(visit::form(act)))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    page(&ctx, None).await
}

async fn page(ctx: &PageContext, wrong: Option<&ApiError>) -> PageResult {
    let is_required = organization::show(&ctx.actor).await?.row.require_second_factor;
    let has_password = !ctx.actor.member().password_hash.is_empty();
    let body = match second_factor::state(&ctx.actor).await? {
        SecondFactorState::Confirmed { recovery_codes } => set_up(ctx, recovery_codes, is_required, wrong),
        SecondFactorState::None | SecondFactorState::Unconfirmed if has_password => {
            introduction(ctx, is_required, wrong)
        }
        SecondFactorState::None | SecondFactorState::Unconfirmed => html! {
            div.card { p { "This account has no password. Your organization's provider signs you in, and decides about further factors." } }
        },
    };
    Ok(answer(ctx, wrong, &body))
}

fn answer(ctx: &PageContext, wrong: Option<&ApiError>, body: &Markup) -> Response {
    let status = wrong.map_or(StatusCode::OK, fault::status);
    let crumbs = html! { p.crumbs { a href="/account" { "Account" } } };
    frame::page(ctx, Sheet { status, crumbs, ..Sheet::of(TITLE) }, body)
}

/// Content for a member without a second factor.
fn introduction(ctx: &PageContext, is_required: bool, wrong: Option<&ApiError>) -> Markup {
    let fields = Fields::default();
    let filled = Filled::new(&fields, wrong);
    html! {
        form.card method="post" action=(policy::SECOND_FACTOR) {
            @if is_required {
                p { strong { "Your organization requires a second factor." } " Set one up to continue." }
            }
            p { "With a second factor, your password alone does not sign you in. You also enter a code that an app on your phone shows, such as Google Authenticator, 1Password or Aegis." }
            p { "Package clients then no longer accept your password. They need a " a href="/tokens" { "repository token" } ", which needs no code." }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "begin"))
            (filled.with_error(html! { button.go type="submit" { "Set up second factor" } }))
        }
    }
}

/// Content for a member with a second factor.
fn set_up(ctx: &PageContext, recovery_codes: usize, is_required: bool, wrong: Option<&ApiError>) -> Markup {
    let fields = Fields::default();
    let filled = Filled::new(&fields, wrong);
    let password = Text {
        label: "Password",
        name: "password",
        kind: "password",
        autocomplete: "current-password",
        required: true,
        ..Text::default()
    };
    let left = parts::count(recovery_codes as u64, "unused recovery code", "unused recovery codes");
    html! {
        div.card {
            p { "A second factor is set up. You have " (left) "." }
            @if is_required { p { "Your organization requires a second factor, so you cannot remove yours." } }
        }
        @if !is_required {
            form.card method="post" action=(policy::SECOND_FACTOR) {
                h2 { "Remove the second factor" }
                p { "Your password alone then signs you in again. To move to another app, remove the second factor and set it up again." }
                (parts::form_tokens(ctx))
                (parts::hidden("do", "remove"))
                (filled.with_error(html! { (filled.text(password)) (filled.text(confirm::CODE)) button.bad type="submit" { "Remove" } }))
            }
        }
    }
}

/// Builds the page with a secret that the member has to add to an app.
fn secret_page(ctx: &PageContext, new: &NewSecondFactor, wrong: Option<&ApiError>) -> Response {
    let fields = Fields::default();
    let filled = Filled::new(&fields, wrong);
    let code = html! { code id="secret" data-secret="" { (new.secret.reveal()) } };
    let body = html! {
        form.card method="post" action=(policy::SECOND_FACTOR) {
            h2 { "1. Add this secret to your app" }
            p { "Add an account in the app and enter this secret by hand, as a time-based code." }
            (parts::copyable("secret", &code, "Copy"))
            p { "If the app is on this device, " a href=(new.otpauth_url.reveal()) { "open the secret in the app" } "." }
            h2 { "2. Enter the code that the app shows" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "confirm"))
            (filled.with_error(html! { (filled.text(FIRST_CODE)) button.go type="submit" { "Confirm" } }))
        }
    };
    answer(ctx, wrong, &body)
}

/// Builds the page that shows the recovery codes, once.
fn recovery_page(ctx: &PageContext, codes: &[Secret]) -> Response {
    let lines: Vec<&str> = codes.iter().map(Secret::reveal).collect();
    let text = html! { pre id="secret" data-secret="" { (lines.join("\n")) } };
    let body = html! {
        p role="status" { "The second factor is set up. From now on, you need a code to sign in." }
        div.card {
            h2 { "Recovery codes" }
            p { "If you lose the app, each of these codes signs you in once. Keep them where you can find them without your phone." }
            p { strong { "Copy them now." } " They will not be shown again." }
            (parts::copyable("secret", &text, "Copy"))
            p { a.button.go href="/account" { "Continue" } }
        }
    };
    answer(ctx, None, &body)
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    match ctx.form.text("do") {
        "confirm" => confirm_code(&ctx).await,
        "remove" => remove(&ctx).await,
        _ => match second_factor::begin(&ctx.actor).await {
            Ok(new) => Ok(secret_page(&ctx, &new, None)),
            Err(error) => page(&ctx, Some(&visit::form_error(&ctx, error)?)).await,
        },
    }
}

async fn confirm_code(ctx: &PageContext) -> PageResult {
    let code = Secret::new(ctx.form.text("code"));
    let wrong = match second_factor::confirm(&ctx.actor, &code).await {
        Ok(codes) => return Ok(recovery_page(ctx, &codes)),
        Err(error) => visit::form_error(ctx, error)?,
    };
    let is_code = wrong.code().is_some_and(|code| std::ptr::eq(code, &catalogue::INVALID_SECOND_FACTOR_CODE));
    match second_factor::unconfirmed(&ctx.actor).await?.filter(|_| is_code) {
        Some(new) => Ok(secret_page(ctx, &new, Some(&wrong))),
        None => page(ctx, Some(&wrong)).await,
    }
}

async fn remove(ctx: &PageContext) -> PageResult {
    let password = Secret::new(ctx.form.get("password").unwrap_or_default());
    let code = confirm::code(&ctx.form);
    match second_factor::remove(&ctx.actor, password, code.as_ref()).await {
        Ok(()) => Ok(see_other(&format!("{}?done=removed", policy::SECOND_FACTOR))),
        Err(error) => page(ctx, Some(&visit::form_error(ctx, error)?)).await,
    }
}
