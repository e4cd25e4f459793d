//! `/members`: members and their permissions, invitations and password reset codes.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::PageRequest;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::members::{self, OneTimeCode};
use packhouse_identity::permissions::Permission::ManageMembers;
use packhouse_identity::permissions::Permissions;
use packhouse_store::{MemberId, MemberRow};
use serde_json::json;

use super::repositories::{ROWS, after};
use super::tokens::choices;
use super::{Routes, permissions};
use crate::confirm::{self, ConfirmationPrompt, ConfirmedOutcome};
use crate::field::{Filled, Text};
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, fault, parts};

pub(super) fn routes() -> Routes {
    vec![("/members", visit::page(show).merge(visit::form(act)))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    if let Some(id) = ctx.query.get("member") {
        return one_page(&ctx, id, None).await;
    }
    if confirm::returned_from_provider(&ctx) {
        return confirm::prompt_page(&ctx, &prompt(&ctx), &ctx.form, None).await;
    }
    list(&ctx, None).await
}

async fn list(ctx: &PageContext, wrong: Option<&ApiError>) -> PageResult {
    let page = PageRequest { limit: ROWS, after: after::<MemberId>(ctx)? };
    let listed = members::list(&ctx.actor, page).await?;
    let next = listed.rows.last().filter(|_| listed.more).map(|row| row.id.to_string());
    let manages = ctx.holds(ManageMembers);
    let body = html! {
        ul.rows { @for row in &listed.rows { li { (one(ctx, row, manages)) } } }
        (parts::next_page_link("/members", &[], next.as_deref()))
        @if manages { (new_form(ctx, wrong).await?) }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, ..Sheet::of("Members") }, &body))
}

fn one(ctx: &PageContext, row: &MemberRow, manages: bool) -> Markup {
    let held = Permissions::read(&row.permissions);
    let id = row.id.to_string();
    let own = row.id == ctx.actor.member().id;
    let change = html! { button type="submit" { "Change " (parts::isolated(&row.email)) } };
    html! {
        div.what {
            div { (parts::isolated(&row.email)) @if own { " " span.soft { "(you)" } } }
            p.meta {
                @if !row.name.is_empty() { span { (parts::isolated(&row.name)) } }
                span { (permissions::in_short(&held)) }
                span { "since " (dates::time(row.created_at)) }
            }
        }
        @if manages { div.acts { (parts::navigation_button("/members", "member", &id, &change)) } }
    }
}

/// Builds the form that invites a member or, with `?new=member`, creates one with a password.
async fn new_form(ctx: &PageContext, wrong: Option<&ApiError>) -> Result<Markup, ApiError> {
    let choices = choices(ctx).await?;
    let with_password = ctx.query.has("new") || ctx.form.text("do") == "create";
    let filled = Filled::new(&ctx.form, wrong);
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

async fn one_page(ctx: &PageContext, id: &str, wrong: Option<&ApiError>) -> PageResult {
    let row = members::show(&ctx.actor, id).await?;
    let choices = choices(ctx).await?;
    let held = if ctx.form.text("do") == "permissions" {
        ctx.form.clone()
    } else {
        permissions::fields(&Permissions::read(&row.permissions))
    };
    let filled = Filled::new(&held, wrong);
    let reset = html! { button type="submit" { "Create password reset code" } };
    let body = html! {
        form.card method="post" action="/members" {
            h2 { "Permissions" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "permissions"))
            (parts::hidden("id", id))
            (filled.with_error(html! { (permissions::section(ctx, &filled, &choices)) button.go type="submit" { "Save" } }))
        }
        div.card {
            h2 { "Password" }
            p { "The member can set a new password with the code within an hour. All sessions of the member end then." }
            (parts::action_button(ctx, "/members", &[("do", "reset"), ("id", id)], &reset))
        }
        div.card.danger {
            h2 { "Delete" }
            p { "Ends all sessions of the member and revokes all tokens. Service keys that the member created keep working." }
            (parts::two_step_button(ctx, "/members", &[("do", "delete"), ("id", id)], "Delete", ""))
        }
    };
    let crumbs = html! { p.crumbs { a href="/members" { "Members" } } };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, crumbs, ..Sheet::of(&row.email) }, &body))
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    let id = ctx.form.text("id");
    match ctx.form.text("do") {
        "permissions" if ctx.form.has("filter") => one_page(&ctx, id, None).await,
        "permissions" => match save(&ctx, id).await {
            Ok(()) => Ok(see_other("/members?done=saved")),
            Err(error) => one_page(&ctx, id, Some(&visit::form_error(&ctx, error)?)).await,
        },
        "reset" => match reset(&ctx, id).await {
            Ok(ConfirmedOutcome::Done(code)) => {
                confirm::finish(&ctx, code_page(&ctx, "Password reset code", "/password-resets/", &code))
            }
            Ok(ConfirmedOutcome::Prompt(page)) => Ok(page),
            Err(error) => one_page(&ctx, id, Some(&visit::form_error(&ctx, error)?)).await,
        },
        "delete" => match members::remove(&ctx.actor, id).await {
            Ok(()) => Ok(see_other("/members?done=deleted")),
            Err(error) => one_page(&ctx, id, Some(&visit::form_error(&ctx, error)?)).await,
        },
        _ if ctx.form.has("filter") => list(&ctx, None).await,
        "create" => match create(&ctx).await {
            Ok(ConfirmedOutcome::Done(())) => confirm::finish(&ctx, see_other("/members?done=created")),
            Ok(ConfirmedOutcome::Prompt(page)) => Ok(page),
            Err(error) => list(&ctx, Some(&visit::form_error(&ctx, error)?)).await,
        },
        _ => match invite(&ctx).await {
            Ok(code) => Ok(code_page(&ctx, "Invitation created", "/invitations/", &code)),
            Err(error) => list(&ctx, Some(&visit::form_error(&ctx, error)?)).await,
        },
    }
}

async fn save(ctx: &PageContext, id: &str) -> Result<(), ApiError> {
    let permissions_request = forms::permissions(json!({"permissions": permissions::body(&ctx.form)}))?;
    members::set_permissions(&ctx.actor, id, &permissions_request).await.map(drop)
}

/// Returns the request for the confirmation that the submitted form needs.
fn prompt(ctx: &PageContext) -> ConfirmationPrompt<'static> {
    let (title, what) = match ctx.form.text("do") {
        "reset" => (
            "Confirm the password reset code",
            html! { p { "The password reset code will be created after you confirm your identity." } },
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

async fn reset(ctx: &PageContext, id: &str) -> Result<ConfirmedOutcome<OneTimeCode>, ApiError> {
    confirm::run(ctx, prompt(ctx), async |confirmation| members::reset(&ctx.actor, confirmation, id).await)
        .await
}

async fn create(ctx: &PageContext) -> Result<ConfirmedOutcome<()>, ApiError> {
    let request = forms::member(json!({
        "email": ctx.form.text("email"), "name": ctx.form.text("name"),
        "password": ctx.form.get("member_password").unwrap_or_default(), "permissions": permissions::body(&ctx.form),
    }))?;
    confirm::run(ctx, prompt(ctx), async |confirmation| {
        members::create(&ctx.actor, confirmation, request).await.map(drop)
    })
    .await
}

async fn invite(ctx: &PageContext) -> Result<OneTimeCode, ApiError> {
    let body = json!({"email": ctx.form.text("email"), "permissions": permissions::body(&ctx.form)});
    let (email, permissions_request) = forms::invitation(body)?;
    members::invite(&ctx.actor, email, &permissions_request).await
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
