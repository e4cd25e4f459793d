//! Adds the upstream's refusal to a plugin's failure, because the plugin knows only that a file is
//! missing or unavailable.

use http::HeaderValue;
use http::header::RETRY_AFTER;
use packhouse_runtime::Failure;
use packhouse_store::RepositoryId;
use packhouse_upstream::UpstreamReport;
use packhouse_wire::catalogue;

use crate::error_response::HttpError;

/// Returns the error response of a failed call. A 404 names the upstream that refused. A 502
/// becomes a 429 if an upstream limits the request rate.
pub(crate) fn explain(mut failure: Failure, reports: &[(RepositoryId, UpstreamReport)]) -> HttpError {
    match failure.status {
        404 => {
            if let (Some(refusal), Some(problem)) = (refusal(reports), failure.problems.first_mut()) {
                problem.message = format!("{}: {refusal}", problem.message.trim_end_matches('.'));
            }
            HttpError::from(failure)
        }
        502 => match throttle(reports) {
            Some(wait) => too_many_requests(wait),
            None => HttpError::from(failure),
        },
        _ => HttpError::from(failure),
    }
}

fn refusal(reports: &[(RepositoryId, UpstreamReport)]) -> Option<&str> {
    reports.iter().find_map(|(_, report)| match report {
        UpstreamReport::Refused(refusal) => Some(&**refusal),
        UpstreamReport::Throttled(_) => None,
    })
}

/// Returns the seconds to wait for an upstream that limits the request rate. The inner `None` means
/// that the upstream did not state a time. The outer `None` means that no upstream limits the rate.
fn throttle(reports: &[(RepositoryId, UpstreamReport)]) -> Option<Option<u64>> {
    reports.iter().find_map(|(_, report)| match report {
        UpstreamReport::Throttled(wait) => Some(*wait),
        UpstreamReport::Refused(_) => None,
    })
}

fn too_many_requests(wait: Option<u64>) -> HttpError {
    let refused = HttpError::of(&catalogue::RATE_LIMITED);
    match wait {
        Some(wait) => refused
            .with_message(&format!(
                "The upstream repository received too many requests (status 429); the server does not \
                 contact it again for {wait} s."
            ))
            .and_header(RETRY_AFTER, HeaderValue::from(wait)),
        None => refused.with_message(
            "The upstream repository received too many requests (status 429); try again later.",
        ),
    }
}
