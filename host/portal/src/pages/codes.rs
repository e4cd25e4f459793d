//! `/invitations/{code}` and `/password-resets/{code}`: what somebody without a session does with a code, once.

use std::sync::Arc;

use maud::html;
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::members;
use serde_json::json;

use super::Routes;
use crate::field::{Filled, Text};
use crate::frame::Sheet;
use crate::guest::{self, Guest};
use crate::{Answer, fault, parts};

/// What this file answers.
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
    hint: "8 characters or more.",
    autocomplete: "new-password",
    required: true,
    first: "",
};

async fn show_invitation(guest: Arc<Guest>) -> Answer {
    invitation(&guest, None).await
}

async fn invitation(guest: &Guest, wrong: Option<&ApiError>) -> Answer {
    let code = guest.named("code");
    let invited = members::invited(&guest.origin, code).await?;
    let filled = Filled::new(&guest.form, wrong);
    let name = Text {
        label: "Name",
        name: "name",
        hint: "As people see it; may stay empty.",
        autocomplete: "name",
        ..Text::default()
    };
    let fields =
        html! { (filled.text(name)) (filled.text(PASSWORD)) button.go type="submit" { "Accept invitation" } };
    let body = html! {
        form.card method="post" {
            p { "You are invited as " strong { (parts::said(&invited)) } ". Choose a password, and you can sign in." }
            (guest.guard())
            (filled.told(fields))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(guest.page(Sheet { status, ..Sheet::of("You are invited") }, &body))
}

async fn accept(guest: Arc<Guest>) -> Answer {
    let (name, password) = (guest.form.text("name"), guest.form.get("password").unwrap_or_default());
    let accepted = async {
        let acceptance = forms::acceptance(json!({"name": name, "password": password}))?;
        members::accept(&guest.origin, guest.named("code"), acceptance).await
    };
    match accepted.await {
        Ok(member) => {
            let body = html! {
                p role="status" { "Welcome, " (parts::said(&member.email)) "." }
                p { a.button.go href="/sign-in" { "Go to the sign-in" } }
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

async fn show_reset(guest: Arc<Guest>) -> Answer {
    password(&guest, None).await
}

async fn password(guest: &Guest, wrong: Option<&ApiError>) -> Answer {
    let email = members::resetting(&guest.origin, guest.named("code")).await?;
    let filled = Filled::new(&guest.form, wrong);
    let fields = html! { (filled.text(PASSWORD)) button.go type="submit" { "Save" } };
    let body = html! {
        form.card method="post" {
            p { "A new password for " strong { (parts::said(&email)) } ". All sessions of this account end." }
            (guest.guard())
            (filled.told(fields))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(guest.page(Sheet { status, ..Sheet::of("Set a new password") }, &body))
}

async fn reset(guest: Arc<Guest>) -> Answer {
    let wanted = guest.form.get("password").unwrap_or_default().to_owned();
    let done = async {
        let wanted = forms::password(wanted)?;
        members::complete_reset(&guest.origin, guest.named("code"), wanted).await
    };
    match done.await {
        Ok(()) => {
            let body = html! {
                p role="status" { "The new password is set." }
                p { a.button.go href="/sign-in" { "Go to the sign-in" } }
            };
            Ok(guest.page(Sheet::of("Password set"), &body))
        }
        Err(error) if fault::status(&error) == http::StatusCode::BAD_REQUEST => {
            password(&guest, Some(&error)).await
        }
        Err(error) => Err(error),
    }
}
