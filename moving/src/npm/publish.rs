//! The document that publishes one version.

use bytes::Bytes;
use serde_json::{Map, Value, json};

/// File name of a version's tarball.
pub(super) fn file(name: &str, number: &str) -> String {
    format!("{}-{number}.tgz", name.rsplit('/').next().unwrap_or_default())
}

/// The parts of a document that publishes a version.
pub(super) struct PublishDocument<'a> {
    pub(super) name: &'a str,
    pub(super) number: &'a str,
    pub(super) manifest: &'a Map<String, Value>,
    /// The README of the package, if this version is the latest.
    pub(super) readme: Option<&'a Value>,
    /// Attestations as registries return them: `{attestations: [{bundle}]}`.
    pub(super) attestations: Option<&'a Value>,
}

impl PublishDocument<'_> {
    /// The document's text before and after the base64 of the tarball.
    pub(super) fn around(&self) -> (Bytes, Bytes) {
        let PublishDocument { name, number, manifest, readme, .. } = *self;
        let mut manifest = manifest.clone();
        manifest.insert("name".to_owned(), json!(name));
        manifest.insert("version".to_owned(), json!(number));
        let readme = readme.map(|readme| format!("\"readme\":{readme},")).unwrap_or_default();
        let bundles: String =
            self.bundles().map(|(file, attachment)| format!("{}:{attachment},", json!(file))).collect();
        // A publish must set a tag. The run sets the source's tags after it has published all
        // versions.
        let before = format!(
            "{{\"_id\":{id},\"name\":{id},{readme}\"dist-tags\":{tags},\"versions\":{versions},\"_attachments\":{{{bundles}{file}:\
             {{\"content_type\":\"application/octet-stream\",\"data\":\"",
            id = json!(name),
            tags = json!({"latest": number}),
            versions = json!({number: manifest}),
            file = json!(file(name, number)),
        );
        (before.into(), Bytes::from_static(b"\"}}}"))
    }

    /// The attachments with signature bundles.
    fn bundles(&self) -> impl Iterator<Item = (String, Value)> {
        let all = self.attestations.and_then(|document| document.get("attestations")?.as_array());
        let stem = file(self.name, self.number);
        let stem = stem.trim_end_matches(".tgz").to_owned();
        let bundles = all.into_iter().flatten().filter_map(|one| one.get("bundle"));
        bundles.enumerate().map(move |(at, bundle)| {
            let more = if at == 0 { String::new() } else { format!(".{at}") };
            let kind = bundle.get("mediaType").and_then(Value::as_str);
            let kind = kind.unwrap_or("application/vnd.dev.sigstore.bundle.v0.3+json");
            let text = bundle.to_string();
            (
                format!("{stem}{more}.sigstore"),
                json!({"content_type": kind, "length": text.len(), "data": text}),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_one_version_its_tarball_and_its_bundles() {
        let (readme, attestations) =
            (json!("# \"lib\""), json!({"attestations": [{"bundle": {"a": 1}}, {"bundle": {"b": 2}}]}));
        let release = PublishDocument {
            name: "@a/lib",
            number: "1.0.0",
            manifest: &Map::new(),
            readme: Some(&readme),
            attestations: Some(&attestations),
        };
        let (before, after) = release.around();
        let whole = [&before[..], b"QUJD", &after[..]].concat();
        let document: Value = serde_json::from_slice(&whole).unwrap();
        assert_eq!(document["versions"]["1.0.0"]["name"], "@a/lib");
        assert_eq!(document["readme"], readme);
        let attached = document["_attachments"].as_object().unwrap();
        assert_eq!(attached["lib-1.0.0.tgz"]["data"], "QUJD");
        assert_eq!(attached["lib-1.0.0.sigstore"]["data"], r#"{"a":1}"#);
        assert_eq!(attached["lib-1.0.0.1.sigstore"]["data"], r#"{"b":2}"#);
        assert_eq!(file("@scope/lib", "1.0.0"), "lib-1.0.0.tgz");
    }
}
