//! Lists in pages: `?limit=&after=` → `{items, next}`.

use std::str::FromStr;

use serde::Serialize;
use utoipa::ToSchema;

use crate::call::Call;
use crate::error::ApiError;
use crate::operations::{Listed, PageRequest};

/// One page. `next` is what `after` must be for the one that follows; null on the last.
#[derive(Serialize, ToSchema)]
pub(crate) struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Where the next begins.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// The page of these rows, each by its id and its view.
    pub(crate) fn of<R>(listed: Listed<R>, id: impl Fn(&R) -> String, view: impl Fn(R) -> T) -> Page<T> {
        let Listed { rows, more } = listed;
        let next = rows.last().filter(|_| more).map(id);
        Page { items: rows.into_iter().map(view).collect(), next }
    }

    /// The same where a row may have no view at present.
    pub(crate) fn try_of<R, E>(
        listed: Listed<R>,
        id: impl Fn(&R) -> String,
        view: impl Fn(R) -> Result<T, E>,
    ) -> Result<Page<T>, E> {
        let Page { items, next } = Page::of(listed, id, view);
        Ok(Page { items: items.into_iter().collect::<Result<_, E>>()?, next })
    }
}

/// The page that a call wants of a list that is in memory as a whole, in the order of a key that no two items share.
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

/// The page that a call wants.
pub(crate) fn request<I: FromStr>(call: &Call) -> Result<PageRequest<I>, ApiError> {
    Ok(PageRequest { limit: limit(call)?, after: after(call)? })
}

/// `limit`: 1 to 200, 50 where none is given.
pub(crate) fn limit(call: &Call) -> Result<u32, ApiError> {
    match call.query("limit") {
        None => Ok(50),
        Some(text) => {
            let limit = text.parse().ok().filter(|limit| (1..=200).contains(limit));
            limit.ok_or_else(|| ApiError::invalid("`limit` is a whole number from 1 to 200."))
        }
    }
}

/// `after`: what an earlier page gave as `next`.
pub(crate) fn after<T: FromStr>(call: &Call) -> Result<Option<T>, ApiError> {
    let after = call.query("after").map(str::parse).transpose();
    after.map_err(|_| ApiError::invalid("`after` is what an earlier page gave as `next`."))
}
