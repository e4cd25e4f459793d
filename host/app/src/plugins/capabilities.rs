//! Capabilities that a component requests, and those that a new component requests in addition to
//! the active one. An operator must accept the additional capabilities before the new component
//! runs.

use std::collections::BTreeMap;

use packhouse_runtime::{Description, DescriptionLimits};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ComponentFacts;

/// Capabilities that a component's description requests. All lists are sorted.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Capabilities {
    /// Paths that the component claims at the root of the repository host.
    pub claims: Vec<String>,
    pub kinds: Vec<String>,
    /// Settings of repositories: each name with its declaration.
    pub settings: BTreeMap<String, Value>,
    /// Limits by name, in bytes; null means no limit.
    pub limits: BTreeMap<String, Option<u64>>,
    /// Unusual permissions, each as `name value`. They are accepted credentials, visible request
    /// headers, requests that need no authentication, and credentials for upstreams.
    pub permissions: Vec<String>,
}

impl Capabilities {
    /// Returns the capabilities that this description requests. `limits` are the limits to list.
    pub fn of(description: &Description, limits: &DescriptionLimits) -> Capabilities {
        let claims = description.claims.iter().map(|claim| claim.path.clone());
        let service = description.token_service.iter().map(|service| service.path.clone());
        let declared = description.trusted_publishing.iter();
        let exchange = declared.flat_map(|declared| declared.all_paths()).map(str::to_owned);
        let setting = |setting| serde_json::to_value(setting).unwrap_or_default();
        let settings = description.settings.iter().map(|(name, value)| (name.clone(), setting(value)));
        let named = limits.named.iter().map(|(name, limit)| (name.clone(), Some(limit.max_bytes)));
        let mut bounds: BTreeMap<String, Option<u64>> = named.collect();
        bounds.insert("max_file_bytes".to_owned(), limits.max_file_bytes);
        Capabilities {
            claims: sorted(claims.chain(service).chain(exchange)),
            kinds: sorted(description.kinds.iter().cloned()),
            settings: settings.collect(),
            limits: bounds,
            permissions: permissions(description),
        }
    }
}

/// Returns the declaration of a setting without its words for people, because they grant nothing.
fn without_words(declared: Option<&Value>) -> Option<Value> {
    let mut declared = declared?.clone();
    if let Some(fields) = declared.as_object_mut() {
        fields.retain(|name, _| !["summary", "title", "repository_kinds", "unit"].contains(&name.as_str()));
    }
    Some(declared)
}

fn permissions(description: &Description) -> Vec<String> {
    let each = |name: &'static str, values: &[String]| {
        values.iter().map(|value| format!("{name} {value}")).collect::<Vec<_>>()
    };
    let form = |form| Some(serde_json::to_value(form).ok()?.as_str()?.to_owned());
    let forms: Vec<String> = description.authorization.iter().filter_map(form).collect();
    let open = match &description.open_requests {
        Some(open) => each("open_requests", open),
        // Without a declaration, the plugin may open any request to its own repositories.
        None => vec!["open_requests *".to_owned()],
    };
    let own = description.own_tokens.then(|| "own_tokens".to_owned());
    let all = [
        each("request_headers", &description.request_headers),
        each("upstream_credentials", &description.upstream_credentials),
        each("token_formats", &description.token_formats),
        each("authorization", &forms),
        open,
    ];
    sorted(all.into_iter().flatten().chain(own))
}

/// Capabilities that a new component requests in addition to those of an old one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Changes {
    /// Imports that the old component does not have.
    pub imports: Vec<String>,
    /// Root paths that the old component does not claim.
    pub claims: Vec<String>,
    /// Settings that the old component lacks or declares differently.
    pub settings: Vec<String>,
    /// Limits that are larger than those of the old component.
    pub limits: Vec<String>,
    /// Unusual permissions that the old component does not have.
    pub permissions: Vec<String>,
}

