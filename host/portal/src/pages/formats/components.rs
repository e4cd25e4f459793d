//! The components of formats, for whoever manages the server: which one runs, which others there are, activating one and going back.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::plugins::{self, ActivationRequest};
use packhouse_app::plugins::{ListedPlugin, PluginStateName};
use packhouse_identity::permissions::Permission::ManageServer;
use packhouse_wire::catalogue;

use super::{Known, trial};
use crate::confirm::{self, Deed, Outcome};
use crate::seat::{Seat, see_other};
use crate::{Answer, dates, parts, visit};

/// What is known of components; nothing for whoever does not manage the server.
pub(super) async fn all(seat: &Seat) -> Result<Vec<ListedPlugin>, ApiError> {
    if seat.holds(ManageServer) { plugins::list(&seat.actor).await } else { Ok(Vec::new()) }
}

/// The components of one format, where there is more to say than that one runs.
pub(super) fn of_format(seat: &Seat, known: &Known, format: &str) -> Markup {
    let own: Vec<&ListedPlugin> = known.components.iter().filter(|plugin| plugin.format == format).collect();
    let active = own.iter().find(|plugin| plugin.state == PluginStateName::Active);
    let expected = active.and_then(|plugin| plugin.digest.as_deref()).unwrap_or_default();
    let tried = known.trials.get(format);
    if own.is_empty() || (own.len() == 1 && active.is_some()) {
        return html! { @if let Some(tried) = tried { (trial::shown(seat, tried)) } };
    }
    let rows = html! {
        @for plugin in &own {
            tr {
                th scope="row" { (parts::said(plugin.told.as_ref().map_or("-", |told| told.version.as_str()))) }
                td { (parts::tag(plugin.state.word())) @if let Some(error) = &plugin.error { " " (parts::short(error)) } }
                td { (parts::said(&plugin.source)) }
                td.tight { @if let Some(at) = plugin.installed_at { (dates::time(at)) } @else { "with the program" } }
                td { code { (plugin.digest.as_deref().unwrap_or("-")) } }
                td {
                    @if let (Some(digest), true) = (&plugin.digest, plugin.state != PluginStateName::Active) {
                        (parts::deed(seat, "/formats", &[("do", "activate"), ("format", format), ("digest", digest), ("expected", expected)],
                            &html! { button type="submit" { "Activate" span.away { " " (digest) } } }))
                    }
                }
            }
        }
    };
    html! {
        h3 { "Components" }
        (parts::table(&format!("Components of {format}"), &["Version", "State", "From", "Installed", "Digest", "Run it"], &rows))
        @if own.iter().any(|plugin| plugin.state == PluginStateName::Retired) {
            (parts::deed(seat, "/formats", &[("do", "rollback"), ("format", format)],
                &html! { button type="submit" { "Roll back" span.away { " " (format) } } }))
        }
        @if let Some(tried) = tried { (trial::shown(seat, tried)) }
        (trial::form(seat, &own, format))
    }
}

/// What was refused, and where that is a component that asks more, the way to accept it.
pub(super) fn refused(seat: &Seat, wrong: &ApiError) -> Markup {
    let asks_more = wrong.code().is_some_and(|code| std::ptr::eq(code, &catalogue::CAPABILITIES_CHANGED));
    let field = |name: &'static str| (name, seat.form.text(name));
    let fields = [
        field("do"),
        field("format"),
        field("digest"),
        field("expected"),
        field("mode"),
        field("repositories"),
        field("percent"),
        ("accept", "on"),
    ];
    let words = if seat.form.text("do") == "try" {
        "Accept that, and try it"
    } else {
        "Accept that, and activate it"
    };
    html! {
        (parts::alert(wrong.message()))
        @if asks_more {
            (parts::deed(seat, "/formats", &fields, &html! { button.go type="submit" { (words) } }))
        }
    }
}

pub(super) fn activating(seat: &Seat) -> Deed<'static> {
    let format = parts::said(seat.form.text("format"));
    let what = html! { p { "The format " strong { (format) } " runs the component once you have confirmed that it is you." } };
    Deed { action: Action::ManagePlugins, title: "Confirm the activation", what }
}

/// Activates a component, or goes back to the one before.
pub(super) async fn change(seat: Arc<Seat>) -> Answer {
    let format = seat.form.text("format");
    let done = if seat.form.text("do") == "rollback" {
        plugins::roll_back(&seat.actor, format).await.map(Outcome::Done)
    } else {
        let expected = Some(seat.form.text("expected")).filter(|text| !text.is_empty());
        let request = ActivationRequest {
            digest: seat.form.text("digest").to_owned(),
            expected: expected.map(str::to_owned),
            accept_changes: seat.form.text("accept") == "on",
        };
        confirm::then(&seat, activating(&seat), async |confirmation| {
            plugins::activate(&seat.actor, confirmation, format, &request).await
        })
        .await
    };
    match done {
        Ok(Outcome::Done(_)) => confirm::spent(&seat, see_other("/formats?done=saved")),
        Ok(Outcome::Asked(page)) => Ok(page),
        Err(error) => super::page(&seat, Some(&visit::wrong(&seat, error)?)).await,
    }
}
