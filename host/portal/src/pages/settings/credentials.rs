//! The credentials of a proxy for its upstream.

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::proxy_cache;
use packhouse_store::RepositoryRow;
use serde_json::json;

use super::sent;
use crate::confirm::{self, ConfirmationCheck, ConfirmationPrompt};
use crate::field::{Filled, Text};
use crate::fields::Fields;
use crate::page_context::{PageContext, see_other};
use crate::{PageResult, parts};

/// Builds the form with the credentials, which are never shown.
pub(super) fn form(ctx: &PageContext, wrong: Option<&ApiError>) -> Markup {
    let none = Fields::default();
    let filled = Filled::new(sent(ctx, "credentials", &none), wrong);
    let username = Text {
        label: "Upstream user name",
        name: "username",
        hint: "Leave user name and password empty to remove the credentials.",
        ..Text::default()
    };
    let password = Text {
        label: "Upstream password or token",
        name: "upstream_password",
        kind: "password",
        autocomplete: "new-password",
        ..Text::default()
    };
    let realm = Text {
        label: "Token service",
        name: "token_realm",
        kind: "url",
        hint: "URL of a token service on another host that may also receive the credentials (optional).",
        ..Text::default()
    };
    let fields = html! { (filled.text(username)) (filled.text(password)) (filled.text(realm)) button.go type="submit" { "Set credentials" } };
    html! {
        form.card method="post" action=(ctx.path) {
            h2 { "Credentials for the upstream" }
            p.soft { "The credentials are stored encrypted and never shown again." }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "credentials"))
            (filled.with_error(fields))
        }
    }
}

/// Returns the request to confirm a change of the credentials.
pub(super) fn prompt(row: &RepositoryRow) -> ConfirmationPrompt<'static> {
    let what = html! { p { "The upstream credentials of " strong { (row.name) } " will change after you confirm your identity." } };
    ConfirmationPrompt {
        action: Action::SetUpstreamCredentials,
        title: "Confirm the upstream credentials",
        what,
    }
}

/// Sets or removes the credentials after a fresh confirmation.
pub(super) async fn set(ctx: &PageContext, row: &RepositoryRow) -> PageResult {
    let form = &ctx.form;
    let password = form.get("upstream_password").filter(|text| !text.is_empty());
    let credentials = forms::upstream_credentials(json!({
        "username": form.or_null("username"), "password": password, "token_realm": form.or_null("token_realm"),
    }))?;
    let confirmation = match confirm::check(ctx, prompt(row)).await? {
        ConfirmationCheck::Prompt(page) => return Ok(page),
        ConfirmationCheck::Given(confirmation) => confirmation,
    };
    match proxy_cache::set_credentials(&ctx.actor, &confirmation, &row.id.to_string(), credentials).await {
        Ok(()) => confirm::finish(ctx, see_other(&format!("{}?done=saved", ctx.path))),
        Err(error) => match confirm::retry_page(ctx, prompt(row), &error).await? {
            Some(page) => Ok(page),
            None => Err(error),
        },
    }
}
