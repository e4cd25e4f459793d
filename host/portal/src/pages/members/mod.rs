//! `/members`: members and their permissions, invitations and password reset codes.

mod one;

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::PageRequest;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::members::{self, OneTimeCode};
use packhouse_identity::permissions::Permission::ManageMembers;
use packhouse_identity::permissions::Permissions;
use packhouse_store::{MemberKind, MemberRow};
use serde_json::json;

use super::repositories::{ROWS, after};
use super::tokens::choices;
use super::{Routes, permissions};
use crate::confirm::{self, ConfirmationPrompt, ConfirmedOutcome};
use crate::field::{Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, fault, parts};

pub(super) fn routes() -> Routes {
    vec![("/members", visit::page(show).merge(visit::form(act)))]
}

/// Returns the name of a member for other members: the e-mail address, or the name of a service
/// account.
pub(super) fn display_name(row: &MemberRow) -> &str {
    match row.kind {
        MemberKind::Person => &row.email,
        MemberKind::Service => &row.name,
    }
}

/// Returns the address of the page of a member or a service account.
pub(super) fn page_of(row: &MemberRow) -> String {
    match row.kind {
        MemberKind::Person => format!("/members?member={}", row.id),
        MemberKind::Service => super::service_accounts::path(row.id),
    }
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    if let Some(id) = ctx.query.get("member") {
        return one::page(&ctx, id, &ctx.form, None).await;
    }
    if confirm::returned_from_provider(&ctx) {
        return confirm::prompt_page(&ctx, &prompt(&ctx), &ctx.form, None).await;
    }
    list(&ctx, &ctx.form, None).await
}

async fn list(ctx: &PageContext, form: &Fields, wrong: Option<&ApiError>) -> PageResult {
    let page = PageRequest { limit: ROWS, after: after::<String>(ctx)? };
    let listed = members::list_by_email(&ctx.actor, &page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|row| row.email.clone());
    let manages = ctx.holds(ManageMembers);
    let body = html! {
        (parts::list_length(ctx, listed.rows.len(), listed.more, "member", "members"))
        ul.rows { @for row in &listed.rows { li { (one(ctx, row, manages)) } } }
        (parts::next_page_link("/members", &[], next.as_deref()))
        @if manages { (new_form(ctx, form, wrong).await?) }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, ..Sheet::of("Members") }, &body))
}

fn one(ctx: &PageContext, row: &MemberRow, manages: bool) -> Markup {
    let effective = Permissions::of_member(row);
    let id = row.id.to_string();
    let own = row.id == ctx.actor.member().id;
    let change = html! { button type="submit" { "Change " (parts::isolated(&row.email)) } };
    html! {
        div.what {
            div { (parts::isolated(&row.email)) @if own { " " span.soft { "(you)" } } }
            p.meta {
                @if !row.name.is_empty() { span { (parts::isolated(&row.name)) } }
                @if !row.active { (parts::tag("suspended")) }
                span { (permissions::in_short(&effective)) }
                span { "since " (dates::time(row.created_at)) }
            }
        }
        @if manages { div.acts { (parts::navigation_button("/members", "member", &id, &change)) } }
    }
}

