//! The document that clients `PUT`. A publish sends one version and its attachments; another change
//! sends the altered packument.

use crate::name::PackageName;
use crate::readme::{self, PackageReadme};
use crate::version::tag_objection;
use packhouse_sdk::json_scan::{ScanError, ScanReader, ScanRules, Span};
use packhouse_sdk::{Failure, FindAt};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io::BufReader;
use std::marker::PhantomData;

/// Maximum number of bytes of a document without its tarballs. `npm deprecate` sends the whole
/// packument; with 2,000 versions it has 2 to 8 MB.
pub(crate) const DOCUMENT_LIMIT: u64 = 32 << 20;
/// Maximum number of bytes of one version's manifest. While the plugin reads a manifest, it holds
/// several copies of the manifest in memory.
pub(crate) const MEMBER_LIMIT: u64 = 1 << 20;

/// Rules of the scan. The scan leaves out tarballs, each a base64 string of up to 280 MB. It
/// shortens readmes: only [`readme::LIMIT`] bytes are stored, and an escaped byte takes up to six
/// bytes.
const SCAN: ScanRules = ScanRules {
    document_limit: DOCUMENT_LIMIT,
    member_limit: MEMBER_LIMIT,
    left_out: &[&["_attachments", "*", "data"]],
    shortened: &[&["readme"], &["versions", "*", "readme"]],
    shortened_to: 6 * readme::LIMIT as u64,
};

/// Maximum number of members of one object: versions, tags or attachments.
const MEMBERS: usize = 20_000;

/// Members of the document that the plugin uses.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RequestDocument {
    #[serde(rename = "_id")]
    id: Option<String>,
    name: Option<String>,
    #[serde(rename = "_rev")]
    pub(crate) revision: Option<String>,
    #[serde(rename = "dist-tags")]
    pub(crate) tags: Option<Bounded<Option<String>>>,
    pub(crate) versions: Option<DocumentVersions>,
    #[serde(rename = "_attachments")]
    attachments: Option<Bounded<Attachment>>,
    pub(crate) maintainers: Option<Vec<Value>>,
    readme: Option<Value>,
    #[serde(rename = "readmeFilename")]
    readme_file: Option<Value>,
    /// Positions in the body of the strings that the scan left out.
    #[serde(skip)]
    spans: Vec<Span>,
}

/// A map of at most [`MEMBERS`] members.
#[derive(Debug)]
pub(crate) struct Bounded<T>(pub(crate) BTreeMap<String, T>);

/// The versions of a document: the first one complete, the others only with their deprecations.
#[derive(Debug, Default)]
pub(crate) struct DocumentVersions {
    first: Option<(String, Map<String, Value>)>,
    /// The deprecation message of each version, by number.
    pub(crate) deprecations: BTreeMap<String, Option<String>>,
}

/// A published file.
#[derive(Debug, Deserialize)]
pub(crate) struct Attachment {
    #[serde(default)]
    content_type: String,
    pub(crate) length: Option<u64>,
    data: Option<Value>,
}

/// The data of an attachment.
pub(crate) enum AttachmentData<'a> {
    /// Base64 at this position in the body.
    Base64(Span),
    /// Text that is not base64, such as an attestation.
    Text(&'a str),
    /// No data.
    None,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Bounded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct BoundedVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for BoundedVisitor<T> {
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
        deserializer.deserialize_map(BoundedVisitor(PhantomData)).map(Self)
    }
}

impl<'de> Deserialize<'de> for DocumentVersions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct VersionsVisitor;
        impl<'de> Visitor<'de> for VersionsVisitor {
            type Value = DocumentVersions;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(out, "an object of at most {MEMBERS} versions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<DocumentVersions, A::Error> {
                let mut versions = DocumentVersions::default();
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
        deserializer.deserialize_map(VersionsVisitor)
    }
}

fn bounded<E: serde::de::Error>(members: usize) -> Result<(), E> {
    if members < MEMBERS {
        Ok(())
    } else {
        Err(E::custom(format!("more than {MEMBERS} members in one object")))
    }
}

/// Returns the deprecation message in the member `deprecated` of a manifest. An empty text means
/// that the version is not deprecated.
pub(crate) fn deprecation(deprecated: &Value) -> Option<String> {
    match deprecated {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Bool(true) => Some("this version is deprecated".to_owned()),
        _ => None,
    }
}

impl RequestDocument {
    /// Parses a body, which must be about this package.
    ///
    /// # Errors
    /// 400 for an invalid document, or for a document about another package; 413 if it is too
    /// large.
    pub(crate) fn read(body: impl FindAt, name: &PackageName) -> Result<Self, Failure> {
        let mut reader = BufReader::with_capacity(16 << 10, ScanReader::new(body, SCAN));
        let read = serde_json::from_reader::<_, Self>(&mut reader);
        let spans = reader.into_inner().finish().map_err(refused)?;
        let mut document = read.map_err(|error| invalid(&format!("it cannot be read: {error}")))?;
        document.spans = spans;
        for (member, value) in [("_id", &document.id), ("name", &document.name)] {
            if let Some(value) = value.as_ref().filter(|value| *value != name.as_str()) {
                return Err(invalid(&format!(
                    "its `{member}` is {value:?}, but it was sent to the address of {name}"
                )));
            }
        }
        Ok(document)
    }

