//! `/formats`: the plugins, for operators; switching a format on or off, which component it runs, and which is tried.

mod components;
mod trial;

use std::collections::BTreeMap;
use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::formats::{self, KnownFormats, LoadedFormat};
use packhouse_api::operations::trials::Trialed;
use packhouse_app::plugins::ListedPlugin;
use packhouse_runtime::Plugin;

use super::Routes;
use crate::confirm;
use crate::frame::{self, Sheet};
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, fault, parts};

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/formats", visit::page(show).merge(visit::form(switch)))]
}

async fn show(seat: Arc<Seat>) -> Answer {
    if confirm::is_back(&seat) {
        return confirm::ask(&seat, &components::activating(&seat), &seat.form, None).await;
    }
    page(&seat, None).await
}

async fn page(seat: &Seat, wrong: Option<&ApiError>) -> Answer {
    let KnownFormats { loaded, missing } = formats::list(&seat.actor).await?;
    let components = components::all(seat).await?;
    let known = Known { trials: trial::all(seat, &components).await?, components };
    let components = &known.components;
    let is_loaded = |format: &str| loaded.iter().any(|known| known.plugin.description().format == *format);
    let mut waiting: Vec<&str> = components.iter().map(|plugin| plugin.format.as_str()).collect();
    waiting.retain(|format| !is_loaded(format));
    waiting.dedup();
    let body = html! {
        @if let Some(wrong) = wrong { (components::refused(seat, wrong)) }
        @if loaded.is_empty() {
            div.card.empty { h2 { "No format is served" } p { "Put a plugin, a " code { ".wasm" } " file, into " code { (seat.actor.app.config.runtime.plugins.display()) } " and start the server anew." } }
        }
        @for format in &loaded { (one(seat, format, &known)) }
        @for format in waiting {
            div.card { h2 { (parts::said(format)) " " (parts::tag("not run")) } (components::of_format(seat, &known, format)) }
        }
        @for format in &missing {
            div.card {
                h2 { (parts::said(&format.format)) " " (parts::tag("off")) }
                (parts::alert(&format!("No plugin of this format is loaded; {} repositories need it.", format.repositories)))
            }
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(seat, Sheet { status, ..Sheet::of("Formats") }, &body))
}

/// What is known of components.
struct Known {
    components: Vec<ListedPlugin>,
    /// By format.
    trials: BTreeMap<String, Trialed>,
}

fn one(seat: &Seat, LoadedFormat { plugin, enabled }: &LoadedFormat, all: &Known) -> Markup {
    let description = plugin.description();
    let format = description.format.as_str();
    let runtime = &seat.actor.app.config.runtime;
    let own = runtime.per_plugin.get(format).and_then(|plugin| plugin.limits.as_ref());
    let limits = own.unwrap_or(&runtime.default_limits);
    let (calls, failures) = plugin.calls();
    let (to, button) = if *enabled { ("off", "Switch off") } else { ("on", "Switch on") };
    let button = html! { button type="submit" { (button) span.away { " " (format) } } };
    html! {
        div.card {
            div.head {
                h2 { (format) " " (parts::tag(if *enabled { "on" } else { "off" })) }
                (parts::deed(seat, "/formats", &[("format", format), ("to", to)], &button))
            }
            @if !enabled { p { "Its repositories answer 503; nothing of them is lost." } }
            dl {
                dt { "Version" } dd { (plugin.version()) }
                dt { "From" } dd { @match plugin.file().and_then(|file| file.file_name()) { Some(file) => code { (file.to_string_lossy()) }, None => "the store" } }
                dt { "Digest" } dd { code { (plugin.digest().to_string()) } }
                dt { "Calls since the server started" }
                dd { (calls) ", " @if failures == 0 { "none failed" } @else { strong { (parts::count(failures, "failed", "failed")) } ", as the log says" } }
                dt { "Kinds" } dd { (description.kinds.join(", ")) }
                dt { "Largest file" } dd { @match plugin.max_file_bytes() { Some(bytes) => (parts::size(bytes)), None => "no bound" } }
                dt { "Memory of a call" } dd { (parts::size(limits.memory_bytes as u64)) }
                dt { "Time of a call" } dd { (limits.call_timeout.as_millis()) " ms" }
                dt { "Calls at one time" } dd { (plugin.concurrency()) }
                dt { "Offers besides" } dd { (offered(plugin)) }
                @if !description.request_headers.is_empty() { dt { "Sees of a request" } dd { (description.request_headers.join(", ")) } }
                @if !description.claims.is_empty() {
                    dt { "Paths of its own" } dd { @for claim in &description.claims { code { (claim.path) } " " } }
                }
            }
            (components::of_format(seat, all, format))
        }
    }
}

/// What a plugin does besides serving its clients, in words.
fn offered(plugin: &Plugin) -> String {
    let all = [
        (plugin.has_upkeep(), "deleting and marking versions"),
        (plugin.has_present(), "READMEs and dependencies"),
        (plugin.has_retention(), "what retention asks"),
    ];
    let words: Vec<&str> = all.iter().filter(|(has, _)| *has).map(|(_, words)| *words).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}

async fn switch(seat: Arc<Seat>) -> Answer {
    if !seat.form.text("do").is_empty() {
        return match seat.form.text("do") {
            "try" | "end-trial" => trial::change(seat).await,
            _ => components::change(seat).await,
        };
    }
    formats::switch(&seat.actor, seat.form.text("format"), seat.form.text("to") == "on").await?;
    Ok(see_other("/formats?done=saved"))
}
