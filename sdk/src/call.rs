//! Entry points that the host calls on a format, both in Wasm and in tests.

use crate::{
    Context, Failure, Format, Intent, Place, Present, Request, Response, Retention, Router, Upkeep,
    VersionId, Versions, places,
};
use serde::Serialize;

/// `format.describe`: returns a JSON object.
pub fn describe<F: Format>() -> String {
    F::describe().to_json()
}

/// `format.route`: returns what the request would do.
///
/// # Errors
/// A failure of the format, or 404 or 405 from the router.
pub fn route<F: Format>(request: &Request<'_>) -> Result<Intent, Failure> {
    router::<F>().plan(request)
}

/// `format.check`: checks before the body arrives whether the request can succeed.
///
/// # Errors
/// A failure in the format's own words.
pub fn check<F: Format>(cx: &Context, request: &Request<'_>) -> Result<(), Failure> {
    logged(cx, router::<F>().check(cx, request))
}

/// `format.handle`: answers the request.
///
/// # Errors
/// A failure in the format's own words.
pub fn handle<F: Format>(cx: &Context, request: &Request<'_>) -> Result<Response, Failure> {
    logged(cx, router::<F>().handle(cx, request))
}

/// `upkeep.delete-version`: deletes a version.
///
/// # Errors
/// A failure in the format's own words.
pub fn delete_version<F: Upkeep>(cx: &Context, id: &VersionId) -> Result<(), Failure> {
    logged(cx, F::delete_version(cx, id))
}

/// `upkeep.mark-version`: sets the state of a version.
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

/// `present.present-version`: returns a JSON object.
///
/// # Errors
/// A failure in the format's own words.
pub fn present_version<F: Present>(cx: &Context, id: &VersionId) -> Result<String, Failure> {
    logged(cx, F::present_version(cx, id).map(|presentation| presentation.to_json()))
}

/// `retention.judge-versions`: returns a JSON array.
///
/// # Errors
/// A failure in the format's own words.
pub fn judge_versions<F: Retention>(cx: &Context, ids: &[VersionId]) -> Result<String, Failure> {
    logged(cx, F::judge_versions(cx, ids).and_then(|facts| json(&facts)))
}

/// `retention.list-unshown`: returns a JSON object.
///
/// # Errors
/// A failure in the format's own words.
pub fn list_unshown<F: Retention>(cx: &Context, after: &str) -> Result<String, Failure> {
    logged(cx, F::list_unshown(cx, after).and_then(|page| json(&page)))
}

/// `versions.compare-versions`: returns the position of each version.
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

/// Logs the internal text of a failure. The response does not contain it.
fn logged<T>(cx: &Context, result: Result<T, Failure>) -> Result<T, Failure> {
    if let Err(Failure { internal: Some(text), .. }) = &result {
        cx.log().error(text, &[]);
    }
    result
}
