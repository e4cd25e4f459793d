//! Packages of a repository, their versions and files, and the connection settings for clients.
//! They are the same for every format, as its plugin lists them.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::{PackageSummary, Version};
use serde::Serialize;
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::advisories::AdvisoryMark;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::details::{ConnectionView, REASON, VersionDetailsView};
use crate::endpoint::Right::OfObject;
use crate::operations::advisories::{self, Mark};
use crate::operations::packages::{self, Packages, Search};
use crate::operations::{connection, repositories};
use crate::paging::{self, Page};
use crate::scope::Family;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(list), routes!(versions), routes!(version), routes!(connection)]
}

/// A package.
#[derive(Serialize, ToSchema)]
pub(crate) struct PackageView {
    name: String,
    /// The version that was published most recently.
    latest: Option<String>,
    /// Number of versions.
    versions: u64,
    /// Time of the latest publish, in ms since 1970.
    updated_at: Option<u64>,
}

impl From<PackageSummary> for PackageView {
    fn from(summary: PackageSummary) -> PackageView {
        let PackageSummary { name, versions, latest, updated_at } = summary;
        PackageView { name, latest, versions, updated_at }
    }
}

/// A file of a version.
#[derive(Serialize, ToSchema)]
pub(crate) struct FileView {
    path: String,
    /// Size in bytes.
    size: u64,
    /// `sha256:` and hexadecimal digits.
    digest: String,
}

/// A version.
#[derive(Serialize, ToSchema)]
pub(crate) struct VersionView {
    version: String,
    /// Reason against its use: `yanked`, `deprecated` or `withdrawn`; otherwise empty.
    state: String,
    reason: String,
    published_at: Option<u64>,
    files: Vec<FileView>,
    /// Advisories about it, the most severe first.
    advisories: Vec<AdvisoryMark>,
}

impl VersionView {
    /// View of a version with the advisories about it.
    pub(crate) fn of(version: Version, marks: Vec<Mark>) -> VersionView {
        let reason = version.properties.into_iter().find(|(name, _)| name == REASON).map(|(_, value)| value);
        let files = version.files.into_iter().map(|file| FileView {
            path: file.path,
            size: file.size,
            digest: file.digest.to_string(),
        });
        VersionView {
            version: version.version,
            state: version.state,
            reason: reason.unwrap_or_default(),
            published_at: version.published,
            files: files.collect(),
            advisories: marks.into_iter().map(AdvisoryMark::from).collect(),
        }
    }
}

/// Lists packages by name. With `q` it lists matching packages: first the one with that name, then
/// names that begin with it.
#[utoipa::path(get, path = "/v1/repositories/{id}/packages", operation_id = "list_packages",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Packages))),
    params(("id" = String, Path),
        ("q" = Option<String>, Query, description = "Words to search for"),
        ("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<PackageView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["q", "limit", "after"])?;
    let limit = paging::limit(&call)?;
    let search = match call.query("q").unwrap_or_default().trim() {
        "" => Search::Names { after: call.query("after").unwrap_or_default().to_owned() },
        words => Search::Words { words: words.to_owned(), after: call.query("after").map(str::to_owned) },
    };
    let Packages { summaries, next } = packages::list(call.actor()?, call.path("id"), search, limit).await?;
    let items = summaries.into_iter().map(PackageView::from).collect();
    Ok(Json(Page { items, next }).into_response())
}

/// Lists the versions of a package, newest first. `{name}` is one percent-encoded segment.
#[utoipa::path(get, path = "/v1/repositories/{id}/packages/{name}/versions", operation_id = "list_versions",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Packages))),
    params(("id" = String, Path),
        ("name" = String, Path),
        ("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<VersionView>)))]
async fn versions(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let limit = paging::limit(&call)? as usize;
    let offset = paging::after::<usize>(&call)?.unwrap_or_default();
    let (actor, name) = (call.actor()?, call.path("name"));
    let versions = packages::versions(actor, call.path("id"), name).await?;
    let end = offset.saturating_add(limit);
    let next = (end < versions.len()).then(|| end.to_string());
    let listed: Vec<Version> = versions.into_iter().skip(offset).take(limit).collect();
    let numbers: Vec<String> = listed.iter().map(|version| version.version.clone()).collect();
    let repository = repositories::readable(actor, call.path("id")).await?;
    let marks = advisories::of_versions(actor, &repository, name, &numbers).await?;
    let items =
        listed.into_iter().zip(marks).map(|(version, marks)| VersionView::of(version, marks)).collect();
    Ok(Json(Page { items, next }).into_response())
}

/// Returns a version with all its details: the format's presentation, installation commands and
/// downloads. `{name}` and `{version}` are one percent-encoded segment each.
#[utoipa::path(get, path = "/v1/repositories/{id}/packages/{name}/versions/{version}", operation_id = "show_version",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Packages))),
    params(("id" = String, Path),
        ("name" = String, Path),
        ("version" = String, Path)),
    responses((status = 200, body = VersionDetailsView)))]
async fn version(call: Call) -> HandlerResult {
    call.only(&[])?;
    let (id, name, version) = (call.path("id"), call.path("name"), call.path("version"));
    let page = packages::version(call.actor()?, id, name, version).await?;
    Ok(Json(VersionDetailsView::from(page)).into_response())
}

/// Returns the configuration that clients need to read from and publish to the repository, with
/// `<EMAIL>` and `<REPOSITORY_TOKEN>` as placeholders.
#[utoipa::path(get, path = "/v1/repositories/{id}/connection", operation_id = "show_connection",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Repositories))),
    params(("id" = String, Path)),
    responses((status = 200, body = ConnectionView)))]
async fn connection(call: Call) -> HandlerResult {
    call.only(&[])?;
    let connection = connection::connection(call.actor()?, call.path("id")).await?;
    Ok(Json(ConnectionView::from(connection)).into_response())
}
