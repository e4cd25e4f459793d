//! `/members`: who is in the organization and what each may do; inviting, and codes for a new password.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::PageRequest;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::members::{self, Code};
use packhouse_identity::permissions::Permission::ManageMembers;
use packhouse_identity::permissions::Permissions;
use packhouse_store::{MemberId, MemberRow};
use serde_json::json;

use super::repositories::{ROWS, after};
use super::tokens::choices;
use super::{Routes, permissions};
use crate::confirm::{self, Deed, Outcome};
use crate::field::{Filled, Text};
use crate::frame::{self, Sheet};
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, dates, fault, parts};

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/members", visit::page(show).merge(visit::form(act)))]
}

async fn show(seat: Arc<Seat>) -> Answer {
    if let Some(id) = seat.query.get("member") {
        return one_page(&seat, id, None).await;
    }
    if confirm::is_back(&seat) {
        return confirm::ask(&seat, &deed(&seat), &seat.form, None).await;
    }
    list(&seat, None).await
}

async fn list(seat: &Seat, wrong: Option<&ApiError>) -> Answer {
    let page = PageRequest { limit: ROWS, after: after::<MemberId>(seat)? };
    let listed = members::list(&seat.actor, page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|row| row.id.to_string());
    let manages = seat.holds(ManageMembers);
    let body = html! {
        ul.rows { @for row in &listed.rows { li { (one(seat, row, manages)) } } }
        (parts::further("/members", &[], next.as_deref()))
        @if manages { (new_form(seat, wrong).await?) }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(seat, Sheet { status, ..Sheet::of("Members") }, &body))
}

fn one(seat: &Seat, row: &MemberRow, manages: bool) -> Markup {
    let held = Permissions::read(&row.permissions);
    let id = row.id.to_string();
    let own = row.id == seat.actor.member().id;
    let change = html! { button type="submit" { "Change " (parts::said(&row.email)) } };
    html! {
        div.what {
            div { (parts::said(&row.email)) @if own { " " span.soft { "(you)" } } }
            p.meta {
                @if !row.name.is_empty() { span { (parts::said(&row.name)) } }
                span { (permissions::in_short(&held)) }
                span { "since " (dates::time(row.created_at)) }
            }
        }
        @if manages { div.acts { (parts::ask("/members", "member", &id, &change)) } }
    }
}

/// Inviting somebody; or with `?new=member`, making a member with a password.
async fn new_form(seat: &Seat, wrong: Option<&ApiError>) -> Result<Markup, ApiError> {
    let choices = choices(seat).await?;
    let with_password = seat.query.has("new") || seat.form.text("do") == "create";
    let filled = Filled::new(&seat.form, wrong);
    let email = Text { label: "E-mail", name: "email", kind: "email", required: true, ..Text::default() };
    let name =
        Text { label: "Name", name: "name", hint: "As people see it; may stay empty.", ..Text::default() };
    let password = Text {
        label: "Password",
        name: "member_password",
        kind: "password",
        hint: "8 characters or more. They can change it.",
        autocomplete: "new-password",
        required: true,
        ..Text::default()
    };
    let fields = html! {
        (filled.text(email))
        @if with_password { (filled.text(name)) (filled.text(password)) }
        (permissions::section(seat, &filled, &choices))
        @if with_password { button.go type="submit" { "Create member" } } @else { button.go type="submit" { "Invite" } }
    };
    let (heading, deed) =
        if with_password { ("Create a member", "create") } else { ("Invite somebody", "invite") };
    Ok(html! {
        form.card method="post" action="/members" {
            h2 { (heading) }
            (parts::guard(seat))
            (parts::hidden("do", deed))
            (filled.told(fields))
            @if with_password { p { a href="/members" { "Invite somebody instead" } } }
            @else { p { a href="/members?new=member" { "Create a member with a password instead" } } }
        }
    })
}

async fn one_page(seat: &Seat, id: &str, wrong: Option<&ApiError>) -> Answer {
    let row = members::show(&seat.actor, id).await?;
    let choices = choices(seat).await?;
    let held = if seat.form.text("do") == "permissions" {
        seat.form.clone()
    } else {
        permissions::fields(&Permissions::read(&row.permissions))
    };
    let filled = Filled::new(&held, wrong);
    let reset = html! { button type="submit" { "Make a code for a new password" } };
    let body = html! {
        form.card method="post" action="/members" {
            h2 { "What they may do" }
            (parts::guard(seat))
            (parts::hidden("do", "permissions"))
            (parts::hidden("id", id))
            (filled.told(html! { (permissions::section(seat, &filled, &choices)) button.go type="submit" { "Save" } }))
        }
        div.card {
            h2 { "Password" }
            p { "With the code they set a new password within an hour; their sessions end then." }
            (parts::deed(seat, "/members", &[("do", "reset"), ("id", id)], &reset))
        }
        div.card.danger {
            h2 { "Delete" }
            p { "Their sessions end and their tokens are revoked. Service keys that they made go on." }
            (parts::deed_in_two_steps(seat, "/members", &[("do", "delete"), ("id", id)], "Delete", ""))
        }
    };
    let crumbs = html! { p.crumbs { a href="/members" { "Members" } } };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(seat, Sheet { status, crumbs, ..Sheet::of(&row.email) }, &body))
}

