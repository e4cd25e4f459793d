//! Search in all repositories that the caller may read.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::FoundPackage;
use serde::Serialize;
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::advisories::AdvisoryMark;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::SignedIn;
use crate::operations::advisories::Mark;
use crate::operations::search::{self, SearchPage, SearchRequest};
use crate::paging::{self, Page};
use crate::scope::Family;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(packages)]
}

/// The repository of a found package.
#[derive(Serialize, ToSchema)]
pub(crate) struct FoundRepositoryView {
    id: String,
    name: String,
    format: String,
}

/// A found package.
#[derive(Serialize, ToSchema)]
pub(crate) struct FoundPackageView {
    repository: FoundRepositoryView,
    name: String,
    /// The version that was published most recently.
    latest: Option<String>,
    /// Summary of that version.
    summary: String,
    /// State of that version: empty, or the reason against its use.
    state: String,
    /// Time at which that version was published, in ms since 1970.
    updated_at: Option<u64>,
    /// The most severe advisory about that version; null if it has no advisory.
    advisory: Option<AdvisoryMark>,
}

impl FoundPackageView {
    /// View of a package, with the most severe advisory about its latest version.
    fn of(found: FoundPackage, worst: Option<Mark>) -> FoundPackageView {
        FoundPackageView {
            repository: FoundRepositoryView {
                id: found.place.repository.to_string(),
                name: found.repository_name,
                format: found.format,
            },
            name: found.place.name,
            latest: found.latest,
            summary: found.summary,
            state: found.state,
            updated_at: found.updated_at,
            advisory: worst.map(AdvisoryMark::from),
        }
    }
}

/// Searches packages in all repositories that the caller may read. Every word of `q` must occur in
/// the name, the summary or the keywords. The package named `q` comes first, then names that begin
/// with `q`, then the others, each by name.
#[utoipa::path(get, path = "/v1/search", operation_id = "search_packages",
    extensions(("x-right" = json!(SignedIn)), ("x-scope" = json!(Family::Packages))),
    params(("q" = Option<String>, Query, description = "Words to search for; if empty, all packages"),
        ("format" = Option<String>, Query, description = "Only repositories of this format"),
        ("repository" = Option<String>, Query, description = "Only the repository with this id"),
        ("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<FoundPackageView>)))]
async fn packages(call: Call) -> HandlerResult {
    call.only(&["q", "format", "repository", "limit", "after"])?;
    let owned = |name| call.query(name).map(str::to_owned);
    let request = SearchRequest {
        text: owned("q").unwrap_or_default(),
        format: owned("format"),
        repository: owned("repository"),
        after: owned("after"),
        limit: paging::limit(&call)?,
    };
    let SearchPage { packages, next } = search::packages(call.actor()?, request).await?;
    let worst = search::worst(call.actor()?, &packages).await?;
    let items =
        packages.into_iter().zip(worst).map(|(found, worst)| FoundPackageView::of(found, worst)).collect();
    Ok(Json(Page { items, next }).into_response())
}
