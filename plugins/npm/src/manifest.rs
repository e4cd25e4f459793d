//! A version's manifest: the form that a client publishes, and the forms that the plugin stores.

use crate::confusion;
use crate::difference::Difference;
use crate::dist::Unpacked;
use crate::document::invalid;
use crate::name::PackageName;
use crate::readme::PackageReadme;
use crate::version::clean;
use packhouse_sdk::Failure;
use serde_json::{Map, Value, json};

/// Members of a manifest's abbreviated form, except `dist` and `deprecated`.
pub(crate) const ABBREVIATED: [&str; 19] = [
    "name",
    "version",
    "dependencies",
    "optionalDependencies",
    "devDependencies",
    "bundleDependencies",
    "bundledDependencies",
    "peerDependencies",
    "peerDependenciesMeta",
    "acceptDependencies",
    "bin",
    "directories",
    "engines",
    "cpu",
    "os",
    "libc",
    "_hasShrinkwrap",
    "hasInstallScript",
    "funding",
];

/// Scripts that run when a package is installed.
const INSTALL_SCRIPTS: [&str; 3] = ["preinstall", "install", "postinstall"];

/// Maximum number of characters of a summary.
const SUMMARY: usize = 250;
/// Maximum number of characters of searchable keywords.
const KEYWORDS: usize = 1000;

/// A checked manifest.
pub(crate) struct VersionManifest {
    /// The normalized version number.
    pub(crate) number: String,
    /// The client's members, without `dist`, the readme and the deprecation.
    pub(crate) members: Map<String, Value>,
    /// The client's data about the tarball.
    pub(crate) dist: Map<String, Value>,
    /// The deprecation message, if the version is published as deprecated.
    pub(crate) deprecated: Option<String>,
    /// The readme.
    pub(crate) readme: Option<PackageReadme>,
}

impl VersionManifest {
    /// Checks the manifest that a document about `name` has for the version `number`.
    ///
    /// # Errors
    /// 400 if the manifest is of another package or version, or if the version number is invalid.
    pub(crate) fn check(
        name: &PackageName,
        number: &str,
        mut members: Map<String, Value>,
    ) -> Result<Self, Failure> {
        let cleaned = clean(number)
            .ok_or_else(|| invalid(&format!("{number:?} is not a version number such as 1.0.0")))?;
        let text = |member: &str| members.get(member).and_then(Value::as_str).unwrap_or_default();
        if text("name") != name.as_str() {
            return Err(invalid(&format!(
                "its version {number} has the name {:?}, not {name}",
                text("name")
            )));
        }
        if clean(text("version")).as_ref() != Some(&cleaned) {
            let stated = text("version");
            return Err(invalid(&format!("its version {number} has the version number {stated:?}")));
        }
        let dist = match members.remove("dist") {
            Some(Value::Object(dist)) => dist,
            _ => Map::new(),
        };
        let deprecated = members.remove("deprecated");
        let deprecated =
            deprecated.as_ref().and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        let readme = PackageReadme::take(&mut members);
        members.remove("_attachments");
        members.insert("_id".to_owned(), json!(format!("{name}@{cleaned}")));
        members.insert("version".to_owned(), json!(cleaned));
        Ok(Self { number: cleaned, members, dist, deprecated, readme })
    }

    /// Replaces the members that [`confusion::settle`] compares, if they differ from the archive.
    /// Also sets the members that depend on the archive's files. Returns the differences.
    pub(crate) fn follow(&mut self, name: &PackageName, archive: &Unpacked) -> Vec<Difference> {
        let Unpacked { own, has_shrinkwrap, has_gyp, .. } = archive;
        let differences = confusion::settle(name, &mut self.members, own);
        let is_built = *has_gyp && own.get("gypfile") != Some(&Value::Bool(false));
        let computed = [
            ("_hasShrinkwrap", *has_shrinkwrap),
            ("hasInstallScript", is_built || runs_scripts(&self.members)),
        ];
        for (member, is_set) in computed {
            match is_set {
                true => drop(self.members.insert(member.to_owned(), json!(true))),
                false => drop(self.members.remove(member)),
            }
        }
        differences
    }

    /// Sets the publisher, `_npmUser`.
    pub(crate) fn published_by(&mut self, person: Value) {
        self.members.insert("_npmUser".to_owned(), person);
    }

    /// Returns the summary: one line for lists.
    pub(crate) fn summary(&self) -> String {
        let text = self.members.get("description").and_then(Value::as_str).unwrap_or_default();
        line(text, SUMMARY)
    }

    /// Returns the keywords for the search, separated by blanks.
    pub(crate) fn keywords(&self) -> String {
        line(&keywords(&self.members).join(" "), KEYWORDS)
    }

