//! Lists in pages: `?limit=&after=` → `{items, next}`.

use std::str::FromStr;

use serde::Serialize;
use utoipa::ToSchema;

use crate::call::Call;
use crate::error::ApiError;
use crate::operations::{PageRequest, RowPage};

/// One page. Pass `next` as `after` to get the following page; it is null on the last page.
#[derive(Serialize, ToSchema)]
pub(crate) struct Page<T> {
    /// Items of the page.
    pub items: Vec<T>,
    /// Start of the next page.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// Page of these rows. `id` returns the id of a row.
    pub(crate) fn of<R>(listed: RowPage<R>, id: impl Fn(&R) -> String, view: impl Fn(R) -> T) -> Page<T> {
        let RowPage { rows, more } = listed;
        let next = rows.last().filter(|_| more).map(id);
        Page { items: rows.into_iter().map(view).collect(), next }
    }

    /// Same as [`Page::of`], for a view that may fail.
    pub(crate) fn try_of<R, E>(
        listed: RowPage<R>,
        id: impl Fn(&R) -> String,
        view: impl Fn(R) -> Result<T, E>,
    ) -> Result<Page<T>, E> {
        let Page { items, next } = Page::of(listed, id, view);
        Ok(Page { items: items.into_iter().collect::<Result<_, E>>()?, next })
    }
}

/// Cuts the requested page from a complete list. `key` orders the items and must be unique.
pub(crate) fn page_of<T>(
    call: &Call,
    mut items: Vec<T>,
    key: impl Fn(&T) -> String,
) -> Result<Page<T>, ApiError> {
    let (limit, after) = (limit(call)? as usize, after::<String>(call)?);
    items.sort_by_cached_key(&key);
    items.retain(|item| after.as_ref().is_none_or(|after| key(item) > *after));
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(key);
    Ok(Page { items, next })
}

/// Requested page of a call.
pub(crate) fn request<I: FromStr>(call: &Call) -> Result<PageRequest<I>, ApiError> {
    Ok(PageRequest { limit: limit(call)?, after: after(call)? })
}

/// Query parameter `limit`: 1 to 200, 50 by default.
pub(crate) fn limit(call: &Call) -> Result<u32, ApiError> {
    match call.query("limit") {
        None => Ok(50),
        Some(text) => {
            let limit = text.parse().ok().filter(|limit| (1..=200).contains(limit));
            limit.ok_or_else(|| ApiError::invalid("`limit` must be an integer from 1 to 200."))
        }
    }
}

/// Query parameter `after`: the `next` of the previous page.
pub(crate) fn after<T: FromStr>(call: &Call) -> Result<Option<T>, ApiError> {
    let after = call.query("after").map(str::parse).transpose();
    after.map_err(|_| ApiError::invalid("`after` must be the `next` of an earlier page."))
}
