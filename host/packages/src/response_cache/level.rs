//! One level of the response cache. It contains entries of one form and has its own memory limit.

use std::sync::Arc;

use packhouse_runtime::Looked;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::weighted_cache::weighted_cache;

/// The keys of a request: one for each part of the request that a plugin may look at.
pub(super) trait Keys {
    /// Returns the key that all requests share that are equal in this part.
    fn up_to(&self, looked: Looked) -> impl AsRef<[u8]>;
}

/// Memory of a pointer in addition to its key, in bytes.
const POINTER_BYTES: u64 = 256;

/// Value that is stored under a key.
enum LevelValue<T> {
    Entry(Arc<T>),
    /// A pointer, stored under the key of a path. It says which part of the request belongs to the
    /// keys of the path's entries.
    Pointer(Looked),
}

impl<T> Clone for LevelValue<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Entry(entry) => Self::Entry(Arc::clone(entry)),
            Self::Pointer(looked) => Self::Pointer(*looked),
        }
    }
}

/// One level of the response cache.
pub(super) struct Level<T> {
    cache: Cache<Box<[u8]>, LevelValue<T>, EntryWeight<T>>,
}

impl<T> Level<T> {
    /// Creates an empty level for at most `total` bytes and about `items` entries. `weigh` returns
    /// the size of an entry without its key, in bytes.
    pub(super) fn new(items: usize, total: u64, weigh: impl Fn(&T) -> u64 + Send + Sync + 'static) -> Self {
        Self { cache: weighted_cache(items, total, EntryWeight(Arc::new(weigh))) }
    }

    pub(super) fn get(&self, key: &impl Keys) -> Option<Arc<T>> {
        let further = match self.cache.get(key.up_to(Looked::AtPath).as_ref())? {
            LevelValue::Entry(entry) => return Some(entry),
            LevelValue::Pointer(looked) => looked,
        };
        match self.cache.get(key.up_to(further).as_ref())? {
            LevelValue::Entry(entry) => Some(entry),
            LevelValue::Pointer(_) => None,
        }
    }

    /// Returns the part that plugins have looked at so far in requests for this path.
    pub(super) fn recorded_looked(&self, key: &impl Keys) -> Looked {
        match self.cache.peek(key.up_to(Looked::AtPath).as_ref()) {
            Some(LevelValue::Pointer(known)) => known,
            _ => Looked::AtPath,
        }
    }

    /// Records the part that the plugin looked at for this path. Returns this part, or the recorded
    /// part if that is larger.
    pub(super) fn record_looked(&self, key: &impl Keys, looked: Looked) -> Looked {
        let known = self.recorded_looked(key);
        if looked > known {
            self.cache.insert(key.up_to(Looked::AtPath).as_ref().into(), LevelValue::Pointer(looked));
        }
        looked.max(known)
    }

    /// Caches an entry for all requests that are equal in this part.
    pub(super) fn insert(&self, key: &impl Keys, looked: Looked, entry: Arc<T>) {
        self.cache.insert(key.up_to(looked).as_ref().into(), LevelValue::Entry(entry));
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

struct EntryWeight<T>(Arc<dyn Fn(&T) -> u64 + Send + Sync>);

impl<T> Clone for EntryWeight<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Weighter<Box<[u8]>, LevelValue<T>> for EntryWeight<T> {
    fn weight(&self, key: &Box<[u8]>, value: &LevelValue<T>) -> u64 {
        let entry = match value {
            LevelValue::Entry(entry) => (self.0)(entry),
            LevelValue::Pointer(_) => POINTER_BYTES,
        };
        entry + key.len() as u64
    }
}
