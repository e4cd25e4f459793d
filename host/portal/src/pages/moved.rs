//! Paths below `/organization` that pages had before. They lead to the paths of today.

use axum::response::Response;

use super::Routes;
use crate::page_context::{PageContext, see_other};
use crate::visit;

pub(super) fn routes() -> Routes {
    let paths = [
        "/organization/policies",
        "/organization/policies/{id}",
        "/organization/retention",
        "/organization/retention/{id}",
        "/organization/webhooks",
        "/organization/webhooks/{id}",
    ];
    paths.map(|path| (path, visit::page(|ctx| async move { Ok(moved(&ctx)) }))).into()
}

/// Redirects to the same path without its first segment, with the same query.
fn moved(ctx: &PageContext) -> Response {
    let path = ctx.path.strip_prefix("/organization").unwrap_or("/settings");
    if ctx.query.0.is_empty() {
        return see_other(path);
    }
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&ctx.query.0).finish();
    see_other(&format!("{path}?{query}"))
}
