//! `/subscribers`, `/subscriber-groups` and the page of each, with its access keys.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::{PageRequest, key_owners};
use packhouse_identity::permissions::Permission::ManageSubscribers;
use packhouse_store::{KeyOwnerId, KeyOwnerKind, KeyOwnerRow};
use serde_json::{Value, json};

use super::repositories::{ROWS, after};
use super::tokens::choices;
use super::{Routes, access_keys};
use crate::field::{Choice, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, dates, fault, parts};

/// The most subscribers that a group's page offers to choose from.
const OFFERED: u32 = 1000;

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![
        (
            "/subscribers",
            visit::page(|seat| list(seat, KeyOwnerKind::Subscriber))
                .merge(visit::form(|seat| create(seat, KeyOwnerKind::Subscriber))),
        ),
        (
            "/subscriber-groups",
            visit::page(|seat| list(seat, KeyOwnerKind::Group))
                .merge(visit::form(|seat| create(seat, KeyOwnerKind::Group))),
        ),
        (
            "/subscribers/{id}",
            visit::page(|seat| show(seat, KeyOwnerKind::Subscriber))
                .merge(visit::form(|seat| act(seat, KeyOwnerKind::Subscriber))),
        ),
        (
            "/subscriber-groups/{id}",
            visit::page(|seat| show(seat, KeyOwnerKind::Group))
                .merge(visit::form(|seat| act(seat, KeyOwnerKind::Group))),
        ),
    ]
}

/// What differs by kind in what is read.
struct Words {
    path: &'static str,
    many: &'static str,
    new: &'static str,
    button: &'static str,
    empty: &'static str,
}

fn words(kind: KeyOwnerKind) -> Words {
    match kind {
        KeyOwnerKind::Subscriber => Words {
            path: "/subscribers",
            many: "Subscribers",
            new: "New subscriber",
            button: "Create subscriber",
            empty: "A subscriber is somebody outside, as a customer, who reads the repositories that you give, with access keys of their own.",
        },
        KeyOwnerKind::Group => Words {
            path: "/subscriber-groups",
            many: "Subscriber groups",
            new: "New subscriber group",
            button: "Create subscriber group",
            empty: "A group gives all its subscribers the same repositories, and can have access keys of its own.",
        },
    }
}

async fn list(seat: Arc<Seat>, kind: KeyOwnerKind) -> Answer {
    listed(&seat, kind, None).await
}

async fn listed(seat: &Seat, kind: KeyOwnerKind, wrong: Option<&ApiError>) -> Answer {
    let page = PageRequest { limit: ROWS, after: after::<KeyOwnerId>(seat)? };
    let listed = key_owners::list(&seat.actor, kind, page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|row| row.id.to_string());
    let Words { path, many, new, button, empty } = words(kind);
    let filled = Filled::new(&seat.form, wrong);
    let fields =
        html! { (own_fields(seat, kind, &filled, None).await?) button.go type="submit" { (button) } };
    let body = html! {
        @if listed.rows.is_empty() { div.card.empty { h2 { "None yet" } p { (empty) } } } @else {
            ul.rows { @for row in &listed.rows { li { (one(path, row)) } } }
        }
        (parts::further(path, &[], next.as_deref()))
        form.card method="post" action=(path) { h2 { (new) } (parts::guard(seat)) (filled.told(fields)) }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(seat, Sheet { status, ..Sheet::of(many) }, &body))
}

fn one(path: &str, row: &KeyOwnerRow) -> Markup {
    html! {
        div.what {
            a href={ (path) "/" (row.id) } { (parts::said(&row.name)) }
            p.meta {
                @if let Some(email) = &row.email { span { (parts::said(email)) } }
                (parts::count(row.repositories.len() as u64, "repository", "repositories"))
                @if !row.subscribers.is_empty() { (parts::count(row.subscribers.len() as u64, "subscriber", "subscribers")) }
                span { "since " (dates::time(row.created_at)) }
            }
        }
    }
}

/// The fields of a new one, or of one that there is.
async fn own_fields(
    seat: &Seat,
    kind: KeyOwnerKind,
    filled: &Filled<'_>,
    row: Option<&KeyOwnerRow>,
) -> Result<Markup, ApiError> {
    let first = row.map(|row| row.name.as_str()).unwrap_or_default();
    let name = Text { label: "Name", name: "name", required: true, first, ..Text::default() };
    let email = row.and_then(|row| row.email.as_deref()).unwrap_or_default();
    let email = Text {
        label: "E-mail",
        name: "email",
        kind: "email",
        hint: "Where they can be reached; may stay empty.",
        first: email,
        ..Text::default()
    };
    let repositories = choices(seat).await?;
    let subscribers = match kind {
        KeyOwnerKind::Subscriber => Vec::new(),
        KeyOwnerKind::Group => subscribers(seat).await?,
    };
    Ok(html! {
        (filled.text(name))
        @if kind == KeyOwnerKind::Subscriber { (filled.text(email)) }
        (filled.checks("Repositories", "repositories", &repositories, "What their keys read."))
        @if kind == KeyOwnerKind::Group { (filled.checks("Subscribers", "subscribers", &subscribers, "")) }
    })
}

