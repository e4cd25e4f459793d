//! Identifiers of rows: 63-bit numbers that increase with the time of creation. So their order is
//! the order of creation, and the database needs no counter.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::error::StoreError;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl FromStr for $name {
            type Err = StoreError;

            /// Returns `Invalid` unless the text is a number in the format of `Display`.
            fn from_str(text: &str) -> Result<$name, StoreError> {
                match text.parse::<i64>() {
                    Ok(id) if id.to_string() == text => Ok($name(id)),
                    _ => Err(StoreError::Invalid(format!("not an identifier: {text:?}"))),
                }
            }
        }
    )*};
}

ids! {
    /// Id of an organization, unique in the database.
    OrganizationId,
    /// Id of a repository, unique in the database.
    RepositoryId,
    /// Id of a member of an organization.
    MemberId,
    /// Id of a token or service key.
    TokenId,
    /// Id of a team of members.
    TeamId,
    /// Id of an API token.
    ApiTokenId,
    /// Id of an owner of access keys: a subscriber or a group of subscribers.
    KeyOwnerId,
    /// Id of an access key.
    AccessKeyId,
    /// Id of a deletion that can be undone.
    TrashId,
    /// Id of a retention policy.
    PolicyId,
    /// Id of a rule about versions.
    RuleId,
    /// Id of an exception to a rule.
    ExceptionId,
    /// Id of a run of a retention policy.
    RunId,
    /// Id of a set of recorded plugin calls.
    RecordingSetId,
    /// Id of a recorded call.
    RecordingId,
    /// Id of a trusted publisher.
    PublisherId,
    /// Id of a webhook, which receives events.
    WebhookId,
    /// Id of the delivery of an event to a webhook.
    DeliveryId,
    /// Id of a signed statement about a version.
    AttestationId,
}

/// Name of a request to an upstream: SHA-256 of everything that its response depends on.
pub type CacheName = [u8; 32];

/// Bits of an identifier below the seconds since 1970.
const BELOW_SECONDS: u32 = 31;

/// Returns a new identifier. In each second a process starts at a random number in the lower half
/// of the range and counts up. Its own identifiers never collide. Identifiers of two processes
/// collide once in days of full load, and the database rejects the second one.
pub(crate) fn new_id() -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let start = (now_ms() / 1000) << BELOW_SECONDS;
    let fresh = start | i64::from(rand::random::<u32>() >> (33 - BELOW_SECONDS));
    let next = |last: i64| if last < start { fresh } else { last.saturating_add(1) };
    match LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last))) {
        Ok(last) | Err(last) => next(last),
    }
}

/// Lower bound of identifiers made at this time (ms since 1970) or later.
pub(crate) fn first_id_at(at: i64) -> i64 {
    const SECONDS: i64 = i64::MAX >> BELOW_SECONDS;
    at.div_euclid(1000).clamp(0, SECONDS) << BELOW_SECONDS
}

/// Current time in milliseconds since 1970-01-01 UTC.
#[must_use]
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_rise() {
        let ids: Vec<i64> = (0..10_000).map(|_| new_id()).collect();
        assert!(ids.iter().zip(ids.iter().skip(1)).all(|(one, next)| one < next));
        assert!(ids.iter().all(|id| *id > 0));
    }

    #[test]
    fn the_order_of_identifiers_is_that_of_time() {
        let before = now_ms();
        let id = new_id();
        assert!(first_id_at(before) <= id && id < first_id_at(now_ms() + 2000));
        assert_eq!(first_id_at(-1), 0);
        assert!(first_id_at(i64::MAX) > id);
    }

    #[test]
    fn identifiers_are_read_as_they_are_written() {
        assert_eq!("12".parse::<TokenId>().unwrap(), TokenId(12));
        for text in ["", "012", "+12", "1a", "99999999999999999999"] {
            assert!(text.parse::<TokenId>().is_err(), "{text}");
        }
    }
}
