//! The step that reads `Packhouse-Published-At`. The header states that another server published
//! the same package earlier, and when. No format's own protocol can express this.

use http::HeaderName;
use jiff::Timestamp;
use packhouse_identity::permissions::Permission;
use packhouse_runtime::{Action, Intent, Moved};
use packhouse_store::RepositoryRow;
use packhouse_wire::catalogue;

use crate::error_response::HttpError;
use crate::repository_request::RepositoryRequest;

/// Header whose value is a time in RFC 3339, or [`UNKNOWN`].
const HEADER: HeaderName = HeaderName::from_static("packhouse-published-at");
/// Value that a client sends if it does not know the time.
const UNKNOWN: &[u8] = b"unknown";
/// Tolerance for a client's clock that is fast, in ms.
const MAX_CLOCK_AHEAD_MS: i64 = 60_000;

/// Returns the earlier publication that the client states. Returns `None` without the header, and
/// for requests that do not publish. Fails with 403 unless the credential's owner may manage this
/// repository: other members can publish only with the current time. Fails with 400 for a time
/// that is malformed, before 1970 or in the future.
pub(crate) fn moved(request: &RepositoryRequest<'_>, intent: &Intent) -> Result<Option<Moved>, HttpError> {
    let Some(value) = request.parts.headers.get(HEADER).filter(|_| intent.action == Action::Publish) else {
        return Ok(None);
    };
    // These are the permissions of the member who signed in or owns the token. A key without an
    // owner may not manage repositories.
    let manages = request.principal.permissions().is_some_and(|permissions| {
        let manages_here = |row: &RepositoryRow| permissions.rights(row.id, &row.name).manage;
        permissions.holds(Permission::ManageRepositories) || request.found().is_some_and(manages_here)
    });
    if !manages {
        return Err(HttpError::of(&catalogue::PUBLISHED_AT_NOT_PERMITTED));
    }
    if value.as_bytes() == UNKNOWN {
        return Ok(Some(Moved::default()));
    }
    let published_at = value.to_str().ok().and_then(|text| parsed(text, request.now));
    let published_at = published_at.ok_or_else(|| HttpError::of(&catalogue::INVALID_PUBLISHED_AT))?;
    Ok(Some(Moved { published_at: Some(published_at) }))
}

fn parsed(text: &str, now: i64) -> Option<u64> {
    let at = text.parse::<Timestamp>().ok()?.as_millisecond();
    if at > now.saturating_add(MAX_CLOCK_AHEAD_MS) {
        return None;
    }
    u64::try_from(at.min(now)).ok()
}

#[cfg(test)]
mod tests {
    use super::parsed;

    #[test]
    fn a_time_is_one_of_the_past() {
        let now = 1_600_000_000_000;
        for (text, expected) in [
            ("2020-01-02T03:04:05Z", Some(1_577_934_245_000)),
            ("2020-01-02T05:04:05.678+02:00", Some(1_577_934_245_678)),
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2020-09-13T12:27:10Z", Some(now as u64)),
            ("2020-09-13T12:28:00Z", None),
            ("1969-12-31T23:59:59Z", None),
            ("2020-01-02", None),
            ("2020-01-02T03:04:05", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(parsed(text, now), expected, "{text}");
        }
    }
}
