//! `/formats`: formats and their plugins, for operators. The operators switch formats on and off
//! here. The page of a format has its details and activates its components.

mod components;
mod details;

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::formats::{self, KnownFormats, LoadedFormat, MissingFormat};

use super::Routes;
use crate::confirm;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, fault, parts};

pub(super) fn routes() -> Routes {
    vec![
        ("/formats", visit::page(show).merge(visit::form(switch))),
        ("/formats/{format}", visit::page(details::show)),
    ]
}

/// Returns the path of a format's page.
fn path(format: &str) -> String {
    format!("/formats/{}", parts::segment(format))
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
    let head = ["Format", "State", "Version", "Kinds", "Calls", "Failed", "Switch"];
    let rows = html! { @for format in &loaded { (row(ctx, format)) } };
    let body = html! {
        @if let Some(wrong) = wrong { (components::refused(ctx, wrong)) }
        @if loaded.is_empty() {
            div.card.empty { h2 { "No plugins are loaded" } p { "Copy a plugin (a " code { ".wasm" } " file) to " code { (ctx.actor.app.config.runtime.plugins.display()) } " and restart the server." } }
        } @else {
            p.soft { "A format that is off refuses requests to its repositories with status 503. Their data is kept. Calls count since the server started." }
            (parts::table("Formats", &head, &rows))
        }
        @for format in waiting {
            div.card {
                div.head { h2 { a href=(path(format)) { (parts::isolated(format)) } } (parts::tag("not running")) }
                (components::of_format(ctx, &components, format))
            }
        }
        @for format in &missing { (absent(format)) }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, ..Sheet::of("Formats") }, &body))
}

fn row(ctx: &PageContext, format: &LoadedFormat) -> Markup {
    let plugin = &format.plugin;
    let description = plugin.description();
    let (calls, failures) = plugin.calls();
    html! {
        tr {
            th scope="row" { a href=(path(&description.format)) { (description.format) } }
            td { (parts::tag(if format.enabled { "on" } else { "off" })) }
            td { (plugin.version()) }
            td { (description.kinds.join(", ")) }
            td.num { (calls) }
            td.num { @if failures == 0 { "0" } @else { strong { (failures) } } }
            td { (switch_button(ctx, format, false)) }
        }
    }
}

/// Builds the button that switches a format on or off. `details` leads back to the format's page.
fn switch_button(ctx: &PageContext, format: &LoadedFormat, details: bool) -> Markup {
    let name = format.plugin.description().format.as_str();
    let (to, verb) = if format.enabled { ("off", "Switch off") } else { ("on", "Switch on") };
    let button = html! { button type="submit" { (verb) span.away { " " (name) } } };
    let fields = [("format", name), ("to", to), ("details", "yes")];
    let fields = fields.iter().copied().filter(|(field, _)| details || *field != "details");
    parts::action_button(ctx, "/formats", &fields.collect::<Vec<_>>(), &button)
}

/// Describes a format whose repositories cannot be served.
fn absent(format: &MissingFormat) -> Markup {
    html! {
        div.card {
            div.head { h2 { (parts::isolated(&format.format)) } (parts::tag("off")) }
            (parts::alert(&format!("No plugin for this format is loaded, but {} repositories need it.", format.repositories)))
        }
    }
}

async fn switch(ctx: Arc<PageContext>) -> PageResult {
    if !ctx.form.text("do").is_empty() {
        return components::change(ctx).await;
    }
    let format = ctx.form.text("format");
    formats::switch(&ctx.actor, format, ctx.form.text("to") == "on").await?;
    let back = if ctx.form.has("details") { path(format) } else { "/formats".to_owned() };
    Ok(see_other(&format!("{back}?done=saved")))
}