    /// Takes the number and manifest of the published version out of the document.
    ///
    /// # Errors
    /// 400 if the document does not contain exactly one version.
    pub(crate) fn take_version(&mut self) -> Result<(String, Map<String, Value>), Failure> {
        let versions = self.versions.take().unwrap_or_default();
        match (versions.first, versions.deprecations.len()) {
            (Some(first), 1) => Ok(first),
            (_, count) => {
                Err(invalid(&format!("a publish must contain one version, but this one contains {count}")))
            }
        }
    }

    /// Returns true if the document publishes a version. Otherwise it changes a package.
    pub(crate) fn publishes(&self) -> bool {
        self.attachments.as_ref().is_some_and(|attachments| !attachments.0.is_empty())
    }

    /// Returns the attachments by name, with their data.
    pub(crate) fn attachments(&self) -> impl Iterator<Item = (&str, &Attachment, AttachmentData<'_>)> {
        let all = self.attachments.iter().flat_map(|attachments| &attachments.0);
        all.map(|(name, attachment)| {
            let span = |number: u64| self.spans.get(usize::try_from(number).ok()?).copied();
            let data = match &attachment.data {
                Some(Value::Number(number)) => {
                    number.as_u64().and_then(span).map_or(AttachmentData::None, AttachmentData::Base64)
                }
                Some(Value::String(text)) => AttachmentData::Text(text),
                _ => AttachmentData::None,
            };
            (name.as_str(), attachment, data)
        })
    }

    /// Returns the readme, if the client sends it at the top level of the document instead of in
    /// the version.
    pub(crate) fn readme(&self) -> Option<PackageReadme> {
        let file = self.readme_file.as_ref().and_then(Value::as_str);
        PackageReadme::new(self.readme.as_ref()?.as_str()?, file.unwrap_or_default())
    }
}

impl Attachment {
    /// Returns true for a Sigstore bundle. Other attachments are tarballs.
    pub(crate) fn is_bundle(&self, name: &str) -> bool {
        name.ends_with(".sigstore") || self.content_type.contains("sigstore.bundle")
    }
}

/// Returns the 400 for an invalid document.
pub(crate) fn invalid(problem: &str) -> Failure {
    Failure::new(400, "invalid_request", format!("The document is not accepted: {problem}"))
}

/// Checks the name of a tag.
///
/// # Errors
/// 400 for an invalid name.
pub(crate) fn check_tag(tag: &str) -> Result<(), Failure> {
    match tag_objection(tag) {
        Some(objection) => Err(invalid(&format!("{tag:?} cannot be a tag: {objection}"))),
        None => Ok(()),
    }
}

fn refused(error: ScanError) -> Failure {
    match error {
        ScanError::TooLarge => Failure::too_large(format!(
            "The document is too large: at most {} bytes without its tarball, and at most {} bytes for one version",
            DOCUMENT_LIMIT, MEMBER_LIMIT
        )),
        ScanError::Broken => invalid("it ends within a string"),
        ScanError::Host(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(document: &Value) -> Result<RequestDocument, Failure> {
        RequestDocument::read(document.to_string().as_bytes(), &PackageName::new("lib").unwrap())
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
                (name, attachment.is_bundle(name) == matches!(data, AttachmentData::Text(_)))
            })
            .collect();
        assert_eq!(kinds, [("lib-1.0.0.sigstore", true), ("lib-1.0.0.tgz", true)]);
        assert_eq!(document.take_version().unwrap().0, "1.0.0");
    }

    #[test]
    fn another_package_is_refused() {
        for member in ["_id", "name"] {
            let message = objection(&json!({member: "other"}));
            assert!(message.contains("\"other\"") && message.contains("address of lib"), "{message}");
        }
    }

    #[test]
    fn an_invalid_document_is_refused_with_a_reason() {
        assert!(objection(&json!([])).contains("cannot be read"));
        assert!(objection(&json!({"versions": 5})).contains("versions"));
        let body = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        assert_eq!(
            RequestDocument::read(body.as_bytes(), &PackageName::new("lib").unwrap()).unwrap_err().status,
            400
        );
        let many: Map<String, Value> = (0..=MEMBERS).map(|n| (n.to_string(), json!("1"))).collect();
        assert!(objection(&json!({"dist-tags": many})).contains("more than"));
        assert!(read(&json!({"versions": {"1": {}, "2": {}}})).unwrap().take_version().is_err());
    }

    #[test]
    fn deprecations_are_texts() {
        let versions = json!({"1.0.0": {"deprecated": "old"}, "1.0.1": {"deprecated": ""}, "1.0.2": {}, "1.0.3": {"deprecated": true}});
        let found = read(&json!({"versions": versions})).unwrap().versions.unwrap().deprecations;
        let messages: Vec<Option<&str>> = found.values().map(Option::as_deref).collect();
        assert_eq!(messages, [Some("old"), None, None, Some("this version is deprecated")]);
    }
}
