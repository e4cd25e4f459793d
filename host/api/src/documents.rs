//! Documents that came with a version and describe what it is made of: their list, and their bytes.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use packhouse_store::VersionDocument;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Answer;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::OfObject;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::packages::{self, FoundDocument};

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(document)]
}

/// A document that came with a version and describes what it is made of.
#[derive(Serialize, ToSchema)]
pub(crate) struct DocumentView {
    /// The file that it is about, by its path; empty: the version.
    file: String,
    /// What it is called.
    title: String,
    /// In which language it is written: `cyclonedx`, `spdx`, or another.
    form: String,
    /// Of its bytes; where the document lies in another, as in a statement of in-toto, that of the other.
    media_type: String,
    /// Where it came: a path in the repository, of it or of what carries it; empty where there is none.
    path: String,
    /// In bytes.
    size: u64,
    /// `sha256:` and hexadecimal digits, by which it is fetched here.
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

/// Fetches a document that came with a version and describes what it is made of, as it came. `{name}`, `{version}` and `{digest}` are one
/// segment each, percent-encoded.
#[utoipa::path(get, path = "/v1/repositories/{id}/packages/{name}/versions/{version}/documents/{digest}", operation_id = "fetch_document",
    extensions(("x-right" = json!(OfObject))),
    params(("id" = String, Path),
        ("name" = String, Path),
        ("version" = String, Path),
        ("digest" = String, Path, description = "As the version lists it")),
    responses((status = 404, body = ErrorBody), (status = 200, content((String = "application/octet-stream")))))]
async fn document(call: Call) -> Answer {
    call.only(&[])?;
    let (id, name, version) = (call.path("id"), call.path("name"), call.path("version"));
    answer(packages::document(call.actor()?, id, name, version, call.path("digest")).await?).await
}

/// A document as a file that browsers keep and do not show. Errors of storage before its first byte.
pub async fn answer(found: FoundDocument) -> Result<Response, ApiError> {
    let FoundDocument { document, blob } = found;
    let size = blob.size();
    let bytes = blob.stream(0..size).begun().await?;
    let media_type = HeaderValue::from_str(&document.media_type);
    let headers = [
        (CONTENT_TYPE, media_type.unwrap_or(HeaderValue::from_static("application/octet-stream"))),
        (CONTENT_DISPOSITION, kept_as(&document)),
        (CONTENT_LENGTH, HeaderValue::from(size)),
    ];
    Ok((headers, Body::from_stream(bytes)).into_response())
}

/// Under its title's last part, as far as that is a name for a file everywhere.
fn kept_as(document: &VersionDocument) -> HeaderValue {
    let last = document.title.rsplit(['/', '\\', ':']).next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-+".contains(c) { c } else { '_' };
    let name: String = last.trim_start_matches('.').chars().map(plain).collect();
    let name = if name.is_empty() { "document" } else { &name };
    HeaderValue::from_str(&format!("attachment; filename=\"{name}\""))
        .unwrap_or(HeaderValue::from_static("attachment"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "test code: to fail is how it speaks")]

    use packhouse_store::Sha256;

    use super::*;

    #[test]
    fn a_document_is_kept_under_a_name_that_does_no_harm() {
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
            let told = kept_as(&document);
            assert_eq!(told.to_str().unwrap(), format!("attachment; filename=\"{name}\""), "{title:?}");
        }
    }
}
