//! `/api-tokens`: the member's own API tokens and, with `manage-members`, those of service
//! accounts.

mod rotate;

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::api_tokens::{self, ApiScope, OwnedApiToken, state};
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::{NewCredential, PageRequest};
use packhouse_identity::access::CredentialState;
use packhouse_identity::permissions::Permission::ManageMembers;
use packhouse_store::{ApiTokenId, ApiTokenRow};
use serde_json::{Map, Value};

use super::repositories::after;
use super::tokens::ROWS;
use super::{Routes, service_accounts};
use crate::confirm::{self, ConfirmationPrompt, ConfirmedOutcome};
use crate::field::{self, Choice, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, fault, parts};

const PATH: &str = "/api-tokens";
/// Value in the form that stands for the member's own account.
const ME: &str = "me";
/// Default lifetime of a token in days. A token with sensitive actions lives 90 days at most.
const DAYS: i64 = 60;

/// The scopes, each with its label and what it opens.
const SCOPES: [(ApiScope, &str, &str); 11] = [
    (ApiScope::Read, "Read", "Reading everything that the owner may read."),
    (ApiScope::Repositories, "Repositories", "Repositories, upstreams, caches, retention and quotas."),
    (ApiScope::Packages, "Packages", "Versions, tags and the trash."),
    (ApiScope::Members, "Members", "Members, teams, service accounts, subscribers and the audit log."),
    (ApiScope::Tokens, "Tokens", "Repository tokens, service keys, access keys and trusted publishers."),
    (ApiScope::Policies, "Policies", "Policies and security advisories."),
    (ApiScope::Webhooks, "Webhooks", "Webhooks and their deliveries."),
    (ApiScope::Organization, "Organization", "The organization, its sign-in and directory, and the jobs."),
    (ApiScope::Plugins, "Plugins", "Formats and plugins."),
    (ApiScope::Scim, "SCIM", "Members and teams from your directory."),
    (ApiScope::All, "All", "Everything that an API token may do."),
];

pub(super) fn routes() -> Routes {
    vec![(PATH, visit::page(show).merge(visit::form(act)))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    if let Some(id) = ctx.query.get("rotate") {
        return rotate::page(&ctx, id, None).await;
    }
    if confirm::returned_from_provider(&ctx) {
        return confirm::prompt_page(&ctx, &creation_prompt(&ctx.form), &ctx.form, None).await;
    }
    list(&ctx, None).await
}

/// Returns the id of the service account whose tokens are listed; `None` for the member's own.
fn owner(ctx: &PageContext) -> Option<&str> {
    let named = ctx.query.get("owner").or(ctx.form.get("owner")).map(str::trim);
    named.filter(|id| !id.is_empty() && *id != ME)
}

async fn list(ctx: &PageContext, wrong: Option<&ApiError>) -> PageResult {
    let page = PageRequest { limit: ROWS, after: after::<ApiTokenId>(ctx)? };
    let owner = owner(ctx);
    let listed = api_tokens::list_newest(&ctx.actor, owner, page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|token| token.row.id.to_string());
    let owners = owners(ctx).await?;
    let body = html! {
        @if owners.len() > 1 { (owner_filter(&owners, owner.unwrap_or(ME), listed.rows.first())) }
        @if listed.rows.is_empty() {
            div.card.empty {
                h2 { "No API tokens yet" }
                p { "An API token is for a program that manages this server through the API. It can do what its owner may do and its scopes allow. Clients of packages use repository tokens instead." }
            }
        } @else {
            (parts::list_length(ctx, listed.rows.len(), listed.more, "API token", "API tokens"))
            ul.rows { @for token in &listed.rows { li { (one(ctx, &token.row)) } } }
        }
        (parts::next_page_link(PATH, &[("owner", owner.unwrap_or_default())], next.as_deref()))
        (create_form(ctx, &owners, owner.unwrap_or(ME), wrong))
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, ..Sheet::of("API tokens") }, &body))
}

