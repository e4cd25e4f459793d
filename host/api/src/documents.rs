//! Bills of materials of a version: their list, and their bytes.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use packhouse_store::VersionDocument;
use serde::Serialize;
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::OfObject;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::packages::{self, FoundDocument};
use crate::scope::Family;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(document)]
}

/// A bill of materials that was published with a version.
#[derive(Serialize, ToSchema)]
pub(crate) struct DocumentView {
    /// Path of the file that it describes; empty if it describes the version.
    file: String,
    /// Title of the document.
    title: String,
    /// Language of the document: `cyclonedx`, `spdx` or another.
    form: String,
    /// Media type of its bytes; for a document within another, such as an in-toto statement, that
    /// of the outer one.
    media_type: String,
    /// Path in the repository of the document or of the file that contains it; empty if there is
    /// none.
    path: String,
    /// Size in bytes.
    size: u64,
    /// `sha256:` and hexadecimal digits. The API returns the document by this digest.
    digest: String,
}

impl From<VersionDocument> for DocumentView {
    fn from(document: VersionDocument) -> DocumentView {
        let VersionDocument { path, source, title, form, media_type, sha256, size, .. } = document;
        DocumentView {
            file: path,
            title,
            form,
            media_type,
            path: source,
            size,
            digest: sha256.digest().to_string(),
        }
    }
}

/// Returns a bill of materials of a version, unchanged. `{name}`, `{version}` and `{digest}` are
/// one percent-encoded segment each.
#[utoipa::path(get, path = "/v1/repositories/{id}/packages/{name}/versions/{version}/documents/{digest}", operation_id = "fetch_document",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Packages))),
    params(("id" = String, Path),
        ("name" = String, Path),
        ("version" = String, Path),
        ("digest" = String, Path, description = "Digest of the document, as the version lists it")),
    responses((status = 404, body = ErrorBody), (status = 200, content((String = "application/octet-stream")))))]
async fn document(call: Call) -> HandlerResult {
    call.only(&[])?;
    let (id, name, version) = (call.path("id"), call.path("name"), call.path("version"));
    answer(packages::document(call.actor()?, id, name, version, call.path("digest")).await?).await
}

/// Response with a document as a download, so that browsers do not display it. Storage errors occur
/// before the first byte is sent.
pub async fn answer(found: FoundDocument) -> Result<Response, ApiError> {
    let FoundDocument { document, blob } = found;
    let size = blob.size();
    let bytes = blob.stream(0..size).with_first_chunk().await?;
    let media_type = HeaderValue::from_str(&document.media_type);
    let headers = [
        (CONTENT_TYPE, media_type.unwrap_or(HeaderValue::from_static("application/octet-stream"))),
        (CONTENT_DISPOSITION, disposition(&document)),
        (CONTENT_LENGTH, HeaderValue::from(size)),
    ];
    Ok((headers, Body::from_stream(bytes)).into_response())
}

/// File name of the download: the last part of the title, with only characters that are valid in
/// file names everywhere.
fn disposition(document: &VersionDocument) -> HeaderValue {
    let last = document.title.rsplit(['/', '\\', ':']).next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-+".contains(c) { c } else { '_' };
    let name: String = last.trim_start_matches('.').chars().map(plain).collect();
    let name = if name.is_empty() { "document" } else { &name };
    HeaderValue::from_str(&format!("attachment; filename=\"{name}\""))
        .unwrap_or(HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use packhouse_store::Sha256;

    use super::*;

    #[test]
    fn a_document_is_downloaded_under_a_harmless_name() {
        for (title, name) in [
            ("lib-1.0-cyclonedx.json", "lib-1.0-cyclonedx.json"),
            ("sboms/lib.spdx.json", "lib.spdx.json"),
            ("../.profile", "profile"),
            ("C:\\x\"; filename=evil", "x___filename_evil"),
            ("sha256:ab", "ab"),
            ("", "document"),
            ("ö\r\n", "___"),
        ] {
            let document = VersionDocument {
                name: String::new(),
                version: String::new(),
                path: String::new(),
                source: String::new(),
                title: title.to_owned(),
                form: "spdx".to_owned(),
                media_type: "application/spdx+json".to_owned(),
                sha256: Sha256::of(b""),
                size: 0,
            };
            let header = disposition(&document);
            assert_eq!(header.to_str().unwrap(), format!("attachment; filename=\"{name}\""), "{title:?}");
        }
    }
}
