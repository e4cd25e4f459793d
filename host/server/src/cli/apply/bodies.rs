//! Bodies of API calls from documents: names become ids.

use crate::cli::json::Members as _;
use std::collections::BTreeMap;

use anyhow::Context;
use serde_json::{Map, Value, json};

use super::documents::ConfigDocument;
use super::kinds::DocumentKind;
use super::plan::FieldChange;
use super::state::NameIds;

/// Fields of a spec that the API takes in a call of their own.
const SEPARATE: [(DocumentKind, &str); 4] = [
    (DocumentKind::Team, "members"),
    (DocumentKind::Policy, "mode"),
    (DocumentKind::RetentionPolicy, "mode"),
    (DocumentKind::Webhook, "state"),
];

/// Returns the body that creates the object of a document.
pub(super) fn creation(document: &ConfigDocument, ids: &NameIds) -> anyhow::Result<Value> {
    let ConfigDocument { kind, name, spec, .. } = document;
    let mut body = Map::new();
    for (field, value) in spec {
        if !SEPARATE.contains(&(*kind, field.as_str())) {
            body.insert(field.clone(), with_ids(*kind, field, value, ids)?);
        }
    }
    match kind {
        DocumentKind::Webhook => {
            body.insert("url".to_owned(), json!(name));
        }
        DocumentKind::TrustedPublisher => {}
        DocumentKind::Team | DocumentKind::ServiceAccount => {
            body.insert("name".to_owned(), json!(name));
            body.entry("permissions").or_insert_with(|| json!({}));
        }
        DocumentKind::Repository | DocumentKind::Policy | DocumentKind::RetentionPolicy => {
            body.insert("name".to_owned(), json!(name));
        }
    }
    Ok(Value::Object(body))
}

/// Returns the body that makes these changes. It is empty if other calls make all of them.
pub(super) fn change(
    document: &ConfigDocument,
    changes: &[FieldChange],
    ids: &NameIds,
) -> anyhow::Result<Value> {
    let (mut body, mut settings) = (Map::new(), Map::new());
    for FieldChange { field, new, .. } in changes {
        let is_separate = SEPARATE.contains(&(document.kind, field.as_str()));
        if let Some(setting) = field.strip_prefix("settings.") {
            settings.insert(setting.to_owned(), new.clone());
        } else if !is_separate || document.kind == DocumentKind::Webhook {
            body.insert(field.clone(), with_ids(document.kind, field, new, ids)?);
        }
    }
    if !settings.is_empty() {
        body.insert("settings".to_owned(), Value::Object(settings));
    }
    Ok(Value::Object(body))
}

/// Finds the id of an object. `what` names its kind in the error.
pub(super) fn id_of<'a>(
    ids: &'a BTreeMap<String, String>,
    what: &str,
    name: &str,
) -> anyhow::Result<&'a str> {
    let id = ids.get(name).map(String::as_str);
    id.with_context(|| format!("there is no {what} {name:?}"))
}

fn with_ids(kind: DocumentKind, field: &str, value: &Value, ids: &NameIds) -> anyhow::Result<Value> {
    let repositories = &ids.repositories;
    match (kind, field) {
        (DocumentKind::Repository, "members") => list(value, repositories, "repository"),
        (DocumentKind::ServiceAccount, "teams") => list(value, &ids.teams, "team"),
        (DocumentKind::Team | DocumentKind::ServiceAccount, "permissions") => permissions(value, ids),
        (DocumentKind::TrustedPublisher, "repository") => {
            let name = value.as_str().unwrap_or_default();
            id_of(repositories, "repository", name).map(|id| json!(id))
        }
        (DocumentKind::Policy | DocumentKind::RetentionPolicy | DocumentKind::Webhook, "repositories")
            if value.is_array() =>
        {
            list(value, repositories, "repository")
        }
        _ => Ok(value.clone()),
    }
}

fn list(names: &Value, ids: &BTreeMap<String, String>, what: &str) -> anyhow::Result<Value> {
    let names = names.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(|name| id_of(ids, what, name).map(|id| json!(id))).collect()
}

fn permissions(value: &Value, ids: &NameIds) -> anyhow::Result<Value> {
    let mut permissions = value.clone();
    let entries = permissions.get_mut("repositories").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        if let Some(name) = entry.at("repository").as_str().filter(|name| *name != "*") {
            entry.set("repository", json!(id_of(&ids.repositories, "repository", name)?));
        }
    }
    Ok(permissions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::apply::documents::parse;

    fn ids() -> NameIds {
        let mut ids = NameIds::default();
        ids.repositories.insert("libs".to_owned(), "1".to_owned());
        ids.teams.insert("devs".to_owned(), "2".to_owned());
        ids
    }

    fn body(text: &str) -> Value {
        creation(&parse("a.yaml", text).unwrap()[0], &ids()).unwrap()
    }

    #[test]
    fn names_become_ids() {
        let made = body("kind: Repository\nname: all\nspec: {format: fifth, kind: group, members: [libs]}\n");
        assert_eq!(made, json!({"name": "all", "format": "fifth", "kind": "group", "members": ["1"]}));
        let made = body("kind: ServiceAccount\nname: ci\nspec: {teams: [devs]}\n");
        assert_eq!(made, json!({"name": "ci", "teams": ["2"], "permissions": {}}));
        let made = body(
            "\
kind: Team
name: t
spec:
  members: [ci]
  permissions:
    repositories:
      - {repository: libs, actions: [read]}
      - {repository: \"*\", actions: [read]}
",
        );
        let entries =
            json!([{"repository": "*", "actions": ["read"]}, {"repository": "1", "actions": ["read"]}]);
        assert_eq!(made["permissions"]["repositories"], entries);
        assert!(made.get("members").is_none());
        let made = body(
            "kind: Webhook\nname: https://h.example\nspec: {events: [a], repositories: \"*\", state: paused}\n",
        );
        assert_eq!(made, json!({"url": "https://h.example", "events": ["a"], "repositories": "*"}));
    }

    #[test]
    fn a_change_contains_only_what_changed() {
        let text = "kind: Repository\nname: libs\nspec: {format: fifth, kind: hosted}\n";
        let document = &parse("a.yaml", text).unwrap()[0];
        let of = |field: &str, new: Value| FieldChange { field: field.to_owned(), old: Value::Null, new };
        let changes =
            [of("settings.offline", json!(true)), of("upstream", json!({"url": "https://a.example/"}))];
        let body = change(document, &changes, &ids()).unwrap();
        let expected = json!({"settings": {"offline": true}, "upstream": {"url": "https://a.example/"}});
        assert_eq!(body, expected);
        let policy = "kind: Policy\nname: p\nspec: {component: c, repositories: \"*\", mode: enforced}\n";
        let document = &parse("a.yaml", policy).unwrap()[0];
        assert_eq!(change(document, &[of("mode", json!("enforced"))], &ids()).unwrap(), json!({}));
    }
}