/// Returns the accounts whose tokens the member manages, as options of a form.
async fn owners(ctx: &PageContext) -> Result<Vec<Choice>, ApiError> {
    let mut owners = vec![Choice { value: ME.to_owned(), label: "My account".to_owned() }];
    if ctx.holds(ManageMembers) {
        let accounts = service_accounts::names(ctx).await?.into_iter();
        owners.extend(accounts.map(|(id, label)| Choice { value: id.to_string(), label }));
    }
    Ok(owners)
}

/// Builds the form that chooses the account. `first` is a token of the chosen one.
fn owner_filter(owners: &[Choice], chosen: &str, first: Option<&OwnedApiToken>) -> Markup {
    let is_offered = owners.iter().any(|owner| owner.value == chosen);
    html! {
        form.bar method="get" action=(PATH) {
            div.field {
                label for="shown" { "API tokens of" }
                select id="shown" name="owner" {
                    @for owner in owners { option value=(owner.value) selected[owner.value == chosen] { (owner.label) } }
                    @if !is_offered { option value=(chosen) selected { (first.map_or(chosen, |token| token.owner.as_str())) } }
                }
            }
            button type="submit" { "Show" }
        }
    }
}

fn one(ctx: &PageContext, row: &ApiTokenRow) -> Markup {
    let (state, id, owner) = (state(row, ctx.actor.now), row.id.to_string(), owner_value(ctx, row));
    let rotate = html! { button type="submit" { "Rotate" span.away { " " (parts::isolated(&row.name)) } } };
    html! {
        div.what {
            div { (parts::isolated(&row.name)) " " (parts::tag(state.name())) }
            p.meta {
                span { (row.scopes.join(", ")) }
                @if !row.sensitive.is_empty() { span { "sensitive: " (row.sensitive.join(", ")) } }
                span { "expires " (dates::time(row.expires_at)) }
                @if state == CredentialState::Rotating { @if let Some(at) = row.ends_at { span { "ends " (dates::time(at)) } } }
                @match row.last_used_at { Some(at) => span { "last used " (dates::time(at)) }, None => span { "never used" } }
                span { "created by " (parts::isolated(&row.created_by)) }
            }
        }
        @if state.works() {
            div.acts {
                (parts::navigation_button(PATH, "rotate", &id, &rotate))
                (parts::two_step_button(ctx, PATH, &[("do", "revoke"), ("id", &id), ("owner", &owner)], "Revoke", &row.name))
            }
        }
    }
}

/// Returns the value in the form that stands for the token's owner.
fn owner_value(ctx: &PageContext, row: &ApiTokenRow) -> String {
    if row.owner == ctx.actor.member().id { ME.to_owned() } else { row.owner.to_string() }
}

fn create_form(ctx: &PageContext, owners: &[Choice], owner: &str, wrong: Option<&ApiError>) -> Markup {
    let filled = Filled::new(&ctx.form, wrong);
    let name = Text {
        label: "Name",
        name: "name",
        hint: "Describes what it is used for, for example: Nightly inventory.",
        required: true,
        ..Text::default()
    };
    let scopes: Vec<Choice> = SCOPES.iter().map(|(scope, label, _)| scope_choice(*scope, label)).collect();
    let sensitive: Vec<Choice> = Action::OF_API_TOKENS.into_iter().map(sensitive_choice).collect();
    let content = html! {
        (filled.text(name))
        @if owners.len() > 1 { (filled.select("Owner", "owner", owners, owner)) }
        (filled.checks("Scopes", "scopes", &scopes, ""))
        details {
            summary { "What the scopes open" }
            dl { @for (_, label, opened) in &SCOPES { dt { (label) } dd { (opened) } } }
        }
        (filled.required_expiry(ctx.actor.now, Some(DAYS), "At most one year from now, or 90 days with sensitive actions. The token works until the end of this day (UTC)."))
        details {
            summary { "Sensitive actions" }
            (filled.checks("Sensitive actions", "sensitive", &sensitive, "The token may do these without another confirmation."))
        }
        button.go type="submit" { "Create API token" }
    };
    html! {
        form.card method="post" action=(PATH) {
            h2 { "Create an API token" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "create"))
            (filled.with_error(content))
        }
    }
}

