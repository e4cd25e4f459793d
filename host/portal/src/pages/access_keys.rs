//! The section with access keys on the page of a subscriber or of a group of subscribers. Every
//! change needs a confirmation.

use axum::response::Response;
use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::access_keys::{self, KeyOwnerRef, state};
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::{NewCredential, PageRequest};
use packhouse_identity::access::CredentialState;
use packhouse_store::{AccessKeyId, AccessKeyRow, KeyOwnerKind, KeyOwnerRow};
use serde_json::{Map, Value, json};

use super::repositories::after;
use super::tokens::{ROWS, rotation_body};
use crate::confirm::{self, ConfirmationCheck, ConfirmationPrompt};
use crate::field::{self, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, fault, parts};

/// Default lifetime of a key in days.
const DAYS: i64 = 365;
/// Actions on a key. Each has a page that asks for the confirmation.
const ACTIONS: [&str; 3] = ["rotate", "change", "revoke"];

fn owner<'a>(ctx: &'a PageContext, kind: KeyOwnerKind) -> KeyOwnerRef<'a> {
    KeyOwnerRef { kind, id: ctx.named("id") }
}

/// Builds the list of keys and the form to create one.
pub(super) async fn section(
    ctx: &PageContext,
    kind: KeyOwnerKind,
    row: &KeyOwnerRow,
    wrong: Option<&ApiError>,
) -> Result<Markup, ApiError> {
    let page = PageRequest { limit: ROWS, after: after::<AccessKeyId>(ctx)? };
    let listed = access_keys::list(&ctx.actor, owner(ctx, kind), page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|key| key.id.to_string());
    let (none, of_create) = (Fields::default(), ctx.form.text("do") == "create");
    let filled = Filled::new(if of_create { &ctx.form } else { &none }, wrong);
    let label = Text {
        label: "Name of the key",
        name: "key_name",
        hint: "What the key is used for (optional).",
        ..Text::default()
    };
    let fields = html! {
        (filled.text(label))
        (filled.expires(ctx.actor.now, Some(DAYS), "The key works until the end of this day (UTC)."))
        button.go type="submit" { "Create access key" }
    };
    Ok(html! {
        h2 { "Access keys" }
        @if listed.rows.is_empty() {
            div.card.empty { p { "There are no access keys yet. The package clients of " (parts::isolated(&row.name)) " sign in with a key as the password and any user name." } }
        } @else {
            ul.rows { @for key in &listed.rows { li { (one(ctx, key)) } } }
        }
        (parts::next_page_link(&ctx.path, &[], next.as_deref()))
        form.card method="post" action=(ctx.path) {
            h3 { "Create an access key" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "create"))
            (filled.with_error(fields))
        }
    })
}

fn display_name(key: &AccessKeyRow) -> String {
    key.name.clone().unwrap_or_else(|| format!("key {}", key.id))
}

fn one(ctx: &PageContext, key: &AccessKeyRow) -> Markup {
    let (state, name, id) = (state(key, ctx.actor.now), display_name(key), key.id.to_string());
    let button = |action: &str, class: &str| html! { button class=(class) type="submit" { (action) span.away { " " (parts::isolated(&name)) } } };
    html! {
        div.what {
            div { (parts::isolated(&name)) " " (parts::tag(state.name())) }
            p.meta {
                @match key.expires_at { Some(at) => span { "expires " (dates::time(at)) }, None => span { "never expires" } }
                @if state == CredentialState::Rotating { @if let Some(at) = key.ends_at { span { "ends " (dates::time(at)) } } }
                @match key.last_used_at { Some(at) => span { "last used " (dates::time(at)) }, None => span { "never used" } }
                span { "created by " (parts::isolated(&key.created_by)) }
            }
        }
        @if state.works() {
            div.acts {
                (parts::navigation_button(&ctx.path, "rotate", &id, &button("Rotate", "")))
                @if state == CredentialState::Active { (parts::navigation_button(&ctx.path, "change", &id, &button("Change expiry", ""))) }
                (parts::navigation_button(&ctx.path, "revoke", &id, &button("Revoke", "bad")))
            }
        }
    }
}

/// Builds the page of the action that the query string names; `None` if it names none.
pub(super) async fn action_page(
    ctx: &PageContext,
    kind: KeyOwnerKind,
    row: &KeyOwnerRow,
) -> Result<Option<Response>, ApiError> {
    if ctx.query.has("confirmed") && ctx.form.text("do") == "create" {
        return confirm::prompt_page(ctx, &creation_prompt(row), &ctx.form, None).await.map(Some);
    }
    for action in ACTIONS {
        if let Some(id) = ctx.query.get(action) {
            return page(ctx, kind, action, id, None).await.map(Some);
        }
    }
    Ok(None)
}

fn creation_prompt(row: &KeyOwnerRow) -> ConfirmationPrompt<'static> {
    let what = html! { p { "An access key for " strong { (parts::isolated(&row.name)) } " will be created after you confirm your identity." } };
    ConfirmationPrompt { action: Action::ManageAccessKeys, title: "Confirm the new access key", what }
}

