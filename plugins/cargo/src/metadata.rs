//! What cargo says of a version when it publishes it, and the line of the index that is made of that.

use crate::line::{Dependency, LIMIT as LINE_LIMIT, Line};
use crate::name::Name;
use packhouse_sdk::Failure;
use semver::{Version, VersionReq};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Dependencies and features of one version.
const MANY: usize = 10_000;
/// Bytes of a line for lists.
const SUMMARY: usize = 500;

/// The metadata, as far as something is made of them; the whole is kept as it came.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) vers: String,
    #[serde(default)]
    pub(crate) deps: Vec<Wanted>,
    #[serde(default)]
    features: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    pub(crate) readme: Option<String>,
    #[serde(default)]
    pub(crate) readme_file: Option<String>,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    license: Option<String>,
    #[serde(default)]
    links: Option<String>,
    #[serde(default)]
    pub(crate) rust_version: Option<String>,
}

/// A dependency as cargo publishes it.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) version_req: String,
    #[serde(default)]
    features: Vec<String>,
    #[serde(default)]
    pub(crate) optional: bool,
    #[serde(default = "yes")]
    default_features: bool,
    #[serde(default)]
    target: Option<String>,
    #[serde(default)]
    pub(crate) kind: Option<String>,
    #[serde(default)]
    registry: Option<String>,
    #[serde(default)]
    explicit_name_in_toml: Option<String>,
}

fn yes() -> bool {
    true
}

/// What a version is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) name: Name,
    pub(crate) version: Version,
}

impl Metadata {
    /// Reads them.
    ///
    /// # Errors
    /// 400 for what is no such document.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Failure> {
        serde_json::from_slice(bytes)
            .map_err(|error| bad(format!("the metadata are not as cargo sends them: {error}")))
    }

    /// Name and version.
    ///
    /// # Errors
    /// 400 for what is neither.
    pub(crate) fn release(&self) -> Result<Release, Failure> {
        let name = Name::new(&self.name).ok_or_else(|| {
            bad(format!(
                "{:?} is no name of a crate: at most 64 letters, digits, `-` and `_`, a letter first",
                self.name
            ))
        })?;
        let version = Version::parse(&self.vers)
            .map_err(|error| bad(format!("{:?} is no version: {error}", self.vers)))?;
        if self.vers.len() > 128 {
            return Err(bad("a version has at most 128 characters"));
        }
        Ok(Release { name, version })
    }

    /// The line of the index for a file with this SHA-256.
    ///
    /// # Errors
    /// 400 where a dependency is none.
    pub(crate) fn line(&self, checksum: &str, published: String) -> Result<Line, Failure> {
        if self.deps.len() > MANY || self.features.len() > MANY {
            return Err(bad(format!("it has more than {MANY} dependencies or features")));
        }
        let deps = self.deps.iter().map(Wanted::dependency).collect::<Result<_, _>>()?;
        // Older programs read no line whose features are written so.
        let newer = |all: &Vec<String>| all.iter().any(|one| one.starts_with("dep:") || one.contains("?/"));
        let (newer, older): (BTreeMap<_, _>, BTreeMap<_, _>) =
            self.features.clone().into_iter().partition(|(_, all)| newer(all));
        let line = Line {
            name: self.name.clone(),
            vers: self.vers.clone(),
            deps,
            cksum: checksum.to_owned(),
            features: older,
            v: if newer.is_empty() { 1 } else { 2 },
            features2: newer,
            yanked: false,
            links: self.links.clone(),
            rust_version: self.rust_version.clone(),
            pubtime: Some(published),
        };
        if serde_json::to_vec(&line)?.len() > LINE_LIMIT {
            return Err(bad(format!("its line in the index has more than {LINE_LIMIT} bytes")));
        }
        Ok(line)
    }

    /// One line for lists.
    pub(crate) fn summary(&self) -> String {
        let text = self.description.as_deref().unwrap_or_default();
        let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        text.truncate(text.floor_char_boundary(SUMMARY));
        text
    }

    /// The licence that its author states, empty where none does.
    pub(crate) fn license(&self) -> String {
        // The slash is how crates of old said that there is a choice.
        let mut stated = self.license.as_deref().unwrap_or_default().replace('/', " OR ");
        stated.truncate(stated.floor_char_boundary(SUMMARY));
        stated
    }

    /// Words that it is found by: the name as its author spells it is one of them.
    pub(crate) fn words(&self) -> String {
        let words = self.keywords.iter().map(String::as_str).take(20).chain([self.name.as_str()]);
        let mut words = words.collect::<Vec<_>>().join(" ");
        words.truncate(words.floor_char_boundary(SUMMARY));
        words
    }
}

