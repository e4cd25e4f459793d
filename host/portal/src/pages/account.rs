//! `/account`: the member's own name, password and sessions.

use std::sync::Arc;

use maud::html;
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::{members, sessions};
use serde_json::json;

use super::{Routes, permissions};
use crate::field::{Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, dates, fault, parts};

/// Sessions that are shown.
const ROWS: usize = 50;

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/account", visit::page(show).merge(visit::form(act)))]
}

async fn show(seat: Arc<Seat>) -> Answer {
    page(&seat, None).await
}

async fn page(seat: &Seat, wrong: Option<(&str, &ApiError)>) -> Answer {
    let of = |form: &str| wrong.filter(|(about, _)| *about == form).map(|(_, wrong)| wrong);
    let member = seat.actor.member();
    let me = members::me(&seat.actor).await?;
    let own = sessions::list(&seat.actor).await?;
    let none = Fields::default();
    let fields = |form: &str| if seat.form.text("do") == form { &seat.form } else { &none };
    let (naming, password) =
        (Filled::new(fields("name"), of("name")), Filled::new(fields("password"), of("password")));
    let name = Text {
        label: "Name",
        name: "name",
        hint: "As people see it; may stay empty.",
        autocomplete: "name",
        first: &member.name,
        ..Text::default()
    };
    let current = Text {
        label: "Current password",
        name: "current_password",
        kind: "password",
        autocomplete: "current-password",
        required: true,
        ..Text::default()
    };
    let new = Text {
        label: "New password",
        name: "new_password",
        kind: "password",
        hint: "8 characters or more. All other sessions end.",
        autocomplete: "new-password",
        required: true,
        ..Text::default()
    };
    let body = html! {
        div.card {
            dl {
                dt { "E-mail" } dd { (parts::said(&member.email)) }
                dt { "Organization" } dd { (parts::said(&me.name)) }
                dt { "You may" } dd { (permissions::in_short(seat.actor.permissions())) }
            }
        }
        form.card method="post" action="/account" {
            h2 { "Name" }
            (parts::guard(seat))
            (parts::hidden("do", "name"))
            (naming.told(html! { (naming.text(name)) button.go type="submit" { "Save" } }))
        }
        @if !member.password_hash.is_empty() {
            form.card method="post" action="/account" {
                h2 { "Password" }
                (parts::guard(seat))
                (parts::hidden("do", "password"))
                (password.told(html! { (password.text(current)) (password.text(new)) button.go type="submit" { "Change password" } }))
            }
        }
        h2 { "Sessions" }
        ul.rows {
            @for session in own.iter().take(ROWS) {
                @let id = sessions::session_id(&session.secret_sha256);
                li {
                    div.what {
                        div { "Since " (dates::time(session.created_at)) @if session.secret_sha256 == *seat.actor.session() { " " (parts::tag("this one")) } }
                        p.meta { span { "ends " (dates::time(session.expires_at)) } }
                    }
                    (parts::deed(seat, "/account", &[("do", "end"), ("id", &id)], &html! { button type="submit" { "End" span.away { " the session since " (dates::exact(session.created_at)) } } }))
                }
            }
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, |(_, wrong)| fault::status(wrong));
    Ok(frame::page(seat, Sheet { status, ..Sheet::of("Account") }, &body))
}

async fn act(seat: Arc<Seat>) -> Answer {
    let deed = seat.form.text("do");
    let done = match deed {
        "end" => {
            sessions::end(&seat.actor, seat.form.text("id")).await?;
            return Ok(see_other("/account?done=ended"));
        }
        "password" => {
            let (new, current) = (seat.form.get("new_password"), seat.form.get("current_password"));
            change(&seat, json!({"password": new, "current_password": current})).await
        }
        _ => change(&seat, json!({"name": seat.form.text("name")})).await,
    };
    match done {
        Ok(()) => Ok(see_other("/account?done=saved")),
        Err(error) => {
            let wrong = visit::wrong(&seat, error)?;
            page(&seat, Some((if deed == "password" { "password" } else { "name" }, &wrong))).await
        }
    }
}

async fn change(seat: &Seat, body: serde_json::Value) -> Result<(), ApiError> {
    members::change(&seat.actor, forms::own_change(body)?).await.map(drop)
}
