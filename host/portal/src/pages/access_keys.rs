//! The access keys of a subscriber or a group, on its page. Whatever changes one is confirmed.

use axum::response::Response;
use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::access_keys::{self, Owner, state};
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::{NewCredential, PageRequest};
use packhouse_identity::access::State;
use packhouse_store::{AccessKeyId, AccessKeyRow, KeyOwnerKind, KeyOwnerRow};
use serde_json::{Map, Value, json};

use super::repositories::after;
use super::tokens::{ROWS, rotation_body};
use crate::confirm::{self, Deed, Given};
use crate::field::{self, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, dates, fault, parts};

/// For how many days a key works where nothing else is said.
const DAYS: i64 = 365;
/// What can be done to a key, each on a page that confirms it.
const DEEDS: [&str; 3] = ["rotate", "change", "revoke"];

fn owner<'a>(seat: &'a Seat, kind: KeyOwnerKind) -> Owner<'a> {
    Owner { kind, id: seat.named("id") }
}

/// The list, and the form for another.
pub(super) async fn section(
    seat: &Seat,
    kind: KeyOwnerKind,
    row: &KeyOwnerRow,
    wrong: Option<&ApiError>,
) -> Result<Markup, ApiError> {
    let page = PageRequest { limit: ROWS, after: after::<AccessKeyId>(seat)? };
    let listed = access_keys::list(&seat.actor, owner(seat, kind), page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|key| key.id.to_string());
    let (none, of_create) = (Fields::default(), seat.form.text("do") == "create");
    let filled = Filled::new(if of_create { &seat.form } else { &none }, wrong);
    let label = Text {
        label: "Name of the key",
        name: "key_name",
        hint: "What it is for; may stay empty.",
        ..Text::default()
    };
    let fields = html! {
        (filled.text(label))
        (filled.expires(seat.actor.now, Some(DAYS), "It works to the end of this day, UTC."))
        button.go type="submit" { "Create access key" }
    };
    Ok(html! {
        h2 { "Access keys" }
        @if listed.rows.is_empty() {
            div.card.empty { p { "None yet. A key is the password of " (parts::said(&row.name)) "’s package clients, with any username." } }
        } @else {
            ul.rows { @for key in &listed.rows { li { (one(seat, key)) } } }
        }
        (parts::further(&seat.path, &[], next.as_deref()))
        form.card method="post" action=(seat.path) {
            h3 { "Create an access key" }
            (parts::guard(seat))
            (parts::hidden("do", "create"))
            (filled.told(fields))
        }
    })
}

fn called(key: &AccessKeyRow) -> String {
    key.name.clone().unwrap_or_else(|| format!("key {}", key.id))
}

fn one(seat: &Seat, key: &AccessKeyRow) -> Markup {
    let (state, name, id) = (state(key, seat.actor.now), called(key), key.id.to_string());
    let button = |deed: &str, class: &str| html! { button class=(class) type="submit" { (deed) span.away { " " (parts::said(&name)) } } };
    html! {
        div.what {
            div { (parts::said(&name)) " " (parts::tag(state.name())) }
            p.meta {
                @match key.expires_at { Some(at) => span { "expires " (dates::time(at)) }, None => span { "never expires" } }
                @if state == State::Rotating { @if let Some(at) = key.ends_at { span { "ends " (dates::time(at)) } } }
                @match key.last_used_at { Some(at) => span { "last used " (dates::time(at)) }, None => span { "never used" } }
                span { "made by " (parts::said(&key.created_by)) }
            }
        }
        @if state.works() {
            div.acts {
                (parts::ask(&seat.path, "rotate", &id, &button("Rotate", "")))
                @if state == State::Active { (parts::ask(&seat.path, "change", &id, &button("Change expiry", ""))) }
                (parts::ask(&seat.path, "revoke", &id, &button("Revoke", "bad")))
            }
        }
    }
}

/// The page of a deed that the address asks for; none where it asks for none.
pub(super) async fn asked(
    seat: &Seat,
    kind: KeyOwnerKind,
    row: &KeyOwnerRow,
) -> Result<Option<Response>, ApiError> {
    if seat.query.has("confirmed") && seat.form.text("do") == "create" {
        return confirm::ask(seat, &creating(row), &seat.form, None).await.map(Some);
    }
    for deed in DEEDS {
        if let Some(id) = seat.query.get(deed) {
            return page(seat, kind, deed, id, None).await.map(Some);
        }
    }
    Ok(None)
}

fn creating(row: &KeyOwnerRow) -> Deed<'static> {
    let what = html! { p { "An access key for " strong { (parts::said(&row.name)) } " is created once you have confirmed that it is you." } };
    Deed { action: Action::ManageAccessKeys, title: "Confirm the new access key", what }
}

