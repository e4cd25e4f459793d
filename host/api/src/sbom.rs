//! Export of the organization's packages as a bill of materials.

use axum::body::Body;
use axum::response::IntoResponse;
use futures::TryStreamExt as _;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::OfObject;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::sbom::{self, FetchFilter, SbomFormat, SbomRequest};
use crate::scope::Family;

/// Media types of the documents, with `Content-Disposition`.
const CYCLONE_DX: (&str, &str) =
    ("application/vnd.cyclonedx+json; version=1.6", "attachment; filename=\"packhouse.cdx.json\"");
const SPDX: (&str, &str) = ("application/spdx+json", "attachment; filename=\"packhouse.spdx.json\"");

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(document)]
}

/// Exports an SBOM of a repository, or of all that the caller may read, as CycloneDX 1.6 or SPDX
/// 2.3: each version with its purl, digests and license, if known. With `token`, the export has
/// only the versions that this token fetched from `since` to `until`, by whole days in UTC; it
/// requires the right to revoke that token. Deleted versions appear with name and version only. The
/// response is streamed.
#[utoipa::path(get, path = "/v1/sbom", operation_id = "export_sbom",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Packages))),
    params(("repository" = Option<String>, Query, description = "Only the repository with this id"),
        ("form" = Option<String>, Query, description = "`cyclonedx` (the default) or `spdx`"),
        ("token" = Option<String>, Query, description = "Only the versions that the token with this id fetched"),
        ("since" = Option<i64>, Query, description = "With `token`: start of the period, in ms since 1970; \
            by default the earliest recorded fetch"),
        ("until" = Option<i64>, Query, description = "With `token`: end of the period, in ms since 1970; \
            by default now")),
    responses((status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody), (status = 200, content((Object = "application/vnd.cyclonedx+json"), (Object = "application/spdx+json")))))]
async fn document(call: Call) -> HandlerResult {
    call.only(&["repository", "form", "token", "since", "until"])?;
    let (form, (media_type, file)) = match call.query("form").unwrap_or("cyclonedx") {
        "cyclonedx" => (SbomFormat::CycloneDx, CYCLONE_DX),
        "spdx" => (SbomFormat::Spdx, SPDX),
        _ => return Err(ApiError::invalid("`form` must be `cyclonedx` or `spdx`.")),
    };
    let time = |name| call.query(name).map(|text| time(name, text)).transpose();
    let (since, until) = (time("since")?, time("until")?);
    let actor = call.actor()?;
    let fetched = match call.query("token") {
        Some(token) => {
            let (since, until) = (since.unwrap_or_default(), until.unwrap_or(actor.now));
            Some(FetchFilter { token, since, until })
        }
        None if since.is_some() || until.is_some() => {
            return Err(ApiError::invalid(
                "`since` and `until` require `token`, the id of the token whose fetches are listed.",
            ));
        }
        None => None,
    };
    let request = SbomRequest { repository: call.query("repository"), fetched };
    let document = sbom::document(actor, request, form).await?;
    let pieces = document.map_err(|error| std::io::Error::other(error.message().to_owned()));
    let headers = [(CONTENT_TYPE, media_type), (CONTENT_DISPOSITION, file)];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// Reads a time from the query.
fn time(name: &str, text: &str) -> Result<i64, ApiError> {
    let refused =
        || ApiError::invalid(&format!("`{name}` must be a time in milliseconds since 1970-01-01 UTC."));
    text.parse::<i64>().ok().filter(|at| *at >= 0).ok_or_else(refused)
}