async fn act(seat: Arc<Seat>) -> Answer {
    let id = seat.form.text("id");
    match seat.form.text("do") {
        "permissions" if seat.form.has("filter") => one_page(&seat, id, None).await,
        "permissions" => match save(&seat, id).await {
            Ok(()) => Ok(see_other("/members?done=saved")),
            Err(error) => one_page(&seat, id, Some(&visit::wrong(&seat, error)?)).await,
        },
        "reset" => match reset(&seat, id).await {
            Ok(Outcome::Done(code)) => {
                confirm::spent(&seat, told(&seat, "A code for a new password", "/password-resets/", &code))
            }
            Ok(Outcome::Asked(page)) => Ok(page),
            Err(error) => one_page(&seat, id, Some(&visit::wrong(&seat, error)?)).await,
        },
        "delete" => match members::remove(&seat.actor, id).await {
            Ok(()) => Ok(see_other("/members?done=deleted")),
            Err(error) => one_page(&seat, id, Some(&visit::wrong(&seat, error)?)).await,
        },
        _ if seat.form.has("filter") => list(&seat, None).await,
        "create" => match create(&seat).await {
            Ok(Outcome::Done(())) => confirm::spent(&seat, see_other("/members?done=created")),
            Ok(Outcome::Asked(page)) => Ok(page),
            Err(error) => list(&seat, Some(&visit::wrong(&seat, error)?)).await,
        },
        _ => match invite(&seat).await {
            Ok(code) => Ok(told(&seat, "Invited", "/invitations/", &code)),
            Err(error) => list(&seat, Some(&visit::wrong(&seat, error)?)).await,
        },
    }
}

async fn save(seat: &Seat, id: &str) -> Result<(), ApiError> {
    let wanted = forms::permissions(json!({"permissions": permissions::body(&seat.form)}))?;
    members::set_permissions(&seat.actor, id, &wanted).await.map(drop)
}

/// What a form needs a confirmation for.
fn deed(seat: &Seat) -> Deed<'static> {
    let (title, what) = match seat.form.text("do") {
        "reset" => (
            "Confirm the code",
            html! { p { "The code for a new password is made once you have confirmed that it is you." } },
        ),
        _ => {
            let email = parts::said(seat.form.text("email"));
            (
                "Confirm the new member",
                html! { p { "The member " strong { (email) } " is created once you have confirmed that it is you." } },
            )
        }
    };
    Deed { action: Action::ManageMembers, title, what }
}

async fn reset(seat: &Seat, id: &str) -> Result<Outcome<Code>, ApiError> {
    confirm::then(seat, deed(seat), async |confirmation| members::reset(&seat.actor, confirmation, id).await)
        .await
}

async fn create(seat: &Seat) -> Result<Outcome<()>, ApiError> {
    let request = forms::member(json!({
        "email": seat.form.text("email"), "name": seat.form.text("name"),
        "password": seat.form.get("member_password").unwrap_or_default(), "permissions": permissions::body(&seat.form),
    }))?;
    confirm::then(seat, deed(seat), async |confirmation| {
        members::create(&seat.actor, confirmation, request).await.map(drop)
    })
    .await
}

async fn invite(seat: &Seat) -> Result<Code, ApiError> {
    let body = json!({"email": seat.form.text("email"), "permissions": permissions::body(&seat.form)});
    let (email, wanted) = forms::invitation(body)?;
    members::invite(&seat.actor, email, &wanted).await
}

/// The address with a code, which is shown this once.
fn told(seat: &Seat, title: &str, path: &str, code: &Code) -> axum::response::Response {
    let address = format!("{}{path}{}", seat.actor.api_url(), code.secret.reveal());
    let body = html! {
        div.card {
            @match code.mailed {
                Some(true) => p { "It was mailed. You can also hand this address on yourself:" },
                Some(false) => p { "It could not be mailed: hand this address on yourself." },
                None => p { "Hand this address on: whoever opens it first can use it." },
            }
            (parts::secret(&address))
            p { "It is good until " (dates::time(code.expires_at)) ", and once." }
            p { a.button href="/members" { "Back to the members" } }
        }
    };
    frame::page(seat, Sheet { status: http::StatusCode::CREATED, ..Sheet::of(title) }, &body)
}
