//! Lists of SCIM (RFC 7644, section 3.4.2): filter, paging and the response.

use packhouse_wire::catalogue;
use serde::Serialize;
use utoipa::ToSchema;

use super::filter::{AttributePath, Comparison};
use super::invalid_value;
use crate::call::Call;
use crate::error::ApiError;
use crate::operations::scim::ListWindow;

const LIST: &str = "urn:ietf:params:scim:api:messages:2.0:ListResponse";

/// Maximum number of resources in a response.
pub(super) const MAX_COUNT: i64 = 200;
/// Number of resources if the client does not state it.
const DEFAULT_COUNT: i64 = 100;

/// Part of a list of resources.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScimList<T> {
    schemas: Vec<&'static str>,
    /// Length of the whole list.
    total_results: usize,
    /// Number of the first resource in this part, from 1.
    start_index: usize,
    items_per_page: usize,
    #[serde(rename = "Resources")]
    resources: Vec<T>,
}

impl<T> ScimList<T> {
    /// Part of a list that has `total` resources.
    pub(super) fn new(window: ListWindow, total: usize, resources: Vec<T>) -> ScimList<T> {
        ScimList {
            schemas: vec![LIST],
            total_results: total,
            start_index: window.offset.saturating_add(1),
            items_per_page: resources.len(),
            resources,
        }
    }

    /// The whole list in one part.
    pub(super) fn whole(resources: Vec<T>) -> ScimList<T> {
        ScimList::new(ListWindow { offset: 0, count: resources.len() }, resources.len(), resources)
    }
}

/// Reads the requested part: `startIndex`, from 1, and `count`. Values outside of the range become
/// the nearest ones.
pub(super) fn window(call: &Call) -> Result<ListWindow, ApiError> {
    let start = integer(call, "startIndex")?.unwrap_or(1).max(1);
    let count = integer(call, "count")?.unwrap_or(DEFAULT_COUNT).clamp(0, MAX_COUNT);
    Ok(ListWindow {
        offset: usize::try_from(start - 1).unwrap_or(usize::MAX),
        count: usize::try_from(count).unwrap_or_default(),
    })
}

fn integer(call: &Call, name: &str) -> Result<Option<i64>, ApiError> {
    let read = call.query(name).map(str::parse).transpose();
    read.map_err(|_| invalid_value(&format!("`{name}` must be an integer")))
}

/// Filter by the text of one attribute.
pub(super) struct TextFilter {
    pub(super) path: AttributePath,
    pub(super) text: String,
}

impl TextFilter {
    /// Reads the filter of a call. 400 `invalid_filter` if it is more than a comparison with a
    /// text.
    pub(super) fn of(call: &Call) -> Result<Option<TextFilter>, ApiError> {
        let Some(filter) = call.query("filter").filter(|filter| !filter.is_empty()) else { return Ok(None) };
        let read = Comparison::parse(filter).and_then(|Comparison { path, value }| {
            let text = value.as_str().filter(|text| !text.contains(char::is_control))?.to_owned();
            Some(TextFilter { path, text })
        });
        read.map(Some).ok_or_else(|| unsupported("Compare one attribute with a text by `eq`."))
    }
}

/// 400 `invalid_filter` with an advice.
pub(super) fn unsupported(advice: &str) -> ApiError {
    ApiError::with(&catalogue::INVALID_SCIM_FILTER, advice)
}
