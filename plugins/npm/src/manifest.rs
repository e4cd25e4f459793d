//! A version's manifest, as it is published and as it is kept.

use crate::confusion;
use crate::difference::Difference;
use crate::dist::Unpacked;
use crate::document::invalid;
use crate::name::Name;
use crate::readme::Readme;
use crate::version::clean;
use packhouse_sdk::Failure;
use serde_json::{Map, Value, json};

/// What the abbreviated form of a manifest holds, besides `dist` and `deprecated`.
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

/// Characters of a summary.
const SUMMARY: usize = 250;
/// Characters of keywords that a package is found by.
const KEYWORDS: usize = 1000;

/// A manifest that fits its place.
pub(crate) struct Manifest {
    /// Its version's number, cleaned.
    pub(crate) number: String,
    /// As it was sent, without `dist`, the readme and the deprecation.
    pub(crate) members: Map<String, Value>,
    /// What the client said of the tarball.
    pub(crate) dist: Map<String, Value>,
    /// Why it should not be used, where it says so already.
    pub(crate) deprecated: Option<String>,
    /// What it says of itself at length.
    pub(crate) readme: Option<Readme>,
}

impl Manifest {
    /// Of the version that stands under `number` in a document about `name`.
    ///
    /// # Errors
    /// 400 where it is of another package or version, or its number is none.
    pub(crate) fn check(name: &Name, number: &str, mut members: Map<String, Value>) -> Result<Self, Failure> {
        let cleaned = clean(number)
            .ok_or_else(|| invalid(&format!("{number:?} is no version number, as 1.0.0 is one")))?;
        let text = |member: &str| members.get(member).and_then(Value::as_str).unwrap_or_default();
        if text("name") != name.as_str() {
            return Err(invalid(&format!(
                "its version {number} says that it is of {:?}, not of {name}",
                text("name")
            )));
        }
        if clean(text("version")).as_ref() != Some(&cleaned) {
            return Err(invalid(&format!("its version {number} says that it is {:?}", text("version"))));
        }
        let dist = match members.remove("dist") {
            Some(Value::Object(dist)) => dist,
            _ => Map::new(),
        };
        let deprecated = members.remove("deprecated");
        let deprecated =
            deprecated.as_ref().and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
        let readme = Readme::take(&mut members);
        members.remove("_attachments");
        members.insert("_id".to_owned(), json!(format!("{name}@{cleaned}")));
        members.insert("version".to_owned(), json!(cleaned));
        Ok(Self { number: cleaned, members, dist, deprecated, readme })
    }

    /// Makes it say what the archive does, of what clients follow and of what only a look at the archive can tell. Answers where they
    /// differed.
    pub(crate) fn follow(&mut self, name: &Name, archive: &Unpacked) -> Vec<Difference> {
        let Unpacked { own, has_shrinkwrap, has_gyp, .. } = archive;
        let differences = confusion::settle(name, &mut self.members, own);
        let is_built = *has_gyp && own.get("gypfile") != Some(&Value::Bool(false));
        let computed = [
            ("_hasShrinkwrap", *has_shrinkwrap),
            ("hasInstallScript", is_built || runs_scripts(&self.members)),
        ];
        for (member, is_so) in computed {
            match is_so {
                true => drop(self.members.insert(member.to_owned(), json!(true))),
                false => drop(self.members.remove(member)),
            }
        }
        differences
    }

    /// Says who published it.
    pub(crate) fn published_by(&mut self, person: Value) {
        self.members.insert("_npmUser".to_owned(), person);
    }

    /// One line for lists.
    pub(crate) fn summary(&self) -> String {
        let text = self.members.get("description").and_then(Value::as_str).unwrap_or_default();
        line(text, SUMMARY)
    }

    /// Words to be found by besides, separated by blanks.
    pub(crate) fn keywords(&self) -> String {
        line(&keywords(&self.members).join(" "), KEYWORDS)
    }

    /// The licence that its author states: an expression, or as some still write it, objects with a type; empty where none does.
    pub(crate) fn license(&self) -> String {
        license(&self.members)
    }

    /// Abbreviated and full, as JSON.
    pub(crate) fn forms(&self) -> (String, String) {
        forms(&self.members)
    }
}

/// The licence that a manifest states.
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

/// A manifest without `dist` and `deprecated`, abbreviated and full, as JSON.
fn forms(members: &Map<String, Value>) -> (String, String) {
    let known = |member: &&str| Some(((*member).to_owned(), members.get(*member)?.clone()));
    let abbreviated: Map<String, Value> = ABBREVIATED.iter().filter_map(known).collect();
    (Value::Object(abbreviated).to_string(), Value::Object(members.clone()).to_string())
}

/// At most so many characters on one line: words with a blank between each two.
fn line(text: &str, characters: usize) -> String {
    let blank = |c: char| c.is_whitespace() || c.is_control();
    let words: Vec<&str> = text.split(blank).filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(characters).collect()
}

/// Its keywords. Some clients send them as one text, as it stands in `package.json`.
pub(crate) fn keywords(members: &Map<String, Value>) -> Vec<&str> {
    match members.get("keywords") {
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(text)) => {
            text.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty()).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether it runs something when it is installed.
pub(crate) fn runs_scripts(members: &Map<String, Value>) -> bool {
    let scripts = members.get("scripts").and_then(Value::as_object);
    let listed =
        scripts.is_some_and(|scripts| INSTALL_SCRIPTS.iter().any(|name| scripts.contains_key(*name)));
    listed || members.get("gypfile") == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(members: Value) -> Result<Manifest, Failure> {
        let Value::Object(members) = members else { panic!("an object") };
        Manifest::check(&Name::new("lib").unwrap(), "1.0.0", members)
    }

    #[test]
    fn a_manifest_is_kept_in_two_forms() {
        let manifest = checked(
            json!({"name": "lib", "version": "v1.0.0", "description": "A\n lib", "readme": "long",
            "scripts": {"postinstall": "x"}, "dependencies": {"a": "1"}, "dist": {"shasum": "x"}, "deprecated": ""}),
        );
        let mut manifest = manifest.unwrap();
        let own = manifest.members.clone();
        let archive = Unpacked { own, sboms: Vec::new(), has_shrinkwrap: true, has_gyp: false };
        assert_eq!(manifest.follow(&Name::new("lib").unwrap(), &archive), []);
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
        for written in [json!(["a b", "c\u{0}\n"]), json!("a b, c")] {
            let manifest = checked(json!({"name": "lib", "version": "1.0.0", "keywords": written})).unwrap();
            assert_eq!(manifest.keywords(), "a b c", "{written}");
        }
    }

    #[test]
    fn a_manifest_of_something_else_is_refused() {
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
