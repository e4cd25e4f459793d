//! Error pages: the API's sentence and a link to continue.

use axum::response::Response;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_wire::catalogue;

use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::parts;

/// Status, heading and content of an error page.
struct PortalError {
    status: StatusCode,
    title: &'static str,
    body: Markup,
    retry_after: Option<u64>,
}

fn portal_error(error: &ApiError) -> PortalError {
    let (status, retry_after) = match error {
        ApiError::Internal(problem) => {
            tracing::error!(error = %format!("{problem:#}"), "page failed");
            (500, None)
        }
        ApiError::Refused { code, retry_after, .. } => {
            (code.status, retry_after.or(code.retry_after().map(u64::from)))
        }
    };
    let title = match status {
        403 => "Access denied",
        404 => "Not found",
        409 => "Conflict",
        413 => "Request too large",
        429 => "Too many requests",
        503 => "Temporarily unavailable",
        500.. => "Something went wrong",
        _ => "Request failed",
    };
    let body = html! {
        (parts::alert(error.message()))
        p { a href="/repositories" { "Go to the repositories" } }
    };
    PortalError { status: status_of(status), title, body, retry_after }
}

/// Returns the HTTP status of an error.
pub(crate) fn status(error: &ApiError) -> StatusCode {
    status_of(error.code().map_or(500, |code| code.status))
}

fn status_of(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Builds the error page for a signed-in member. An ended session redirects to the sign-in.
pub(crate) fn error_page(ctx: &PageContext, error: &ApiError) -> Response {
    let ended = error.code().is_some_and(|code| std::ptr::eq(code, &catalogue::NOT_SIGNED_IN));
    if ended {
        return see_other(&crate::policy::sign_in(&ctx.path));
    }
    let page_error = portal_error(error);
    let answer = frame::page(
        ctx,
        Sheet { status: page_error.status, ..Sheet::of(page_error.title) },
        &page_error.body,
    );
    with_retry_after(answer, page_error.retry_after)
}

/// Builds the error page for a visitor without a session.
pub(crate) fn guest_error_page(error: &ApiError) -> Response {
    let page_error = portal_error(error);
    let answer = frame::guest_page(
        Sheet { status: page_error.status, ..Sheet::of(page_error.title) },
        &page_error.body,
    );
    with_retry_after(answer, page_error.retry_after)
}

fn with_retry_after(mut answer: Response, retry_after: Option<u64>) -> Response {
    if let Some(seconds) = retry_after {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

/// Builds the page for a form that was submitted before. The page changes nothing and offers to
/// submit the same fields again.
pub(crate) fn already_submitted(ctx: &PageContext) -> Response {
    let body = html! {
        (parts::alert("This form was already submitted, so it was not processed again. Check whether your change was saved."))
        form method="post" action=(ctx.path) {
            (parts::form_tokens(ctx))
            (parts::hidden_fields(&ctx.form))
            p { a.button.go href=(ctx.path) { "Show the current state" } " " button type="submit" { "Submit again" } }
        }
    };
    frame::page(ctx, Sheet { status: StatusCode::CONFLICT, ..Sheet::of("Already submitted") }, &body)
}
