//! `/repositories/{name}/settings`: settings, a group's members in their order, a proxy's upstream and its credentials; deleting it.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::{loaded, proxy_cache, repositories};
use packhouse_config::repository_settings::{self, Wanted};
use packhouse_store::{RepositoryId, RepositoryRow};
use serde_json::{Map, Value, json};

use super::repository::{named, sheet, tabs};
use super::tokens::{choice, reachable};
use super::{Routes, publishers, retention};
use crate::confirm::{self, Deed, Given};
use crate::field::{Choice, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, fault, parts};

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/repositories/{name}/settings", visit::page(show).merge(visit::form(act)))]
}

async fn show(seat: Arc<Seat>) -> Answer {
    let row = managed(&seat).await?;
    if seat.query.has("confirmed") && seat.form.text("do") == "credentials" {
        return confirm::ask(&seat, &credentials_deed(&row), &seat.form, None).await;
    }
    page(&seat, &row, None).await
}

async fn managed(seat: &Seat) -> Result<RepositoryRow, ApiError> {
    let row = named(seat).await?;
    repositories::managed(&seat.actor, &row.id.to_string()).await
}

/// The page; `wrong` is what the form of this name was refused with.
async fn page(seat: &Seat, row: &RepositoryRow, wrong: Option<(&str, &ApiError)>) -> Answer {
    let of = |form: &str| wrong.filter(|(about, _)| *about == form).map(|(_, wrong)| wrong);
    let plugin = loaded::plugin_of(&seat.actor.app, row)?;
    let shows_credentials =
        plugin.is_some_and(|plugin| !plugin.description().upstream_credentials.is_empty());
    let proxy = row.kind == repositories::PROXY;
    let body = html! {
        (tabs(seat, row, "/settings"))
        @if row.kind != "hosted" && !proxy { (members_form(seat, row, of("members")).await?) }
        (settings_form(seat, row, of("settings")))
        @if proxy && shows_credentials { (credentials_form(seat, of("credentials"))) }
        @if row.kind == "hosted" { (publishers::section(row)) (retention::section(seat, Some(row.id)).await?) }
        div.card.danger {
            h2 { "Delete" }
            p { "The repository " strong { (row.name) } " with all that it holds." }
            @if let Some(wrong) = of("delete") { (parts::alert(wrong.message())) }
            (parts::deed_in_two_steps(seat, &seat.path, &[("do", "delete")], "Delete", ""))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, |(_, wrong)| fault::status(wrong));
    Ok(frame::page(seat, Sheet { status, ..sheet(row) }, &body))
}

/// The form's own fields, where it was the one that was sent.
fn sent<'a>(seat: &'a Seat, form: &str, none: &'a Fields) -> &'a Fields {
    if seat.form.text("do") == form { &seat.form } else { none }
}

fn settings_form(seat: &Seat, row: &RepositoryRow, wrong: Option<&ApiError>) -> Markup {
    let none = Fields::default();
    let filled = Filled::new(sent(seat, "settings", &none), wrong);
    let plugin = seat.actor.app.runtime.plugin_of(row.id, &row.format);
    let description = plugin.as_ref().map(|plugin| plugin.description());
    let effective = repository_settings::effective(&row.settings, row.public, description);
    let upstream = Text {
        label: "Upstream",
        name: "upstream",
        kind: "url",
        hint: "Stored credentials are removed if you name another server here, or change the way by which it is reached.",
        first: row.upstream.as_deref().unwrap_or_default(),
        ..Text::default()
    };
    let fields = html! {
        @if row.kind == repositories::PROXY { (filled.text(upstream)) }
        @for (name, wanted) in repository_settings::wanted(description) {
            @let value = effective.get(&name).cloned().unwrap_or_default();
            (setting(&filled, &name, &wanted, &value))
        }
        button.go type="submit" { "Save" }
    };
    html! {
        form.card method="post" action=(seat.path) {
            h2 { "Settings" }
            (parts::guard(seat))
            (parts::hidden("do", "settings"))
            (parts::hidden("sent", "yes"))
            (filled.told(fields))
        }
    }
}

fn setting(filled: &Filled<'_>, name: &str, wanted: &Wanted, value: &Value) -> Markup {
    let field = format!("setting-{name}");
    let label = label(name);
    let text = as_text(value);
    let hint = wanted.summary.as_str();
    match &wanted.shape {
        repository_settings::Form::Switch => {
            html! { div.field { (filled.check(&label, &field, value.as_bool().unwrap_or_default())) @if !hint.is_empty() { p.hint { (hint) } } } }
        }
        repository_settings::Form::Choice(choices) => {
            let choices: Vec<Choice> = choices.iter().map(|choice| Choice::word(choice)).collect();
            filled.select(&label, &field, &choices, &text)
        }
        repository_settings::Form::List => {
            filled.lines(&label, &field, if hint.is_empty() { "One to a line." } else { hint }, &text)
        }
        repository_settings::Form::Lines => filled.lines(&label, &field, hint, &text),
        repository_settings::Form::Number => filled.text(Text {
            label: &label,
            name: &field,
            kind: "number",
            hint,
            first: &text,
            ..Text::default()
        }),
        repository_settings::Form::Text => {
            filled.text(Text { label: &label, name: &field, hint, first: &text, ..Text::default() })
        }
    }
}

/// `metadata_ttl_s` as `Metadata ttl (s)`.
fn label(name: &str) -> String {
    let (words, unit) = match name.strip_suffix("_s") {
        Some(words) => (words, " (seconds)"),
        None => (
            name.strip_suffix("_bytes").unwrap_or(name),
            if name.ends_with("_bytes") { " (bytes)" } else { "" },
        ),
    };
    let words = words.replace('_', " ");
    let mut letters = words.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}{unit}", letters.as_str())
}

fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    }
}

/// What a form says of a setting, as the body of the call; null takes it back to its default.
fn said(form: &Fields, name: &str, wanted: &Wanted) -> Value {
    let field = format!("setting-{name}");
    let text = form.text(&field);
    match &wanted.shape {
        repository_settings::Form::Switch => form.has(&field).into(),
        repository_settings::Form::List => {
            text.lines().map(str::trim).filter(|line| !line.is_empty()).map(Value::from).collect()
        }
        _ if text.is_empty() => Value::Null,
        repository_settings::Form::Number => text.parse::<u64>().map_or_else(|_| text.into(), Value::from),
        repository_settings::Form::Lines => text.replace("\r\n", "\n").into(),
        repository_settings::Form::Choice(_) | repository_settings::Form::Text => text.into(),
    }
}

/// A group's members, in their order: a number beside each.
async fn members_form(
    seat: &Seat,
    row: &RepositoryRow,
    wrong: Option<&ApiError>,
) -> Result<Markup, ApiError> {
    let all = reachable(seat).await?;
    let name = |id: RepositoryId| {
        all.iter().find(|other| other.id == id).map_or_else(|| id.to_string(), |other| other.name.clone())
    };
    // Members have the format of the group, and are no groups themselves.
    let fits = |other: &&RepositoryRow| {
        other.format == row.format && other.kind != row.kind && !row.members.contains(&other.id)
    };
    let others: Vec<Choice> = all.iter().filter(fits).map(choice).collect();
    let none = Fields::default();
    let filled = Filled::new(sent(seat, "members", &none), wrong);
    let fields = html! {
        @if !row.members.is_empty() {
            fieldset {
                legend { "Order" }
                p.hint { "Clients see the first that has what they ask for. Empty a place to take a member out." }
                @for (at, id) in row.members.iter().enumerate() {
                    div.field.inline {
                        label for={ "place-" (id) } { "Place of " (name(*id)) }
                        input id={ "place-" (id) } name={ "place-" (id) } type="number" min="1" value=(at + 1);
                    }
                }
            }
        }
        (filled.checks("Members", "members", &others, "To be added behind them:"))
        button.go type="submit" { "Save" }
    };
    Ok(html! {
        form.card method="post" action=(seat.path) {
            h2 { "Members of the group" }
            (parts::guard(seat))
            (parts::hidden("do", "members"))
            (filled.told(fields))
        }
    })
}

/// All members from now on, in their order.
fn members(row: &RepositoryRow, form: &Fields) -> Value {
    let mut held: Vec<(u32, String)> = Vec::new();
    for id in row.members.iter().map(ToString::to_string) {
        if let Ok(place) = form.text(&format!("place-{id}")).parse() {
            held.push((place, id));
        }
    }
    held.sort_by_key(|(place, _)| *place);
    let kept = held.into_iter().map(|(_, id)| Value::from(id));
    kept.chain(form.all("members").map(Value::from)).collect()
}

