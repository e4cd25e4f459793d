//! `/tokens`: the Repository Tokens page. The member's own, and with the right another member's.

use std::sync::Arc;

use axum::response::Response;
use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::tokens::{self, OwnedToken, TokenFilter, state};
use packhouse_api::operations::{NewCredential, PageRequest, members};
use packhouse_api::{forms, tokens as bodies};
use packhouse_identity::access::State;
use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_store::{RepositoryRow, TokenId, TokenRow};
use serde_json::{Map, Value, json};

use super::Routes;
use super::repositories::after;
use crate::confirm::{self, Deed, Given};
use crate::field::{self, Choice, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, dates, fault, parts};

/// For how many days a token works where nothing else is said.
const DAYS: i64 = 90;
/// Rows of a page, each with two forms.
pub(super) const ROWS: u32 = 20;
/// Repositories of a token that are named in a list.
const NAMED: usize = 5;

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/tokens", visit::page(show).merge(visit::form(act)))]
}

/// The repositories in which the member has any right.
pub(super) async fn reachable(seat: &Seat) -> Result<Vec<RepositoryRow>, ApiError> {
    Ok(members::me(&seat.actor).await?.repositories.into_iter().map(|one| one.row).collect())
}

/// A repository to choose.
pub(super) fn choice(row: &RepositoryRow) -> Choice {
    Choice { value: row.id.to_string(), label: row.name.clone() }
}

/// The repositories in which the member has any right, to choose from.
pub(super) async fn choices(seat: &Seat) -> Result<Vec<Choice>, ApiError> {
    Ok(reachable(seat).await?.iter().map(choice).collect())
}

async fn show(seat: Arc<Seat>) -> Answer {
    if let Some(id) = seat.query.get("rotate") {
        return rotation(&seat, "Rotate a token", id, None).await;
    }
    if seat.query.has("confirmed") && !seat.form.0.is_empty() {
        return confirm::ask(&seat, &creating(&seat.form), &seat.form, None).await;
    }
    list(&seat, None).await
}

/// Whose tokens are listed.
fn member(seat: &Seat) -> Option<&str> {
    let named = seat.query.get("member").or(seat.form.get("member")).map(str::trim);
    named.filter(|name| !name.is_empty())
}

async fn list(seat: &Seat, wrong: Option<&ApiError>) -> Answer {
    let page = PageRequest { limit: ROWS, after: after::<TokenId>(seat)? };
    let filter = member(seat).map_or(TokenFilter::Own, |name| TokenFilter::Member(name.to_owned()));
    let listed = tokens::list(&seat.actor, filter, page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|token| token.row.id.to_string());
    let choices = choices(seat).await?;
    let whose = member(seat);
    let body = html! {
        @if seat.holds(ManageOwnerAccount) { (of_whom(whose)) }
        @if listed.rows.is_empty() && wrong.is_none() {
            div.card.empty {
                h2 { "No tokens yet" }
                p { "A token is the password of a package client: it reaches the repositories that you choose, does what you allow, and can be revoked at any time." }
            }
        } @else {
            ul.rows { @for token in &listed.rows { li { (one(seat, "/tokens", token, &choices)) } } }
        }
        (parts::further("/tokens", &[("member", whose.unwrap_or_default())], next.as_deref()))
        @if whose.is_none() { (create_form(seat, &choices, wrong)) }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(seat, Sheet { status, ..Sheet::of("Repository Tokens") }, &body))
}

fn of_whom(whose: Option<&str>) -> Markup {
    html! {
        form.bar method="get" action="/tokens" {
            div.field { label for="member" { "Tokens of the member with this address" } input id="member" name="member" value=(whose.unwrap_or_default()) autocomplete="off"; }
            button type="submit" { "Show" }
            @if whose.is_some() { a.button href="/tokens" { "Show my own" } }
        }
    }
}

/// A token or service key in a list, with what can be done to it.
pub(super) fn one(seat: &Seat, page: &str, token: &OwnedToken, choices: &[Choice]) -> Markup {
    let row = &token.row;
    let state = state(row, seat.actor.now);
    let rotate = html! { button type="submit" { "Rotate" span.away { " " (parts::said(&row.name)) } } };
    let id = row.id.to_string();
    let owner =
        token.owner.as_deref().filter(|owner| *owner != seat.actor.member().email).unwrap_or_default();
    html! {
        div.what {
            div { (parts::said(&row.name)) " " (parts::tag(state.name())) }
            p.meta {
                span { (scope(row)) }
                span { (row.format) }
                span { (reach(row, choices)) }
                @match row.expires_at { Some(at) => span { "expires " (dates::time(at)) }, None => span { "never expires" } }
                @if state == State::Rotating { @if let Some(at) = row.ends_at { span { "ends " (dates::time(at)) } } }
                @match row.last_used_at { Some(at) => span { "last used " (dates::time(at)) }, None => span { "never used" } }
                @if row.backing.is_some() { span { "made by " (parts::said(&row.created_by)) } }
            }
        }
        @if state.works() {
            div.acts {
                (parts::ask(page, "rotate", &id, &rotate))
                (parts::deed_in_two_steps(seat, page, &[("do", "revoke"), ("id", &id), ("member", owner)], "Revoke", &row.name))
            }
        }
    }
}