impl Changes {
    /// Returns the capabilities that `new` requests in addition to those of `old`.
    pub fn between(old: &ComponentFacts, new: &ComponentFacts) -> Changes {
        let (was, is) = (&old.capabilities, &new.capabilities);
        let changed =
            |name: &&String| without_words(was.settings.get(*name)) != without_words(is.settings.get(*name));
        let larger = |(name, bound): &(&String, &Option<u64>)| match (was.limits.get(*name), bound) {
            (None, _) => true,
            (Some(Some(_)), None) => true,
            (Some(Some(was)), Some(is)) => is > was,
            (Some(None), _) => false,
        };
        Changes {
            imports: added(&old.imports, &new.imports),
            claims: added(&was.claims, &is.claims),
            settings: is.settings.keys().filter(changed).cloned().collect(),
            limits: is.limits.iter().filter(larger).map(|(name, _)| name.clone()).collect(),
            permissions: added(&was.permissions, &is.permissions),
        }
    }

    /// Reports whether the new component requests nothing in addition.
    pub fn is_empty(&self) -> bool {
        *self == Changes::default()
    }

    /// Describes the changes as text.
    pub fn in_words(&self) -> String {
        let all = [
            ("imports", &self.imports),
            ("claims", &self.claims),
            ("settings", &self.settings),
            ("larger limits", &self.limits),
            ("permissions", &self.permissions),
        ];
        let nonempty = all.into_iter().filter(|(_, items)| !items.is_empty());
        nonempty.map(|(name, items)| format!("{name}: {}", items.join(", "))).collect::<Vec<_>>().join("; ")
    }
}

fn added(old: &[String], new: &[String]) -> Vec<String> {
    new.iter().filter(|item| !old.contains(item)).cloned().collect()
}

fn sorted(items: impl Iterator<Item = String>) -> Vec<String> {
    let mut items: Vec<String> = items.collect();
    items.sort();
    items.dedup();
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn component_facts(imports: &[&str], description: Value) -> ComponentFacts {
        let mut whole = json!({"format": "raw", "version": "1"});
        let more = description.as_object().cloned().unwrap();
        whole.as_object_mut().unwrap().extend(more);
        let description = Description::parse(&whole.to_string()).unwrap();
        ComponentFacts {
            version: "1".to_owned(),
            contract: "0.1.0".to_owned(),
            imports: imports.iter().map(ToString::to_string).collect(),
            exports: Vec::new(),
            capabilities: Capabilities::of(&description, &description.limits),
        }
    }

    #[test]
    fn only_additional_capabilities_are_changes() {
        let old = component_facts(
            &["a", "b"],
            json!({"settings": {"x": {"kind": "boolean", "default": false}}, "limits": {"max_file_bytes": 10},
                "request_headers": ["x-one"], "open_requests": []}),
        );
        assert!(Changes::between(&old, &old).is_empty());
        let less = component_facts(&["a"], json!({"limits": {"max_file_bytes": 9}, "open_requests": []}));
        assert!(Changes::between(&old, &less).is_empty(), "{:?}", Changes::between(&old, &less));
        let more = component_facts(
            &["a", "b", "c"],
            json!({"settings": {"x": {"kind": "boolean", "default": true}, "y": {"kind": "text", "default": ""}},
                "claims": [{"name": "raw", "path": "/raw/"}], "request_headers": ["x-one", "x-two"]}),
        );
        let changes = Changes::between(&old, &more);
        assert_eq!(changes.imports, ["c"]);
        assert_eq!(changes.claims, ["/raw/"]);
        assert_eq!(changes.settings, ["x", "y"]);
        assert_eq!(changes.limits, ["max_file_bytes"], "no limit is more than any limit");
        assert_eq!(changes.permissions, ["open_requests *", "request_headers x-two"]);
        assert!(changes.in_words().contains("imports: c; claims: /raw/;"));
    }
}
