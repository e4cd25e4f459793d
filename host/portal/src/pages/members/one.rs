//! The page of a member: own permissions, teams, effective permissions, suspension, password reset
//! and deletion.

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::{members, teams};
use packhouse_identity::permissions::Permission::ManageMembers;
use packhouse_identity::permissions::Permissions;
use packhouse_store::{MemberRow, TeamRow};
use serde_json::json;

use super::super::permissions;
use super::super::teams::{path, team_choices};
use super::super::tokens::choices;
use super::{code_page, prompt};
use crate::confirm::{self, ConfirmedOutcome};
use crate::field::{Choice, Filled};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, fault, parts};

/// Actions on a member that already exists.
pub(super) const ACTIONS: [&str; 8] =
    ["permissions", "join", "leave", "suspend", "reactivate", "reset", "factor", "delete"];

/// Builds the page. `form` has the submitted fields, and `wrong` is the error of the form.
pub(super) async fn page(ctx: &PageContext, id: &str, form: &Fields, wrong: Option<&ApiError>) -> PageResult {
    let row = members::show(&ctx.actor, id).await?;
    let choices = choices(ctx).await?;
    let changes_permissions = form.text("do") == "permissions";
    let other_wrong = wrong.filter(|_| !changes_permissions);
    let has_second_factor = ctx.actor.app.store.has_totp(row.id).await?;
    let reset = html! { button type="submit" { "Create password reset code" } };
    let factor = html! { button.bad type="submit" { "Remove second factor" } };
    let body = html! {
        @if let Some(wrong) = other_wrong { (parts::alert(wrong.message())) }
        (permissions_form(ctx, &row, form, &choices, wrong.filter(|_| changes_permissions)))
        (teams_section(ctx, &row).await?)
        div.card {
            h2 { "Effective permissions" }
            p { "The permissions of the member together with those of all teams." }
            (permissions::sentences(&Permissions::of_member(&row), &choices))
            p { a href={ "/access?member=" (id) } { "Check the access of this member" } }
            @if ctx.holds(ManageMembers) { p { a href={ "/api-tokens?owner=" (id) } { "Show the API tokens of this member" } } }
        }
        div.card {
            h2 { "Password" }
            p { "The member can set a new password with the code within an hour. All sessions of the member end then." }
            (parts::action_button(ctx, "/members", &[("do", "reset"), ("id", id)], &reset))
            @if has_second_factor {
                h3 { "Second factor" }
                p { "The member signs in with a code of an authenticator app. Remove it if the member has lost the app and the recovery codes." }
                (parts::action_button(ctx, "/members", &[("do", "factor"), ("id", id)], &factor))
            }
        }
        (suspension(ctx, &row))
        div.card.danger {
            h2 { "Delete" }
            p { "Ends all sessions of the member and revokes all tokens. Service keys that the member created keep working." }
            (parts::two_step_button(ctx, "/members", &[("do", "delete"), ("id", id)], "Delete", ""))
        }
    };
    let crumbs = html! { p.crumbs { a href="/members" { "Members" } } };
    let beside = html! { @if !row.active { (parts::tag("suspended")) } };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, crumbs, beside, ..Sheet::of(&row.email) }, &body))
}

fn permissions_form(
    ctx: &PageContext,
    row: &MemberRow,
    form: &Fields,
    choices: &[Choice],
    wrong: Option<&ApiError>,
) -> Markup {
    let held = if form.text("do") == "permissions" {
        form.clone()
    } else {
        permissions::fields(&Permissions::read(&row.permissions))
    };
    let filled = Filled::new(&held, wrong);
    let fields = html! { (permissions::section(ctx, &filled, choices)) button.go type="submit" { "Save" } };
    html! {
        form.card method="post" action="/members" {
            h2 { "Permissions" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "permissions"))
            (parts::hidden("id", &row.id.to_string()))
            (filled.with_error(fields))
        }
    }
}

/// Builds the list of the member's teams and the form that adds one.
async fn teams_section(ctx: &PageContext, row: &MemberRow) -> Result<Markup, ApiError> {
    let own = members::teams(&ctx.actor, row).await?;
    let manages = ctx.holds(ManageMembers);
    let others: Vec<Choice> = if manages {
        let is_other = |choice: &Choice| !own.iter().any(|team| team.id.to_string() == choice.value);
        team_choices(ctx).await?.into_iter().filter(is_other).collect()
    } else {
        Vec::new()
    };
    let none = Fields::default();
    let filled = Filled::new(&none, None);
    let id = row.id.to_string();
    Ok(html! {
        h2 { "Teams" }
        @if own.is_empty() { div.card.empty { p { "The member is in no team." } } } @else {
            ul.rows { @for team in &own { li { (one_team(ctx, team, &id, manages)) } } }
        }
        @if !others.is_empty() {
            form.card method="post" action="/members" {
                (parts::form_tokens(ctx))
                (parts::hidden("do", "join"))
                (parts::hidden("id", &id))
                (filled.select("Team", "team", &others, ""))
                button type="submit" { "Add to team" }
            }
        }
    })
}