fn credentials_form(seat: &Seat, wrong: Option<&ApiError>) -> Markup {
    let none = Fields::default();
    let filled = Filled::new(sent(seat, "credentials", &none), wrong);
    let username = Text {
        label: "Username there",
        name: "username",
        hint: "Left empty with its password, the credentials are taken away.",
        ..Text::default()
    };
    let password = Text {
        label: "Password or token there",
        name: "upstream_password",
        kind: "password",
        autocomplete: "new-password",
        ..Text::default()
    };
    let realm = Text {
        label: "Token service",
        name: "token_realm",
        kind: "url",
        hint: "The address of a token service on another host that may see them; may stay empty.",
        ..Text::default()
    };
    let fields = html! { (filled.text(username)) (filled.text(password)) (filled.text(realm)) button.go type="submit" { "Set credentials" } };
    html! {
        form.card method="post" action=(seat.path) {
            h2 { "Credentials for the upstream" }
            p.soft { "They are sealed, and nothing shows them again." }
            (parts::guard(seat))
            (parts::hidden("do", "credentials"))
            (filled.told(fields))
        }
    }
}

fn credentials_deed(row: &RepositoryRow) -> Deed<'static> {
    let what = html! { p { "The upstream's credentials of " strong { (row.name) } " change once you have confirmed that it is you." } };
    Deed { action: Action::SetUpstreamCredentials, title: "Confirm the credentials", what }
}

async fn set_credentials(seat: &Seat, row: &RepositoryRow) -> Answer {
    let form = &seat.form;
    let password = form.get("upstream_password").filter(|text| !text.is_empty());
    let wanted = forms::upstream_credentials(json!({
        "username": form.or_null("username"), "password": password, "token_realm": form.or_null("token_realm"),
    }))?;
    let confirmation = match confirm::given(seat, credentials_deed(row)).await? {
        Given::Asked(page) => return Ok(page),
        Given::Confirmation(confirmation) => confirmation,
    };
    match proxy_cache::set_credentials(&seat.actor, &confirmation, &row.id.to_string(), wanted).await {
        Ok(()) => confirm::spent(seat, see_other(&format!("{}?done=saved", seat.path))),
        Err(error) => match confirm::again(seat, credentials_deed(row), &error).await? {
            Some(page) => Ok(page),
            None => Err(error),
        },
    }
}

async fn save(seat: &Seat, row: &RepositoryRow) -> Result<(), ApiError> {
    let plugin = loaded::plugin_of(&seat.actor.app, row)?;
    let description = plugin.as_ref().map(|plugin| plugin.description());
    let settings: Map<String, Value> = repository_settings::wanted(description)
        .into_iter()
        .map(|(name, wanted)| {
            let value = said(&seat.form, &name, &wanted);
            (name, value)
        })
        .collect();
    let upstream = (row.kind == repositories::PROXY).then(|| json!({"url": seat.form.text("upstream")}));
    let change = forms::repository_change(Some(Value::Object(settings)), None, upstream);
    repositories::change(&seat.actor, &row.id.to_string(), &change).await.map(drop)
}

async fn act(seat: Arc<Seat>) -> Answer {
    let row = managed(&seat).await?;
    let id = row.id.to_string();
    let deed = seat.form.text("do");
    let done = match deed {
        "members" if seat.form.has("filter") => return page(&seat, &row, None).await,
        "members" => {
            let change = forms::repository_change(None, Some(members(&row, &seat.form)), None);
            repositories::change(&seat.actor, &id, &change).await.map(drop)
        }
        "credentials" => match set_credentials(&seat, &row).await {
            Ok(answer) => return Ok(answer),
            Err(error) => Err(error),
        },
        "delete" => match repositories::remove(&seat.actor, &id).await {
            Ok(()) => return Ok(see_other("/repositories?done=deleted")),
            Err(error) => Err(error),
        },
        _ => save(&seat, &row).await,
    };
    match done {
        Ok(()) => Ok(see_other(&format!("{}?done=saved", seat.path))),
        Err(error) => {
            let wrong = visit::wrong(&seat, error)?;
            let about = if ["members", "credentials", "delete"].contains(&deed) { deed } else { "settings" };
            page(&seat, &row, Some((about, &wrong))).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_named_for_people() {
        assert_eq!(label("metadata_ttl_s"), "Metadata ttl (seconds)");
        assert_eq!(label("cache_max_bytes"), "Cache max (bytes)");
        assert_eq!(label("public"), "Public");
    }
}
