//! What the organization holds, as a document that other programs read.

use axum::body::Body;
use axum::response::IntoResponse;
use futures::TryStreamExt as _;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use utoipa_axum::router::UtoipaMethodRouter;
use utoipa_axum::routes;

use crate::Answer;
use crate::call::Call;
use crate::endpoint::Right::OfObject;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::sbom::{self, Form};

/// The media types of documents, and what they are called.
const CYCLONE_DX: (&str, &str) =
    ("application/vnd.cyclonedx+json; version=1.6", "attachment; filename=\"packhouse.cdx.json\"");
const SPDX: (&str, &str) = ("application/spdx+json", "attachment; filename=\"packhouse.spdx.json\"");

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<UtoipaMethodRouter> {
    vec![routes!(document)]
}

/// Exports what a repository holds, or all that the caller may read, as CycloneDX 1.6 or SPDX 2.3: each version with its purl, digests and
/// license, as far as they are known. It comes piece by piece.
#[utoipa::path(get, path = "/v1/sbom", operation_id = "export_sbom",
    extensions(("x-right" = json!(OfObject))),
    params(("repository" = Option<String>, Query, description = "Of the repository of this id"),
        ("form" = Option<String>, Query, description = "`cyclonedx`, which it is without, or `spdx`")),
    responses((status = 400, body = ErrorBody), (status = 404, body = ErrorBody), (status = 200, content((Object = "application/vnd.cyclonedx+json"), (Object = "application/spdx+json")))))]
async fn document(call: Call) -> Answer {
    call.only(&["repository", "form"])?;
    let (form, (media_type, file)) = match call.query("form").unwrap_or("cyclonedx") {
        "cyclonedx" => (Form::CycloneDx, CYCLONE_DX),
        "spdx" => (Form::Spdx, SPDX),
        _ => return Err(ApiError::invalid("`form` is cyclonedx or spdx")),
    };
    let document = sbom::document(call.actor()?, call.query("repository"), form).await?;
    let pieces = document.map_err(|error| std::io::Error::other(error.message().to_owned()));
    let headers = [(CONTENT_TYPE, media_type), (CONTENT_DISPOSITION, file)];
    Ok((headers, Body::from_stream(pieces)).into_response())
}
