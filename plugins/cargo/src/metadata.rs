//! The metadata that cargo sends when it publishes a version, and the line of the index that is
//! made from them.

use crate::line::{IndexDependency, IndexLine, LINE_LIMIT};
use crate::name::Name;
use packhouse_sdk::Failure;
use semver::{Version, VersionReq};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Maximum number of dependencies of one version. Also the maximum number of its features.
const MAX_ENTRIES: usize = 10_000;
/// Maximum size of a summary, a licence or the search words, in bytes.
const SUMMARY_LIMIT: usize = 500;

/// The members of the metadata that this plugin uses. The plugin stores the whole document
/// unchanged.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct CrateMetadata {
    pub(crate) name: String,
    pub(crate) vers: String,
    #[serde(default)]
    pub(crate) deps: Vec<PublishedDependency>,
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
pub(crate) struct PublishedDependency {
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

/// A crate and a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CrateVersion {
    pub(crate) name: Name,
    pub(crate) version: Version,
}

impl CrateMetadata {
    /// Parses the metadata.
    ///
    /// # Errors
    /// 400 for a malformed document.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Failure> {
        serde_json::from_slice(bytes)
            .map_err(|error| bad(format!("the metadata do not have the form that cargo sends: {error}")))
    }

    /// Returns the name and the version, after checking both.
    ///
    /// # Errors
    /// 400 if one of them is invalid.
    pub(crate) fn release(&self) -> Result<CrateVersion, Failure> {
        let name = Name::new(&self.name).ok_or_else(|| {
            bad(format!(
                "{:?} is not a crate name: expected at most 64 letters, digits, `-` and `_`, beginning with a letter",
                self.name
            ))
        })?;
        let version = Version::parse(&self.vers)
            .map_err(|error| bad(format!("{:?} is not a version: {error}", self.vers)))?;
        if self.vers.len() > 128 {
            return Err(bad("the version has more than 128 characters"));
        }
        Ok(CrateVersion { name, version })
    }

    /// Returns the line of the index for a crate file with this SHA-256.
    ///
    /// # Errors
    /// 400 if a dependency is invalid, or if the line has too many entries or bytes.
    pub(crate) fn line(&self, checksum: &str, published: String) -> Result<IndexLine, Failure> {
        if self.deps.len() > MAX_ENTRIES || self.features.len() > MAX_ENTRIES {
            return Err(bad(format!("it has more than {MAX_ENTRIES} dependencies or features")));
        }
        let deps = self.deps.iter().map(PublishedDependency::dependency).collect::<Result<_, _>>()?;
        // Older versions of cargo cannot read features with `dep:` or `?/`, so the line has these
        // features in `features2`.
        let is_newer =
            |all: &Vec<String>| all.iter().any(|one| one.starts_with("dep:") || one.contains("?/"));
        let (newer, older): (BTreeMap<_, _>, BTreeMap<_, _>) =
            self.features.clone().into_iter().partition(|(_, all)| is_newer(all));
        let line = IndexLine {
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

    /// The description as one line, for lists.
    pub(crate) fn summary(&self) -> String {
        let text = self.description.as_deref().unwrap_or_default();
        let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        text.truncate(text.floor_char_boundary(SUMMARY_LIMIT));
        text
    }

    /// The licence that the author states. Empty if the author states none.
    pub(crate) fn license(&self) -> String {
        // Old crates separate a choice of licences with a slash.
        let mut stated = self.license.as_deref().unwrap_or_default().replace('/', " OR ");
        stated.truncate(stated.floor_char_boundary(SUMMARY_LIMIT));
        stated
    }

    /// The words for the search: the keywords, and the name in the spelling of the author.
    pub(crate) fn words(&self) -> String {
        let words = self.keywords.iter().map(String::as_str).take(20).chain([self.name.as_str()]);
        let mut words = words.collect::<Vec<_>>().join(" ");
        words.truncate(words.floor_char_boundary(SUMMARY_LIMIT));
        words
    }
}

impl PublishedDependency {
    fn dependency(&self) -> Result<IndexDependency, Failure> {
        let wrong = |what: &str| bad(format!("{what} of the dependency {:?} is invalid", self.name));
        Name::new(&self.name).ok_or_else(|| wrong("the name"))?;
        VersionReq::parse(&self.version_req).map_err(|_| wrong("the version"))?;
        let kind = self.kind.clone().unwrap_or_else(|| "normal".to_owned());
        if !matches!(kind.as_str(), "normal" | "dev" | "build") {
            return Err(wrong("the kind"));
        }
        let renamed = self.explicit_name_in_toml.clone();
        Ok(IndexDependency {
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

/// 400 `invalid_crate` for a publish that is not valid.
pub(crate) fn bad(text: impl Into<String>) -> Failure {
    Failure::new(400, "invalid_crate", format!("This crate is refused: {}", text.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_line_is_made_from_the_metadata() {
        let sent = json!({
            "name": "hello", "vers": "1.0.0", "links": "z", "rust_version": "1.70", "authors": ["A"],
            "features": {"a": ["b"], "c": ["dep:d"], "e": ["d?/x"]},
            "deps": [
                {"name": "dep", "version_req": "^1", "features": ["f"], "optional": true, "default_features": false, "target": "cfg(unix)",
                 "kind": "dev", "registry": null, "explicit_name_in_toml": "alias"},
                {"name": "other", "version_req": "*", "registry": "https://index.crates.io/"},
            ],
        });
        let line = CrateMetadata::read(sent.to_string().as_bytes())
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
        fn any_metadata_are_handled(text in "\\PC{0,200}", name in "\\PC{0,10}", vers in "\\PC{0,10}", req in "\\PC{0,8}") {
            let _ = CrateMetadata::read(text.as_bytes());
            let sent = json!({"name": name, "vers": vers, "deps": [{"name": name, "version_req": req}]}).to_string();
            let read = CrateMetadata::read(sent.as_bytes()).unwrap();
            let _ = (read.release(), read.line("00", String::new()));
        }
    }
}
