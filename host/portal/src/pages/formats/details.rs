//! `/formats/{format}`: what a format's plugin is, what it may do, and which settings its
//! repositories have.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::formats::{self, KnownFormats, LoadedFormat};
use packhouse_config::repository_settings;
use packhouse_runtime::{Description, Plugin};
use packhouse_wire::catalogue;

use super::{absent, components, switch_button};
use crate::frame::{self, Sheet};
use crate::page_context::PageContext;
use crate::{PageResult, parts};

pub(super) async fn show(ctx: Arc<PageContext>) -> PageResult {
    let format = ctx.named("format");
    let KnownFormats { loaded, missing } = formats::list(&ctx.actor).await?;
    let all = components::all(&ctx).await?;
    let found = loaded.iter().find(|one| one.plugin.description().format == *format);
    let needed = missing.iter().find(|one| one.format == *format);
    if found.is_none() && needed.is_none() && !all.iter().any(|plugin| plugin.format == *format) {
        return Err(ApiError::from(&catalogue::NOT_FOUND));
    }
    let body = html! {
        @if let Some(format) = found { (facts(&ctx, format)) (settings(format.plugin.description())) }
        @if let Some(needed) = needed { (absent(needed)) }
        (components::of_format(&ctx, &all, format))
    };
    let crumbs = html! { p.crumbs { a href="/formats" { "Formats" } } };
    let state = match found {
        Some(format) if format.enabled => "on",
        Some(_) => "off",
        None => "not running",
    };
    let beside = html! {
        div.acts { (parts::tag(state)) @if let Some(format) = found { (switch_button(&ctx, format, true)) } }
    };
    Ok(frame::page(&ctx, Sheet { crumbs, beside, ..Sheet::of(format) }, &body))
}

fn facts(ctx: &PageContext, LoadedFormat { plugin, enabled }: &LoadedFormat) -> Markup {
    let description = plugin.description();
    let runtime = &ctx.actor.app.config.runtime;
    let own = runtime.per_plugin.get(&description.format).and_then(|plugin| plugin.limits.as_ref());
    let limits = own.unwrap_or(&runtime.default_limits);
    let (calls, failures) = plugin.calls();
    html! {
        @if !enabled { p.note { "Requests to its repositories get status 503. Their data is kept." } }
        section.card {
            h2 { "Plugin" }
            dl {
                dt { "Version" } dd { (plugin.version()) }
                dt { "From" } dd { @match plugin.file().and_then(|file| file.file_name()) { Some(file) => code { (file.to_string_lossy()) }, None => "component store" } }
                dt { "Digest" } dd { code { (plugin.digest().to_string()) } }
                dt { "Calls since the server started" }
                dd { (calls) ", " @if failures == 0 { "0 failed" } @else { strong { (parts::count(failures, "failed", "failed")) } " (see the server log)" } }
                dt { "Kinds" } dd { (description.kinds.join(", ")) }
                dt { "Optional features" } dd { (offered(plugin)) }
            }
        }
        section.card {
            h2 { "Limits and permissions" }
            dl {
                dt { "Largest file" } dd { @match plugin.max_file_bytes() { Some(bytes) => (parts::size(bytes)), None => "unlimited" } }
                dt { "Memory limit per call" } dd { (parts::size(limits.memory_bytes as u64)) }
                dt { "Time limit per call" } dd { (limits.call_timeout.as_millis()) " ms" }
                dt { "Concurrent calls" } dd { (plugin.concurrency()) }
                @if !description.request_headers.is_empty() { dt { "Request headers it reads" } dd { (description.request_headers.join(", ")) } }
                @if !description.claims.is_empty() {
                    dt { "Claimed paths" } dd { @for claim in &description.claims { code { (claim.path) } " " } }
                }
            }
        }
    }
}

/// Lists the settings that the plugin declares, with its own words.
fn settings(description: &Description) -> Markup {
    let mut settings = repository_settings::form_settings(Some(description));
    settings.retain(|(name, _)| description.settings.contains_key(name));
    if settings.is_empty() {
        return Markup::default();
    }
    let rows = html! {
        @for (name, setting) in &settings {
            tr {
                th scope="row" { (setting.title) }
                td { code { (name) } }
                td { @if setting.kinds.is_empty() { "all" } @else { (setting.kinds.join(", ")) } }
                td { (setting.summary) }
            }
        }
    };
    html! {
        h2 { "Settings of its repositories" }
        (parts::table("Settings of its repositories", &["Setting", "Key", "Kinds", "Meaning"], &rows))
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
