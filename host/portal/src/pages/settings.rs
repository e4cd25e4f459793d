//! `/repositories/{name}/settings`: forms for the settings, the ordered members of a group, the
//! upstream and credentials of a proxy, and the deletion.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::{loaded, proxy_cache, repositories};
use packhouse_config::repository_settings::{self, FormSetting};
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::{RepositoryId, RepositoryRow};
use serde_json::{Map, Value, json};

use super::repository::{named, sheet, tabs};
use super::tokens::{choice, reachable};
use super::{Routes, publishers, retention};
use crate::confirm::{self, ConfirmationCheck, ConfirmationPrompt};
use crate::field::{Choice, Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, fault, parts};

pub(super) fn routes() -> Routes {
    vec![("/repositories/{name}/settings", visit::page(show).merge(visit::form(act)))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    let row = managed(&ctx).await?;
    if ctx.query.has("confirmed") && ctx.form.text("do") == "credentials" {
        return confirm::prompt_page(&ctx, &credentials_prompt(&row), &ctx.form, None).await;
    }
    page(&ctx, &row, None).await
}

async fn managed(ctx: &PageContext) -> Result<RepositoryRow, ApiError> {
    let row = named(ctx).await?;
    repositories::managed(&ctx.actor, &row.id.to_string()).await
}

/// Builds the page. `wrong` is the name of the refused form with its error.
async fn page(ctx: &PageContext, row: &RepositoryRow, wrong: Option<(&str, &ApiError)>) -> PageResult {
    let of = |form: &str| wrong.filter(|(about, _)| *about == form).map(|(_, wrong)| wrong);
    let plugin = loaded::plugin_of(&ctx.actor.app, row)?;
    let shows_credentials =
        plugin.is_some_and(|plugin| !plugin.description().upstream_credentials.is_empty());
    let proxy = row.kind == repositories::PROXY;
    let body = html! {
        (tabs(ctx, row, "/settings"))
        @if row.kind != "hosted" && !proxy { (members_form(ctx, row, of("members")).await?) }
        (settings_form(ctx, row, of("settings")))
        @if proxy && shows_credentials { (credentials_form(ctx, of("credentials"))) }
        @if row.kind == "hosted" { (publishers::section(row)) (retention::section(ctx, Some(row.id)).await?) }
        @if ctx.holds(ManageRepositories) {
            div.card.danger {
                h2 { "Delete" }
                p { "Deletes the repository " strong { (row.name) } " with all its packages." }
                @if let Some(wrong) = of("delete") { (parts::alert(wrong.message())) }
                (parts::two_step_button(ctx, &ctx.path, &[("do", "delete")], "Delete", ""))
            }
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, |(_, wrong)| fault::status(wrong));
    Ok(frame::page(ctx, Sheet { status, ..sheet(row) }, &body))
}

/// Returns the submitted fields if the member submitted this form, otherwise `none`.
fn sent<'a>(ctx: &'a PageContext, form: &str, none: &'a Fields) -> &'a Fields {
    if ctx.form.text("do") == form { &ctx.form } else { none }
}

fn settings_form(ctx: &PageContext, row: &RepositoryRow, wrong: Option<&ApiError>) -> Markup {
    let none = Fields::default();
    let filled = Filled::new(sent(ctx, "settings", &none), wrong);
    let plugin = ctx.actor.app.runtime.plugin_of(row.id, &row.format);
    let description = plugin.as_ref().map(|plugin| plugin.description());
    let effective = repository_settings::effective(&row.settings, row.public, description);
    let upstream = Text {
        label: "Upstream",
        name: "upstream",
        kind: "url",
        hint: "The URL that packages are fetched from. Changing the server, or the proxy or certificates used to reach it, clears the stored credentials.",
        first: row.upstream.as_deref().unwrap_or_default(),
        ..Text::default()
    };
    let fields = html! {
        @if row.kind == repositories::PROXY { (filled.text(upstream)) }
        @for (name, spec) in repository_settings::form_settings(description) {
            @let value = effective.get(&name).cloned().unwrap_or_default();
            (setting(&filled, &name, &spec, &value))
        }
        button.go type="submit" { "Save" }
    };
    html! {
        form.card method="post" action=(ctx.path) {
            h2 { "Settings" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "settings"))
            (parts::hidden("sent", "yes"))
            (filled.with_error(fields))
        }
    }
}

fn setting(filled: &Filled<'_>, name: &str, spec: &FormSetting, value: &Value) -> Markup {
    let field = format!("setting-{name}");
    let label = label(name);
    let text = as_text(value);
    let hint = spec.summary.as_str();
    match &spec.shape {
        repository_settings::Form::Switch => {
            html! { div.field { (filled.check(&label, &field, value.as_bool().unwrap_or_default())) @if !hint.is_empty() { p.hint { (hint) } } } }
        }
        repository_settings::Form::Choice(choices) => {
            let choices: Vec<Choice> = choices.iter().map(|choice| Choice::word(choice)).collect();
            filled.select(&label, &field, &choices, &text)
        }
        repository_settings::Form::List => {
            filled.lines(&label, &field, if hint.is_empty() { "One per line." } else { hint }, &text)
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

/// Converts the key of a setting to a label: `metadata_ttl_s` becomes `Metadata ttl (seconds)`.
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

/// Converts a field of the form to the setting's value in the API call. Null restores the default.
fn setting_value(form: &Fields, name: &str, spec: &FormSetting) -> Value {
    let field = format!("setting-{name}");
    let text = form.text(&field);
    match &spec.shape {
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

/// Builds the form with a group's members and the position of each.
async fn members_form(
    ctx: &PageContext,
    row: &RepositoryRow,
    wrong: Option<&ApiError>,
) -> Result<Markup, ApiError> {
    let all = reachable(ctx).await?;
    let name = |id: RepositoryId| {
        all.iter().find(|other| other.id == id).map_or_else(|| id.to_string(), |other| other.name.clone())
    };
    // Members must have the format of the group and must not be groups themselves.
    let fits = |other: &&RepositoryRow| {
        other.format == row.format && other.kind != row.kind && !row.members.contains(&other.id)
    };
    let others: Vec<Choice> = all.iter().filter(fits).map(choice).collect();
    let none = Fields::default();
    let filled = Filled::new(sent(ctx, "members", &none), wrong);
    let fields = html! {
        @if !row.members.is_empty() {
            fieldset {
                legend { "Order" }
                p.hint { "A client gets a package from the first member that has it. Clear a position to remove the member." }
                @for (at, id) in row.members.iter().enumerate() {
                    div.field.inline {
                        label for={ "place-" (id) } { "Position of " (name(*id)) }
                        input id={ "place-" (id) } name={ "place-" (id) } type="number" min="1" value=(at + 1);
                    }
                }
            }
        }
        (filled.checks("Members", "members", &others, "New members are added at the end."))
        button.go type="submit" { "Save" }
    };
    Ok(html! {
        form.card method="post" action=(ctx.path) {
            h2 { "Members of the group" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "members"))
            (filled.with_error(fields))
        }
    })
}

/// Returns the new list of members in their order.
fn members(row: &RepositoryRow, form: &Fields) -> Value {
    let mut held: Vec<(u32, String)> = Vec::new();
    for id in row.members.iter().map(ToString::to_string) {
        if let Ok(place) = form.text(&format!("place-{id}")).parse() {
            held.push((place, id));
        }
    }
    held.sort_by_key(|(place, _)| *place);
    let remaining = held.into_iter().map(|(_, id)| Value::from(id));
    remaining.chain(form.all("members").map(Value::from)).collect()
}

fn credentials_form(ctx: &PageContext, wrong: Option<&ApiError>) -> Markup {
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

fn credentials_prompt(row: &RepositoryRow) -> ConfirmationPrompt<'static> {
    let what = html! { p { "The upstream credentials of " strong { (row.name) } " will change after you confirm your identity." } };
    ConfirmationPrompt {
        action: Action::SetUpstreamCredentials,
        title: "Confirm the upstream credentials",
        what,
    }
}

async fn set_credentials(ctx: &PageContext, row: &RepositoryRow) -> PageResult {
    let form = &ctx.form;
    let password = form.get("upstream_password").filter(|text| !text.is_empty());
    let credentials = forms::upstream_credentials(json!({
        "username": form.or_null("username"), "password": password, "token_realm": form.or_null("token_realm"),
    }))?;
    let confirmation = match confirm::check(ctx, credentials_prompt(row)).await? {
        ConfirmationCheck::Prompt(page) => return Ok(page),
        ConfirmationCheck::Given(confirmation) => confirmation,
    };
    match proxy_cache::set_credentials(&ctx.actor, &confirmation, &row.id.to_string(), credentials).await {
        Ok(()) => confirm::finish(ctx, see_other(&format!("{}?done=saved", ctx.path))),
        Err(error) => match confirm::retry_page(ctx, credentials_prompt(row), &error).await? {
            Some(page) => Ok(page),
            None => Err(error),
        },
    }
}

async fn save(ctx: &PageContext, row: &RepositoryRow) -> Result<(), ApiError> {
    let plugin = loaded::plugin_of(&ctx.actor.app, row)?;
    let description = plugin.as_ref().map(|plugin| plugin.description());
    let settings: Map<String, Value> = repository_settings::form_settings(description)
        .into_iter()
        .map(|(name, spec)| {
            let value = setting_value(&ctx.form, &name, &spec);
            (name, value)
        })
        .collect();
    let upstream = (row.kind == repositories::PROXY).then(|| json!({"url": ctx.form.text("upstream")}));
    let change = forms::repository_change(Some(Value::Object(settings)), None, upstream);
    repositories::change(&ctx.actor, &row.id.to_string(), &change).await.map(drop)
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    let row = managed(&ctx).await?;
    let id = row.id.to_string();
    let action = ctx.form.text("do");
    let done = match action {
        "members" if ctx.form.has("filter") => return page(&ctx, &row, None).await,
        "members" => {
            let change = forms::repository_change(None, Some(members(&row, &ctx.form)), None);
            repositories::change(&ctx.actor, &id, &change).await.map(drop)
        }
        "credentials" => match set_credentials(&ctx, &row).await {
            Ok(answer) => return Ok(answer),
            Err(error) => Err(error),
        },
        "delete" => match repositories::remove(&ctx.actor, &id).await {
            Ok(()) => return Ok(see_other("/repositories?done=deleted")),
            Err(error) => Err(error),
        },
        _ => save(&ctx, &row).await,
    };
    match done {
        Ok(()) => Ok(see_other(&format!("{}?done=saved", ctx.path))),
        Err(error) => {
            let wrong = visit::form_error(&ctx, error)?;
            let about =
                if ["members", "credentials", "delete"].contains(&action) { action } else { "settings" };
            page(&ctx, &row, Some((about, &wrong))).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_becomes_a_readable_label() {
        assert_eq!(label("metadata_ttl_s"), "Metadata ttl (seconds)");
        assert_eq!(label("cache_max_bytes"), "Cache max (bytes)");
        assert_eq!(label("public"), "Public");
    }
}
