//! How many bytes may be staged: received, decoded or uploaded, and named by no record yet. Counted for each repository and for
//! the whole store, and refused before the disk is full. Bytes that are given up are subtracted at once.
//!
//! Uploads outlive a request and may be added to by other servers of the same database: theirs are read when one is added to.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::StagingLimits;
use crate::error::StoreError;
use crate::ids::RepositoryId;

/// After how many bytes the disk is asked again what is free.
const ASKED_AFTER: u64 = 8 * 1024 * 1024;

/// The account of a store.
pub(crate) struct Budget {
    limits: StagingLimits,
    /// Where staged bytes lie; none where that is no disk of this server's.
    folder: Option<PathBuf>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    all: u64,
    of: HashMap<RepositoryId, u64>,
    /// In open uploads, as they were read last.
    uploads: u64,
    uploads_of: HashMap<RepositoryId, u64>,
    /// Since the disk was asked.
    since: u64,
}

impl Budget {
    /// Nothing is staged yet.
    pub(crate) fn new(limits: StagingLimits, folder: Option<PathBuf>) -> Arc<Self> {
        let state = State { since: ASKED_AFTER, ..State::default() };
        Arc::new(Self { limits, folder, state: Mutex::new(state) })
    }

    /// What open uploads hold: those of a repository, and all.
    pub(crate) fn uploads(&self, repository: RepositoryId, own: u64, all: u64) {
        let mut state = self.lock();
        state.uploads = all;
        match own {
            0 => drop(state.uploads_of.remove(&repository)),
            own => drop(state.uploads_of.insert(repository, own)),
        }
    }

    /// So many bytes were added to an upload.
    pub(crate) fn upload_grew(&self, repository: RepositoryId, bytes: u64) {
        let mut state = self.lock();
        state.uploads = state.uploads.saturating_add(bytes);
        let own = state.uploads_of.entry(repository).or_default();
        *own = own.saturating_add(bytes);
    }

    /// An upload of so many bytes is none any more.
    pub(crate) fn upload_ended(&self, repository: RepositoryId, bytes: u64) {
        let mut state = self.lock();
        state.uploads = state.uploads.saturating_sub(bytes);
        if let Some(own) = state.uploads_of.get_mut(&repository) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                state.uploads_of.remove(&repository);
            }
        }
    }

    fn grow(&self, repository: Option<RepositoryId>, bytes: u64) -> Result<(), StoreError> {
        let mut state = self.lock();
        let all = state.all.saturating_add(state.uploads).saturating_add(bytes);
        let own = repository.map_or(0, |repository| {
            let of = |map: &HashMap<RepositoryId, u64>| map.get(&repository).copied().unwrap_or_default();
            of(&state.of).saturating_add(of(&state.uploads_of)).saturating_add(bytes)
        });
        if own > self.limits.repository_bytes {
            return Err(no_room("of one repository", self.limits.repository_bytes));
        }
        if all > self.limits.server_bytes {
            return Err(no_room("of all repositories", self.limits.server_bytes));
        }
        state.since = state.since.saturating_add(bytes);
        if state.since >= ASKED_AFTER {
            self.check_free_space()?;
            state.since = 0;
        }
        state.all = state.all.saturating_add(bytes);
        if let Some(repository) = repository {
            let own = state.of.entry(repository).or_default();
            *own = own.saturating_add(bytes);
        }
        Ok(())
    }

    /// A disk that does not tell is not asked to.
    fn check_free_space(&self) -> Result<(), StoreError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        match rustix::fs::statvfs(folder) {
            Ok(disk) if disk.f_bavail.saturating_mul(disk.f_frsize) < self.limits.keep_free_bytes => {
                Err(no_room("on the disk, which is to keep", self.limits.keep_free_bytes))
            }
            _ => Ok(()),
        }
    }

    fn shrink(&self, repository: Option<RepositoryId>, bytes: u64) {
        let mut state = self.lock();
        state.all = state.all.saturating_sub(bytes);
        if let Some(repository) = repository
            && let Some(own) = state.of.get_mut(&repository)
        {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                state.of.remove(&repository);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_room(what: &'static str, limit: u64) -> StoreError {
    StoreError::NoRoom { what, limit }
}

/// Bytes that are staged; given back when this is dropped.
pub(crate) struct Lease {
    budget: Arc<Budget>,
    repository: Option<RepositoryId>,
    bytes: u64,
}

impl Lease {
    /// Of no bytes yet.
    pub(crate) fn new(budget: &Arc<Budget>, repository: Option<RepositoryId>) -> Self {
        Self { budget: Arc::clone(budget), repository, bytes: 0 }
    }

    /// The same for a repository. Only of no bytes yet.
    pub(crate) fn of(self, repository: Option<RepositoryId>) -> Self {
        Self::new(&self.budget, repository)
    }

    /// How many bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// So many more. `NoRoom` when that is more than may be.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.budget.grow(self.repository, bytes)?;
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.budget.shrink(self.repository, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(repository_bytes: u64, server_bytes: u64) -> Arc<Budget> {
        Budget::new(StagingLimits { repository_bytes, server_bytes, keep_free_bytes: 0 }, None)
    }

    #[test]
    fn a_repository_and_the_store_have_a_bound_each() {
        let budget = budget(100, 150);
        let (one, two) = (Some(RepositoryId(1)), Some(RepositoryId(2)));
        let (mut first, mut second) = (Lease::new(&budget, one), Lease::new(&budget, two));
        assert!(first.grow(60).is_ok() && first.grow(40).is_ok());
        assert!(matches!(first.grow(1), Err(StoreError::NoRoom { limit: 100, .. })));
        assert!(second.grow(50).is_ok());
        assert!(matches!(second.grow(1), Err(StoreError::NoRoom { limit: 150, .. })));
        drop(first);
        assert!(second.grow(50).is_ok());
        drop(second);
        let state = budget.lock();
        assert!(state.all == 0 && state.of.is_empty(), "what was given back is forgotten");
    }

    #[test]
    fn open_uploads_count() {
        let budget = budget(100, 150);
        let mut lease = Lease::new(&budget, Some(RepositoryId(1)));
        budget.uploads(RepositoryId(1), 60, 110);
        budget.upload_grew(RepositoryId(1), 10);
        assert!(lease.grow(30).is_ok() && lease.grow(1).is_err());
        budget.upload_ended(RepositoryId(1), 70);
        assert!(lease.grow(60).is_ok() && lease.grow(20).is_err(), "50 of others stay");
    }

    #[test]
    fn a_disk_that_is_nearly_full_takes_nothing() {
        let limits =
            StagingLimits { repository_bytes: 1 << 40, server_bytes: 1 << 40, keep_free_bytes: u64::MAX };
        let budget = Budget::new(limits, Some(std::env::temp_dir()));
        assert!(Lease::new(&budget, None).grow(1).is_err());
    }
}
