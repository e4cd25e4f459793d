//! The document that clients put: of a publish with one version and its attachments, of every other change the packument as it
//! was read, altered.

use crate::name::Name;
use crate::readme::{self, Readme};
use crate::version::tag_objection;
use packhouse_sdk::json_scan::{ScanError, ScanReader, ScanRules, Span};
use packhouse_sdk::{Failure, FindAt};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::BufReader;
use std::marker::PhantomData;

/// Bytes of a document, its tarballs left out. One with 2,000 versions, which `npm deprecate` sends whole, has 2 to 8 MB.
pub(crate) const DOCUMENT_LIMIT: u64 = 32 << 20;
/// Bytes of one version's manifest: what the plugin has to hold in memory several times over while it reads it.
pub(crate) const MEMBER_LIMIT: u64 = 1 << 20;

/// A tarball stands in the document as base64, up to 280 MB in one string. Of a readme, which is cut when it is kept, as much is read
/// as is kept, were every byte of that escaped.
const SCAN: ScanRules = ScanRules {
    document_limit: DOCUMENT_LIMIT,
    member_limit: MEMBER_LIMIT,
    left_out: &[&["_attachments", "*", "data"]],
    shortened: &[&["readme"], &["versions", "*", "readme"]],
    shortened_to: 6 * readme::LIMIT as u64,
};

/// Members of one object: versions, tags, attachments.
const MEMBERS: usize = 20_000;

/// What of such a document counts.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Document {
    #[serde(rename = "_id")]
    id: Option<String>,
    name: Option<String>,
    #[serde(rename = "_rev")]
    pub(crate) revision: Option<String>,
    #[serde(rename = "dist-tags")]
    pub(crate) tags: Option<Bounded<Option<String>>>,
    pub(crate) versions: Option<Versions>,
    #[serde(rename = "_attachments")]
    attachments: Option<Bounded<Attachment>>,
    pub(crate) maintainers: Option<Vec<Value>>,
    readme: Option<Value>,
    #[serde(rename = "readmeFilename")]
    readme_file: Option<Value>,
    /// Strings that were left out.
    #[serde(skip)]
    spans: Vec<Span>,
}

/// A map with an end to its size.
#[derive(Debug)]
pub(crate) struct Bounded<T>(pub(crate) BTreeMap<String, T>);

/// The versions of a document: the first as it was sent, of the others what can be changed.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    first: Option<(String, Map<String, Value>)>,
    /// By number: why it should not be used, where something is said.
    pub(crate) deprecations: BTreeMap<String, Option<String>>,
}

/// A file that is published.
#[derive(Debug, Deserialize)]
pub(crate) struct Attachment {
    #[serde(default)]
    content_type: String,
    pub(crate) length: Option<u64>,
    data: Option<Value>,
}

/// What stands in an attachment.
pub(crate) enum Data<'a> {
    /// Base64, where it lies in the body.
    Base64(Span),
    /// A document.
    Text(&'a str),
    /// Nothing.
    None,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Bounded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
            type Value = BTreeMap<String, T>;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(out, "an object of at most {MEMBERS} members")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((key, value)) = access.next_entry()? {
                    bounded::<A::Error>(members.len())?;
                    members.insert(key, value);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Members(PhantomData)).map(Self)
    }
}