impl Wanted {
    fn dependency(&self) -> Result<Dependency, Failure> {
        let wrong = |what: &str| bad(format!("{what} of the dependency {:?} makes no sense", self.name));
        Name::new(&self.name).ok_or_else(|| wrong("the name"))?;
        VersionReq::parse(&self.version_req).map_err(|_| wrong("the version"))?;
        let kind = self.kind.clone().unwrap_or_else(|| "normal".to_owned());
        if !matches!(kind.as_str(), "normal" | "dev" | "build") {
            return Err(wrong("the kind"));
        }
        let renamed = self.explicit_name_in_toml.clone();
        Ok(Dependency {
            package: renamed.as_ref().map(|_| self.name.clone()),
            name: renamed.unwrap_or_else(|| self.name.clone()),
            req: self.version_req.clone(),
            features: self.features.clone(),
            optional: self.optional,
            default_features: self.default_features,
            target: self.target.clone(),
            kind: Some(kind),
            registry: self.registry.clone(),
        })
    }
}

/// 400: what is published is not in order.
pub(crate) fn bad(text: impl Into<String>) -> Failure {
    Failure::new(400, "invalid_crate", format!("This crate is refused: {}", text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_line_is_made_of_what_cargo_sends() {
        let sent = json!({
            "name": "hello", "vers": "1.0.0", "links": "z", "rust_version": "1.70", "authors": ["A"],
            "features": {"a": ["b"], "c": ["dep:d"], "e": ["d?/x"]},
            "deps": [
                {"name": "dep", "version_req": "^1", "features": ["f"], "optional": true, "default_features": false, "target": "cfg(unix)",
                 "kind": "dev", "registry": null, "explicit_name_in_toml": "alias"},
                {"name": "other", "version_req": "*", "registry": "https://index.crates.io/"},
            ],
        });
        let line = Metadata::read(sent.to_string().as_bytes())
            .unwrap()
            .line("00", "2026-01-01T00:00:00Z".into())
            .unwrap();
        let expected = json!({
            "name": "hello", "vers": "1.0.0", "cksum": "00", "yanked": false, "links": "z", "rust_version": "1.70", "v": 2,
            "features": {"a": ["b"]}, "features2": {"c": ["dep:d"], "e": ["d?/x"]}, "pubtime": "2026-01-01T00:00:00Z",
            "deps": [
                {"name": "alias", "package": "dep", "req": "^1", "features": ["f"], "optional": true, "default_features": false,
                 "target": "cfg(unix)", "kind": "dev"},
                {"name": "other", "req": "*", "features": [], "optional": false, "default_features": true, "kind": "normal",
                 "registry": "https://index.crates.io/"},
            ],
        });
        let mut line = serde_json::to_value(line).unwrap();
        for dep in line["deps"].as_array_mut().unwrap() {
            dep.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        }
        assert_eq!(line, expected);
    }

    proptest! {
        #[test]
        fn any_metadata_are_read(text in "\\PC{0,200}", name in "\\PC{0,10}", vers in "\\PC{0,10}", req in "\\PC{0,8}") {
            let _ = Metadata::read(text.as_bytes());
            let sent = json!({"name": name, "vers": vers, "deps": [{"name": name, "version_req": req}]}).to_string();
            let read = Metadata::read(sent.as_bytes()).unwrap();
            let _ = (read.release(), read.line("00", String::new()));
        }
    }
}
