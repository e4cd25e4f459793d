//! Canonical forms of specs. Two specs with the same meaning have the same canonical form.

use crate::cli::json::Members as _;
use std::collections::{BTreeMap, BTreeSet};

use packhouse_app::publishers::Provider;
use serde_json::{Map, Value, json};
use url::Url;

use super::kinds::DocumentKind;

/// Returns the canonical form of a spec. Absent fields stay absent.
pub(super) fn canonical(kind: DocumentKind, mut spec: Map<String, Value>) -> Map<String, Value> {
    let sets: &[&str] = match kind {
        // The order of a group's members matters.
        DocumentKind::Repository => &[],
        DocumentKind::Team => &["external_groups"],
        DocumentKind::ServiceAccount => &["teams"],
        DocumentKind::TrustedPublisher => &["packages", "scope"],
        DocumentKind::Policy => &["repositories", "packages"],
        DocumentKind::RetentionPolicy => &["repositories"],
        DocumentKind::Webhook => &["events", "repositories"],
    };
    for field in sets {
        change(&mut spec, field, sorted);
    }
    match kind {
        DocumentKind::Repository => {
            if let Some(url) = spec.get_mut("upstream").and_then(|upstream| upstream.get_mut("url")) {
                *url = json!(address(url.as_str().unwrap_or_default()));
            }
        }
        DocumentKind::Team => {
            change(&mut spec, "members", |members| sorted(&members_in_lower_case(members)));
            change(&mut spec, "permissions", permissions);
        }
        DocumentKind::ServiceAccount => change(&mut spec, "permissions", permissions),
        DocumentKind::TrustedPublisher => change(&mut spec, "claims", without_nulls),
        DocumentKind::RetentionPolicy => {
            for field in ["match", "delete", "keep"] {
                change(&mut spec, field, conditions);
            }
        }
        DocumentKind::Policy | DocumentKind::Webhook => {}
    }
    spec
}

/// Returns the text that identifies an object on the server. It is the name, except for objects
/// that have no name in the API.
pub(super) fn identity(kind: DocumentKind, name: &str, spec: &Map<String, Value>) -> String {
    match kind {
        DocumentKind::Webhook => address(name),
        DocumentKind::TrustedPublisher => {
            let field = |field: &str| spec.get(field).cloned().unwrap_or_default();
            let provider = field("provider");
            let public = provider.as_str().and_then(Provider::of).and_then(Provider::public_issuer);
            let issuer = field("issuer").as_str().map(str::to_owned).or_else(|| public.map(str::to_owned));
            ordered(&json!([field("repository"), provider, issuer, field("claims")])).to_string()
        }
        _ => name.to_owned(),
    }
}

fn change(spec: &mut Map<String, Value>, field: &str, form: impl Fn(&Value) -> Value) {
    if let Some(value) = spec.get_mut(field) {
        *value = form(value);
    }
}

/// Sorts a list of texts and removes repetitions. Other values stay as they are.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => json!(texts(items)),
        other => other.clone(),
    }
}

fn texts(items: &[Value]) -> BTreeSet<&str> {
    items.iter().filter_map(Value::as_str).collect()
}

/// E-mail addresses are stored in lower case; names of service accounts contain no `@`.
fn members_in_lower_case(members: &Value) -> Value {
    let lower = |member: &Value| match member.as_str() {
        Some(email) if email.contains('@') => json!(email.trim().to_lowercase()),
        _ => member.clone(),
    };
    Value::Array(members.as_array().into_iter().flatten().map(lower).collect())
}

/// Returns an address as the server stores it. An invalid one stays as it is, and the server
/// refuses it.
fn address(text: &str) -> String {
    Url::parse(text).map_or_else(|_| text.to_owned(), String::from)
}