async fn subscribers(seat: &Seat) -> Result<Vec<Choice>, ApiError> {
    let page = PageRequest { limit: OFFERED, after: None };
    let listed = key_owners::list(&seat.actor, KeyOwnerKind::Subscriber, page).await?;
    let choice = |row: KeyOwnerRow| Choice { value: row.id.to_string(), label: row.name };
    Ok(listed.rows.into_iter().map(choice).collect())
}

/// What the form says, as the body of the call.
fn body(kind: KeyOwnerKind, form: &Fields) -> Value {
    let (name, repositories) = (form.text("name"), form.list("repositories"));
    match kind {
        KeyOwnerKind::Subscriber => {
            json!({"name": name, "email": form.or_null("email"), "repositories": repositories})
        }
        KeyOwnerKind::Group => {
            json!({"name": name, "subscribers": form.list("subscribers"), "repositories": repositories})
        }
    }
}

async fn create(seat: Arc<Seat>, kind: KeyOwnerKind) -> Answer {
    if seat.form.has("filter") {
        return listed(&seat, kind, None).await;
    }
    let made = async {
        let request = forms::key_owner(kind, true, body(kind, &seat.form))?;
        key_owners::create(&seat.actor, kind, request).await
    };
    match made.await {
        Ok(row) => Ok(see_other(&format!("{}/{}?done=created", words(kind).path, row.id))),
        Err(error) if seat.holds(ManageSubscribers) => {
            listed(&seat, kind, Some(&visit::wrong(&seat, error)?)).await
        }
        Err(error) => Err(error),
    }
}

async fn show(seat: Arc<Seat>, kind: KeyOwnerKind) -> Answer {
    let row = key_owners::find(&seat.actor, kind, seat.named("id")).await?;
    match access_keys::asked(&seat, kind, &row).await? {
        Some(page) => Ok(page),
        None => shown(&seat, kind, &row, None).await,
    }
}

/// The page of one.
async fn shown(
    seat: &Seat,
    kind: KeyOwnerKind,
    row: &KeyOwnerRow,
    wrong: Option<(&str, &ApiError)>,
) -> Answer {
    let of = |form: &str| wrong.filter(|(about, _)| *about == form).map(|(_, wrong)| wrong);
    let Words { path, many, .. } = words(kind);
    let mut held: Vec<(String, String)> =
        row.repositories.iter().map(|id| ("repositories".to_owned(), id.to_string())).collect();
    held.extend(row.subscribers.iter().map(|id| ("subscribers".to_owned(), id.to_string())));
    let held = if seat.form.text("do") == "save" { seat.form.clone() } else { Fields(held) };
    let filled = Filled::new(&held, of("save"));
    let fields = own_fields(seat, kind, &filled, Some(row)).await?;
    let body = html! {
        (access_keys::section(seat, kind, row, of("create")).await?)
        form.card method="post" action=(seat.path) {
            h2 { "Name and reach" }
            (parts::guard(seat))
            (parts::hidden("do", "save"))
            (filled.told(html! { (fields) button.go type="submit" { "Save" } }))
        }
        div.card.danger {
            h2 { "Delete" }
            p { "Its access keys are refused from then on." }
            (parts::deed_in_two_steps(seat, &seat.path, &[("do", "delete")], "Delete", ""))
        }
    };
    let crumbs = html! { p.crumbs { a href=(path) { (many) } } };
    let status = wrong.map_or(http::StatusCode::OK, |(_, wrong)| fault::status(wrong));
    Ok(frame::page(seat, Sheet { status, crumbs, ..Sheet::of(&row.name) }, &body))
}

async fn act(seat: Arc<Seat>, kind: KeyOwnerKind) -> Answer {
    let id = seat.named("id");
    let row = key_owners::find(&seat.actor, kind, id).await?;
    match seat.form.text("do") {
        "save" if seat.form.has("filter") => shown(&seat, kind, &row, None).await,
        "save" => {
            let saved = async {
                let request = forms::key_owner(kind, false, body(kind, &seat.form))?;
                key_owners::change(&seat.actor, kind, id, request).await
            };
            match saved.await {
                Ok(_) => Ok(see_other(&format!("{}?done=saved", seat.path))),
                Err(error) => {
                    let wrong = visit::wrong(&seat, error)?;
                    shown(&seat, kind, &row, Some(("save", &wrong))).await
                }
            }
        }
        "delete" => {
            key_owners::remove(&seat.actor, kind, id).await?;
            Ok(see_other(&format!("{}?done=deleted", words(kind).path)))
        }
        "create" => match access_keys::create(&seat, kind, &row).await {
            Ok(answer) => Ok(answer),
            Err(error) => {
                let wrong = visit::wrong(&seat, error)?;
                shown(&seat, kind, &row, Some(("create", &wrong))).await
            }
        },
        deed => access_keys::act(&seat, kind, deed).await,
    }
}
