//! Names in specs that refer to other objects.

use serde_json::{Map, Value};

use super::kinds::DocumentKind;
use super::plan::is_group;

/// Returns the names of the repositories to which a spec refers, each with its field.
pub(super) fn repositories(kind: DocumentKind, spec: &Map<String, Value>) -> Vec<(&str, &'static str)> {
    match kind {
        DocumentKind::Repository if is_group(spec) => named(spec, "members", "members"),
        DocumentKind::Repository => Vec::new(),
        DocumentKind::Team | DocumentKind::ServiceAccount => permitted(spec),
        DocumentKind::TrustedPublisher => {
            let name = spec.get("repository").and_then(Value::as_str);
            name.map(|name| (name, "repository")).into_iter().collect()
        }
        DocumentKind::Policy | DocumentKind::RetentionPolicy | DocumentKind::Webhook => {
            named(spec, "repositories", "repositories")
        }
    }
}

/// Returns the texts of a list in a spec, each with `label`.
pub(super) fn named<'s>(
    spec: &'s Map<String, Value>,
    field: &str,
    label: &'static str,
) -> Vec<(&'s str, &'static str)> {
    let items = spec.get(field).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(|name| (name, label)).collect()
}

fn permitted(spec: &Map<String, Value>) -> Vec<(&str, &'static str)> {
    let entries = spec.get("permissions").and_then(|permissions| permissions.get("repositories"));
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.get("repository").and_then(Value::as_str));
    names.filter(|name| *name != "*").map(|name| (name, "permissions")).collect()
}
