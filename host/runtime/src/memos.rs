//! Pieces of documents that plugins made, remembered until a commit touches what was read for them.
//!
//! All plugins and repositories share one bound of memory. What is over it goes where most is: the piece that was used least lately of
//! the repository that takes most. So who asks for every package of one repository displaces that repository's pieces alone.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hashlink::LruCache;
use packhouse_store::{Blob, Dependencies, RepositoryId, Seen, Store};

/// Bytes of all pieces.
const TOTAL_BYTES: usize = 32 << 20;
/// Bytes of one piece; the contract says so.
pub(crate) const PIECE_BYTES: usize = 1 << 20;
/// What a piece costs besides its name, its bytes and what it depends on.
const OVERHEAD: usize = 256;

/// A piece.
pub(crate) struct Piece {
    /// What the plugin noted of it.
    pub(crate) note: Bytes,
    /// Its bytes, in memory. Its digest is computed once.
    pub(crate) blob: Blob,
    /// What was read of its repository.
    pub(crate) dependencies: Dependencies,
    /// Those of its repository.
    settings: Arc<str>,
    /// The revision up to which nothing of it was changed.
    good_at: AtomicU64,
}

/// Of one component the pieces of one repository.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
struct Owner {
    plugin: u32,
    repository: RepositoryId,
}

/// See the module.
pub(crate) struct Memos {
    total: usize,
    plugins: AtomicU32,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    bytes: usize,
    shares: HashMap<Owner, Share>,
    /// The owners, each with the bytes of its pieces.
    sizes: BTreeSet<(usize, Owner)>,
}

/// What one owner has.
struct Share {
    bytes: usize,
    pieces: LruCache<Box<str>, Arc<Piece>>,
}

/// The pieces of one component.
#[derive(Clone)]
pub(crate) struct PluginMemos {
    memos: Arc<Memos>,
    plugin: u32,
}

impl Default for Memos {
    fn default() -> Memos {
        Memos::within(TOTAL_BYTES)
    }
}

impl Memos {
    fn within(total: usize) -> Memos {
        Memos { total, plugins: AtomicU32::new(0), held: Mutex::default() }
    }

    /// For a component that was loaded: it finds none of another's pieces.
    pub(crate) fn for_plugin(self: &Arc<Self>) -> PluginMemos {
        PluginMemos { memos: Arc::clone(self), plugin: self.plugins.fetch_add(1, Ordering::Relaxed) }
    }