/// Builds the form that invites a member or, with `?new=member`, creates one with a password.
async fn new_form(ctx: &PageContext, form: &Fields, wrong: Option<&ApiError>) -> Result<Markup, ApiError> {
    let choices = choices(ctx).await?;
    let with_password = ctx.query.has("new") || form.text("do") == "create";
    let filled = Filled::new(form, wrong);
    let email = Text { label: "E-mail", name: "email", kind: "email", required: true, ..Text::default() };
    let name = Text {
        label: "Name",
        name: "name",
        hint: "Name that other members see (optional).",
        ..Text::default()
    };
    let password = Text {
        label: "Password",
        name: "member_password",
        kind: "password",
        hint: "At least 8 characters. The member can change it later.",
        autocomplete: "new-password",
        required: true,
        ..Text::default()
    };
    let fields = html! {
        (filled.text(email))
        @if with_password { (filled.text(name)) (filled.text(password)) }
        (permissions::section(ctx, &filled, &choices))
        @if with_password { button.go type="submit" { "Create member" } } @else { button.go type="submit" { "Invite" } }
    };
    let (heading, action) =
        if with_password { ("Create a member", "create") } else { ("Invite a member", "invite") };
    Ok(html! {
        form.card method="post" action="/members" {
            h2 { (heading) }
            (parts::form_tokens(ctx))
            (parts::hidden("do", action))
            (filled.with_error(fields))
            @if with_password { p { a href="/members" { "Invite a member instead" } } }
            @else { p { a href="/members?new=member" { "Create a member with a password instead" } } }
        }
    })
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    let action = ctx.form.text("do");
    if one::ACTIONS.contains(&action) {
        return one::act(&ctx, action).await;
    }
    if permissions::is_incomplete(&ctx.form) {
        return list(&ctx, &permissions::filled_in(&ctx.form), None).await;
    }
    let done = match action {
        "create" => create(&ctx).await,
        _ => invite(&ctx).await,
    };
    match done {
        Ok(answer) => Ok(answer),
        Err(error) => list(&ctx, &ctx.form, Some(&visit::form_error(&ctx, error)?)).await,
    }
}

/// Returns the request for the confirmation that the submitted form needs.
fn prompt(ctx: &PageContext) -> ConfirmationPrompt<'static> {
    let (title, what) = match ctx.form.text("do") {
        "reset" => (
            "Confirm the password reset code",
            html! { p { "The password reset code will be created after you confirm your identity." } },
        ),
        "factor" => (
            "Confirm the removal of the second factor",
            html! { p { "The second factor of the member will be removed after you confirm your identity." } },
        ),
        _ => {
            let email = parts::isolated(ctx.form.text("email"));
            (
                "Confirm the new member",
                html! { p { "The member " strong { (email) } " will be created after you confirm your identity." } },
            )
        }
    };
    ConfirmationPrompt { action: Action::ManageMembers, title, what }
}

async fn create(ctx: &PageContext) -> PageResult {
    let request = forms::member(json!({
        "email": ctx.form.text("email"), "name": ctx.form.text("name"),
        "password": ctx.form.get("member_password").unwrap_or_default(), "permissions": permissions::body(&ctx.form),
    }))?;
    let made = confirm::run(ctx, prompt(ctx), async |confirmation| {
        members::create(&ctx.actor, confirmation, request).await.map(drop)
    });
    match made.await? {
        ConfirmedOutcome::Done(()) => confirm::finish(ctx, see_other("/members?done=created")),
        ConfirmedOutcome::Prompt(page) => Ok(page),
    }
}

async fn invite(ctx: &PageContext) -> PageResult {
    let body = json!({"email": ctx.form.text("email"), "permissions": permissions::body(&ctx.form)});
    let (email, permissions_request) = forms::invitation(body)?;
    let code = members::invite(&ctx.actor, email, &permissions_request).await?;
    Ok(code_page(ctx, "Invitation created", "/invitations/", &code))
}

/// Builds the page with the address that contains the code. The portal shows the code only once.
fn code_page(ctx: &PageContext, title: &str, path: &str, code: &OneTimeCode) -> axum::response::Response {
    let address = format!("{}{path}{}", ctx.actor.api_url(), code.secret.reveal());
    let body = html! {
        div.card {
            @match code.mailed {
                Some(true) => p { "The address was sent by e-mail. You can also pass it on yourself:" },
                Some(false) => p { "The e-mail could not be sent. Pass this address on yourself:" },
                None => p { "Pass this address on to the member. The first person who opens it can use it." },
            }
            (parts::secret(&address))
            p { "The address works once, until " (dates::time(code.expires_at)) "." }
            p { a.button href="/members" { "Back to the members" } }
        }
    };
    frame::page(ctx, Sheet { status: http::StatusCode::CREATED, ..Sheet::of(title) }, &body)
}
