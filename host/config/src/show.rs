//! Output of `packhouse config show`: each value and its source, without secrets.

use serde_json::json;

use super::key::ValueKind;
use super::setting::{Setting, Settings};

/// Renders a table for people, or JSON: an object of `{value, source, about}` by the setting's
/// name.
pub(super) fn render(settings: &Settings, as_json: bool) -> anyhow::Result<String> {
    if as_json {
        let object: serde_json::Map<String, serde_json::Value> = settings
            .iter()
            .map(|(name, setting)| {
                (
                    name.clone(),
                    json!({
                        "value": value(setting),
                        "source": setting.source.to_string(),
                        "about": setting.key.about,
                    }),
                )
            })
            .collect();
        return Ok(serde_json::to_string_pretty(&object)?);
    }
    let wide = settings.keys().map(String::len).max().unwrap_or_default();
    let long = settings.values().map(|setting| value(setting).len()).max().unwrap_or_default().min(40);
    let lines = settings
        .iter()
        .map(|(name, setting)| format!("{name:wide$}  {:long$}  {}", value(setting), setting.source));
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// Returns the text of a setting, or `***` for a secret. The default of a secret setting (such as
/// `fs`) contains no password, so it is returned unchanged.
fn value(setting: &Setting) -> String {
    let plain = setting.text == setting.key.default;
    match setting.key.kind {
        ValueKind::Secret if !plain => "***".to_owned(),
        _ => setting.text.clone(),
    }
}
