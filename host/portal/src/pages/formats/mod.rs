//! `/formats`: formats and their plugins, for operators. The operators switch formats on and off
//! here, and activate their components.

mod components;

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::formats::{self, KnownFormats, LoadedFormat};
use packhouse_app::plugins::ListedPlugin;
use packhouse_runtime::Plugin;

use super::Routes;
use crate::confirm;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, fault, parts};

pub(super) fn routes() -> Routes {
    vec![("/formats", visit::page(show).merge(visit::form(switch)))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    if confirm::returned_from_provider(&ctx) {
        return confirm::prompt_page(&ctx, &components::activation_prompt(&ctx), &ctx.form, None).await;
    }
    page(&ctx, None).await
}

async fn page(ctx: &PageContext, wrong: Option<&ApiError>) -> PageResult {
    let KnownFormats { loaded, missing } = formats::list(&ctx.actor).await?;
    let components = components::all(ctx).await?;
    let is_loaded = |format: &str| loaded.iter().any(|one| one.plugin.description().format == *format);
    let mut waiting: Vec<&str> = components.iter().map(|plugin| plugin.format.as_str()).collect();
    waiting.retain(|format| !is_loaded(format));
    waiting.dedup();
    let body = html! {
        @if let Some(wrong) = wrong { (components::refused(ctx, wrong)) }
        @if loaded.is_empty() {
            div.card.empty { h2 { "No plugins are loaded" } p { "Copy a plugin (a " code { ".wasm" } " file) to " code { (ctx.actor.app.config.runtime.plugins.display()) } " and restart the server." } }
        }
        @for format in &loaded { (one(ctx, format, &components)) }
        @for format in waiting {
            div.card { h2 { (parts::isolated(format)) " " (parts::tag("not running")) } (components::of_format(ctx, &components, format)) }
        }
        @for format in &missing {
            div.card {
                h2 { (parts::isolated(&format.format)) " " (parts::tag("off")) }
                (parts::alert(&format!("No plugin for this format is loaded, but {} repositories need it.", format.repositories)))
            }
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, ..Sheet::of("Formats") }, &body))
}

fn one(ctx: &PageContext, LoadedFormat { plugin, enabled }: &LoadedFormat, all: &[ListedPlugin]) -> Markup {
    let description = plugin.description();
    let format = description.format.as_str();
    let runtime = &ctx.actor.app.config.runtime;
    let own = runtime.per_plugin.get(format).and_then(|plugin| plugin.limits.as_ref());
    let limits = own.unwrap_or(&runtime.default_limits);
    let (calls, failures) = plugin.calls();
    let (to, button) = if *enabled { ("off", "Switch off") } else { ("on", "Switch on") };
    let button = html! { button type="submit" { (button) span.away { " " (format) } } };
    html! {
        div.card {
            div.head {
                h2 { (format) " " (parts::tag(if *enabled { "on" } else { "off" })) }
                (parts::action_button(ctx, "/formats", &[("format", format), ("to", to)], &button))
            }
            @if !enabled { p { "Requests to its repositories get status 503. Their data is kept." } }
            dl {
                dt { "Version" } dd { (plugin.version()) }
                dt { "From" } dd { @match plugin.file().and_then(|file| file.file_name()) { Some(file) => code { (file.to_string_lossy()) }, None => "component store" } }
                dt { "Digest" } dd { code { (plugin.digest().to_string()) } }
                dt { "Calls since the server started" }
                dd { (calls) ", " @if failures == 0 { "0 failed" } @else { strong { (parts::count(failures, "failed", "failed")) } " (see the server log)" } }
                dt { "Kinds" } dd { (description.kinds.join(", ")) }
                dt { "Largest file" } dd { @match plugin.max_file_bytes() { Some(bytes) => (parts::size(bytes)), None => "unlimited" } }
                dt { "Memory limit per call" } dd { (parts::size(limits.memory_bytes as u64)) }
                dt { "Time limit per call" } dd { (limits.call_timeout.as_millis()) " ms" }
                dt { "Concurrent calls" } dd { (plugin.concurrency()) }
                dt { "Optional features" } dd { (offered(plugin)) }
                @if !description.request_headers.is_empty() { dt { "Request headers it reads" } dd { (description.request_headers.join(", ")) } }
                @if !description.claims.is_empty() {
                    dt { "Claimed paths" } dd { @for claim in &description.claims { code { (claim.path) } " " } }
                }
            }
            (components::of_format(ctx, all, format))
        }
    }
}

/// Describes the optional interfaces that a plugin implements.
fn offered(plugin: &Plugin) -> String {
    let all = [
        (plugin.has_upkeep(), "deleting and marking versions"),
        (plugin.has_present(), "READMEs and dependencies"),
        (plugin.has_retention(), "retention"),
    ];
    let words: Vec<&str> = all.iter().filter(|(has, _)| *has).map(|(_, words)| *words).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(", ") }
}

async fn switch(ctx: Arc<PageContext>) -> PageResult {
    if !ctx.form.text("do").is_empty() {
        return components::change(ctx).await;
    }
    formats::switch(&ctx.actor, ctx.form.text("format"), ctx.form.text("to") == "on").await?;
    Ok(see_other("/formats?done=saved"))
}
