//! Lists in pages: `?limit=&after=` → `{items, next}`.

use serde::Serialize;
use utoipa::ToSchema;

use super::call::Call;
use super::error::ApiError;

/// One page. `next` is what `after` must be for the one that follows; null on the last.
#[derive(Serialize, ToSchema)]
pub(crate) struct Page<T> {
    /// What is on it.
    pub items: Vec<T>,
    /// Where the next begins.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// A page of at most `limit` from a list that was read one further.
    pub(crate) fn cut<R>(
        mut rows: Vec<R>,
        limit: u32,
        id: impl Fn(&R) -> String,
        view: impl Fn(R) -> T,
    ) -> Page<T> {
        let limit = limit as usize;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| more).map(id);
        Page { items: rows.into_iter().map(view).collect(), next }
    }
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
pub(crate) fn after<T: std::str::FromStr>(call: &Call) -> Result<Option<T>, ApiError> {
    let after = call.query("after").map(str::parse).transpose();
    after.map_err(|_| ApiError::invalid("`after` is what an earlier page gave as `next`."))
}