/// Builds the page of an action on a key, with its confirmation.
async fn page(
    ctx: &PageContext,
    kind: KeyOwnerKind,
    action: &str,
    id: &str,
    wrong: Option<&ApiError>,
) -> PageResult {
    let key = find(ctx, kind, id).await?;
    let back = format!("{}?{action}={}", ctx.path, parts::segment(id));
    let section = confirm::section(ctx, Action::ManageAccessKeys, &back, wrong).await?;
    let current_expiry = key.expires_at.map(dates::day);
    let mut fields = ctx.form.clone();
    if action == "change" && !fields.has("do") {
        fields.0.push(match current_expiry {
            Some(day) => ("expires".to_owned(), day),
            None => ("never".to_owned(), "yes".to_owned()),
        });
    }
    let filled = Filled::new(&fields, wrong.filter(|wrong| !confirm::is_about_confirmation(wrong)));
    let overlap = Text {
        label: "Overlap (hours)",
        name: "overlap_hours",
        kind: "number",
        hint: "How long the old key keeps working, 0 to 168 hours.",
        first: "24",
        ..Text::default()
    };
    let content = html! {
        @match action {
            "rotate" => {
                p { "A new key replaces this one. The old key keeps working for the overlap." }
                (filled.expires(ctx.actor.now, None, "If empty, the new key expires when the old one does."))
                (filled.text(overlap))
            }
            "change" => {
                (parts::hidden("expected", &key.expires_at.map(|at| at.to_string()).unwrap_or_default()))
                (filled.expires(ctx.actor.now, None, "The key works until the end of this day (UTC)."))
            }
            _ => p { "The key stops working immediately. This cannot be undone." },
        }
        (section.markup)
    };
    let title = match action {
        "rotate" => "Rotate an access key",
        "change" => "Change when an access key expires",
        _ => "Revoke an access key",
    };
    let body = html! {
        form.card method="post" action=(ctx.path) {
            h2 { (parts::isolated(&display_name(&key))) }
            (parts::form_tokens(ctx))
            (parts::hidden("do", action))
            (parts::hidden("id", id))
            (filled.with_error(content))
            p { a href=(ctx.path) { "Go back" } }
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, issuer: section.issuer, ..Sheet::of(title) }, &body))
}

/// Finds a key of the owner by its id.
async fn find(ctx: &PageContext, kind: KeyOwnerKind, id: &str) -> Result<AccessKeyRow, ApiError> {
    access_keys::show(&ctx.actor, owner(ctx, kind), id).await
}

/// Handles the form of an action on an existing key.
pub(super) async fn act(ctx: &PageContext, kind: KeyOwnerKind, action: &str) -> PageResult {
    match change(ctx, kind, action).await {
        Ok(answer) => Ok(answer),
        Err(error) => {
            let wrong = visit::form_error(ctx, error)?;
            page(ctx, kind, action, ctx.form.text("id"), Some(&wrong)).await
        }
    }
}

/// Handles the form that creates a key.
pub(super) async fn create(ctx: &PageContext, kind: KeyOwnerKind, row: &KeyOwnerRow) -> PageResult {
    let mut body = Map::new();
    body.insert("name".to_owned(), ctx.form.or_null("key_name"));
    body.extend(field::expiry(&ctx.form).map(|at| ("expires_at".to_owned(), at)));
    let request = forms::access_key(Value::Object(body), ctx.actor.now)?;
    let confirmation = match confirm::check(ctx, creation_prompt(row)).await? {
        ConfirmationCheck::Prompt(page) => return Ok(page),
        ConfirmationCheck::Given(confirmation) => confirmation,
    };
    match access_keys::create(&ctx.actor, &confirmation, owner(ctx, kind), request).await {
        Ok(made) => created(ctx, "Access key created", &made),
        Err(error) => match confirm::retry_page(ctx, creation_prompt(row), &error).await? {
            Some(page) => Ok(page),
            None => Err(error),
        },
    }
}

fn created(ctx: &PageContext, title: &str, made: &NewCredential<AccessKeyRow>) -> PageResult {
    let body = html! {
        div.card {
            h2 { (parts::isolated(&display_name(&made.row))) }
            @if let Some(secret) = &made.secret { (parts::secret(secret.reveal())) }
            p { "Use it as the password in a client, with any user name." }
            @if let Some(replaced) = &made.replaced { p { "The old key works until " (dates::time(replaced.ends_at)) "." } }
            p { a.button href=(ctx.path) { "Back" } }
        }
    };
    confirm::finish(
        ctx,
        frame::page(ctx, Sheet { status: http::StatusCode::CREATED, ..Sheet::of(title) }, &body),
    )
}

async fn change(ctx: &PageContext, kind: KeyOwnerKind, action: &str) -> PageResult {
    let (id, now) = (ctx.form.text("id"), ctx.actor.now);
    let done = |what: &str| confirm::finish(ctx, see_other(&format!("{}?done={what}", ctx.path)));
    match action {
        "rotate" => {
            let request = forms::rotation(rotation_body(&ctx.form), now)?;
            let confirmation = confirm::take(ctx, Action::ManageAccessKeys).await?;
            let made = access_keys::rotate(&ctx.actor, &confirmation, owner(ctx, kind), id, request).await?;
            created(ctx, "Rotated", &made)
        }
        "change" => {
            let mut body = json!({"expected_expires_at": ctx.form.text("expected").parse::<i64>().ok()});
            if let Some(fields) = body.as_object_mut() {
                fields.extend(field::expiry(&ctx.form).map(|at| ("expires_at".to_owned(), at)));
            }
            let request = forms::access_key_change(body, now)?;
            let confirmation = confirm::take(ctx, Action::ManageAccessKeys).await?;
            access_keys::change(&ctx.actor, &confirmation, owner(ctx, kind), id, request).await?;
            done("saved")
        }
        "revoke" => {
            let confirmation = confirm::take(ctx, Action::ManageAccessKeys).await?;
            access_keys::revoke(&ctx.actor, &confirmation, owner(ctx, kind), id).await?;
            done("revoked")
        }
        _ => Err(ApiError::invalid("The form does not state an action.")),
    }
}
