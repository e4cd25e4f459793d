//! Identifiers of rows: 63-bit numbers that rise with the time at which they were made, so that their order is the order of
//! creation and no database has to count.

use std::fmt;
use std::str::FromStr;

use crate::error::StoreError;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
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
}

/// A new identifier: milliseconds since 1970, then 20 random bits.
pub(crate) fn new_id() -> i64 {
    (now_ms() << 20) | i64::from(rand::random::<u32>() & 0xf_ffff)
}

/// Milliseconds since 1970-01-01 UTC.
#[must_use]
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
