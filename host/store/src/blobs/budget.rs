//! Limits for staged bytes, which are received, decoded or uploaded but not referenced by a record
//! yet. The budget counts them for each repository and for the whole server, and refuses more bytes
//! before the disk is full. It subtracts discarded bytes at once.
//!
//! Uploads outlive a request, and other servers of the same database may append to them. So this
//! server reads the uploads' sizes again whenever it appends to an upload.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::StagingLimits;
use crate::error::StoreError;
use crate::ids::RepositoryId;

/// Number of staged bytes between two checks of the free disk space.
const CHECK_DISK_AFTER: u64 = 8 * 1024 * 1024;

/// Count of the staged bytes of a store.
pub(crate) struct Budget {
    limits: StagingLimits,
    /// Folder of the staged bytes; `None` if they are not on a local disk.
    folder: Option<PathBuf>,
    state: Mutex<BudgetState>,
}

#[derive(Default)]
struct BudgetState {
    all: u64,
    of: HashMap<RepositoryId, u64>,
    /// Bytes in open uploads, as last read.
    uploads: u64,
    uploads_of: HashMap<RepositoryId, u64>,
    /// Bytes staged since the free space was checked.
    since: u64,
}

impl Budget {
    pub(crate) fn new(limits: StagingLimits, folder: Option<PathBuf>) -> Arc<Self> {
        let state = BudgetState { since: CHECK_DISK_AFTER, ..BudgetState::default() };
        Arc::new(Self { limits, folder, state: Mutex::new(state) })
    }

    /// Sets the number of bytes in open uploads: `own` for this repository, `all` for all
    /// repositories.
    pub(crate) fn uploads(&self, repository: RepositoryId, own: u64, all: u64) {
        let mut state = self.lock();
        state.uploads = all;
        match own {
            0 => drop(state.uploads_of.remove(&repository)),
            own => drop(state.uploads_of.insert(repository, own)),
        }
    }

    /// Adds bytes that were appended to an upload.
    pub(crate) fn upload_grew(&self, repository: RepositoryId, bytes: u64) {
        let mut state = self.lock();
        state.uploads = state.uploads.saturating_add(bytes);
        let own = state.uploads_of.entry(repository).or_default();
        *own = own.saturating_add(bytes);
    }

    /// Subtracts the bytes of an upload that has ended.
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
            return Err(no_room("one repository", self.limits.repository_bytes));
        }
        if all > self.limits.server_bytes {
            return Err(no_room("all repositories", self.limits.server_bytes));
        }
        state.since = state.since.saturating_add(bytes);
        if state.since >= CHECK_DISK_AFTER {
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

    /// Checks the free disk space. If it cannot be determined, the check passes.
    fn check_free_space(&self) -> Result<(), StoreError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        match rustix::fs::statvfs(folder) {
            Ok(disk) if disk.f_bavail.saturating_mul(disk.f_frsize) < self.limits.keep_free_bytes => {
                Err(no_room("the free space to keep on the disk", self.limits.keep_free_bytes))
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

    fn lock(&self) -> MutexGuard<'_, BudgetState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_room(what: &'static str, limit: u64) -> StoreError {
    StoreError::NoRoom { what, limit }
}

/// A number of bytes counted as staged. Dropping it subtracts them.
pub(crate) struct StagingReservation {
    budget: Arc<Budget>,
    repository: Option<RepositoryId>,
    bytes: u64,
}

impl StagingReservation {
    /// Creates a reservation of 0 bytes.
    pub(crate) fn new(budget: &Arc<Budget>, repository: Option<RepositoryId>) -> Self {
        Self { budget: Arc::clone(budget), repository, bytes: 0 }
    }

    /// Moves an empty reservation to a repository.
    pub(crate) fn of(self, repository: Option<RepositoryId>) -> Self {
        Self::new(&self.budget, repository)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reserves more bytes. `NoRoom` if that exceeds a limit.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), StoreError> {
        self.budget.grow(self.repository, bytes)?;
        self.bytes = self.bytes.saturating_add(bytes);
        Ok(())
    }
}

impl Drop for StagingReservation {
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
    fn a_repository_and_the_store_each_have_a_limit() {
        let budget = budget(100, 150);
        let (one, two) = (Some(RepositoryId(1)), Some(RepositoryId(2)));
        let (mut first, mut second) =
            (StagingReservation::new(&budget, one), StagingReservation::new(&budget, two));
        assert!(first.grow(60).is_ok() && first.grow(40).is_ok());
        assert!(matches!(first.grow(1), Err(StoreError::NoRoom { limit: 100, .. })));
        assert!(second.grow(50).is_ok());
        assert!(matches!(second.grow(1), Err(StoreError::NoRoom { limit: 150, .. })));
        drop(first);
        assert!(second.grow(50).is_ok());
        drop(second);
        let state = budget.lock();
        assert!(state.all == 0 && state.of.is_empty(), "released bytes are no longer counted");
    }

    #[test]
    fn open_uploads_count() {
        let budget = budget(100, 150);
        let mut reservation = StagingReservation::new(&budget, Some(RepositoryId(1)));
        budget.uploads(RepositoryId(1), 60, 110);
        budget.upload_grew(RepositoryId(1), 10);
        assert!(reservation.grow(30).is_ok() && reservation.grow(1).is_err());
        budget.upload_ended(RepositoryId(1), 70);
        assert!(reservation.grow(60).is_ok() && reservation.grow(20).is_err(), "50 of others stay");
    }

    #[test]
    fn a_nearly_full_disk_accepts_nothing() {
        let limits =
            StagingLimits { repository_bytes: 1 << 40, server_bytes: 1 << 40, keep_free_bytes: u64::MAX };
        let budget = Budget::new(limits, Some(std::env::temp_dir()));
        assert!(StagingReservation::new(&budget, None).grow(1).is_err());
    }
}
