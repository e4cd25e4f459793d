//! What a repository holds: packages, the versions of one with their files, a version with all that is known of it, and how clients
//! reach it. The same for every format, from what its
//! plugin shows.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::{PackageSummary, Version};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Answer;
use crate::advisories::AdvisoryMark;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::details::{ConnectionView, REASON, VersionDetailsView};
use crate::endpoint::Right::OfObject;
use crate::operations::advisories::{self, Mark};
use crate::operations::packages::{self, Packages, Search};
use crate::operations::{connection, repositories};
use crate::paging::{self, Page};

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(list), routes!(versions), routes!(version), routes!(connection)]
}

/// A package.
#[derive(Serialize, ToSchema)]
pub(crate) struct PackageView {
    name: String,
    /// The version that was published last.
    latest: Option<String>,
    /// How many versions there are.
    versions: u64,
    /// When one was last published, in ms since 1970.
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
    /// In bytes.
    size: u64,
    /// `sha256:` and hexadecimal digits.
    digest: String,
}

/// A version.
#[derive(Serialize, ToSchema)]
pub(crate) struct VersionView {
    version: String,
    /// Empty, or why it should not be used: `yanked`, `deprecated`, `withdrawn`.
    state: String,
    reason: String,
    published_at: Option<u64>,
    files: Vec<FileView>,
    /// What is known to be wrong with it, the worst first.
    advisories: Vec<AdvisoryMark>,
}

impl VersionView {
    /// A version, with what is known to be wrong with it.
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

/// Lists packages by name; those that match `q` where it is given: the one of that name first, then names that begin with it.
#[utoipa::path(get, path = "/v1/repositories/{id}/packages", operation_id = "list_packages",
    extensions(("x-right" = json!(OfObject))),
    params(("id" = String, Path),
        ("q" = Option<String>, Query, description = "Words to look for"),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<PackageView>)))]
async fn list(call: Call) -> Answer {
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

/// Lists the versions of a package, the newest first. `{name}` is one segment, percent-encoded.
#[utoipa::path(get, path = "/v1/repositories/{id}/packages/{name}/versions", operation_id = "list_versions",
    extensions(("x-right" = json!(OfObject))),
    params(("id" = String, Path),
        ("name" = String, Path),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<VersionView>)))]
async fn versions(call: Call) -> Answer {
    call.only(&["limit", "after"])?;
    let limit = paging::limit(&call)? as usize;
    let offset = paging::after::<usize>(&call)?.unwrap_or_default();
    let (actor, name) = (call.actor()?, call.path("name"));
    let versions = packages::versions(actor, call.path("id"), name).await?;
    let end = offset.saturating_add(limit);
    let next = (end < versions.len()).then(|| end.to_string());
    let shown: Vec<Version> = versions.into_iter().skip(offset).take(limit).collect();
    let numbers: Vec<String> = shown.iter().map(|version| version.version.clone()).collect();
    let repository = repositories::readable(actor, call.path("id")).await?;
    let marks = advisories::of_versions(actor, &repository, name, &numbers).await?;
    let items =
        shown.into_iter().zip(marks).map(|(version, marks)| VersionView::of(version, marks)).collect();
    Ok(Json(Page { items, next }).into_response())
}

/// Shows a version with all that is known of it: what its format presents, how it is installed, and how often it was fetched. `{name}`
/// and `{version}` are one segment each, percent-encoded.
#[utoipa::path(get, path = "/v1/repositories/{id}/packages/{name}/versions/{version}", operation_id = "show_version",
    extensions(("x-right" = json!(OfObject))),
    params(("id" = String, Path),
        ("name" = String, Path),
        ("version" = String, Path)),
    responses((status = 200, body = VersionDetailsView)))]
async fn version(call: Call) -> Answer {
    call.only(&[])?;
    let (id, name, version) = (call.path("id"), call.path("name"), call.path("version"));
    let page = packages::version(call.actor()?, id, name, version).await?;
    Ok(Json(VersionDetailsView::from(page)).into_response())
}

/// Shows how clients reach the repository: what each needs to read and to publish, with `<EMAIL>` and `<REPOSITORY_TOKEN>` where those
/// belong.
#[utoipa::path(get, path = "/v1/repositories/{id}/connection", operation_id = "show_connection",
    extensions(("x-right" = json!(OfObject))),
    params(("id" = String, Path)),
    responses((status = 200, body = ConnectionView)))]
async fn connection(call: Call) -> Answer {
    call.only(&[])?;
    let connection = connection::connection(call.actor()?, call.path("id")).await?;
    Ok(Json(ConnectionView::from(connection)).into_response())
}
