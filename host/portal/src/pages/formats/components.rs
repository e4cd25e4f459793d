//! Components of formats, for operators of the server: lists, activation and rollback.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::plugins::{self, ActivationRequest};
use packhouse_app::plugins::{ListedPlugin, PluginStateName};
use packhouse_identity::permissions::Permission::ManageServer;
use packhouse_wire::catalogue;

use crate::confirm::{self, ConfirmationPrompt, ConfirmedOutcome};
use crate::page_context::{PageContext, see_other};
use crate::{PageResult, dates, parts, visit};

/// Lists all components; empty for members without `manage-server`.
pub(super) async fn all(ctx: &PageContext) -> Result<Vec<ListedPlugin>, ApiError> {
    if ctx.holds(ManageServer) { plugins::list(&ctx.actor).await } else { Ok(Vec::new()) }
}

/// Lists the components of one format, unless its active one is the only one.
pub(super) fn of_format(ctx: &PageContext, components: &[ListedPlugin], format: &str) -> Markup {
    let own: Vec<&ListedPlugin> = components.iter().filter(|plugin| plugin.format == format).collect();
    let active = own.iter().find(|plugin| plugin.state == PluginStateName::Active);
    let expected = active.and_then(|plugin| plugin.digest.as_deref()).unwrap_or_default();
    if own.is_empty() || (own.len() == 1 && active.is_some()) {
        return html! {};
    }
    let rows = html! {
        @for plugin in &own {
            tr {
                th scope="row" { (parts::isolated(plugin.facts.as_ref().map_or("-", |facts| facts.version.as_str()))) }
                td { (parts::tag(plugin.state.word())) @if let Some(error) = &plugin.error { " " (parts::short(error)) } }
                td { (parts::isolated(&plugin.source)) }
                td.tight { @if let Some(at) = plugin.installed_at { (dates::time(at)) } @else { "with the server" } }
                td { code { (plugin.digest.as_deref().unwrap_or("-")) } }
                td {
                    @if let (Some(digest), true) = (&plugin.digest, plugin.state != PluginStateName::Active) {
                        (parts::action_button(ctx, "/formats", &[("do", "activate"), ("format", format), ("digest", digest), ("expected", expected)],
                            &html! { button type="submit" { "Activate" span.away { " " (digest) } } }))
                    }
                }
            }
        }
    };
    html! {
        h2 { "Components" }
        (parts::table(&format!("Components of {format}"), &["Version", "State", "From", "Installed", "Digest", "Activate"], &rows))
        @if own.iter().any(|plugin| plugin.state == PluginStateName::Retired) {
            (parts::action_button(ctx, "/formats", &[("do", "rollback"), ("format", format)],
                &html! { button type="submit" { "Roll back" span.away { " " (format) } } }))
        }
    }
}

/// Shows the error of an action. If a component requests more capabilities, adds a button to accept
/// them.
pub(super) fn refused(ctx: &PageContext, wrong: &ApiError) -> Markup {
    let asks_more = wrong.code().is_some_and(|code| std::ptr::eq(code, &catalogue::CAPABILITIES_CHANGED));
    let field = |name: &'static str| (name, ctx.form.text(name));
    let fields = [field("do"), field("format"), field("digest"), field("expected"), ("accept", "on")];
    html! {
        (parts::alert(wrong.message()))
        @if asks_more {
            (parts::action_button(ctx, "/formats", &fields, &html! { button.go type="submit" { "Accept and activate" } }))
        }
    }
}

pub(super) fn activation_prompt(ctx: &PageContext) -> ConfirmationPrompt<'static> {
    let format = parts::isolated(ctx.form.text("format"));
    let what = html! { p { "The format " strong { (format) } " will run the component after you confirm your identity." } };
    ConfirmationPrompt { action: Action::ManagePlugins, title: "Confirm the activation", what }
}

/// Activates a component, or rolls back to the previous one.
pub(super) async fn change(ctx: Arc<PageContext>) -> PageResult {
    let format = ctx.form.text("format");
    let done = if ctx.form.text("do") == "rollback" {
        plugins::roll_back(&ctx.actor, format).await.map(ConfirmedOutcome::Done)
    } else {
        let expected = Some(ctx.form.text("expected")).filter(|text| !text.is_empty());
        let request = ActivationRequest {
            digest: ctx.form.text("digest").to_owned(),
            expected: expected.map(str::to_owned),
            accept_changes: ctx.form.text("accept") == "on",
        };
        confirm::run(&ctx, activation_prompt(&ctx), async |confirmation| {
            plugins::activate(&ctx.actor, confirmation, format, &request).await
        })
        .await
    };
    match done {
        Ok(ConfirmedOutcome::Done(_)) => {
            confirm::finish(&ctx, see_other(&format!("{}?done=saved", super::path(format))))
        }
        Ok(ConfirmedOutcome::Prompt(page)) => Ok(page),
        Err(error) => super::page(&ctx, Some(&visit::form_error(&ctx, error)?)).await,
    }
}
