//! Records as a plugin reads them.

use crate::Error;
use serde::de::DeserializeOwned;

/// Record: its key, its value, and the revision of the commit that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<T = Vec<u8>> {
    /// Key of 1 to 1,024 bytes.
    pub key: String,
    /// Value; at most 1 MiB if it is bytes.
    pub value: T,
    /// Revision of the commit that wrote the record. A repository never uses a revision twice, not
    /// even if a key is removed and written again.
    pub revision: u64,
}

impl Entry {
    /// Parses the value as JSON.
    ///
    /// # Errors
    /// [`Error::Other`] if the value is not a JSON document of this type.
    pub fn json<T: DeserializeOwned>(self) -> Result<Entry<T>, Error> {
        let value = serde_json::from_slice(&self.value)
            .map_err(|error| Error::Other(format!("record {}: {error}", self.key)))?;
        Ok(Entry { key: self.key, value, revision: self.revision })
    }
}
