//! Documents that come with versions and describe what those are made of: bills of materials.

use crate::{Digest, VersionId};

/// A document that came with a version, for [`Transaction::document`](crate::Transaction::document). The host lists it with the version and
/// serves its bytes, a blob that a record names; what clients are served of it stays the format's affair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionDocument {
    /// The version that it describes.
    pub id: VersionId,
    /// The path of the file that it is about, as it is shown; empty: the version.
    pub path: String,
    /// The path below the repository's address where it came, of itself or of what carries it; empty where there is none. Hidden as a
    /// file, it takes the document with it.
    pub source: String,
    /// What it is called. One of the same version, path, source and title takes the place of the earlier.
    pub title: String,
    /// In which language it is written.
    pub form: String,
    /// Of its bytes.
    pub media_type: String,
    /// Of its bytes, by SHA-256.
    pub digest: Digest,
    /// How many bytes.
    pub size: u64,
}

/// Endings of files' names in lower case, as the standards recommend them and tools write them, with the media type. (CycloneDX,
/// "Recognized file patterns"; SPDX 2.3, annex on file names.)
const ENDINGS: [(&str, &str); 9] = [
    (".cdx.json", VersionDocument::CYCLONEDX_JSON),
    (".cdx.xml", VersionDocument::CYCLONEDX_XML),
    ("-cyclonedx.json", VersionDocument::CYCLONEDX_JSON),
    ("-cyclonedx.xml", VersionDocument::CYCLONEDX_XML),
    (".cyclonedx.json", VersionDocument::CYCLONEDX_JSON),
    (".cyclonedx.xml", VersionDocument::CYCLONEDX_XML),
    (".spdx.json", VersionDocument::SPDX_JSON),
    ("-spdx.json", VersionDocument::SPDX_JSON),
    (".spdx", VersionDocument::SPDX_TEXT),
];

impl VersionDocument {
    /// Bytes of one that formats look into archives for.
    pub const MAX_BYTES: u64 = 32 << 20;
    /// The form of OWASP's bills of materials.
    pub const CYCLONEDX: &str = "cyclonedx";
    /// The form of the Linux Foundation's (ISO/IEC 5962).
    pub const SPDX: &str = "spdx";
    /// CycloneDX as JSON.
    pub const CYCLONEDX_JSON: &str = "application/vnd.cyclonedx+json";
    /// CycloneDX as XML.
    pub const CYCLONEDX_XML: &str = "application/vnd.cyclonedx+xml";
    /// SPDX as JSON.
    pub const SPDX_JSON: &str = "application/spdx+json";
    /// SPDX as tags and values.
    pub const SPDX_TEXT: &str = "text/spdx";

    /// A document of this version, in this form.
    pub fn new(
        id: VersionId,
        form: impl Into<String>,
        media_type: impl Into<String>,
        digest: Digest,
        size: u64,
    ) -> Self {
        Self {
            id,
            path: String::new(),
            source: String::new(),
            title: String::new(),
            form: form.into(),
            media_type: media_type.into(),
            digest,
            size,
        }
    }

    /// The file that it is about.
    pub fn of_file(self, path: impl Into<String>) -> Self {
        Self { path: path.into(), ..self }
    }

    /// Where it came.
    pub fn at(self, source: impl Into<String>) -> Self {
        Self { source: source.into(), ..self }
    }

    /// What it is called.
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    /// The form of documents of this media type, whatever its parameters; none for what is no such document.
    pub fn form_of(media_type: &str) -> Option<&'static str> {
        let bare = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match bare.as_str() {
            Self::CYCLONEDX_JSON | Self::CYCLONEDX_XML | "application/vnd.cyclonedx" => Some(Self::CYCLONEDX),
            Self::SPDX_JSON
            | Self::SPDX_TEXT
            | "application/spdx"
            | "application/spdx+xml"
            | "application/spdx+yaml"
            | "text/spdx+json"
            | "text/spdx+xml" => Some(Self::SPDX),
            "application/vnd.syft+json" => Some("syft"),
            _ => None,
        }
    }

    /// The media type of a file of this name; none for what is not named as such a document.
    pub fn media_type_of(name: &str) -> Option<&'static str> {
        let name = name.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        match name.as_str() {
            "bom.json" => return Some(Self::CYCLONEDX_JSON),
            "bom.xml" => return Some(Self::CYCLONEDX_XML),
            _ => {}
        }
        ENDINGS.iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, media_type)| *media_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_known_by_media_type() {
        let known = [
            ("application/vnd.cyclonedx+json", Some("cyclonedx")),
            ("application/vnd.cyclonedx+json; version=1.6", Some("cyclonedx")),
            ("Application/SPDX+JSON", Some("spdx")),
            ("text/spdx", Some("spdx")),
            ("application/vnd.syft+json", Some("syft")),
            ("application/json", None),
            ("", None),
        ];
        for (media_type, form) in known {
            assert_eq!(VersionDocument::form_of(media_type), form, "{media_type}");
        }
    }

    #[test]
    fn documents_are_known_by_their_names() {
        let known = [
            ("a/b/lib-1.0-cyclonedx.json", Some(VersionDocument::CYCLONEDX_JSON)),
            ("lib-1.0-cyclonedx.xml", Some(VersionDocument::CYCLONEDX_XML)),
            ("lib.CDX.json", Some(VersionDocument::CYCLONEDX_JSON)),
            ("package/bom.json", Some(VersionDocument::CYCLONEDX_JSON)),
            ("lib-1.0.spdx.json", Some(VersionDocument::SPDX_JSON)),
            ("LICENSES.spdx", Some(VersionDocument::SPDX_TEXT)),
            ("combom.json", None),
            ("lib-1.0.spdx.rdf.xml", None),
            ("package.json", None),
        ];
        for (name, media_type) in known {
            assert_eq!(VersionDocument::media_type_of(name), media_type, "{name}");
        }
        for media_type in ENDINGS.iter().map(|(_, media_type)| media_type) {
            assert!(VersionDocument::form_of(media_type).is_some(), "{media_type}");
        }
    }
}