    /// Forgets all pieces: something changed that no commit tells of.
    pub(crate) fn forget(&self) {
        *self.held() = Held::default();
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PluginMemos {
    /// The piece of this name, if it was made under these settings and nothing that was read for it has changed.
    pub(crate) fn find(
        &self,
        store: &Store,
        seen: Seen,
        settings: &Arc<str>,
        name: &str,
    ) -> Option<Arc<Piece>> {
        let piece = self.memos.held().shares.get_mut(&self.owner(seen))?.pieces.get(name).cloned()?;
        let same_settings = Arc::ptr_eq(&piece.settings, settings) || piece.settings == *settings;
        (same_settings && piece.holds(store, seen)).then_some(piece)
    }

    /// Remembers a piece, note and bytes, that was made by a call which saw the repository as `seen` says.
    pub(crate) fn remember(
        &self,
        seen: Seen,
        settings: Arc<str>,
        name: &str,
        (note, blob): (Bytes, Blob),
        dependencies: Dependencies,
    ) {
        let good_at = AtomicU64::new(seen.revision);
        let piece = Piece { note, blob, dependencies, settings, good_at };
        if piece.bytes() <= PIECE_BYTES {
            self.memos.held().insert(self.owner(seen), name.into(), Arc::new(piece), self.memos.total);
        }
    }

    fn owner(&self, seen: Seen) -> Owner {
        Owner { plugin: self.plugin, repository: seen.repository }
    }
}

impl Piece {
    fn holds(&self, store: &Store, seen: Seen) -> bool {
        let good_at = self.good_at.load(Ordering::Relaxed);
        // What was made later than this request saw its repository is good for it as well.
        if good_at >= seen.revision {
            return true;
        }
        let holds = self.dependencies == Dependencies::default()
            || store.unchanged(seen.repository, good_at, seen.revision, &self.dependencies);
        if holds {
            self.good_at.fetch_max(seen.revision, Ordering::Relaxed);
        }
        holds
    }

    fn bytes(&self) -> usize {
        usize::try_from(self.blob.size()).unwrap_or(usize::MAX).saturating_add(self.note.len())
    }

    fn weight(&self, name: &str) -> usize {
        OVERHEAD + name.len() + self.bytes() + self.dependencies.bytes()
    }
}

impl Held {
    fn insert(&mut self, owner: Owner, name: Box<str>, piece: Arc<Piece>, total: usize) {
        let weight = piece.weight(&name);
        let share = self.shares.entry(owner).or_insert_with(Share::new);
        let before = share.bytes;
        let replaced = share.pieces.remove(&name).map_or(0, |replaced| replaced.weight(&name));
        share.bytes = share.bytes.saturating_sub(replaced) + weight;
        share.pieces.insert(name, piece);
        let now = share.bytes;
        self.resize(owner, before, now);
        while self.bytes > total && self.displace() {}
    }

    /// Forgets what the owner of most has used least lately; false where there is nothing.
    fn displace(&mut self) -> bool {
        let Some(&(before, owner)) = self.sizes.last() else { return false };
        let Some(share) = self.shares.get_mut(&owner) else { return false };
        if let Some((name, piece)) = share.pieces.remove_lru() {
            share.bytes = share.bytes.saturating_sub(piece.weight(&name));
        }
        if share.pieces.is_empty() {
            share.bytes = 0;
        }
        let now = share.bytes;
        self.resize(owner, before, now);
        if now == 0 {
            self.shares.remove(&owner);
        }
        true
    }

    fn resize(&mut self, owner: Owner, before: usize, now: usize) {
        self.sizes.remove(&(before, owner));
        if now > 0 {
            self.sizes.insert((now, owner));
        }
        self.bytes = self.bytes.saturating_sub(before) + now;
    }
}

impl Share {
    fn new() -> Share {
        Share { bytes: 0, pieces: LruCache::new_unbounded() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(repository: i64, revision: u64) -> Seen {
        Seen { repository: RepositoryId(repository), revision }
    }

    fn remember(memos: &PluginMemos, repository: i64, name: &str, bytes: usize) {
        let blob = Blob::from_bytes(vec![b'x'; bytes].into());
        let parts = (Bytes::new(), blob);
        memos.remember(seen(repository, 1), "{}".into(), name, parts, Dependencies::default());
    }

    fn has(memos: &PluginMemos, repository: i64, name: &str) -> bool {
        let owner = memos.owner(seen(repository, 1));
        memos.memos.held().shares.get(&owner).is_some_and(|share| share.pieces.contains_key(name))
    }

    /// Bytes and sizes are those of what is there.
    fn assert_counts(memos: &Memos) {
        let held = memos.held();
        let of_share =
            |share: &Share| share.pieces.iter().map(|(name, piece)| piece.weight(name)).sum::<usize>();
        let sizes: BTreeSet<_> = held.shares.iter().map(|(owner, share)| (of_share(share), *owner)).collect();
        assert_eq!(sizes, held.sizes);
        assert_eq!(held.sizes.iter().map(|(bytes, _)| bytes).sum::<usize>(), held.bytes);
        assert!(held.bytes <= memos.total, "{} bytes", held.bytes);
    }

    #[test]
    fn a_crawler_displaces_its_own() {
        let memos = Arc::new(Memos::within(100_000));
        let plugin = memos.for_plugin();
        for repository in 1..=4 {
            remember(&plugin, repository, "of all days", 10_000);
        }
        for number in 0..100 {
            remember(&plugin, 5, &number.to_string(), 5_000);
            assert_counts(&memos);
        }
        assert!((1..=4).all(|repository| has(&plugin, repository, "of all days")));
        assert!(has(&plugin, 5, "99") && !has(&plugin, 5, "0"));
    }

    #[test]
    fn what_is_used_stays() {
        let memos = Arc::new(Memos::within(50_000));
        let plugin = memos.for_plugin();
        remember(&plugin, 1, "used", 5_000);
        for number in 0..100 {
            remember(&plugin, 1, &number.to_string(), 5_000);
            assert!(
                memos.held().shares.get_mut(&plugin.owner(seen(1, 1))).unwrap().pieces.get("used").is_some()
            );
        }
        remember(&plugin, 1, "used", 6_000);
        assert_counts(&memos);
    }

    #[test]
    fn components_and_repositories_have_pieces_of_their_own() {
        let memos = Arc::new(Memos::default());
        let (one, other) = (memos.for_plugin(), memos.for_plugin());
        remember(&one, 1, "piece", 10);
        assert!(has(&one, 1, "piece") && !has(&one, 2, "piece") && !has(&other, 1, "piece"));
        remember(&one, 1, "too large", PIECE_BYTES + 1);
        assert!(!has(&one, 1, "too large"));
    }
}