impl<'de> Deserialize<'de> for Versions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Versions;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(out, "an object of at most {MEMBERS} versions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Versions, A::Error> {
                let mut versions = Versions::default();
                while let Some((number, manifest)) = access.next_entry::<String, Map<String, Value>>()? {
                    bounded::<A::Error>(versions.deprecations.len())?;
                    versions
                        .deprecations
                        .insert(number.clone(), manifest.get("deprecated").and_then(deprecation));
                    versions.first.get_or_insert((number, manifest));
                }
                Ok(versions)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

fn bounded<E: serde::de::Error>(members: usize) -> Result<(), E> {
    if members < MEMBERS {
        Ok(())
    } else {
        Err(E::custom(format!("more than {MEMBERS} members in one object")))
    }
}

/// What the member `deprecated` of a manifest says; an empty text takes a deprecation back.
pub(crate) fn deprecation(deprecated: &Value) -> Option<String> {
    match deprecated {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Bool(true) => Some("this version is deprecated".to_owned()),
        _ => None,
    }
}

impl Document {
    /// Reads a body, which has to be about this package.
    ///
    /// # Errors
    /// 400 for what is no such document, or one about another package; 413 for too large a one.
    pub(crate) fn read(body: impl FindAt, name: &Name) -> Result<Self, Failure> {
        let mut reader = BufReader::with_capacity(16 << 10, ScanReader::new(body, SCAN));
        let read = serde_json::from_reader::<_, Self>(&mut reader);
        let spans = reader.into_inner().finish().map_err(refused)?;
        let mut document = read.map_err(|error| invalid(&format!("it cannot be read: {error}")))?;
        document.spans = spans;
        for (member, said) in [("_id", &document.id), ("name", &document.name)] {
            if let Some(said) = said.as_ref().filter(|said| *said != name.as_str()) {
                return Err(invalid(&format!(
                    "its `{member}` is {said:?}, but it was sent to the address of {name}"
                )));
            }
        }
        Ok(document)
    }

    /// The one version that is published: its number and manifest.
    ///
    /// # Errors
    /// 400 when there is none, or more than one.
    pub(crate) fn take_version(&mut self) -> Result<(String, Map<String, Value>), Failure> {
        let versions = self.versions.take().unwrap_or_default();
        match (versions.first, versions.deprecations.len()) {
            (Some(first), 1) => Ok(first),
            (_, count) => Err(invalid(&format!("a publish brings one version, and this one has {count}"))),
        }
    }

    /// Whether something is published, rather than changed.
    pub(crate) fn publishes(&self) -> bool {
        self.attachments.as_ref().is_some_and(|attachments| !attachments.0.is_empty())
    }

    /// The attachments by name, with what stands in them.
    pub(crate) fn attachments(&self) -> impl Iterator<Item = (&str, &Attachment, Data<'_>)> {
        let all = self.attachments.iter().flat_map(|attachments| &attachments.0);
        all.map(|(name, attachment)| {
            let span = |number: u64| self.spans.get(usize::try_from(number).ok()?).copied();
            let data = match &attachment.data {
                Some(Value::Number(number)) => {
                    number.as_u64().and_then(span).map_or(Data::None, Data::Base64)
                }
                Some(Value::String(text)) => Data::Text(text),
                _ => Data::None,
            };
            (name.as_str(), attachment, data)
        })
    }

    /// What the package says of itself at length, where a client says so here and not in the version.
    pub(crate) fn readme(&self) -> Option<Readme> {
        let file = self.readme_file.as_ref().and_then(Value::as_str);
        Readme::new(self.readme.as_ref()?.as_str()?, file.unwrap_or_default())
    }
}

impl Attachment {
    /// Whether it is a bundle of signatures rather than a tarball.
    pub(crate) fn is_bundle(&self, name: &str) -> bool {
        name.ends_with(".sigstore") || self.content_type.contains("sigstore.bundle")
    }
}

/// 400 for a document that says something it must not.
pub(crate) fn invalid(what: &str) -> Failure {
    Failure::new(400, "invalid_request", format!("The document that was sent is not accepted: {what}"))
}

/// 400 for a tag that cannot be called that.
pub(crate) fn check_tag(tag: &str) -> Result<(), Failure> {
    match tag_objection(tag) {
        Some(objection) => Err(invalid(&format!("{tag:?} cannot be a tag: {objection}"))),
        None => Ok(()),
    }
}

fn refused(error: ScanError) -> Failure {
    match error {
        ScanError::TooLarge => Failure::too_large(format!(
            "The document that was sent is too large: besides its tarball at most {} bytes, and {} for one version",
            DOCUMENT_LIMIT, MEMBER_LIMIT
        )),
        ScanError::Broken => invalid("it breaks off within a string"),
        ScanError::Host(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(document: &Value) -> Result<Document, Failure> {
        Document::read(document.to_string().as_bytes(), &Name::new("lib").unwrap())
    }

    fn objection(document: &Value) -> String {
        read(document).unwrap_err().problems[0].message.clone()
    }

    #[test]
    fn a_publish_has_one_version_and_its_attachment() {
        let sent = json!({"_id": "lib", "name": "lib", "dist-tags": {"latest": "1.0.0"},
            "versions": {"1.0.0": {"name": "lib", "version": "1.0.0"}},
            "_attachments": {"lib-1.0.0.tgz": {"content_type": "application/octet-stream", "data": "AAAA", "length": 3},
                "lib-1.0.0.sigstore": {"data": "{\"a\":1}"}}});
        let mut document = read(&sent).unwrap();
        assert!(document.publishes());
        let kinds: Vec<(&str, bool)> = document
            .attachments()
            .map(|(name, attachment, data)| {
                (name, attachment.is_bundle(name) == matches!(data, Data::Text(_)))
            })
            .collect();
        assert_eq!(kinds, [("lib-1.0.0.sigstore", true), ("lib-1.0.0.tgz", true)]);
        assert_eq!(document.take_version().unwrap().0, "1.0.0");
    }

    #[test]
    fn another_package_is_refused() {
        for member in ["_id", "name"] {
            let said = objection(&json!({member: "other"}));
            assert!(said.contains("\"other\"") && said.contains("address of lib"), "{said}");
        }
    }

    #[test]
    fn what_is_no_document_is_refused_with_words() {
        assert!(objection(&json!([])).contains("cannot be read"));
        assert!(objection(&json!({"versions": 5})).contains("versions"));
        let body = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        assert_eq!(Document::read(body.as_bytes(), &Name::new("lib").unwrap()).unwrap_err().status, 400);
        let many: Map<String, Value> = (0..=MEMBERS).map(|n| (n.to_string(), json!("1"))).collect();
        assert!(objection(&json!({"dist-tags": many})).contains("more than"));
        assert!(read(&json!({"versions": {"1": {}, "2": {}}})).unwrap().take_version().is_err());
    }

    #[test]
    fn deprecations_are_texts() {
        let versions = json!({"1.0.0": {"deprecated": "old"}, "1.0.1": {"deprecated": ""}, "1.0.2": {}, "1.0.3": {"deprecated": true}});
        let found = read(&json!({"versions": versions})).unwrap().versions.unwrap().deprecations;
        let said: Vec<Option<&str>> = found.values().map(Option::as_deref).collect();
        assert_eq!(said, [Some("old"), None, None, Some("this version is deprecated")]);
    }
}
