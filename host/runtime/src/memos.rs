//! Memoized pieces of documents that plugins made. A piece is valid until a commit touches the
//! records that were read for it.
//!
//! All plugins and repositories share one memory bound. Above it, the least recently used piece of
//! the largest repository is dropped. So a client that requests every package of one repository
//! displaces only that repository's pieces.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use hashlink::LruCache;
use packhouse_store::{Blob, Dependencies, ReadPoint, RepositoryId, Store};

/// Most bytes of all pieces together.
const TOTAL_BYTES: usize = 32 << 20;
/// Most bytes of one piece; the contract states this limit.
pub(crate) const PIECE_BYTES: usize = 1 << 20;
/// Memory of a piece in addition to its name, bytes and dependencies.
const OVERHEAD: usize = 256;

/// A memoized piece of a document.
pub(crate) struct MemoPiece {
    /// The plugin's note on the piece.
    pub(crate) note: Bytes,
    /// The piece's bytes, in memory. Their digest is computed once.
    pub(crate) blob: Blob,
    /// Dependencies on records of its repository.
    pub(crate) dependencies: Dependencies,
    /// Settings of its repository when it was made.
    settings: Arc<str>,
    /// Newest revision at which the piece is known to be valid.
    valid_at: AtomicU64,
}

/// Owner of pieces: one component in one repository.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
struct PieceOwner {
    plugin: u32,
    repository: RepositoryId,
}

/// Memoized pieces of all plugins.
pub(crate) struct Memos {
    total: usize,
    plugins: AtomicU32,
    held: Mutex<MemoTable>,
}

#[derive(Default)]
struct MemoTable {
    bytes: usize,
    shares: HashMap<PieceOwner, Share>,
    /// Owners, each with the bytes of its pieces.
    sizes: BTreeSet<(usize, PieceOwner)>,
}

/// Pieces of one owner, with their total size.
struct Share {
    bytes: usize,
    pieces: LruCache<Box<str>, Arc<MemoPiece>>,
}

/// Memoized pieces of one component.
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

    /// Creates the memo of a newly loaded component. It finds no pieces of other components.
    pub(crate) fn for_plugin(self: &Arc<Self>) -> PluginMemos {
        PluginMemos { memos: Arc::clone(self), plugin: self.plugins.fetch_add(1, Ordering::Relaxed) }
    }

    /// Drops all pieces, after a change that no commit announces.
    pub(crate) fn forget(&self) {
        *self.held() = MemoTable::default();
    }

    fn held(&self) -> MutexGuard<'_, MemoTable> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PluginMemos {
    /// Finds the piece of this name, if it was made under these settings and nothing that it
    /// depends on has changed.
    pub(crate) fn find(
        &self,
        store: &Store,
        read_point: ReadPoint,
        settings: &Arc<str>,
        name: &str,
    ) -> Option<Arc<MemoPiece>> {
        let piece = self.memos.held().shares.get_mut(&self.owner(read_point))?.pieces.get(name).cloned()?;
        let same_settings = Arc::ptr_eq(&piece.settings, settings) || piece.settings == *settings;
        (same_settings && piece.is_valid(store, read_point)).then_some(piece)
    }

    /// Stores a piece with its note and bytes. The call that made it read the repository at
    /// revision `read_point`.
    pub(crate) fn remember(
        &self,
        read_point: ReadPoint,
        settings: Arc<str>,
        name: &str,
        (note, blob): (Bytes, Blob),
        dependencies: Dependencies,
    ) {
        let valid_at = AtomicU64::new(read_point.revision);
        let piece = MemoPiece { note, blob, dependencies, settings, valid_at };
        if piece.bytes() <= PIECE_BYTES {
            self.memos.held().insert(self.owner(read_point), name.into(), Arc::new(piece), self.memos.total);
        }
    }

    fn owner(&self, read_point: ReadPoint) -> PieceOwner {
        PieceOwner { plugin: self.plugin, repository: read_point.repository }
    }
}

impl MemoPiece {
    fn is_valid(&self, store: &Store, read_point: ReadPoint) -> bool {
        let valid_at = self.valid_at.load(Ordering::Relaxed);
        // The piece was valid at the request's revision or later, so it is valid for this request.
        if valid_at >= read_point.revision {
            return true;
        }
        let valid = self.dependencies == Dependencies::default()
            || store.unchanged(read_point.repository, valid_at, read_point.revision, &self.dependencies);
        if valid {
            self.valid_at.fetch_max(read_point.revision, Ordering::Relaxed);
        }
        valid
    }

    fn bytes(&self) -> usize {
        usize::try_from(self.blob.size()).unwrap_or(usize::MAX).saturating_add(self.note.len())
    }

    fn weight(&self, name: &str) -> usize {
        OVERHEAD + name.len() + self.bytes() + self.dependencies.bytes()
    }
}

impl MemoTable {
    fn insert(&mut self, owner: PieceOwner, name: Box<str>, piece: Arc<MemoPiece>, total: usize) {
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

    /// Drops the least recently used piece of the largest owner. Returns false if there are no
    /// pieces.
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

    fn resize(&mut self, owner: PieceOwner, before: usize, now: usize) {
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

    fn read_point(repository: i64, revision: u64) -> ReadPoint {
        ReadPoint { repository: RepositoryId(repository), revision }
    }

    fn remember(memos: &PluginMemos, repository: i64, name: &str, bytes: usize) {
        let blob = Blob::from_bytes(vec![b'x'; bytes].into());
        let parts = (Bytes::new(), blob);
        memos.remember(read_point(repository, 1), "{}".into(), name, parts, Dependencies::default());
    }

    fn has(memos: &PluginMemos, repository: i64, name: &str) -> bool {
        let owner = memos.owner(read_point(repository, 1));
        memos.memos.held().shares.get(&owner).is_some_and(|share| share.pieces.contains_key(name))
    }

    /// Checks that byte counts and sizes match the stored pieces.
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
    fn a_crawler_displaces_only_its_own_pieces() {
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
    fn used_pieces_stay() {
        let memos = Arc::new(Memos::within(50_000));
        let plugin = memos.for_plugin();
        remember(&plugin, 1, "used", 5_000);
        for number in 0..100 {
            remember(&plugin, 1, &number.to_string(), 5_000);
            assert!(
                memos
                    .held()
                    .shares
                    .get_mut(&plugin.owner(read_point(1, 1)))
                    .unwrap()
                    .pieces
                    .get("used")
                    .is_some()
            );
        }
        remember(&plugin, 1, "used", 6_000);
        assert_counts(&memos);
    }

    #[test]
    fn components_and_repositories_have_separate_pieces() {
        let memos = Arc::new(Memos::default());
        let (one, other) = (memos.for_plugin(), memos.for_plugin());
        remember(&one, 1, "piece", 10);
        assert!(has(&one, 1, "piece") && !has(&one, 2, "piece") && !has(&other, 1, "piece"));
        remember(&one, 1, "too large", PIECE_BYTES + 1);
        assert!(!has(&one, 1, "too large"));
    }
}
