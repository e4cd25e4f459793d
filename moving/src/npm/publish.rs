//! The document that publishes one version, with room for its tarball.

use bytes::Bytes;
use serde_json::{Map, Value, json};

/// The name of a version's tarball.
pub(super) fn file(name: &str, number: &str) -> String {
    format!("{}-{number}.tgz", name.rsplit('/').next().unwrap_or_default())
}

/// What stands before and behind the tarball in base64.
pub(super) fn around(name: &str, number: &str, manifest: &Map<String, Value>) -> (Bytes, Bytes) {
    let mut manifest = manifest.clone();
    manifest.insert("name".to_owned(), json!(name));
    manifest.insert("version".to_owned(), json!(number));
    // A tag is needed; those of the source are set once every version is there.
    let before = format!(
        "{{\"_id\":{id},\"name\":{id},\"dist-tags\":{tags},\"versions\":{versions},\"_attachments\":{{{file}:\
         {{\"content_type\":\"application/octet-stream\",\"data\":\"",
        id = json!(name),
        tags = json!({"latest": number}),
        versions = json!({number: manifest}),
        file = json!(file(name, number)),
    );
    (before.into(), Bytes::from_static(b"\"}}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_document_with_one_version_and_its_tarball() {
        let (before, after) = around("@a/lib", "1.0.0", &Map::new());
        let whole = [&before[..], b"QUJD", &after[..]].concat();
        let document: Value = serde_json::from_slice(&whole).unwrap();
        assert_eq!(document["versions"]["1.0.0"]["name"], "@a/lib");
        assert_eq!(document["_attachments"]["lib-1.0.0.tgz"]["data"], "QUJD");
    }
}
