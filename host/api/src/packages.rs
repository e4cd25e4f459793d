//! What a repository holds: packages, and the versions of one with their files. The same for every format, from what its
//! plugin shows.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::{PackageSummary, RepositoryRow, Version};
use serde::Serialize;
use utoipa::ToSchema;

use super::Answer;
use super::call::Call;
use super::error::{ApiError, ErrorBody};
use super::paging::{self, Page};
use super::repositories;
use packhouse_wire::catalogue;

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
}

impl From<Version> for VersionView {
    fn from(version: Version) -> VersionView {
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
        }
    }
}

/// The property of a version that says why it is in its state.
const REASON: &str = "reason";

/// Lists packages, those that match `q` where it is given, the best match first.
#[utoipa::path(get, operation_id = "list_packages", path = "/v1/repositories/{id}/packages",
    params(("id" = String, Path), ("q" = Option<String>, Query, description = "Words to look for"),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<PackageView>), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub(crate) async fn list(call: Call) -> Answer {
    call.only(&["q", "limit", "after"])?;
    let limit = paging::limit(&call)?;
    let words = call.query("q").unwrap_or_default();
    let (repository, names, next) = match words.trim() {
        "" => {
            let repository = readable(&call).await?;
            let after = call.query("after").unwrap_or_default();
            let mut names = call.app.store.package_names(repository.id, after, limit + 1).await?;
            let more = names.len() > limit as usize;
            names.truncate(limit as usize);
            let next = names.last().filter(|_| more).cloned();
            (repository, names, next)
        }
        words => {
            let offset = paging::after::<u32>(&call)?.unwrap_or_default();
            let repository = readable(&call).await?;
            let found = call.app.store.search(repository.id, words, offset, limit).await?;
            let end = offset.saturating_add(u32::try_from(found.names.len()).unwrap_or(u32::MAX));
            let next = (u64::from(end) < found.total).then(|| end.to_string());
            (repository, found.names, next)
        }
    };
    let summaries = call.app.store.package_summaries(repository.id, names).await?;
    let items = summaries.into_iter().map(PackageView::from).collect();
    Ok(Json(Page { items, next }).into_response())
}

/// Lists the versions of a package, the newest first. `{name}` is one segment, percent-encoded.
#[utoipa::path(get, operation_id = "list_versions", path = "/v1/repositories/{id}/packages/{name}/versions",
    params(("id" = String, Path), ("name" = String, Path),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<VersionView>), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub(crate) async fn versions(call: Call) -> Answer {
    call.only(&["limit", "after"])?;
    let limit = paging::limit(&call)? as usize;
    let offset = paging::after::<usize>(&call)?.unwrap_or_default();
    let repository = readable(&call).await?;
    let versions = call.app.store.versions(repository.id, call.path("name")).await?;
    if versions.is_empty() {
        return Err(ApiError::from(&catalogue::NOT_FOUND));
    }
    let end = offset.saturating_add(limit);
    let next = (end < versions.len()).then(|| end.to_string());
    let items = versions.into_iter().skip(offset).take(limit).map(VersionView::from).collect();
    Ok(Json(Page { items, next }).into_response())
}

/// The repository of the path, where the caller may read: 404 where it may not know of it, else 403.
async fn readable(call: &Call) -> Result<RepositoryRow, ApiError> {
    let repository = repositories::find(call).await?;
    let rights = call.caller()?.permissions.rights(repository.id);
    call.judge(rights.read || repository.public, &catalogue::ROLE_MISMATCH)?;
    Ok(repository)
}