    /// Returns the licence that the author states: an expression, or in old manifests objects with
    /// a `type`. The text is empty if the author states no licence.
    pub(crate) fn license(&self) -> String {
        license(&self.members)
    }

    /// Returns the abbreviated and the full form, as JSON.
    pub(crate) fn forms(&self) -> (String, String) {
        forms(&self.members)
    }
}

/// Returns the licence that a manifest states, as one line.
pub(crate) fn license(members: &Map<String, Value>) -> String {
    let named = |value: &Value| -> Option<String> {
        let text = value.as_str().or_else(|| value.get("type").and_then(Value::as_str));
        text.map(str::to_owned)
    };
    let stated = match (members.get("license"), members.get("licenses")) {
        (Some(license), _) => named(license),
        (None, Some(Value::Array(choice))) => {
            Some(choice.iter().filter_map(named).collect::<Vec<_>>().join(" OR "))
        }
        _ => None,
    };
    line(&stated.unwrap_or_default(), SUMMARY)
}

/// Returns the abbreviated and the full form of a manifest without `dist` and `deprecated`, as
/// JSON.
fn forms(members: &Map<String, Value>) -> (String, String) {
    let known = |member: &&str| Some(((*member).to_owned(), members.get(*member)?.clone()));
    let abbreviated: Map<String, Value> = ABBREVIATED.iter().filter_map(known).collect();
    (Value::Object(abbreviated).to_string(), Value::Object(members.clone()).to_string())
}

/// Returns a text as one line, cut to a number of characters. Single blanks separate its words.
fn line(text: &str, characters: usize) -> String {
    let blank = |c: char| c.is_whitespace() || c.is_control();
    let words: Vec<&str> = text.split(blank).filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(characters).collect()
}

/// Returns the keywords of a manifest. Some clients send the keywords as one text, as in
/// `package.json`.
pub(crate) fn keywords(members: &Map<String, Value>) -> Vec<&str> {
    match members.get("keywords") {
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(text)) => {
            text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty()).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns true if a package runs scripts when it is installed.
pub(crate) fn runs_scripts(members: &Map<String, Value>) -> bool {
    let scripts = members.get("scripts").and_then(Value::as_object);
    let listed =
        scripts.is_some_and(|scripts| INSTALL_SCRIPTS.iter().any(|name| scripts.contains_key(*name)));
    listed || members.get("gypfile") == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(members: Value) -> Result<VersionManifest, Failure> {
        let Value::Object(members) = members else { panic!("an object") };
        VersionManifest::check(&PackageName::new("lib").unwrap(), "1.0.0", members)
    }

    #[test]
    fn a_manifest_is_stored_in_two_forms() {
        let manifest = checked(
            json!({"name": "lib", "version": "v1.0.0", "description": "A\n lib", "readme": "long",
            "scripts": {"postinstall": "x"}, "dependencies": {"a": "1"}, "dist": {"shasum": "x"}, "deprecated": ""}),
        );
        let mut manifest = manifest.unwrap();
        let own = manifest.members.clone();
        let archive = Unpacked { own, sboms: Vec::new(), has_shrinkwrap: true, has_gyp: false };
        assert_eq!(manifest.follow(&PackageName::new("lib").unwrap(), &archive), []);
        let (abbreviated, full) = manifest.forms();
        let expected = json!({"name": "lib", "version": "1.0.0", "dependencies": {"a": "1"}, "hasInstallScript": true, "_hasShrinkwrap": true});
        assert_eq!(serde_json::from_str::<Value>(&abbreviated).unwrap(), expected);
        let full: Value = serde_json::from_str(&full).unwrap();
        assert_eq!(
            (&full["_id"], &full["dist"], &full["readme"]),
            (&json!("lib@1.0.0"), &Value::Null, &Value::Null)
        );
        assert_eq!((manifest.summary().as_str(), manifest.deprecated), ("A lib", None));
    }

    #[test]
    fn keywords_are_a_list_or_a_text() {
        for keywords in [json!(["a b", "c\u{0}\n"]), json!("a b, c")] {
            let manifest = checked(json!({"name": "lib", "version": "1.0.0", "keywords": keywords})).unwrap();
            assert_eq!(manifest.keywords(), "a b c", "{keywords}");
        }
    }

    #[test]
    fn a_manifest_of_another_version_is_refused() {
        for members in [
            json!({"name": "other", "version": "1.0.0"}),
            json!({"name": "lib", "version": "1.0.1"}),
            json!({"name": "lib"}),
            json!({}),
        ] {
            assert_eq!(checked(members.clone()).err().map(|failure| failure.status), Some(400), "{members}");
        }
    }
}
