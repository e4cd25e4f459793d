//! The key of a response in every cache of this crate.

use packhouse_store::{CacheName, RepositoryId};

/// A proxy repository and the name of a request to its upstream.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct CacheKey {
    pub repository: RepositoryId,
    pub name: CacheName,
}
