//! What the organization holds, as a document that other programs read.

use axum::body::Body;
use axum::response::IntoResponse;
use futures::TryStreamExt as _;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};

use crate::Answer;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::OfObject;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::sbom::{self, Fetched, Form, Wanted};

/// The media types of documents, and what they are called.
const CYCLONE_DX: (&str, &str) =
    ("application/vnd.cyclonedx+json; version=1.6", "attachment; filename=\"packhouse.cdx.json\"");
const SPDX: (&str, &str) = ("application/spdx+json", "attachment; filename=\"packhouse.spdx.json\"");

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(document)]
}

/// Exports what a repository holds, or all that the caller may read, as CycloneDX 1.6 or SPDX 2.3: each version with its purl, digests and
/// license, as far as they are known. With `token`, of these what that token fetched from `since` to `until`, by whole days in UTC, for who
/// may revoke it; what is not there any more stands there by name and version. It comes piece by piece.
#[utoipa::path(get, path = "/v1/sbom", operation_id = "export_sbom",
    extensions(("x-right" = json!(OfObject))),
    params(("repository" = Option<String>, Query, description = "Of the repository of this id"),
        ("form" = Option<String>, Query, description = "`cyclonedx`, which it is without, or `spdx`"),
        ("token" = Option<String>, Query, description = "What the token of this id fetched, and no more"),
        ("since" = Option<i64>, Query, description = "With `token`: from when, in ms since 1970; without, from the first that is remembered"),
        ("until" = Option<i64>, Query, description = "With `token`: to when; without, to now")),
    responses((status = 400, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody), (status = 200, content((Object = "application/vnd.cyclonedx+json"), (Object = "application/spdx+json")))))]
async fn document(call: Call) -> Answer {
    call.only(&["repository", "form", "token", "since", "until"])?;
    let (form, (media_type, file)) = match call.query("form").unwrap_or("cyclonedx") {
        "cyclonedx" => (Form::CycloneDx, CYCLONE_DX),
        "spdx" => (Form::Spdx, SPDX),
        _ => return Err(ApiError::invalid("`form` is cyclonedx or spdx")),
    };
    let time = |name| call.query(name).map(|text| time(name, text)).transpose();
    let (since, until) = (time("since")?, time("until")?);
    let actor = call.actor()?;
    let fetched = match call.query("token") {
        Some(token) => {
            let (since, until) = (since.unwrap_or_default(), until.unwrap_or(actor.now));
            Some(Fetched { token, since, until })
        }
        None if since.is_some() || until.is_some() => {
            return Err(ApiError::invalid(
                "`since` and `until` are of what a token fetched: say which, as `token`",
            ));
        }
        None => None,
    };
    let wanted = Wanted { repository: call.query("repository"), fetched };
    let document = sbom::document(actor, wanted, form).await?;
    let pieces = document.map_err(|error| std::io::Error::other(error.message().to_owned()));
    let headers = [(CONTENT_TYPE, media_type), (CONTENT_DISPOSITION, file)];
    Ok((headers, Body::from_stream(pieces)).into_response())
}

/// A time of the query.
fn time(name: &str, text: &str) -> Result<i64, ApiError> {
    let refused = || ApiError::invalid(&format!("`{name}` is a time in ms since 1970"));
    text.parse::<i64>().ok().filter(|at| *at >= 0).ok_or_else(refused)
}