fn one_team(ctx: &PageContext, team: &TeamRow, id: &str, manages: bool) -> Markup {
    let remove =
        html! { button type="submit" { "Remove" span.away { " from " (parts::isolated(&team.name)) } } };
    html! {
        div.what {
            @if manages { a href=(path(team.id)) { (parts::isolated(&team.name)) } } @else { (parts::isolated(&team.name)) }
            p.meta { span { (permissions::in_short(&Permissions::read(&team.permissions))) } }
        }
        @if manages {
            (parts::action_button(ctx, "/members", &[("do", "leave"), ("id", id), ("team", &team.id.to_string())], &remove))
        }
    }
}

fn suspension(ctx: &PageContext, row: &MemberRow) -> Markup {
    let id = row.id.to_string();
    let button = |action: &str, button: &Markup| {
        parts::action_button(ctx, "/members", &[("do", action), ("id", &id)], button)
    };
    html! {
        @if row.active {
            div.card {
                h2 { "Suspension" }
                p { "A suspended member is refused everywhere: sessions, passwords, tokens and API tokens. Nothing is deleted, and you can reactivate the member at any time." }
                (button("suspend", &html! { button.bad type="submit" { "Suspend" } }))
            }
        } @else {
            div.card.danger {
                h2 { "Suspension" }
                p { "The member is suspended. Reactivating brings back everything that still exists: sessions, the password, tokens and API tokens." }
                (button("reactivate", &html! { button type="submit" { "Reactivate" } }))
            }
        }
    }
}

/// Handles the form of an action on an existing member.
pub(super) async fn act(ctx: &PageContext, action: &str) -> PageResult {
    let id = ctx.form.text("id");
    if action == "permissions" && permissions::is_incomplete(&ctx.form) {
        return page(ctx, id, &permissions::filled_in(&ctx.form), None).await;
    }
    match change(ctx, action, id).await {
        Ok(answer) => Ok(answer),
        Err(error) => page(ctx, id, &ctx.form, Some(&visit::form_error(ctx, error)?)).await,
    }
}

async fn change(ctx: &PageContext, action: &str, id: &str) -> PageResult {
    let (team, own_page) = (ctx.form.text("team"), format!("/members?member={}", parts::segment(id)));
    let done = |what: &str| Ok(see_other(&format!("{own_page}&done={what}")));
    match action {
        "join" => {
            teams::add_member(&ctx.actor, team, id).await?;
            done("added")
        }
        "leave" => {
            teams::remove_member(&ctx.actor, team, id).await?;
            done("removed")
        }
        "suspend" => {
            members::set_active(&ctx.actor, id, false).await?;
            done("suspended")
        }
        "reactivate" => {
            members::set_active(&ctx.actor, id, true).await?;
            done("reactivated")
        }
        "delete" => {
            members::remove(&ctx.actor, id).await?;
            Ok(see_other("/members?done=deleted"))
        }
        "reset" => reset(ctx, id).await,
        "factor" => remove_second_factor(ctx, id).await,
        _ => {
            let request = forms::permissions(json!({"permissions": permissions::body(&ctx.form)}))?;
            members::set_permissions(&ctx.actor, id, &request).await?;
            Ok(see_other("/members?done=saved"))
        }
    }
}

async fn remove_second_factor(ctx: &PageContext, id: &str) -> PageResult {
    let removed = confirm::run(ctx, prompt(ctx), async |confirmation| {
        members::remove_second_factor(&ctx.actor, confirmation, id).await
    });
    match removed.await? {
        ConfirmedOutcome::Done(()) => confirm::finish(ctx, see_other("/members?done=saved")),
        ConfirmedOutcome::Prompt(page) => Ok(page),
    }
}

async fn reset(ctx: &PageContext, id: &str) -> PageResult {
    let made = confirm::run(ctx, prompt(ctx), async |confirmation| {
        members::reset(&ctx.actor, confirmation, id).await
    });
    match made.await? {
        ConfirmedOutcome::Done(code) => {
            confirm::finish(ctx, code_page(ctx, "Password reset code", "/password-resets/", &code))
        }
        ConfirmedOutcome::Prompt(page) => Ok(page),
    }
}
