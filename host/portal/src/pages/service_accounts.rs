//! `/service-accounts`: accounts of programs, and the page of each one with its permissions, its
//! teams and its deletion.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::PageRequest;
use packhouse_api::operations::service_accounts::{self, ServiceAccount};
use packhouse_identity::permissions::Permission::ManageMembers;
use packhouse_identity::permissions::Permissions;
use packhouse_store::MemberId;
use serde_json::{Value, json};

use super::repositories::{ROWS, after};
use super::teams::team_choices;
use super::tokens::choices;
use super::{Routes, permissions};
use crate::field::{Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, fault, parts};

/// Path of the list of service accounts.
const PATH: &str = "/service-accounts";
/// Maximum number of service accounts that a form offers.
const MAX_ACCOUNTS: u32 = 200;

pub(super) fn routes() -> Routes {
    vec![
        (PATH, visit::page(show).merge(visit::form(create))),
        ("/service-accounts/{id}", visit::page(show_one).merge(visit::form(act))),
    ]
}

/// Returns the path of a service account's page.
pub(super) fn path(id: MemberId) -> String {
    format!("{PATH}/{id}")
}

/// Returns the ids and names of the service accounts.
pub(super) async fn names(ctx: &PageContext) -> Result<Vec<(MemberId, String)>, ApiError> {
    let page = PageRequest { limit: MAX_ACCOUNTS, after: None };
    let listed = service_accounts::list(&ctx.actor, page).await?;
    Ok(listed.rows.into_iter().map(|account| (account.row.id, account.row.name)).collect())
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    list(&ctx, &ctx.form, None).await
}

async fn list(ctx: &PageContext, form: &Fields, wrong: Option<&ApiError>) -> PageResult {
    let page = PageRequest { limit: ROWS, after: after::<MemberId>(ctx)? };
    let listed = service_accounts::list(&ctx.actor, page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|account| account.row.id.to_string());
    let filled = Filled::new(form, wrong);
    let fields =
        html! { (own_fields(ctx, &filled, "").await?) button.go type="submit" { "Create service account" } };
    let body = html! {
        @if listed.rows.is_empty() {
            div.card.empty {
                h2 { "No service accounts yet" }
                p { "A service account is for a program that manages this server through the API. It has no password and no tokens for packages: it signs in with API tokens alone. Pipelines that publish packages use service keys or trusted publishers." }
            }
        } @else {
            (parts::list_length(ctx, listed.rows.len(), listed.more, "service account", "service accounts"))
            ul.rows { @for account in &listed.rows { li { (one(account)) } } }
        }
        (parts::next_page_link(PATH, &[], next.as_deref()))
        form.card method="post" action=(PATH) {
            h2 { "New service account" }
            (parts::form_tokens(ctx))
            (filled.with_error(fields))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, ..Sheet::of("Service accounts") }, &body))
}

fn one(account: &ServiceAccount) -> Markup {
    let row = &account.row;
    html! {
        div.what {
            a href=(path(row.id)) { (parts::isolated(&row.name)) }
            p.meta {
                @if !row.active { (parts::tag("suspended")) }
                span { (permissions::in_short(&Permissions::of_member(row))) }
                span { "since " (dates::time(row.created_at)) }
            }
        }
    }
}

/// Builds the form fields of a service account. `name` is its present name; empty for a new one.
async fn own_fields(ctx: &PageContext, filled: &Filled<'_>, name: &str) -> Result<Markup, ApiError> {
    let name = Text {
        label: "Name",
        name: "name",
        hint: "What the program does, for example: Nightly inventory.",
        required: true,
        first: name,
        ..Text::default()
    };
    let (repositories, teams) = (choices(ctx).await?, team_choices(ctx).await?);
    Ok(html! {
        (filled.text(name))
        (permissions::section(ctx, filled, &repositories))
        (filled.checks("Teams", "teams", &teams, "The account also gets the permissions of these teams."))
    })
}

/// Converts the form to the body of the API call.
fn body(form: &Fields) -> Value {
    json!({"name": form.text("name"), "permissions": permissions::body(form), "teams": form.list("teams")})
}

async fn create(ctx: Arc<PageContext>) -> PageResult {
    if permissions::is_incomplete(&ctx.form) {
        return list(&ctx, &permissions::filled_in(&ctx.form), None).await;
    }
    let made = async {
        let request = forms::service_account(body(&ctx.form))?;
        service_accounts::create(&ctx.actor, request).await
    };
    match made.await {
        Ok(account) => Ok(see_other(&format!("{}?done=created", path(account.row.id)))),
        Err(error) if ctx.holds(ManageMembers) => {
            list(&ctx, &ctx.form, Some(&visit::form_error(&ctx, error)?)).await
        }
        Err(error) => Err(error),
    }
}

async fn show_one(ctx: Arc<PageContext>) -> PageResult {
    page(&ctx, &ctx.form, None).await
}

async fn page(ctx: &PageContext, form: &Fields, wrong: Option<&ApiError>) -> PageResult {
    let account = service_accounts::show(&ctx.actor, ctx.named("id")).await?;
    let row = &account.row;
    let held = if form.text("do") == "save" { form.clone() } else { fields(&account) };
    let filled = Filled::new(&held, wrong);
    let own = own_fields(ctx, &filled, &row.name).await?;
    let repositories = choices(ctx).await?;
    let body = html! {
        div.card {
            h2 { "API tokens" }
            p { "The program signs in with an API token of this account." }
            p { a.button href={ "/api-tokens?owner=" (row.id) } { "Show its API tokens" } }
        }
        form.card method="post" action=(ctx.path) {
            h2 { "Name and permissions" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "save"))
            (filled.with_error(html! { (own) button.go type="submit" { "Save" } }))
        }
        div.card {
            h2 { "Effective permissions" }
            p { "The permissions of the account together with those of all its teams." }
            (permissions::sentences(&Permissions::of_member(row), &repositories))
            p { a href={ "/access?member=" (row.id) } { "Check the access of this account" } }
        }
        div.card.danger {
            h2 { "Delete" }
            p { "All its API tokens stop working immediately." }
            (parts::two_step_button(ctx, &ctx.path, &[("do", "delete")], "Delete", ""))
        }
    };
    let crumbs = html! { p.crumbs { a href=(PATH) { "Service accounts" } } };
    let beside = html! { @if !row.active { (parts::tag("suspended")) } };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, crumbs, beside, ..Sheet::of(&row.name) }, &body))
}

/// Converts a service account to the fields of its form.
fn fields(account: &ServiceAccount) -> Fields {
    let mut fields = permissions::fields(&Permissions::read(&account.row.permissions));
    fields.0.extend(account.teams.iter().map(|team| ("teams".to_owned(), team.id.to_string())));
    fields
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    let id = ctx.named("id");
    if ctx.form.text("do") == "delete" {
        service_accounts::remove(&ctx.actor, id).await?;
        return Ok(see_other(&format!("{PATH}?done=deleted")));
    }
    if permissions::is_incomplete(&ctx.form) {
        return page(&ctx, &permissions::filled_in(&ctx.form), None).await;
    }
    let saved = async {
        let change = forms::service_account_change(body(&ctx.form))?;
        service_accounts::change(&ctx.actor, id, change).await
    };
    match saved.await {
        Ok(_) => Ok(see_other(&format!("{}?done=saved", ctx.path))),
        Err(error) => page(&ctx, &ctx.form, Some(&visit::form_error(&ctx, error)?)).await,
    }
}
