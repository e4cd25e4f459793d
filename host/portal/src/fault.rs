//! Pages that say why there is no other: the API's sentence, and where to go on.

use axum::response::Response;
use http::header::RETRY_AFTER;
use http::{HeaderValue, StatusCode};
use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_wire::catalogue;

use crate::frame::{self, Sheet};
use crate::parts;
use crate::seat::{Seat, see_other};

/// What a page has instead of its content.
struct Told {
    status: StatusCode,
    title: &'static str,
    body: Markup,
    retry_after: Option<u64>,
}

fn told(error: &ApiError) -> Told {
    let (status, retry_after) = match error {
        ApiError::Internal(problem) => {
            tracing::error!(error = %format!("{problem:#}"), "a page failed");
            (500, None)
        }
        ApiError::Refused { code, retry_after, .. } => {
            (code.status, retry_after.or(code.retry_after().map(u64::from)))
        }
    };
    let title = match status {
        403 => "Not allowed",
        404 => "Not found",
        409 => "Not possible now",
        413 => "Too large",
        429 => "Too many requests",
        503 => "Not available at present",
        500.. => "Something went wrong",
        _ => "Not possible",
    };
    let body = html! {
        (parts::alert(error.message()))
        p { a href="/repositories" { "Go to the repositories" } }
    };
    Told { status: status_of(status), title, body, retry_after }
}

/// The status of a refusal.
pub(crate) fn status(error: &ApiError) -> StatusCode {
    status_of(error.code().map_or(500, |code| code.status))
}

fn status_of(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// For who is signed in.
pub(crate) fn at(seat: &Seat, error: &ApiError) -> Response {
    let ended = error.code().is_some_and(|code| std::ptr::eq(code, &catalogue::NOT_SIGNED_IN));
    if ended {
        return see_other(&crate::policy::sign_in(&seat.path));
    }
    let told = told(error);
    let answer = frame::page(seat, Sheet { status: told.status, ..Sheet::of(told.title) }, &told.body);
    patient(answer, told.retry_after)
}

/// For who is not.
pub(crate) fn alone(error: &ApiError) -> Response {
    let told = told(error);
    let answer = frame::lone(Sheet { status: told.status, ..Sheet::of(told.title) }, &told.body);
    patient(answer, told.retry_after)
}

fn patient(mut answer: Response, retry_after: Option<u64>) -> Response {
    if let Some(seconds) = retry_after {
        answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

/// For a form that was sent before: nothing was done, and what was filled in can be sent anew.
pub(crate) fn sent_before(seat: &Seat) -> Response {
    let body = html! {
        (parts::alert("This form was sent before, and is not done twice. See whether what it asked for was done."))
        form method="post" action=(seat.path) {
            (parts::guard(seat))
            (parts::carried(&seat.form))
            p { a.button.go href=(seat.path) { "See what there is now" } " " button type="submit" { "Send it again" } }
        }
    };
    frame::page(seat, Sheet { status: StatusCode::CONFLICT, ..Sheet::of("Sent before") }, &body)
}
