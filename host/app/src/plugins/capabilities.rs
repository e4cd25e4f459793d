//! What a component asks for, and what a new one asks beyond the old one: an operator has to accept that before it runs.

use std::collections::BTreeMap;

use packhouse_runtime::{Description, DescriptionLimits};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Told;

/// What a description asks for. Lists are sorted.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Capabilities {
    /// Paths at the root of the repository host.
    pub claims: Vec<String>,
    /// Kinds of repository.
    pub kinds: Vec<String>,
    /// Settings of repositories, by name with what each is.
    pub settings: BTreeMap<String, Value>,
    /// Bounds, by name in bytes; null where there is none.
    pub limits: BTreeMap<String, Option<u64>>,
    /// Rights and sights beyond the usual, each as `name value`: credentials that it takes, request headers that it sees, requests
    /// that it opens to anybody, credentials for upstreams.
    pub permissions: Vec<String>,
}

impl Capabilities {
    /// What this description asks for, with these bounds.
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

fn permissions(description: &Description) -> Vec<String> {
    let each = |name: &'static str, values: &[String]| {
        values.iter().map(|value| format!("{name} {value}")).collect::<Vec<_>>()
    };
    let form = |form| Some(serde_json::to_value(form).ok()?.as_str()?.to_owned());
    let forms: Vec<String> = description.authorization.iter().filter_map(form).collect();
    let open = match &description.open_requests {
        Some(open) => each("open_requests", open),
        // Any request of its own repositories may be.
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

/// What a component asks beyond another.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Changes {
    /// Imports that the other has not.
    pub imports: Vec<String>,
    /// Paths at the root that the other has not.
    pub claims: Vec<String>,
    /// Settings that the other has not, or has otherwise.
    pub settings: Vec<String>,
    /// Bounds that are larger than the other's.
    pub limits: Vec<String>,
    /// Of what else it asks for.
    pub permissions: Vec<String>,
}

impl Changes {
    /// What `new` asks beyond `old`.
    pub fn between(old: &Told, new: &Told) -> Changes {
        let (was, is) = (&old.capabilities, &new.capabilities);
        let changed = |name: &&String| was.settings.get(*name) != is.settings.get(*name);
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

    /// Whether it asks nothing more.
    pub fn is_empty(&self) -> bool {
        *self == Changes::default()
    }

    /// The same in words.
    pub fn in_words(&self) -> String {
        let all = [
            ("imports", &self.imports),
            ("claims", &self.claims),
            ("settings", &self.settings),
            ("larger limits", &self.limits),
            ("permissions", &self.permissions),
        ];
        let said = all.into_iter().filter(|(_, items)| !items.is_empty());
        said.map(|(name, items)| format!("{name}: {}", items.join(", "))).collect::<Vec<_>>().join("; ")
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

    fn told(imports: &[&str], said: Value) -> Told {
        let mut whole = json!({"format": "raw", "version": "1"});
        let more = said.as_object().cloned().unwrap();
        whole.as_object_mut().unwrap().extend(more);
        let description = Description::parse(&whole.to_string()).unwrap();
        Told {
            version: "1".to_owned(),
            contract: "0.1.0".to_owned(),
            imports: imports.iter().map(ToString::to_string).collect(),
            exports: Vec::new(),
            capabilities: Capabilities::of(&description, &description.limits),
        }
    }

    #[test]
    fn only_what_is_more_is_a_change() {
        let old = told(
            &["a", "b"],
            json!({"settings": {"x": {"kind": "boolean", "default": false}}, "limits": {"max_file_bytes": 10},
                "request_headers": ["x-one"], "open_requests": []}),
        );
        assert!(Changes::between(&old, &old).is_empty());
        let less = told(&["a"], json!({"limits": {"max_file_bytes": 9}, "open_requests": []}));
        assert!(Changes::between(&old, &less).is_empty(), "{:?}", Changes::between(&old, &less));
        let more = told(
            &["a", "b", "c"],
            json!({"settings": {"x": {"kind": "boolean", "default": true}, "y": {"kind": "text", "default": ""}},
                "claims": [{"name": "raw", "path": "/raw/"}], "request_headers": ["x-one", "x-two"]}),
        );
        let changes = Changes::between(&old, &more);
        assert_eq!(changes.imports, ["c"]);
        assert_eq!(changes.claims, ["/raw/"]);
        assert_eq!(changes.settings, ["x", "y"]);
        assert_eq!(changes.limits, ["max_file_bytes"], "no bound is more than one");
        assert_eq!(changes.permissions, ["open_requests *", "request_headers x-two"]);
        assert!(changes.in_words().contains("imports: c; claims: /raw/;"));
    }
}
