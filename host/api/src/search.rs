//! Search over all that the caller may read.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::FoundPackage;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Answer;
use crate::advisories::AdvisoryMark;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::SignedIn;
use crate::operations::advisories::Mark;
use crate::operations::search::{self, Found, SearchRequest};
use crate::paging::{self, Page};

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(packages)]
}

/// Where a package is.
#[derive(Serialize, ToSchema)]
pub(crate) struct FoundRepositoryView {
    id: String,
    name: String,
    format: String,
}

/// A package that was found.
#[derive(Serialize, ToSchema)]
pub(crate) struct FoundPackageView {
    repository: FoundRepositoryView,
    name: String,
    /// The version that was published last.
    latest: Option<String>,
    /// That one's.
    summary: String,
    /// That one's: empty, or why it should not be used.
    state: String,
    /// When that one was published, in ms since 1970.
    updated_at: Option<u64>,
    /// The worst of the advisories about that one; null where there is none.
    advisory: Option<AdvisoryMark>,
}

impl FoundPackageView {
    /// A package, with the worst that is known of its latest version.
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

/// Finds packages in all repositories that the caller may read: every word of `q` stands in the name, the summary or the keywords. The
/// one of that name comes first, then names that begin with `q`, then the others, each by name.
#[utoipa::path(get, path = "/v1/search", operation_id = "search_packages",
    extensions(("x-right" = json!(SignedIn))),
    params(("q" = Option<String>, Query, description = "Words to look for; all packages where there is none"),
        ("format" = Option<String>, Query, description = "In repositories of this format"),
        ("repository" = Option<String>, Query, description = "In the repository of this id"),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<FoundPackageView>)))]
async fn packages(call: Call) -> Answer {
    call.only(&["q", "format", "repository", "limit", "after"])?;
    let owned = |name| call.query(name).map(str::to_owned);
    let request = SearchRequest {
        text: owned("q").unwrap_or_default(),
        format: owned("format"),
        repository: owned("repository"),
        after: owned("after"),
        limit: paging::limit(&call)?,
    };
    let Found { packages, next } = search::packages(call.actor()?, request).await?;
    let worst = search::worst(call.actor()?, &packages).await?;
    let items =
        packages.into_iter().zip(worst).map(|(found, worst)| FoundPackageView::of(found, worst)).collect();
    Ok(Json(Page { items, next }).into_response())
}
