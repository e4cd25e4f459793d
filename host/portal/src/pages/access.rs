//! `/access`: explains whether an account or a token may do something in a repository, and which
//! grants give the right.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::explain::{self, AccessGrant, AccessQuestion, AccessSubject, Explanation};
use packhouse_api::operations::{PageRequest, members};
use packhouse_identity::permissions::Permission::ManageMembers;
use packhouse_identity::permissions::RepositoryAction;
use packhouse_store::MemberRow;

use super::members::display_name;
use super::tokens::choices;
use super::{Routes, permissions, service_accounts};
use crate::field::{Choice, Filled, Text};
use crate::frame::{self, Sheet};
use crate::page_context::PageContext;
use crate::visit;
use crate::{PageResult, parts};

const PATH: &str = "/access";
/// Maximum number of members that the form offers.
const MAX_MEMBERS: u32 = 200;
/// Actions that the form offers.
const ACTIONS: [RepositoryAction; 4] = {
    use RepositoryAction::{Delete, Manage, Publish, Read};
    [Read, Publish, Delete, Manage]
};

pub(super) fn routes() -> Routes {
    vec![(PATH, visit::page(show))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    let repositories = choices(&ctx).await?;
    let answer = match ctx.query.text("repository") {
        "" => own(&ctx, &repositories),
        repository => answer(&ctx, repository).await?,
    };
    let body = html! { (answer) (question_form(&ctx, &repositories).await?) };
    Ok(frame::page(&ctx, Sheet::of("Access"), &body))
}

/// Shows the member's own permissions, as long as no question is asked.
fn own(ctx: &PageContext, repositories: &[Choice]) -> Markup {
    html! {
        div.card {
            h2 { "Your permissions" }
            p { "Your own permissions together with those of your teams:" }
            (permissions::sentences(ctx.actor.permissions(), repositories))
        }
    }
}

async fn question_form(ctx: &PageContext, repositories: &[Choice]) -> Result<Markup, ApiError> {
    let filled = Filled::new(&ctx.query, None);
    let actions = ACTIONS.map(|action| Choice::word(permissions::action_name(action)));
    let (own, token) = (ctx.actor.member().id.to_string(), ctx.query.text("token"));
    let accounts = if ctx.holds(ManageMembers) { accounts(ctx).await? } else { Vec::new() };
    let package = Text {
        label: "Package",
        name: "package",
        hint: "The name of a package to publish or delete. If empty, any package.",
        ..Text::default()
    };
    Ok(html! {
        form.card method="get" action=(PATH) {
            h2 { "Check access" }
            @if !token.is_empty() {
                (parts::hidden("token", token))
                p { "The answer is about the token with the id " (parts::isolated(token)) ". " a href=(PATH) { "Ask about an account instead" } }
            } @else if !accounts.is_empty() { (filled.select("Account", "member", &accounts, &own)) }
            (filled.select("Repository", "repository", repositories, ""))
            (filled.select("Action", "action", &actions, ""))
            (filled.text(package))
            button.go type="submit" { "Check access" }
        }
    })
}

/// Returns the members and service accounts, as options of the form.
async fn accounts(ctx: &PageContext) -> Result<Vec<Choice>, ApiError> {
    let listed = members::list(&ctx.actor, PageRequest { limit: MAX_MEMBERS, after: None }).await?;
    let person = |row: &MemberRow| (row.id, display_name(row).to_owned());
    let all = listed.rows.iter().map(person).chain(service_accounts::names(ctx).await?);
    let mut accounts: Vec<Choice> = all.map(|(id, label)| Choice { value: id.to_string(), label }).collect();
    let requested = ctx.query.text("member");
    if !requested.is_empty() && !accounts.iter().any(|account| account.value == requested) {
        let label = format!("The account with the id {requested}");
        accounts.push(Choice { value: requested.to_owned(), label });
    }
    Ok(accounts)
}

/// Answers the question in the query string.
async fn answer(ctx: &PageContext, repository: &str) -> Result<Markup, ApiError> {
    let own = ctx.actor.member().id.to_string();
    let subject = match (ctx.query.text("token"), ctx.query.text("member")) {
        ("", "") => AccessSubject::Member(&own),
        ("", id) => AccessSubject::Member(id),
        (id, _) => AccessSubject::Token(id),
    };
    let named = ctx.query.text("action");
    let action = ACTIONS.into_iter().find(|action| permissions::action_name(*action) == named);
    let action = action.ok_or_else(|| ApiError::invalid("Choose an action."))?;
    let package = Some(ctx.query.text("package")).filter(|name| !name.is_empty());
    let question = AccessQuestion { subject, repository, action, package };
    let explanation = explain::explain(&ctx.actor, question).await?;
    Ok(explained(&explanation, package))
}

fn explained(explanation: &Explanation, package: Option<&str>) -> Markup {
    let Explanation { allowed, grants, denied_by } = explanation;
    html! {
        section.card role="status" {
            h2 { "Answer" }
            p {
                (parts::tag(if *allowed { "allowed" } else { "denied" }))
                @if let Some(package) = package { " for the package " (parts::isolated(package)) }
            }
            @if let Some(code) = denied_by { p { "The server refuses it with the code " code { (code) } "." } }
            @if grants.is_empty() { p { "No grant gives this action in the repository." } } @else {
                p { "These grants give the action in the repository:" }
                ul.steps { @for grant in grants { li { (one(grant)) } } }
            }
        }
    }
}

fn one(grant: &AccessGrant) -> Markup {
    let actions: Vec<&str> = grant.actions.iter().map(|action| permissions::action_name(*action)).collect();
    html! {
        (grant.kind.name().replace('_', " ")) " " strong { (parts::isolated(&grant.name)) } ": " (actions.join(", "))
        @if let Some(packages) = &grant.packages { "; publish and delete only packages named " (permissions::patterns(packages)) }
    }
}
