//! What an upstream did, in the refusal that the client gets: a plugin knows only that something is
//! not there, or cannot be had.

use http::HeaderValue;
use http::header::RETRY_AFTER;
use packhouse_runtime::Failure;
use packhouse_store::RepositoryId;
use packhouse_upstream::UpstreamReport;
use packhouse_wire::catalogue;

use crate::error_response::HttpError;

/// The refusal of a call that failed. A 404 names the upstream that refused; a 502 is a 429 where
/// an upstream limits the rate of requests.
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

/// The seconds to wait for the upstream that limits the rate, where one does and says so.
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
            .in_words(&format!(
                "The upstream repository gets too many requests (status 429); it is not asked again for {wait} s."
            ))
            .and_header(RETRY_AFTER, HeaderValue::from(wait)),
        None => refused.in_words("The upstream repository gets too many requests (status 429); try again later."),
    }
}
