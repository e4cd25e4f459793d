//! `/account`: the member's own name, password and sessions.

use std::sync::Arc;

use maud::html;
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::{members, sessions};
use serde_json::json;

use super::{Routes, permissions};
use crate::field::{Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, dates, fault, parts, policy};

/// Maximum number of sessions on the page.
const ROWS: usize = 50;

pub(super) fn routes() -> Routes {
    vec![("/account", visit::page(show).merge(visit::form(act)))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    page(&ctx, None).await
}

async fn page(ctx: &PageContext, wrong: Option<(&str, &ApiError)>) -> PageResult {
    let of = |form: &str| wrong.filter(|(about, _)| *about == form).map(|(_, wrong)| wrong);
    let member = ctx.actor.member();
    let me = members::me(&ctx.actor).await?;
    let own = sessions::list(&ctx.actor).await?;
    let none = Fields::default();
    let fields = |form: &str| if ctx.form.text("do") == form { &ctx.form } else { &none };
    let (naming, password) =
        (Filled::new(fields("name"), of("name")), Filled::new(fields("password"), of("password")));
    let name = Text {
        label: "Name",
        name: "name",
        hint: "Name that other members see (optional).",
        autocomplete: "name",
        first: &member.name,
        ..Text::default()
    };
    let current = Text {
        label: "Current password",
        name: "current_password",
        kind: "password",
        autocomplete: "current-password",
        required: true,
        ..Text::default()
    };
    let new = Text {
        label: "New password",
        name: "new_password",
        kind: "password",
        hint: "At least 8 characters. All your other sessions end.",
        autocomplete: "new-password",
        required: true,
        ..Text::default()
    };
    let body = html! {
        div.card {
            dl {
                dt { "E-mail" } dd { (parts::isolated(&member.email)) }
                dt { "Organization" } dd { (parts::isolated(&me.name)) }
                dt { "Permissions" } dd { (permissions::in_short(ctx.actor.permissions())) " " a href="/access" { "Show them" } }
                @if !me.teams.is_empty() {
                    dt { "Teams" }
                    dd { @for (at, team) in me.teams.iter().enumerate() { @if at > 0 { ", " } (parts::isolated(&team.name)) } }
                }
            }
        }
        form.card method="post" action="/account" {
            h2 { "Name" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "name"))
            (naming.with_error(html! { (naming.text(name)) button.go type="submit" { "Save" } }))
        }
        @if !member.password_hash.is_empty() {
            div.card {
                h2 { "Second factor" }
                p { "A code of an app on your phone that you enter after your password." }
                p { a.button href=(policy::SECOND_FACTOR) { "Manage second factor" } }
            }
            form.card method="post" action="/account" {
                h2 { "Password" }
                (parts::form_tokens(ctx))
                (parts::hidden("do", "password"))
                (password.with_error(html! { (password.text(current)) (password.text(new)) button.go type="submit" { "Change password" } }))
            }
        }
        h2 { "Sessions" }
        ul.rows {
            @for session in own.iter().take(ROWS) {
                @let id = sessions::session_id(&session.secret_sha256);
                li {
                    div.what {
                        div { "Since " (dates::time(session.created_at)) @if ctx.actor.session() == Some(&session.secret_sha256) { " " (parts::tag("current")) } }
                        p.meta { span { "ends " (dates::time(session.expires_at)) } }
                    }
                    (parts::action_button(ctx, "/account", &[("do", "end"), ("id", &id)], &html! { button type="submit" { "End session" span.away { " since " (dates::exact(session.created_at)) } } }))
                }
            }
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, |(_, wrong)| fault::status(wrong));
    Ok(frame::page(ctx, Sheet { status, ..Sheet::of("Account") }, &body))
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    let action = ctx.form.text("do");
    let done = match action {
        "end" => {
            sessions::end(&ctx.actor, ctx.form.text("id")).await?;
            return Ok(see_other("/account?done=ended"));
        }
        "password" => {
            let (new, current) = (ctx.form.get("new_password"), ctx.form.get("current_password"));
            change(&ctx, json!({"password": new, "current_password": current})).await
        }
        _ => change(&ctx, json!({"name": ctx.form.text("name")})).await,
    };
    match done {
        Ok(()) => Ok(see_other("/account?done=saved")),
        Err(error) => {
            let wrong = visit::form_error(&ctx, error)?;
            page(&ctx, Some((if action == "password" { "password" } else { "name" }, &wrong))).await
        }
    }
}

async fn change(ctx: &PageContext, body: serde_json::Value) -> Result<(), ApiError> {
    members::change(&ctx.actor, forms::own_change(body)?).await.map(drop)
}