fn scope_choice(scope: ApiScope, label: &str) -> Choice {
    Choice { value: scope.name().to_owned(), label: label.to_owned() }
}

/// Returns a sensitive action as an option: its name in words.
fn sensitive_choice(action: Action) -> Choice {
    let words = action.name().replace('_', " ");
    let mut letters = words.chars();
    let label = letters.next().map(|first| first.to_uppercase().chain(letters).collect());
    Choice { value: action.name().to_owned(), label: label.unwrap_or_default() }
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    match ctx.form.text("do") {
        "revoke" => {
            api_tokens::revoke(&ctx.actor, ctx.form.text("id")).await?;
            Ok(see_other(&list_path(owner(&ctx).unwrap_or(ME), "done=revoked&")))
        }
        "rotate" => rotate::act(&ctx).await,
        _ if ctx.form.has("filter") => list(&ctx, None).await,
        _ => match create(&ctx).await {
            Ok(answer) => Ok(answer),
            Err(error) => list(&ctx, Some(&visit::form_error(&ctx, error)?)).await,
        },
    }
}

/// Returns the address of the list of an owner's tokens. `query` is empty or ends with `&`.
fn list_path(owner: &str, query: &str) -> String {
    format!("{PATH}?{query}owner={}", parts::segment(owner))
}

fn creation_prompt(form: &Fields) -> ConfirmationPrompt<'static> {
    let what = html! { p { "The API token " strong { (parts::isolated(form.text("name"))) } " will be created after you confirm your identity." } };
    ConfirmationPrompt { action: Action::CreateApiToken, title: "Confirm the new API token", what }
}

/// Converts the form to the body of the API call.
fn body(form: &Fields) -> Value {
    let mut body = Map::new();
    body.insert("name".to_owned(), form.text("name").into());
    body.insert("owner".to_owned(), form.get("owner").unwrap_or(ME).into());
    body.insert("scopes".to_owned(), form.list("scopes"));
    body.insert("sensitive".to_owned(), form.list("sensitive"));
    body.extend(field::expiry(form).map(|at| ("expires_at".to_owned(), at)));
    Value::Object(body)
}

async fn create(ctx: &PageContext) -> PageResult {
    let request = forms::api_token(body(&ctx.form), ctx.actor.now)?;
    let made = confirm::run(ctx, creation_prompt(&ctx.form), async |confirmation| {
        api_tokens::create(&ctx.actor, confirmation, request).await
    });
    match made.await? {
        ConfirmedOutcome::Done(made) => created(ctx, "API token created", &made),
        ConfirmedOutcome::Prompt(page) => Ok(page),
    }
}

/// Builds the page that shows the secret, only once.
fn created(ctx: &PageContext, title: &str, made: &NewCredential<OwnedApiToken>) -> PageResult {
    let row = &made.row.row;
    let body = html! {
        div.card {
            h2 { (parts::isolated(&row.name)) }
            @if let Some(secret) = &made.secret { (parts::secret(secret.reveal())) }
            p { "Send it with each call of the API: " code { "Authorization: Bearer TOKEN" } "." }
            @if let Some(replaced) = &made.replaced { p { "The old one works until " (dates::time(replaced.ends_at)) "." } }
            p { a.button href=(list_path(&owner_value(ctx, row), "")) { "Back to the list" } }
        }
    };
    confirm::finish(
        ctx,
        frame::page(ctx, Sheet { status: http::StatusCode::CREATED, ..Sheet::of(title) }, &body),
    )
}
