//! Identifiers of rows: 63-bit numbers that rise with the time at which they were made, so that their order is the order of
//! creation and no database has to count.

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

            /// `Invalid` unless it is a number as `Display` writes it.
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
    /// An organization.
    OrganizationId,
    /// A repository.
    RepositoryId,
    /// A member of an organization.
    MemberId,
    /// A token or service key.
    TokenId,
    /// A subscriber, or a group of them: who holds access keys.
    KeyOwnerId,
    /// An access key.
    AccessKeyId,
    /// Something deleted that can be brought back.
    TrashId,
    /// A policy of retention.
    PolicyId,
    /// A rule over versions.
    RuleId,
    /// What passes one nevertheless.
    ExceptionId,
    /// A run of a policy of retention.
    RunId,
    /// What is recorded of plugins' calls.
    RecordingSetId,
    /// A recorded call.
    RecordingId,
    /// A trusted publisher.
    PublisherId,
    /// An address that is told of events.
    WebhookId,
    /// An event on its way to one of them.
    DeliveryId,
    /// A trial of a component.
    TrialId,
    /// A signed statement about a version.
    AttestationId,
}

/// The name of what was asked of an upstream: SHA-256 of all that its answer depends on.
pub type CacheName = [u8; 32];

/// The bits of an identifier below the seconds since 1970.
const BELOW_SECONDS: u32 = 31;

/// A new identifier: in each second this process counts on from a place chosen at random, half of the room at most. So its own
/// never meet, and those of two processes once in days of full load; the database refuses the second of them.
pub(crate) fn new_id() -> i64 {
    static LAST: AtomicI64 = AtomicI64::new(0);
    let start = (now_ms() / 1000) << BELOW_SECONDS;
    let fresh = start | i64::from(rand::random::<u32>() >> (33 - BELOW_SECONDS));
    let next = |last: i64| if last < start { fresh } else { last.saturating_add(1) };
    match LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last))) {
        Ok(last) | Err(last) => next(last),
    }
}

/// No identifier that was made at this time (ms since 1970) or later is smaller.
pub(crate) fn first_id_at(at: i64) -> i64 {
    const SECONDS: i64 = i64::MAX >> BELOW_SECONDS;
    at.div_euclid(1000).clamp(0, SECONDS) << BELOW_SECONDS
}

/// Milliseconds since 1970-01-01 UTC.
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
