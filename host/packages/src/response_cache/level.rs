//! One level of the response cache: entries of one form, within a bound of its own.

use std::sync::Arc;

use packhouse_runtime::Looked;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::weighted_cache::weighted_cache;

/// By what a level knows a request: as far as a plugin looked at it.
pub(super) trait Keys {
    /// The key of all requests that are equal so far.
    fn up_to(&self, looked: Looked) -> impl AsRef<[u8]>;
}

/// What an entry that says how far to look costs besides its key.
const FURTHER_BYTES: u64 = 256;

/// What lies under a key.
enum Kept<T> {
    Entry(Arc<T>),
    /// Under what all responses of a path depend on: how much further to look for each.
    Further(Looked),
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Entry(entry) => Self::Entry(Arc::clone(entry)),
            Self::Further(looked) => Self::Further(*looked),
        }
    }
}

/// See the module.
pub(super) struct Level<T> {
    cache: Cache<Box<[u8]>, Kept<T>, Weight<T>>,
}

impl<T> Level<T> {
    /// An empty one of at most `total` bytes, of entries that weigh what `weigh` says besides their keys; about `items` of them.
    pub(super) fn new(items: usize, total: u64, weigh: impl Fn(&T) -> u64 + Send + Sync + 'static) -> Self {
        Self { cache: weighted_cache(items, total, Weight(Arc::new(weigh))) }
    }

    /// The entry for this request.
    pub(super) fn get(&self, key: &impl Keys) -> Option<Arc<T>> {
        let further = match self.cache.get(key.up_to(Looked::AtPath).as_ref())? {
            Kept::Entry(entry) => return Some(entry),
            Kept::Further(looked) => looked,
        };
        match self.cache.get(key.up_to(further).as_ref())? {
            Kept::Entry(entry) => Some(entry),
            Kept::Further(_) => None,
        }
    }

    /// How far was looked for requests of this path.
    pub(super) fn known(&self, key: &impl Keys) -> Looked {
        match self.cache.peek(key.up_to(Looked::AtPath).as_ref()) {
            Some(Kept::Further(known)) => known,
            _ => Looked::AtPath,
        }
    }

    /// Remembers how far to look for requests of this path: so far, or as far as was looked before for another of it.
    pub(super) fn look(&self, key: &impl Keys, looked: Looked) -> Looked {
        let known = self.known(key);
        if looked > known {
            self.cache.insert(key.up_to(Looked::AtPath).as_ref().into(), Kept::Further(looked));
        }
        looked.max(known)
    }

    /// Keeps an entry for all requests that are equal so far.
    pub(super) fn insert(&self, key: &impl Keys, looked: Looked, entry: Arc<T>) {
        self.cache.insert(key.up_to(looked).as_ref().into(), Kept::Entry(entry));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.cache.len()
    }

    #[cfg(test)]
    pub(super) fn weight(&self) -> u64 {
        self.cache.weight()
    }
}

/// Bytes of an entry besides its key.
struct Weight<T>(Arc<dyn Fn(&T) -> u64 + Send + Sync>);

impl<T> Clone for Weight<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Weighter<Box<[u8]>, Kept<T>> for Weight<T> {
    fn weight(&self, key: &Box<[u8]>, kept: &Kept<T>) -> u64 {
        let entry = match kept {
            Kept::Entry(entry) => (self.0)(entry),
            Kept::Further(_) => FURTHER_BYTES,
        };
        entry + key.len() as u64
    }
}
