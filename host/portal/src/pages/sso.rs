//! The settings of the sign-in by an OpenID Connect provider, as a part of `/settings/sign-in`.

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::sso;
use packhouse_app::sso::SsoSettings;
use serde_json::{Value, json};

use super::permissions;
use super::tokens::choices;
use crate::confirm::{self, ConfirmationPrompt, ConfirmedOutcome};
use crate::fault;
use crate::field::{Filled, Text};
use crate::fields::Fields;
use crate::page_context::PageContext;
use crate::parts;

/// Builds the form of the settings, and the button that removes them.
pub(super) async fn section(ctx: &PageContext, wrong: Option<&ApiError>) -> Result<Markup, ApiError> {
    let known = match sso::show(&ctx.actor).await {
        Ok(settings) => Some(settings),
        Err(error) if fault::status(&error) == http::StatusCode::NOT_FOUND => None,
        Err(error) => return Err(error),
    };
    let choices = choices(ctx).await?;
    let held = match (&known, ctx.form.text("do")) {
        (_, "sso") => permissions::filled_in(&ctx.form),
        (Some(SsoSettings { permissions: Some(permissions), .. }), _) => permissions::fields(permissions),
        _ => Fields::default(),
    };
    let filled = Filled::new(&held, wrong);
    let text = |of: fn(&SsoSettings) -> String| known.as_ref().map(of).unwrap_or_default();
    let (issuer, client) = (text(|known| known.issuer.clone()), text(|known| known.client_id.clone()));
    let domains = text(|known| known.email_domains.join("\n"));
    let groups_claim = text(|known| known.groups_claim.clone().unwrap_or_default());
    let passwords = known.as_ref().is_none_or(|known| known.password_sign_in);
    let made = known.as_ref().is_some_and(|known| known.permissions.is_some());
    let fields = html! {
        (filled.text(Text { label: "Issuer", name: "issuer", kind: "url", hint: "The issuer URL of the provider, exactly as in its ID tokens.", required: true, first: &issuer, ..Text::default() }))
        (filled.text(Text { label: "Client ID", name: "client_id", required: true, first: &client, ..Text::default() }))
        (filled.text(Text { label: "Client secret", name: "client_secret", kind: "password", hint: "Leave empty to keep the current secret.", autocomplete: "new-password", ..Text::default() }))
        (filled.lines("E-mail domains", "email_domains", "One per line. People with a verified address in these domains may sign in. If empty, only existing members may.", &domains))
        (filled.text(Text { label: "Groups claim", name: "groups_claim", hint: "The claim of the ID token that lists the groups of a person, for the external groups of teams. If empty, it is groups.", first: &groups_claim, ..Text::default() }))
        (filled.check("Members may still sign in by password", "password_sign_in", passwords))
        (filled.check("Create a member at the first sign-in, with the permissions below", "makes_members", made))
        details open[permissions::is_incomplete(&ctx.form)] { summary { "Permissions of these new members" } (permissions::section(ctx, &filled, &choices)) }
        button.go type="submit" { "Save" }
    };
    let remove = html! { button.bad type="submit" { "Remove" } };
    Ok(html! {
        form.card method="post" action=(ctx.path) {
            h2 { "Single sign-on" }
            p { "Members sign in through an OpenID Connect provider. Register this redirect URL with the provider: " code { (sso::callback_url(&ctx.actor)) } }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "sso"))
            (parts::hidden("sent", "yes"))
            (filled.with_error(fields))
        }
        @if known.is_some() {
            div.card.danger { h2 { "Remove the provider" } p { "Members can then sign in only by password." } (parts::action_button(ctx, &ctx.path, &[("do", "no-sso")], &remove)) }
        }
    })
}

/// Handles the form with the settings (`sso`), or the button that removes them.
pub(super) async fn act(ctx: &PageContext, action: &str) -> Result<ConfirmedOutcome<()>, ApiError> {
    if action == "sso" {
        return set(ctx).await;
    }
    confirm::run(ctx, prompt(), async |confirmation| sso::remove(&ctx.actor, confirmation).await).await
}

/// Returns the request for the confirmation of a change.
pub(super) fn prompt() -> ConfirmationPrompt<'static> {
    let what = html! { p { "The sign-in settings will change after you confirm your identity." } };
    ConfirmationPrompt { action: Action::ChangeSignIn, title: "Confirm the sign-in settings", what }
}

async fn set(ctx: &PageContext) -> Result<ConfirmedOutcome<()>, ApiError> {
    let form = &ctx.form;
    let domains: Value = form.text("email_domains").split_whitespace().map(Value::from).collect();
    let made = form.has("makes_members");
    let secret = form.get("client_secret").filter(|text| !text.is_empty());
    let body = json!({
        "issuer": form.text("issuer"), "client_id": form.text("client_id"), "client_secret": secret,
        "email_domains": domains, "password_sign_in": form.has("password_sign_in"),
        "groups_claim": form.or_null("groups_claim"),
        "permissions": if made { permissions::body(form) } else { Value::Null },
    });
    let request = forms::sso(&ctx.actor.app, body)?;
    confirm::run(ctx, prompt(), async |confirmation| {
        sso::set(&ctx.actor, confirmation, request).await.map(drop)
    })
    .await
}
