//! A record as it is read.

use crate::Error;
use serde::de::DeserializeOwned;

/// A record: its key, what it holds, and the revision of the commit that put it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<T = Vec<u8>> {
    /// 1 to 1,024 bytes.
    pub key: String,
    /// At most 1 MiB where it is bytes.
    pub value: T,
    /// Never the same twice in a repository, not for a key put again after its removal either.
    pub revision: u64,
}

impl Entry {
    /// Its value, read as JSON.
    ///
    /// # Errors
    /// [`Error::Other`] when it is not such a document.
    pub fn json<T: DeserializeOwned>(self) -> Result<Entry<T>, Error> {
        let value = serde_json::from_slice(&self.value)
            .map_err(|error| Error::Other(format!("record {}: {error}", self.key)))?;
        Ok(Entry { key: self.key, value, revision: self.revision })
    }
}
