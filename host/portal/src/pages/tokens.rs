//! `/tokens`: the member's repository tokens, or with `manage-owner-account` those of another
//! member.

use std::sync::Arc;

use axum::response::Response;
use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::tokens::{self, OwnedToken, TokenFilter, state};
use packhouse_api::operations::{NewCredential, PageRequest, members};
use packhouse_api::{forms, tokens as bodies};
use packhouse_identity::access::CredentialState;
use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_store::{RepositoryRow, TokenId, TokenRow};
use serde_json::{Map, Value, json};

use super::repositories::after;
use super::{Routes, permissions};
use crate::confirm::{self, ConfirmationCheck, ConfirmationPrompt};
use crate::field::{self, Choice, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, fault, parts};

/// Default lifetime of a token in days.
const DAYS: i64 = 90;
/// Maximum rows of a page; each has two forms.
pub(super) const ROWS: u32 = 20;
/// Maximum number of a token's repositories that the list names.
const NAMED: usize = 5;

pub(super) fn routes() -> Routes {
    vec![("/tokens", visit::page(show).merge(visit::form(act)))]
}

/// Returns the repositories in which the member has any right.
pub(super) async fn reachable(ctx: &PageContext) -> Result<Vec<RepositoryRow>, ApiError> {
    Ok(members::me(&ctx.actor).await?.repositories.into_iter().map(|one| one.row).collect())
}

/// Returns a repository as an option of a form.
pub(super) fn choice(row: &RepositoryRow) -> Choice {
    Choice { value: row.id.to_string(), label: row.name.clone() }
}

/// Returns the repositories in which the member has any right, as options of a form.
pub(super) async fn choices(ctx: &PageContext) -> Result<Vec<Choice>, ApiError> {
    Ok(reachable(ctx).await?.iter().map(choice).collect())
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    if let Some(id) = ctx.query.get("rotate") {
        return rotation(&ctx, "Rotate a token", id, None).await;
    }
    if ctx.query.has("confirmed") && !ctx.form.0.is_empty() {
        return confirm::prompt_page(&ctx, &creation_prompt(&ctx.form), &ctx.form, None).await;
    }
    list(&ctx, None).await
}

/// Returns the member whose tokens are listed; `None` for the signed-in member.
fn member(ctx: &PageContext) -> Option<&str> {
    let named = ctx.query.get("member").or(ctx.form.get("member")).map(str::trim);
    named.filter(|name| !name.is_empty())
}

async fn list(ctx: &PageContext, wrong: Option<&ApiError>) -> PageResult {
    let page = PageRequest { limit: ROWS, after: after::<TokenId>(ctx)? };
    let filter = member(ctx).map_or(TokenFilter::Own, |name| TokenFilter::Member(name.to_owned()));
    let listed = tokens::list_newest(&ctx.actor, filter, page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|token| token.row.id.to_string());
    let choices = choices(ctx).await?;
    let listed_member = member(ctx);
    let body = html! {
        @if ctx.holds(ManageOwnerAccount) { (member_filter(listed_member)) }
        @if listed.rows.is_empty() && wrong.is_none() {
            div.card.empty {
                h2 { "No tokens yet" }
                p { "A token is the password of a package client. You choose its repositories and whether it may read or write, and you can revoke it at any time." }
            }
        } @else {
            (parts::list_length(ctx, listed.rows.len(), listed.more, "token", "tokens"))
            ul.rows { @for token in &listed.rows { li { (one(ctx, "/tokens", token, &choices)) } } }
        }
        (parts::next_page_link("/tokens", &[("member", listed_member.unwrap_or_default())], next.as_deref()))
        @if listed_member.is_none() { (create_form(ctx, &choices, wrong)) }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, ..Sheet::of("Repository Tokens") }, &body))
}

fn member_filter(listed_member: Option<&str>) -> Markup {
    html! {
        form.bar method="get" action="/tokens" {
            div.field { label for="member" { "E-mail address of the member" } input id="member" name="member" value=(listed_member.unwrap_or_default()) autocomplete="off"; }
            button type="submit" { "Show" }
            @if listed_member.is_some() { a.button href="/tokens" { "Show my tokens" } }
        }
    }
}