fn scope(row: &TokenRow) -> &'static str {
    match (row.scope.read, row.scope.write) {
        (true, true) => "read, write",
        (true, false) => "read",
        _ => "write",
    }
}

fn reach(row: &TokenRow, choices: &[Choice]) -> String {
    let name = |id: &packhouse_store::RepositoryId| {
        let id = id.to_string();
        choices.iter().find(|choice| choice.value == id).map(|choice| choice.label.clone())
    };
    let names: Vec<String> = row.repositories.iter().filter_map(name).take(NAMED).collect();
    let others = row.repositories.len() - names.len();
    match (names.is_empty(), others) {
        (true, 0) => "no repository".to_owned(),
        (true, 1) => "one repository".to_owned(),
        (true, others) => format!("{others} repositories"),
        (false, 0) => names.join(", "),
        (false, others) => format!("{} and {others} more", names.join(", ")),
    }
}

/// The fields that tokens and service keys have in common, above their button.
pub(super) fn common(seat: &Seat, filled: &Filled<'_>, choices: &[Choice], days: i64, hint: &str) -> Markup {
    let name = Text {
        label: "Name",
        name: "name",
        hint: "What it is for, as in: CI of the shop.",
        required: true,
        ..Text::default()
    };
    html! {
        (filled.text(name))
        (filled.checks("Scope", "scope", &[
            Choice { value: "read".to_owned(), label: "Read".to_owned() },
            Choice { value: "write".to_owned(), label: "Write".to_owned() },
        ], ""))
        (filled.checks("Repositories", "repositories", choices, ""))
        (filled.expires(seat.actor.now, Some(days), hint))
    }
}

/// The member's own choice, or what the address suggests.
fn suggested(seat: &Seat, choices: &[Choice]) -> Fields {
    let Some(name) = seat.query.get("repository").filter(|_| seat.form.0.is_empty()) else {
        return seat.form.clone();
    };
    let of_name = choices.iter().filter(|choice| choice.label == name);
    let mut fields: Vec<(String, String)> =
        of_name.map(|choice| ("repositories".to_owned(), choice.value.clone())).collect();
    fields.push(("scope".to_owned(), "read".to_owned()));
    fields.push((
        "name".to_owned(),
        format!("{} for {name}", seat.actor.member().email.split('@').next().unwrap_or_default()),
    ));
    Fields(fields)
}

fn create_form(seat: &Seat, choices: &[Choice], wrong: Option<&ApiError>) -> Markup {
    let fields = suggested(seat, choices);
    let filled = Filled::new(&fields, wrong);
    let formats: Vec<Choice> =
        bodies::formats(&seat.actor.app.runtime.own_tokens()).into_iter().map(Choice::word).collect();
    let content = html! {
        (common(seat, &filled, choices, DAYS, "It works to the end of this day, UTC."))
        (filled.select("Format", "format", &formats, ""))
        p.hint { "The first works with every client; another one only with clients of that format." }
        button.go type="submit" { "Create token" }
    };
    html! {
        form.card method="post" action="/tokens" {
            h2 { "Create a token" }
            (parts::guard(seat))
            (parts::hidden("do", "create"))
            (filled.told(content))
        }
    }
}

async fn act(seat: Arc<Seat>) -> Answer {
    match seat.form.text("do") {
        "revoke" => {
            tokens::revoke(&seat.actor, seat.form.text("id")).await?;
            Ok(see_other(&back("/tokens", member(&seat))))
        }
        "rotate" => rotate(&seat, "Rotate a token").await,
        _ if seat.form.has("filter") => list(&seat, None).await,
        _ => match create(&seat).await {
            Ok(answer) => Ok(answer),
            Err(error) => list(&seat, Some(&visit::wrong(&seat, error)?)).await,
        },
    }
}

fn back(page: &str, member: Option<&str>) -> String {
    match member {
        Some(member) => format!("{page}?done=revoked&member={}", parts::segment(member)),
        None => format!("{page}?done=revoked"),
    }
}

fn creating(form: &Fields) -> Deed<'static> {
    let what = html! { p { "The token " strong { (parts::said(form.text("name"))) } " is created once you have confirmed that it is you." } };
    Deed { action: Action::CreateToken, title: "Confirm the new token", what }
}