/// The page that does something to a key, with its confirmation.
async fn page(seat: &Seat, kind: KeyOwnerKind, deed: &str, id: &str, wrong: Option<&ApiError>) -> Answer {
    let key = find(seat, kind, id).await?;
    let back = format!("{}?{deed}={}", seat.path, parts::segment(id));
    let section = confirm::section(seat, Action::ManageAccessKeys, &back, wrong).await?;
    let stood = key.expires_at.map(dates::day);
    let mut fields = seat.form.clone();
    if deed == "change" && !fields.has("do") {
        fields.0.push(match stood {
            Some(day) => ("expires".to_owned(), day),
            None => ("never".to_owned(), "yes".to_owned()),
        });
    }
    let filled = Filled::new(&fields, wrong.filter(|wrong| !confirm::is_about(wrong)));
    let overlap = Text {
        label: "Overlap (hours)",
        name: "overlap_hours",
        kind: "number",
        hint: "For how long the old one works on, 0 to 168.",
        first: "24",
        ..Text::default()
    };
    let content = html! {
        @match deed {
            "rotate" => {
                p { "A new key takes the place of this one, which works on for the overlap." }
                (filled.expires(seat.actor.now, None, "Left empty, the new one expires when the old one does."))
                (filled.text(overlap))
            }
            "change" => {
                (parts::hidden("expected", &key.expires_at.map(|at| at.to_string()).unwrap_or_default()))
                (filled.expires(seat.actor.now, None, "It works to the end of this day, UTC."))
            }
            _ => p { "The key is refused from then on. This cannot be taken back." },
        }
        (section.markup)
    };
    let title = match deed {
        "rotate" => "Rotate an access key",
        "change" => "Change when an access key expires",
        _ => "Revoke an access key",
    };
    let body = html! {
        form.card method="post" action=(seat.path) {
            h2 { (parts::said(&called(&key))) }
            (parts::guard(seat))
            (parts::hidden("do", deed))
            (parts::hidden("id", id))
            (filled.told(content))
            p { a href=(seat.path) { "Go back" } }
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(seat, Sheet { status, issuer: section.issuer, ..Sheet::of(title) }, &body))
}

/// The key of this id among the owner's.
async fn find(seat: &Seat, kind: KeyOwnerKind, id: &str) -> Result<AccessKeyRow, ApiError> {
    access_keys::show(&seat.actor, owner(seat, kind), id).await
}

/// What the form of a key that there is does.
pub(super) async fn act(seat: &Seat, kind: KeyOwnerKind, deed: &str) -> Answer {
    match change(seat, kind, deed).await {
        Ok(answer) => Ok(answer),
        Err(error) => {
            let wrong = visit::wrong(seat, error)?;
            page(seat, kind, deed, seat.form.text("id"), Some(&wrong)).await
        }
    }
}

/// What the form for another key does.
pub(super) async fn create(seat: &Seat, kind: KeyOwnerKind, row: &KeyOwnerRow) -> Answer {
    let mut body = Map::new();
    body.insert("name".to_owned(), seat.form.or_null("key_name"));
    body.extend(field::expiry(&seat.form).map(|at| ("expires_at".to_owned(), at)));
    let request = forms::access_key(Value::Object(body), seat.actor.now)?;
    let confirmation = match confirm::given(seat, creating(row)).await? {
        Given::Asked(page) => return Ok(page),
        Given::Confirmation(confirmation) => confirmation,
    };
    match access_keys::create(&seat.actor, &confirmation, owner(seat, kind), request).await {
        Ok(made) => created(seat, "Access key created", &made),
        Err(error) => match confirm::again(seat, creating(row), &error).await? {
            Some(page) => Ok(page),
            None => Err(error),
        },
    }
}

fn created(seat: &Seat, title: &str, made: &NewCredential<AccessKeyRow>) -> Answer {
    let body = html! {
        div.card {
            h2 { (parts::said(&called(&made.row))) }
            @if let Some(secret) = &made.secret { (parts::secret(secret.reveal())) }
            p { "It goes into a client as the password, with any username." }
            @if let Some(replaced) = &made.replaced { p { "The old one works until " (dates::time(replaced.ends_at)) "." } }
            p { a.button href=(seat.path) { "Back" } }
        }
    };
    confirm::spent(
        seat,
        frame::page(seat, Sheet { status: http::StatusCode::CREATED, ..Sheet::of(title) }, &body),
    )
}

async fn change(seat: &Seat, kind: KeyOwnerKind, deed: &str) -> Answer {
    let (id, now) = (seat.form.text("id"), seat.actor.now);
    let done = |what: &str| confirm::spent(seat, see_other(&format!("{}?done={what}", seat.path)));
    match deed {
        "rotate" => {
            let request = forms::rotation(rotation_body(&seat.form), now)?;
            let confirmation = confirm::take(seat, Action::ManageAccessKeys).await?;
            let made =
                access_keys::rotate(&seat.actor, &confirmation, owner(seat, kind), id, request).await?;
            created(seat, "Rotated", &made)
        }
        "change" => {
            let mut body = json!({"expected_expires_at": seat.form.text("expected").parse::<i64>().ok()});
            if let Some(fields) = body.as_object_mut() {
                fields.extend(field::expiry(&seat.form).map(|at| ("expires_at".to_owned(), at)));
            }
            let request = forms::access_key_change(body, now)?;
            let confirmation = confirm::take(seat, Action::ManageAccessKeys).await?;
            access_keys::change(&seat.actor, &confirmation, owner(seat, kind), id, request).await?;
            done("saved")
        }
        "revoke" => {
            let confirmation = confirm::take(seat, Action::ManageAccessKeys).await?;
            access_keys::revoke(&seat.actor, &confirmation, owner(seat, kind), id).await?;
            done("revoked")
        }
        _ => Err(ApiError::invalid("The form does not say what to do.")),
    }
}
