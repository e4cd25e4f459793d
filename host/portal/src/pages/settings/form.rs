//! The form with the settings that apply to the kind and the format of a repository.

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::{loaded, repositories};
use packhouse_config::repository_settings::{self, Form, FormSetting, SettingGroup};
use packhouse_store::RepositoryRow;
use serde_json::{Map, Value, json};

use super::sent;
use crate::field::{Choice, Filled, Quantity, Text, amount};
use crate::fields::Fields;
use crate::page_context::PageContext;
use crate::parts;

/// Builds the form, in groups; dangerous settings come last.
pub(super) fn form(ctx: &PageContext, row: &RepositoryRow, wrong: Option<&ApiError>) -> Markup {
    let none = Fields::default();
    let filled = Filled::new(sent(ctx, "settings", &none), wrong);
    let plugin = ctx.actor.app.runtime.plugin_of(row.id, &row.format);
    let description = plugin.as_ref().map(|plugin| plugin.description());
    let effective = repository_settings::effective(&row.settings, row.public, description);
    let settings = repository_settings::settings_of_kind(&row.kind, description);
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
        @for group in settings.chunk_by(|(_, one), (_, next)| one.group == next.group) {
            @let about = group.first().map(|(_, one)| one.group);
            fieldset.settings.danger[about == Some(SettingGroup::Danger)] {
                legend { (heading(about, &row.format)) }
                @for (name, spec) in group {
                    (setting(&filled, name, spec, effective.get(name).unwrap_or(&Value::Null)))
                }
            }
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

/// Returns the heading of a group of settings.
fn heading(group: Option<SettingGroup>, format: &str) -> String {
    match group {
        Some(SettingGroup::Format) | None => format!("Only for the format {format}"),
        Some(group) => group.title().to_owned(),
    }
}

fn setting(filled: &Filled<'_>, name: &str, spec: &FormSetting, value: &Value) -> Markup {
    let field = format!("setting-{name}");
    let (label, hint) = (spec.title.as_str(), sentence(&spec.summary));
    let text = as_text(value);
    match (&spec.shape, spec.unit) {
        (Form::Switch, _) => filled.switch(label, &field, value.as_bool().unwrap_or_default(), &hint),
        (Form::Choice(choices), _) => {
            let title = |choice: &String| repository_settings::choice_title(name, choice).to_owned();
            let choice = |choice: &String| Choice { value: choice.clone(), label: title(choice) };
            let choices: Vec<Choice> = choices.iter().map(choice).collect();
            filled.select_with_hint(label, &field, &choices, &text, &hint)
        }
        (Form::List, _) => {
            let hint = format!("{hint} One per line.");
            filled.lines(label, &field, hint.trim_start(), &text)
        }
        (Form::Lines, _) => filled.lines(label, &field, &hint, &text),
        (Form::Number, Some(unit)) => {
            filled.quantity(Quantity { label, name: &field, unit, hint: &hint, first: value.as_u64() })
        }
        (shape, _) => {
            let kind = if *shape == Form::Number { "number" } else { "" };
            filled.text(Text { label, name: &field, kind, hint: &hint, first: &text, ..Text::default() })
        }
    }
}

/// Ends a help text with a period, because summaries of plugins have none.
fn sentence(text: &str) -> String {
    if text.is_empty() || text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

fn as_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    }
}

/// Converts a field of the form to the setting's value in the API call. Null restores the default;
/// `None` leaves the setting as it is, because the form does not contain it.
fn value(form: &Fields, name: &str, spec: &FormSetting) -> Option<Value> {
    let field = format!("setting-{name}");
    if spec.shape == Form::Switch {
        return Some(form.has(&field).into());
    }
    if !form.has(&field) {
        return None;
    }
    let text = form.text(&field);
    Some(match &spec.shape {
        Form::List => text.lines().map(str::trim).filter(|line| !line.is_empty()).map(Value::from).collect(),
        _ if text.is_empty() => Value::Null,
        // The API refuses a text that is not a number, with its own sentence.
        Form::Number => amount(form, &field, spec.unit).map_or_else(|| text.into(), Value::from),
        Form::Lines => text.replace("\r\n", "\n").into(),
        Form::Switch | Form::Choice(_) | Form::Text => text.into(),
    })
}

/// Saves the settings of the form, and a proxy's upstream.
pub(super) async fn save(ctx: &PageContext, row: &RepositoryRow) -> Result<(), ApiError> {
    let plugin = loaded::plugin_of(&ctx.actor.app, row)?;
    let description = plugin.as_ref().map(|plugin| plugin.description());
    let settings: Map<String, Value> = repository_settings::settings_of_kind(&row.kind, description)
        .into_iter()
        .filter_map(|(name, spec)| {
            let value = value(&ctx.form, &name, &spec)?;
            Some((name, value))
        })
        .collect();
    let upstream = (row.kind == repositories::PROXY).then(|| json!({"url": ctx.form.text("upstream")}));
    let change = forms::repository_change(Some(Value::Object(settings)), None, upstream);
    repositories::change(&ctx.actor, &row.id.to_string(), &change).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(pairs: &[(&str, &str)]) -> Fields {
        Fields(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_number_is_read_in_its_unit_and_a_missing_one_stays() {
        let spec = FormSetting::named("metadata_ttl_s", Form::Number);
        let read = |pairs: &[(&str, &str)]| value(&sent(pairs), "metadata_ttl_s", &spec);
        let (field, unit) = ("setting-metadata_ttl_s", "setting-metadata_ttl_s-unit");
        assert_eq!(read(&[(field, "77")]), Some(json!(77)));
        assert_eq!(read(&[(field, "2"), (unit, "hours")]), Some(json!(7200)));
        assert_eq!(read(&[(field, ""), (unit, "hours")]), Some(Value::Null));
        assert_eq!(read(&[(field, "soon"), (unit, "hours")]), Some(json!("soon")));
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn help_is_a_sentence() {
        assert_eq!(sentence("Allow it"), "Allow it.");
        assert_eq!(sentence("Allow it."), "Allow it.");
        assert_eq!(sentence(""), "");
    }
}