/// What the form says, as the body of the call.
pub(super) fn token_body(form: &Fields) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("name".to_owned(), form.text("name").into());
    body.insert("scope".to_owned(), form.list("scope"));
    body.insert("format".to_owned(), form.text("format").into());
    body.insert("repositories".to_owned(), form.list("repositories"));
    body.extend(field::expiry(form).map(|at| ("expires_at".to_owned(), at)));
    body
}

async fn create(seat: &Seat) -> Answer {
    made(seat, token_body(&seat.form), creating(&seat.form), "Token created").await
}

/// Makes a token or a service key, once it is confirmed; or asks for that.
pub(super) async fn made(seat: &Seat, body: Map<String, Value>, deed: Deed<'_>, title: &str) -> Answer {
    let request = forms::token(&seat.actor.app, Value::Object(body), seat.actor.now)?;
    let confirmation = match confirm::given(seat, Deed { what: deed.what.clone(), ..deed }).await? {
        Given::Asked(page) => return Ok(page),
        Given::Confirmation(confirmation) => confirmation,
    };
    match tokens::create(&seat.actor, &confirmation, request).await {
        Ok(made) => created(seat, title, made).await,
        Err(error) => match confirm::again(seat, deed, &error).await? {
            Some(page) => Ok(page),
            None => Err(error),
        },
    }
}

/// The page that shows the secret, this once.
async fn created(seat: &Seat, title: &str, made: NewCredential<OwnedToken>) -> Answer {
    let row = &made.row.row;
    let choices = choices(seat).await?;
    let named = row.repositories.iter().filter_map(|id| {
        let id = id.to_string();
        choices.iter().find(|choice| choice.value == id)
    });
    let body = html! {
        div.card {
            h2 { (parts::said(&row.name)) }
            @if let Some(secret) = &made.secret { (parts::secret(secret.reveal())) } @else { p { "It was revoked. Its owner makes a new one: a token's secret is shown to its owner alone." } }
            @if let Some(replaced) = &made.replaced { p { "The old one works until " (dates::time(replaced.ends_at)) "." } }
        }
        div.card {
            h2 { "What to do with it" }
            p { "Put it into your client, as the Connection Settings of its repository say:" }
            ul.steps {
                @for choice in named.take(20) {
                    li { a href={ (parts::repository(&choice.label)) "/connection" } { "Connection Settings of " (choice.label) } }
                }
            }
            p { a.button href=(seat.path) { "Back to the list" } }
        }
    };
    confirm::spent(
        seat,
        frame::page(seat, Sheet { status: http::StatusCode::CREATED, ..Sheet::of(title) }, &body),
    )
}

/// The page that rotates one, with its confirmation.
pub(super) async fn rotation(seat: &Seat, title: &str, id: &str, wrong: Option<&ApiError>) -> Answer {
    let back = format!("{}?rotate={}", seat.path, parts::segment(id));
    let section = confirm::section(seat, Action::RotateToken, &back, wrong).await?;
    let filled = Filled::new(&seat.form, wrong.filter(|wrong| !confirm::is_about(wrong)));
    let overlap = Text {
        label: "Overlap (hours)",
        name: "overlap_hours",
        kind: "number",
        hint: "For how long the old one works on, 0 to 168.",
        first: "24",
        ..Text::default()
    };
    let content = html! {
        p { "A new one with the same name and reach takes its place; the old one works on for the overlap." }
        (filled.expires(seat.actor.now, None, "Left empty, the new one expires when the old one does."))
        (filled.text(overlap))
        (section.markup)
    };
    let body = html! {
        form.card method="post" action=(seat.path) {
            (parts::guard(seat))
            (parts::hidden("do", "rotate"))
            (parts::hidden("id", id))
            (filled.told(content))
            p { a href=(seat.path) { "Go back" } }
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(seat, Sheet { status, issuer: section.issuer, ..Sheet::of(title) }, &body))
}

/// What a form says of a rotation, as the body of the call.
pub(super) fn rotation_body(form: &Fields) -> Value {
    let mut body = json!({});
    if let Some(fields) = body.as_object_mut() {
        fields.extend(field::expiry(form).map(|at| ("expires_at".to_owned(), at)));
        let overlap = form.text("overlap_hours");
        if !overlap.is_empty() {
            let hours = overlap.parse::<i64>().map_or_else(|_| overlap.into(), Value::from);
            fields.insert("overlap_hours".to_owned(), hours);
        }
    }
    body
}

/// Rotates one.
pub(super) async fn rotate(seat: &Seat, title: &str) -> Result<Response, ApiError> {
    let id = seat.form.text("id");
    let done = async {
        let request = forms::rotation(rotation_body(&seat.form), seat.actor.now)?;
        let confirmation = confirm::take(seat, Action::RotateToken).await?;
        tokens::rotate(&seat.actor, &confirmation, id, request).await
    };
    match done.await {
        Ok(made) => created(seat, "Rotated", made).await,
        Err(error) => rotation(seat, title, id, Some(&visit::wrong(seat, error)?)).await,
    }
}
