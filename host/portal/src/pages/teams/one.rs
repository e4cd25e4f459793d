//! `/teams/{id}`: the members of a team, its name, permissions and external groups, and its
//! deletion.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::{PageRequest, members, teams};
use packhouse_identity::permissions::Permissions;
use packhouse_store::{MemberId, TeamMember, TeamRow};

use super::super::members::{display_name, page_of};
use super::super::repositories::{ROWS, after};
use super::super::tokens::choices;
use super::super::{permissions, service_accounts as accounts};
use super::{PATH, body, own_fields};
use crate::field::{Choice, Filled};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, fault, parts};

/// Maximum number of members that the form offers to add.
const MAX_MEMBERS: u32 = 1000;

pub(super) async fn show(ctx: Arc<PageContext>) -> PageResult {
    page(&ctx, &ctx.form, None).await
}

/// Builds the page. `form` has the submitted fields, and `wrong` the name of the refused form with
/// its error.
async fn page(ctx: &PageContext, form: &Fields, wrong: Option<(&str, &ApiError)>) -> PageResult {
    let of = |form: &str| wrong.filter(|(about, _)| *about == form).map(|(_, wrong)| wrong);
    let id = ctx.named("id");
    let row = teams::show(&ctx.actor, id).await?;
    let request = PageRequest { limit: ROWS, after: after::<MemberId>(ctx)? };
    let listed = teams::members(&ctx.actor, id, request).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|last| last.member.id.to_string());
    let body = html! {
        h2 { "Members" }
        @if listed.rows.is_empty() { div.card.empty { p { "The team has no members yet." } } } @else {
            ul.rows { @for member in &listed.rows { li { (one(ctx, member)) } } }
        }
        (parts::next_page_link(&ctx.path, &[], next.as_deref()))
        (add_form(ctx, form, &listed.rows, of("add")).await?)
        (own_form(ctx, form, &row, of("save")).await?)
        div.card.danger {
            h2 { "Delete" }
            p { "The members stay. They lose the permissions that only this team gives them." }
            (parts::two_step_button(ctx, &ctx.path, &[("do", "delete")], "Delete", ""))
        }
    };
    let crumbs = html! { p.crumbs { a href=(PATH) { "Teams" } " / " (parts::count(row.members, "member", "members")) } };
    let status = wrong.map_or(http::StatusCode::OK, |(_, wrong)| fault::status(wrong));
    Ok(frame::page(ctx, Sheet { status, crumbs, ..Sheet::of(&row.name) }, &body))
}

fn one(ctx: &PageContext, TeamMember { member, source }: &TeamMember) -> Markup {
    let (name, id) = (display_name(member), member.id.to_string());
    let remove = html! { button type="submit" { "Remove" span.away { " " (parts::isolated(name)) } } };
    html! {
        div.what {
            a href=(page_of(member)) { (parts::isolated(name)) }
            p.meta {
                (parts::tag(source.name()))
                @if !member.active { (parts::tag("suspended")) }
                @if name != member.name && !member.name.is_empty() { span { (parts::isolated(&member.name)) } }
                span { "account since " (dates::time(member.created_at)) }
            }
        }
        (parts::action_button(ctx, &ctx.path, &[("do", "remove"), ("member", &id)], &remove))
    }
}

/// Builds the form that adds members. It leaves out the members of the page.
async fn add_form(
    ctx: &PageContext,
    form: &Fields,
    listed: &[TeamMember],
    wrong: Option<&ApiError>,
) -> Result<Markup, ApiError> {
    let page = PageRequest { limit: MAX_MEMBERS, after: None };
    let persons = members::list(&ctx.actor, page).await?.rows;
    let people = persons.iter().map(|row| (row.id, display_name(row).to_owned()));
    let services = accounts::names(ctx).await?;
    let is_new = |id: &MemberId| !listed.iter().any(|one| one.member.id == *id);
    let candidates: Vec<Choice> = people
        .chain(services)
        .filter(|(id, _)| is_new(id))
        .map(|(id, label)| Choice { value: id.to_string(), label })
        .collect();
    let none = Fields::default();
    let filled = Filled::new(if form.text("do") == "add" { form } else { &none }, wrong);
    let fields = html! {
        (filled.checks("Members", "members", &candidates, "Members and service accounts to add. They get the permissions of the team."))
        button.go type="submit" { "Add member" }
    };
    Ok(html! {
        form.card method="post" action=(ctx.path) {
            h2 { "Add members" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "add"))
            (filled.with_error(fields))
        }
    })
}

async fn own_form(
    ctx: &PageContext,
    form: &Fields,
    row: &TeamRow,
    wrong: Option<&ApiError>,
) -> Result<Markup, ApiError> {
    let held = if form.text("do") == "save" {
        form.clone()
    } else {
        permissions::fields(&Permissions::read(&row.permissions))
    };
    let filled = Filled::new(&held, wrong);
    let fields = own_fields(ctx, &filled, Some(row), &choices(ctx).await?);
    Ok(html! {
        form.card method="post" action=(ctx.path) {
            h2 { "Name and permissions" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "save"))
            (filled.with_error(html! { (fields) button.go type="submit" { "Save" } }))
        }
    })
}

pub(super) async fn act(ctx: Arc<PageContext>) -> PageResult {
    if permissions::is_incomplete(&ctx.form) {
        return page(&ctx, &permissions::filled_in(&ctx.form), None).await;
    }
    let (id, action) = (ctx.named("id"), ctx.form.text("do"));
    let done = match action {
        "delete" => {
            teams::remove(&ctx.actor, id).await?;
            return Ok(see_other(&format!("{PATH}?done=deleted")));
        }
        "add" => add(&ctx, id).await.map(|()| "added"),
        "remove" => teams::remove_member(&ctx.actor, id, ctx.form.text("member")).await.map(|()| "removed"),
        _ => save(&ctx, id).await.map(|()| "saved"),
    };
    match done {
        Ok(done) => Ok(see_other(&format!("{}?done={done}", ctx.path))),
        Err(error) => {
            let wrong = visit::form_error(&ctx, error)?;
            page(&ctx, &ctx.form, Some((if action == "save" { "save" } else { "add" }, &wrong))).await
        }
    }
}

/// Adds the chosen members. Those before a refused one stay added.
async fn add(ctx: &PageContext, id: &str) -> Result<(), ApiError> {
    if !ctx.form.has("members") {
        return Err(ApiError::invalid("Choose at least one member to add."));
    }
    for member in ctx.form.all("members") {
        teams::add_member(&ctx.actor, id, member).await?;
    }
    Ok(())
}

async fn save(ctx: &PageContext, id: &str) -> Result<(), ApiError> {
    let request = forms::team_change(body(&ctx.form))?;
    teams::change(&ctx.actor, id, request).await.map(drop)
}
