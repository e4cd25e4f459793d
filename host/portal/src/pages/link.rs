//! `/sign-in/link`: a member links an identity of the organization's provider to the existing
//! account by confirming the account's password.

use std::sync::Arc;

use http::header::SET_COOKIE;
use maud::html;
use packhouse_api::error::ApiError;
use packhouse_api::operations::sessions::SESSION_MS;
use packhouse_api::operations::sso;
use packhouse_api::portal;
use packhouse_app::sso::Link;
use packhouse_identity::Secret;
use packhouse_wire::catalogue;

use super::Routes;
use crate::field::{Filled, Text};
use crate::frame::Sheet;
use crate::guest::{self, GuestContext};
use crate::page_context::see_other;
use crate::{PageResult, confirm, fault, parts, policy};

pub(super) fn routes() -> Routes {
    vec![(portal::LINK_PAGE, guest::page(show).merge(guest::form(confirm_link)))]
}

fn pending(guest: &GuestContext) -> Option<Link> {
    sso::pending(&guest.origin, portal::cookie(guest.app(), &guest.headers, portal::LINK))
}

async fn show(guest: Arc<GuestContext>) -> PageResult {
    match pending(&guest) {
        Some(link) => Ok(form(&guest, &link, None)),
        None => Ok(see_other("/sign-in")),
    }
}

fn form(guest: &GuestContext, link: &Link, wrong: Option<&ApiError>) -> axum::response::Response {
    let filled = Filled::new(&guest.form, wrong);
    let password = Text {
        label: "Password",
        name: "password",
        kind: "password",
        hint: "The password of your account on this server. If you have none, ask a member who manages members for a password reset code.",
        autocomplete: "current-password",
        required: true,
        ..Text::default()
    };
    let needs_code = |wrong: &ApiError| {
        wrong.code().is_some_and(|code| std::ptr::eq(code, &catalogue::SECOND_FACTOR_REQUIRED))
    };
    let asks_for_code = guest.form.has("code") || wrong.is_some_and(needs_code);
    let fields = html! {
        (filled.text(password))
        @if asks_for_code { (filled.text(confirm::CODE)) }
        button.go type="submit" { "Confirm" }
    };
    let body = html! {
        form.card method="post" action=(portal::LINK_PAGE) {
            p { (parts::isolated(&link.email)) " signed in at " (parts::isolated(&link.issuer)) ", which has not been used for this account before. Confirm that the account is yours to sign in this way from now on." }
            (guest.form_tokens())
            (filled.with_error(fields))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    guest.page(Sheet { status, ..Sheet::of("Confirm the sign-in") }, &body)
}

async fn confirm_link(guest: Arc<GuestContext>) -> PageResult {
    let Some(link) = pending(&guest) else { return Ok(see_other("/sign-in")) };
    let password = Secret::new(guest.form.get("password").unwrap_or_default());
    let code = confirm::code(&guest.form);
    let signed_in = match sso::link(&guest.origin, &link, password, code.as_ref()).await {
        Ok(signed_in) => signed_in,
        Err(wrong @ ApiError::Refused { .. }) if fault::status(&wrong).is_client_error() => {
            return Ok(form(&guest, &link, Some(&wrong)));
        }
        Err(other) => return Err(other),
    };
    let app = guest.app();
    let mut answer = see_other(policy::return_to(link.return_to.as_deref()));
    for cookie in [
        portal::signed_in(app, &signed_in.secret, SESSION_MS / 1000)?,
        portal::set(app, portal::LINK, "", 0)?,
    ] {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(answer)
}
