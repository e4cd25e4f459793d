//! `/invitations/{code}` and `/password-resets/{code}`: pages for the owner of a single-use code,
//! without a session.

use std::sync::Arc;

use maud::html;
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::members;
use serde_json::json;

use super::Routes;
use crate::field::{Filled, Text};
use crate::frame::Sheet;
use crate::guest::{self, GuestContext};
use crate::{PageResult, fault, parts};

pub(super) fn routes() -> Routes {
    vec![
        ("/invitations/{code}", guest::page(show_invitation).merge(guest::form(accept))),
        ("/password-resets/{code}", guest::page(show_reset).merge(guest::form(reset))),
    ]
}

const PASSWORD: Text<'static> = Text {
    label: "Password",
    name: "password",
    kind: "password",
    hint: "At least 8 characters.",
    autocomplete: "new-password",
    required: true,
    first: "",
};

async fn show_invitation(guest: Arc<GuestContext>) -> PageResult {
    invitation(&guest, None).await
}

async fn invitation(guest: &GuestContext, wrong: Option<&ApiError>) -> PageResult {
    let code = guest.named("code");
    let invited = members::invited(&guest.origin, code).await?;
    let filled = Filled::new(&guest.form, wrong);
    let name = Text {
        label: "Name",
        name: "name",
        hint: "Name that other members see (optional).",
        autocomplete: "name",
        ..Text::default()
    };
    let fields =
        html! { (filled.text(name)) (filled.text(PASSWORD)) button.go type="submit" { "Accept invitation" } };
    let body = html! {
        form.card method="post" {
            p { "You are invited as " strong { (parts::isolated(&invited)) } ". Choose a password to sign in with." }
            (guest.form_tokens())
            (filled.with_error(fields))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(guest.page(Sheet { status, ..Sheet::of("You are invited") }, &body))
}

async fn accept(guest: Arc<GuestContext>) -> PageResult {
    let (name, password) = (guest.form.text("name"), guest.form.get("password").unwrap_or_default());
    let accepted = async {
        let acceptance = forms::acceptance(json!({"name": name, "password": password}))?;
        members::accept(&guest.origin, guest.named("code"), acceptance).await
    };
    match accepted.await {
        Ok(member) => {
            let body = html! {
                p role="status" { "Welcome, " (parts::isolated(&member.email)) "." }
                p { a.button.go href="/sign-in" { "Sign in" } }
            };
            Ok(guest
                .page(Sheet { status: http::StatusCode::CREATED, ..Sheet::of("Invitation accepted") }, &body))
        }
        Err(error) if fault::status(&error) == http::StatusCode::BAD_REQUEST => {
            invitation(&guest, Some(&error)).await
        }
        Err(error) => Err(error),
    }
}

async fn show_reset(guest: Arc<GuestContext>) -> PageResult {
    password(&guest, None).await
}

async fn password(guest: &GuestContext, wrong: Option<&ApiError>) -> PageResult {
    let email = members::resetting(&guest.origin, guest.named("code")).await?;
    let filled = Filled::new(&guest.form, wrong);
    let fields = html! { (filled.text(PASSWORD)) button.go type="submit" { "Save" } };
    let body = html! {
        form.card method="post" {
            p { "Choose a new password for " strong { (parts::isolated(&email)) } ". All sessions of this account end." }
            (guest.form_tokens())
            (filled.with_error(fields))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(guest.page(Sheet { status, ..Sheet::of("Set a new password") }, &body))
}

async fn reset(guest: Arc<GuestContext>) -> PageResult {
    let new_password = guest.form.get("password").unwrap_or_default().to_owned();
    let done = async {
        let new_password = forms::password(new_password)?;
        members::complete_reset(&guest.origin, guest.named("code"), new_password).await
    };
    match done.await {
        Ok(()) => {
            let body = html! {
                p role="status" { "The new password is set." }
                p { a.button.go href="/sign-in" { "Sign in" } }
            };
            Ok(guest.page(Sheet::of("Password set"), &body))
        }
        Err(error) if fault::status(&error) == http::StatusCode::BAD_REQUEST => {
            password(&guest, Some(&error)).await
        }
        Err(error) => Err(error),
    }
}
