//! Memory budget of responses that wait for their clients, over all connections of the server.
//! Content that several responses share, such as cached content, is counted once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum bytes of all responses that are held in memory or read in large pieces. Beyond this
/// limit, nothing is delayed or refused: documents are moved to files, and files are read in small
/// pieces.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Memory budget of responses; see the module documentation.
#[derive(Debug)]
pub struct SendBudget {
    most: usize,
    held: Mutex<BudgetState>,
}

#[derive(Debug, Default)]
struct BudgetState {
    all: usize,
    /// Shared contents by their address in memory.
    contents: HashMap<usize, SharedContent>,
}

#[derive(Debug)]
struct SharedContent {
    bytes: usize,
    holders: usize,
}

impl Default for SendBudget {
    fn default() -> Self {
        Self::within(MAX_BYTES)
    }
}

impl SendBudget {
    /// Creates an unused budget of `most` bytes.
    pub(crate) fn within(most: usize) -> Self {
        Self { most, held: Mutex::default() }
    }

    /// Adds a holder of the content at this address; `None` if no response holds the content yet.
    pub(crate) fn share(self: &Arc<Self>, address: usize) -> Option<BudgetShare> {
        let mut held = self.held();
        held.contents.get_mut(&address)?.holders += 1;
        Some(BudgetShare { budget: Arc::clone(self), taken: Taken::Content(address) })
    }

    /// Adds the first holder of the content at this address; `None` if the budget has no room for
    /// it.
    pub(crate) fn take_content(self: &Arc<Self>, address: usize, bytes: usize) -> Option<BudgetShare> {
        let mut held = self.held();
        held.grow(bytes, self.most)?;
        let shared = held.contents.entry(address).or_insert(SharedContent { bytes: 0, holders: 0 });
        shared.bytes += bytes;
        shared.holders += 1;
        Some(BudgetShare { budget: Arc::clone(self), taken: Taken::Content(address) })
    }

    /// Takes bytes that no other response shares; `None` if the budget has no room for them.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize) -> Option<BudgetShare> {
        self.held().grow(bytes, self.most)?;
        Some(BudgetShare { budget: Arc::clone(self), taken: Taken::Bytes(bytes) })
    }

    fn held(&self) -> MutexGuard<'_, BudgetState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BudgetState {
    fn grow(&mut self, bytes: usize, most: usize) -> Option<()> {
        let all = self.all.checked_add(bytes).filter(|all| *all <= most)?;
        self.all = all;
        Some(())
    }

    /// Removes a holder of the content at this address.
    fn release(&mut self, address: usize) {
        let Some(shared) = self.contents.get_mut(&address) else { return };
        shared.holders -= 1;
        if shared.holders == 0 {
            self.all -= shared.bytes;
            self.contents.remove(&address);
        }
    }
}

/// Share of the budget that one response holds. Dropping it returns the share.
#[derive(Debug)]
pub(crate) struct BudgetShare {
    budget: Arc<SendBudget>,
    taken: Taken,
}

#[derive(Clone, Copy, Debug)]
enum Taken {
    Bytes(usize),
    Content(usize),
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        let mut held = self.budget.held();
        match self.taken {
            Taken::Bytes(bytes) => held.all -= bytes,
            Taken::Content(address) => held.release(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_content_counts_once_and_until_its_last_holder_is_gone() {
        let budget = Arc::new(SendBudget::within(100));
        assert!(budget.share(1).is_none());
        let first = budget.take_content(1, 60).unwrap();
        let second = budget.share(1).unwrap();
        assert!(budget.take_content(2, 60).is_none() && budget.take(41).is_none());
        drop(first);
        let rest = budget.take(40).unwrap();
        assert!(budget.take(1).is_none());
        drop(second);
        drop(rest);
        assert!(budget.share(1).is_none());
        assert_eq!(budget.held().all, 0);
        assert!(budget.take_content(2, 100).is_some());
    }
}