/// Builds the row of a token or service key, with its buttons.
pub(super) fn one(ctx: &PageContext, page: &str, token: &OwnedToken, choices: &[Choice]) -> Markup {
    let row = &token.row;
    let state = state(row, ctx.actor.now);
    let rotate = html! { button type="submit" { "Rotate" span.away { " " (parts::isolated(&row.name)) } } };
    let id = row.id.to_string();
    let owner = token.owner.as_deref().filter(|owner| *owner != ctx.actor.member().email).unwrap_or_default();
    html! {
        div.what {
            div { (parts::isolated(&row.name)) " " (parts::tag(state.name())) }
            p.meta {
                span { (scope(row)) }
                span { (row.format) }
                span { (reach(row, choices)) }
                @if let Some(packages) = &row.packages { span { "writes only packages named " (permissions::patterns(packages)) } }
                @match row.expires_at { Some(at) => span { "expires " (dates::time(at)) }, None => span { "never expires" } }
                @if state == CredentialState::Rotating { @if let Some(at) = row.ends_at { span { "ends " (dates::time(at)) } } }
                @match row.last_used_at { Some(at) => span { "last used " (dates::time(at)) }, None => span { "never used" } }
                @if row.backing.is_some() { span { "created by " (parts::isolated(&row.created_by)) } }
            }
        }
        @if state.works() {
            div.acts {
                (parts::navigation_button(page, "rotate", &id, &rotate))
                (parts::two_step_button(ctx, page, &[("do", "revoke"), ("id", &id), ("member", owner)], "Revoke", &row.name))
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

/// Builds the fields that tokens and service keys share.
pub(super) fn common(
    ctx: &PageContext,
    filled: &Filled<'_>,
    choices: &[Choice],
    days: i64,
    hint: &str,
) -> Markup {
    let name = Text {
        label: "Name",
        name: "name",
        hint: "Describes what it is used for, for example: CI of the web shop.",
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
        (filled.lines("Packages", "packages", "Limits Write to packages with such names, one pattern per line; * matches any text. If empty, it applies to all packages that you may publish.", ""))
        (filled.expires(ctx.actor.now, Some(days), hint))
    }
}

/// Returns the submitted fields, or initial values for the repository that the query string names.
fn suggested(ctx: &PageContext, choices: &[Choice]) -> Fields {
    let Some(name) = ctx.query.get("repository").filter(|_| ctx.form.0.is_empty()) else {
        return ctx.form.clone();
    };
    let of_name = choices.iter().filter(|choice| choice.label == name);
    let mut fields: Vec<(String, String)> =
        of_name.map(|choice| ("repositories".to_owned(), choice.value.clone())).collect();
    fields.push(("scope".to_owned(), "read".to_owned()));
    fields.push((
        "name".to_owned(),
        format!("{} for {name}", ctx.actor.member().email.split('@').next().unwrap_or_default()),
    ));
    Fields(fields)
}

fn create_form(ctx: &PageContext, choices: &[Choice], wrong: Option<&ApiError>) -> Markup {
    let fields = suggested(ctx, choices);
    let filled = Filled::new(&fields, wrong);
    let formats: Vec<Choice> =
        bodies::formats(&ctx.actor.app.runtime.own_tokens()).into_iter().map(Choice::word).collect();
    let content = html! {
        (common(ctx, &filled, choices, DAYS, "The token works until the end of this day (UTC)."))
        (filled.select("Format", "format", &formats, ""))
        p.hint { "The first format works with every client. Tokens of another format work only with its clients." }
        button.go type="submit" { "Create token" }
    };
    html! {
        form.card method="post" action="/tokens" {
            h2 { "Create a token" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "create"))
            (filled.with_error(content))
        }
    }
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    match ctx.form.text("do") {
        "revoke" => {
            tokens::revoke(&ctx.actor, ctx.form.text("id")).await?;
            Ok(see_other(&back("/tokens", member(&ctx))))
        }
        "rotate" => rotate(&ctx, "Rotate a token").await,
        _ if ctx.form.has("filter") => list(&ctx, None).await,
        _ => match create(&ctx).await {
            Ok(answer) => Ok(answer),
            Err(error) => list(&ctx, Some(&visit::form_error(&ctx, error)?)).await,
        },
    }
}

fn back(page: &str, member: Option<&str>) -> String {
    match member {
        Some(member) => format!("{page}?done=revoked&member={}", parts::segment(member)),
        None => format!("{page}?done=revoked"),
    }
}

fn creation_prompt(form: &Fields) -> ConfirmationPrompt<'static> {
    let what = html! { p { "The token " strong { (parts::isolated(form.text("name"))) } " will be created after you confirm your identity." } };
    ConfirmationPrompt { action: Action::CreateToken, title: "Confirm the new token", what }
}

/// Converts the form to the body of the API call.
pub(super) fn token_body(form: &Fields) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("name".to_owned(), form.text("name").into());
    body.insert("scope".to_owned(), form.list("scope"));
    body.insert("format".to_owned(), form.text("format").into());
    body.insert("repositories".to_owned(), form.list("repositories"));
    let packages = permissions::lines(form.text("packages"));
    if !packages.is_empty() {
        body.insert("packages".to_owned(), packages.into());
    }
    body.extend(field::expiry(form).map(|at| ("expires_at".to_owned(), at)));
    body
}

async fn create(ctx: &PageContext) -> PageResult {
    made(ctx, token_body(&ctx.form), creation_prompt(&ctx.form), "Token created").await
}

/// Creates a token or a service key after the confirmation. Without one, returns the page that asks
/// for it.
pub(super) async fn made(
    ctx: &PageContext,
    body: Map<String, Value>,
    prompt: ConfirmationPrompt<'_>,
    title: &str,
) -> PageResult {
    let request = forms::token(&ctx.actor.app, Value::Object(body), ctx.actor.now)?;
    let confirmation =
        match confirm::check(ctx, ConfirmationPrompt { what: prompt.what.clone(), ..prompt }).await? {
            ConfirmationCheck::Prompt(page) => return Ok(page),
            ConfirmationCheck::Given(confirmation) => confirmation,
        };
    match tokens::create(&ctx.actor, &confirmation, request).await {
        Ok(made) => created(ctx, title, made).await,
        Err(error) => match confirm::retry_page(ctx, prompt, &error).await? {
            Some(page) => Ok(page),
            None => Err(error),
        },
    }
}

/// Builds the page that shows the secret, only once.
async fn created(ctx: &PageContext, title: &str, made: NewCredential<OwnedToken>) -> PageResult {
    let row = &made.row.row;
    let choices = choices(ctx).await?;
    let named = row.repositories.iter().filter_map(|id| {
        let id = id.to_string();
        choices.iter().find(|choice| choice.value == id)
    });
    let body = html! {
        div.card {
            h2 { (parts::isolated(&row.name)) }
            @if let Some(secret) = &made.secret { (parts::secret(secret.reveal())) } @else { p { "The token was revoked. Its owner must create a new one, because only the owner may see the secret." } }
            @if let Some(replaced) = &made.replaced { p { "The old one works until " (dates::time(replaced.ends_at)) "." } }
        }
        div.card {
            h2 { "Next steps" }
            p { "Enter it in your client as described in the Connection Settings of the repository:" }
            ul.steps {
                @for choice in named.take(20) {
                    li { a href={ (parts::repository(&choice.label)) "/connection" } { "Connection Settings of " (choice.label) } }
                }
            }
            p { a.button href=(ctx.path) { "Back to the list" } }
        }
    };
    confirm::finish(
        ctx,
        frame::page(ctx, Sheet { status: http::StatusCode::CREATED, ..Sheet::of(title) }, &body),
    )
}

/// Builds the page that rotates a token or service key, with its confirmation.
pub(super) async fn rotation(
    ctx: &PageContext,
    title: &str,
    id: &str,
    wrong: Option<&ApiError>,
) -> PageResult {
    let back = format!("{}?rotate={}", ctx.path, parts::segment(id));
    let section = confirm::section(ctx, Action::RotateToken, &back, wrong).await?;
    let filled = Filled::new(&ctx.form, wrong.filter(|wrong| !confirm::is_about_confirmation(wrong)));
    let overlap = Text {
        label: "Overlap (hours)",
        name: "overlap_hours",
        kind: "number",
        hint: "How long the old one keeps working, 0 to 168 hours.",
        first: "24",
        ..Text::default()
    };
    let content = html! {
        p { "A new one with the same name and repositories replaces it. The old one keeps working for the overlap." }
        (filled.expires(ctx.actor.now, None, "If empty, the new one expires when the old one does."))
        (filled.text(overlap))
        (section.markup)
    };
    let body = html! {
        form.card method="post" action=(ctx.path) {
            (parts::form_tokens(ctx))
            (parts::hidden("do", "rotate"))
            (parts::hidden("id", id))
            (filled.with_error(content))
            p { a href=(ctx.path) { "Go back" } }
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, issuer: section.issuer, ..Sheet::of(title) }, &body))
}

/// Converts the form of a rotation to the body of the API call.
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

/// Handles the form that rotates a token or service key.
pub(super) async fn rotate(ctx: &PageContext, title: &str) -> Result<Response, ApiError> {
    let id = ctx.form.text("id");
    let done = async {
        let request = forms::rotation(rotation_body(&ctx.form), ctx.actor.now)?;
        let confirmation = confirm::take(ctx, Action::RotateToken).await?;
        tokens::rotate(&ctx.actor, &confirmation, id, request).await
    };
    match done.await {
        Ok(made) => created(ctx, "Rotated", made).await,
        Err(error) => rotation(ctx, title, id, Some(&visit::form_error(ctx, error)?)).await,
    }
}