/// Merges the entries for the same repository with the same patterns, and sorts everything.
fn permissions(value: &Value) -> Value {
    let list = |value: &Value, field: &str| value.at(field).as_array().cloned().unwrap_or_default();
    let mut entries: BTreeMap<[Option<String>; 3], BTreeSet<String>> = BTreeMap::new();
    for entry in list(value, "repositories") {
        let text = |field: &str| entry.at(field).as_str().map(str::to_owned);
        let packages = entry.at("packages").as_array().map(|packages| json!(texts(packages)).to_string());
        let actions = list(&entry, "actions");
        let actions = texts(&actions).into_iter().map(str::to_owned);
        entries.entry([text("repository"), text("repository_name"), packages]).or_default().extend(actions);
    }
    let entry = |([repository, name, packages], actions): ([Option<String>; 3], BTreeSet<String>)| {
        let packages = packages.and_then(|packages| serde_json::from_str::<Value>(&packages).ok());
        let fields = [
            ("repository", repository.map(Value::from)),
            ("repository_name", name.map(Value::from)),
            ("actions", Some(json!(actions))),
            ("packages", packages),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(fields.collect::<Map<String, Value>>())
    };
    let repositories: Vec<Value> = entries.into_iter().map(entry).collect();
    json!({"organization": texts(&list(value, "organization")), "repositories": repositories})
}

/// Removes null fields of an object and sorts its lists.
fn conditions(value: &Value) -> Value {
    let fields = value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    Value::Object(fields.map(|(name, value)| (name.clone(), sorted(value))).collect())
}

fn without_nulls(value: &Value) -> Value {
    let fields = value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Sorts the fields of all objects within a value.
fn ordered(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<&String, Value> =
                fields.iter().map(|(name, value)| (name, ordered(value))).collect();
            json!(fields)
        }
        Value::Array(items) => Value::Array(items.iter().map(ordered).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(kind: DocumentKind, spec: Value) -> Value {
        Value::Object(canonical(kind, spec.as_object().unwrap().clone()))
    }

    #[test]
    fn order_and_repetition_of_permissions_do_not_matter() {
        let one = json!({"permissions": {"organization": ["b", "a", "b"], "repositories": [
            {"repository": "x", "actions": ["read"]}, {"repository": "x", "actions": ["publish"]},
            {"repository": "x", "actions": ["publish"], "packages": ["q", "p"]}]}});
        let other = json!({"permissions": {"organization": ["a", "b"], "repositories": [
            {"repository": "x", "actions": ["publish"], "packages": ["p", "q"]},
            {"repository": "x", "actions": ["publish", "read"]}]}});
        assert_eq!(form(DocumentKind::Team, one), form(DocumentKind::ServiceAccount, other));
        let pattern =
            json!({"permissions": {"repositories": [{"repository_name": "x", "actions": ["read"]}]}});
        let name = json!({"permissions": {"repositories": [{"repository": "x", "actions": ["read"]}]}});
        assert_ne!(form(DocumentKind::Team, pattern), form(DocumentKind::Team, name));
    }

    #[test]
    fn only_lists_without_an_order_are_sorted() {
        let spec = json!({"members": ["b", "a"], "upstream": {"url": "https://A.example"}});
        let expected = json!({"members": ["b", "a"], "upstream": {"url": "https://a.example/"}});
        assert_eq!(form(DocumentKind::Repository, spec), expected);
        let spec = json!({"members": ["b", "A@x.example"], "external_groups": ["d", "c"]});
        let expected = json!({"members": ["a@x.example", "b"], "external_groups": ["c", "d"]});
        assert_eq!(form(DocumentKind::Team, spec), expected);
        let spec = json!({"repositories": "*", "match": {"tagged": null, "versions": ["2", "1"]}});
        let expected = json!({"repositories": "*", "match": {"versions": ["1", "2"]}});
        assert_eq!(form(DocumentKind::RetentionPolicy, spec), expected);
    }

    #[test]
    fn a_publisher_is_identified_by_its_workflow() {
        let of = |spec: Value| {
            let spec = spec.as_object().unwrap().clone();
            identity(
                DocumentKind::TrustedPublisher,
                "any name",
                &canonical(DocumentKind::TrustedPublisher, spec),
            )
        };
        let one =
            json!({"repository": "x", "provider": "gitlab", "claims": {"a": 1, "b": 2}, "packages": ["*"]});
        let same = json!({"repository": "x", "provider": "gitlab", "issuer": "https://gitlab.com",
            "claims": {"b": 2, "a": 1, "c": null}, "packages": ["p"]});
        let other = json!({"repository": "y", "provider": "gitlab", "claims": {"a": 1, "b": 2}});
        assert_eq!(of(one.clone()), of(same));
        assert_ne!(of(one), of(other));
        let hook = |name: &str| identity(DocumentKind::Webhook, name, &Map::new());
        assert_eq!(hook("https://hooks.example"), hook("https://Hooks.example/"));
    }
}
