//! Documents that describe the contents of versions: bills of materials (SBOMs).

use crate::{Digest, VersionId};

/// Document that came with a version, for [`Transaction::document`](crate::Transaction::document).
/// The host lists the document with the version and serves its bytes. A record must name the blob
/// with the bytes. The format decides whether its clients receive the document too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionDocument {
    /// Version that the document describes.
    pub id: VersionId,
    /// Listed path of the file that the document is about; empty for the whole version.
    pub path: String,
    /// Path below the repository's address at which the document, or the file that contains it, was
    /// published; may be empty. Hiding a file of this path removes the document too.
    pub source: String,
    /// Title. A document replaces an earlier one of the same version, path, source and title.
    pub title: String,
    /// Format of the document, for example [`CYCLONEDX`](Self::CYCLONEDX) or [`SPDX`](Self::SPDX).
    pub form: String,
    /// Media type of the bytes.
    pub media_type: String,
    /// SHA-256 of the bytes.
    pub digest: Digest,
    /// Size in bytes.
    pub size: u64,
}

/// Endings of file names, in lower case, with their media types. The standards recommend some of
/// them, and common tools write the others. (CycloneDX, "Recognized file patterns"; SPDX 2.3, annex
/// on file names.)
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
    /// Largest document in an archive that formats read, in bytes.
    pub const MAX_BYTES: u64 = 32 << 20;
    /// Form of CycloneDX documents (OWASP).
    pub const CYCLONEDX: &str = "cyclonedx";
    /// Form of SPDX documents (Linux Foundation; ISO/IEC 5962).
    pub const SPDX: &str = "spdx";
    /// CycloneDX in JSON.
    pub const CYCLONEDX_JSON: &str = "application/vnd.cyclonedx+json";
    /// CycloneDX in XML.
    pub const CYCLONEDX_XML: &str = "application/vnd.cyclonedx+xml";
    /// SPDX in JSON.
    pub const SPDX_JSON: &str = "application/spdx+json";
    /// SPDX in the tag-value format.
    pub const SPDX_TEXT: &str = "text/spdx";

    /// Creates a document of this version, in this form.
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

    /// Sets the file that the document is about.
    pub fn of_file(self, path: impl Into<String>) -> Self {
        Self { path: path.into(), ..self }
    }

    /// Sets the path at which the document was published.
    pub fn at(self, source: impl Into<String>) -> Self {
        Self { source: source.into(), ..self }
    }

    /// Sets the title.
    pub fn titled(self, title: impl Into<String>) -> Self {
        Self { title: title.into(), ..self }
    }

    /// Returns the form of documents of this media type, ignoring its parameters; `None` for any
    /// other media type.
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

    /// Returns the media type of a bill of materials with this file name; `None` if the name is not
    /// that of a bill of materials.
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
