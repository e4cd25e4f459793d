//! `/teams`: the teams of the organization, and the page of each one with its members and rights.

mod one;

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::{PageRequest, teams};
use packhouse_identity::permissions::Permission::ManageMembers;
use packhouse_identity::permissions::Permissions;
use packhouse_store::{TeamId, TeamRow};
use serde_json::{Value, json};

use super::repositories::{ROWS, after};
use super::tokens::choices;
use super::{Routes, permissions};
use crate::field::{Choice, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, fault, parts};

/// Path of the list of teams.
const PATH: &str = "/teams";
/// Maximum number of teams that a form offers.
const MAX_TEAMS: u32 = 1000;

pub(super) fn routes() -> Routes {
    vec![
        (PATH, visit::page(show).merge(visit::form(create))),
        ("/teams/{id}", visit::page(one::show).merge(visit::form(one::act))),
    ]
}

/// Returns the path of a team's page.
pub(super) fn path(id: TeamId) -> String {
    format!("{PATH}/{id}")
}

/// Returns the teams, as options of a form.
pub(super) async fn team_choices(ctx: &PageContext) -> Result<Vec<Choice>, ApiError> {
    let listed = teams::list(&ctx.actor, PageRequest { limit: MAX_TEAMS, after: None }).await?;
    let choice = |row: TeamRow| Choice { value: row.id.to_string(), label: row.name };
    Ok(listed.rows.into_iter().map(choice).collect())
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    list(&ctx, &ctx.form, None).await
}

async fn list(ctx: &PageContext, form: &Fields, wrong: Option<&ApiError>) -> PageResult {
    let page = PageRequest { limit: ROWS, after: after::<TeamId>(ctx)? };
    let listed = teams::list(&ctx.actor, page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|row| row.id.to_string());
    let filled = Filled::new(form, wrong);
    let fields = html! { (own_fields(ctx, &filled, None, &choices(ctx).await?)) button.go type="submit" { "Create team" } };
    let body = html! {
        @if listed.rows.is_empty() {
            div.card.empty {
                h2 { "No teams yet" }
                p { "A team gives permissions to all its members. You add members yourself, or groups of your sign-in provider do." }
            }
        } @else {
            (parts::list_length(ctx, listed.rows.len(), listed.more, "team", "teams"))
            ul.rows { @for row in &listed.rows { li { (one(row)) } } }
        }
        (parts::next_page_link(PATH, &[], next.as_deref()))
        form.card method="post" action=(PATH) {
            h2 { "New team" }
            (parts::form_tokens(ctx))
            (filled.with_error(fields))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, ..Sheet::of("Teams") }, &body))
}

fn one(row: &TeamRow) -> Markup {
    html! {
        div.what {
            a href=(path(row.id)) { (parts::isolated(&row.name)) }
            p.meta {
                @if !row.description.is_empty() { span { (parts::short(&row.description)) } }
                (parts::count(row.members, "member", "members"))
                span { (permissions::in_short(&Permissions::read(&row.permissions))) }
                span { "since " (dates::time(row.created_at)) }
            }
        }
    }
}

/// Builds the form fields of a team. `row` is the existing team; `None` for a new one.
fn own_fields(
    ctx: &PageContext,
    filled: &Filled<'_>,
    row: Option<&TeamRow>,
    repositories: &[Choice],
) -> Markup {
    let first = row.map(|row| row.name.as_str()).unwrap_or_default();
    let name = Text { label: "Name", name: "name", required: true, first, ..Text::default() };
    let first = row.map(|row| row.description.as_str()).unwrap_or_default();
    let description = Text {
        label: "Description",
        name: "description",
        hint: "What the team works on (optional).",
        first,
        ..Text::default()
    };
    let groups = row.map(|row| row.external_groups.join("\n")).unwrap_or_default();
    html! {
        // Together with the visible label, screen readers announce the field as "Team Name".
        label.away for="name" { "Team" }
        (filled.text(name))
        (filled.text(description))
        (permissions::section(ctx, filled, repositories))
        (filled.lines("External groups", "external_groups", "Groups of your sign-in provider, one per line. Their members join this team when they sign in, and leave it when they have left the groups.", &groups))
    }
}

/// Converts the form to the body of the API call.
fn body(form: &Fields) -> Value {
    json!({
        "name": form.text("name"), "description": form.text("description"), "permissions": permissions::body(form),
        "external_groups": permissions::lines(form.text("external_groups")),
    })
}

async fn create(ctx: Arc<PageContext>) -> PageResult {
    if permissions::is_incomplete(&ctx.form) {
        return list(&ctx, &permissions::filled_in(&ctx.form), None).await;
    }
    let made = async {
        let request = forms::team(body(&ctx.form))?;
        teams::create(&ctx.actor, request).await
    };
    match made.await {
        Ok(row) => Ok(see_other(&format!("{}?done=created", path(row.id)))),
        Err(error) if ctx.holds(ManageMembers) => {
            list(&ctx, &ctx.form, Some(&visit::form_error(&ctx, error)?)).await
        }
        Err(error) => Err(error),
    }
}
