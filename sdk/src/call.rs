//! The calls of the contract for a format, as the host makes them: in Wasm and in tests alike.

use crate::{
    Context, Failure, Format, Intent, Place, Present, Request, Response, Retention, Router, Upkeep,
    VersionId, Versions, places,
};
use serde::Serialize;

/// `format.describe`: a JSON object.
pub fn describe<F: Format>() -> String {
    F::describe().to_json()
}

/// `format.route`: what the request would do.
///
/// # Errors
/// A failure in the format's own words, or of the router: 404 or 405.
pub fn route<F: Format>(request: &Request<'_>) -> Result<Intent, Failure> {
    router::<F>().plan(request)
}

/// `format.check`: whether the request can succeed, as far as can be told before its body.
///
/// # Errors
/// A failure in the format's own words.
pub fn check<F: Format>(cx: &Context, request: &Request<'_>) -> Result<(), Failure> {
    logged(cx, router::<F>().check(cx, request))
}

/// `format.handle`.
///
/// # Errors
/// A failure in the format's own words.
pub fn handle<F: Format>(cx: &Context, request: &Request<'_>) -> Result<Response, Failure> {
    logged(cx, router::<F>().handle(cx, request))
}

/// `upkeep.delete-version`.
///
/// # Errors
/// A failure in the format's own words.
pub fn delete_version<F: Upkeep>(cx: &Context, id: &VersionId) -> Result<(), Failure> {
    logged(cx, F::delete_version(cx, id))
}

/// `upkeep.mark-version`.
///
/// # Errors
/// A failure in the format's own words.
pub fn mark_version<F: Upkeep>(
    cx: &Context,
    id: &VersionId,
    state: &str,
    reason: &str,
) -> Result<(), Failure> {
    logged(cx, F::mark_version(cx, id, state, reason))
}

/// `present.present-version`: a JSON object.
///
/// # Errors
/// A failure in the format's own words.
pub fn present_version<F: Present>(cx: &Context, id: &VersionId) -> Result<String, Failure> {
    logged(cx, F::present_version(cx, id).map(|shown| shown.to_json()))
}

/// `retention.judge-versions`: a JSON array.
///
/// # Errors
/// A failure in the format's own words.
pub fn judge_versions<F: Retention>(cx: &Context, ids: &[VersionId]) -> Result<String, Failure> {
    logged(cx, F::judge_versions(cx, ids).and_then(|facts| json(&facts)))
}

/// `retention.list-unshown`: a JSON object.
///
/// # Errors
/// A failure in the format's own words.
pub fn list_unshown<F: Retention>(cx: &Context, after: &str) -> Result<String, Failure> {
    logged(cx, F::list_unshown(cx, after).and_then(|page| json(&page)))
}

/// `versions.compare-versions`.
pub fn compare_versions<F: Versions>(versions: &[String]) -> Vec<Place> {
    places(versions, F::version)
}

fn json<T: Serialize>(value: &T) -> Result<String, Failure> {
    Ok(serde_json::to_string(value)?)
}

fn router<F: Format>() -> Router {
    let mut router = Router::default();
    F::routes(&mut router);
    router
}

/// What went wrong inside goes to the log; the answer does not tell it.
fn logged<T>(cx: &Context, result: Result<T, Failure>) -> Result<T, Failure> {
    if let Err(Failure { internal: Some(text), .. }) = &result {
        cx.log().error(text, &[]);
    }
    result
}
