//! Memory of answers that wait for their clients, on all connections of the server together. A content that several answers share, as
//! those from a cache do, is counted once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of all answers that are held in memory or read in large pieces. Beyond it nothing waits and nothing is refused: documents lie
/// in files, and files are read in small pieces.
const MOST: usize = 64 * 1024 * 1024;

/// See the module.
#[derive(Debug)]
pub struct SendBudget {
    most: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    /// Contents by their address in memory.
    contents: HashMap<usize, Shared>,
}

#[derive(Debug)]
struct Shared {
    bytes: usize,
    holders: usize,
}

impl Default for SendBudget {
    fn default() -> Self {
        Self::within(MOST)
    }
}

impl SendBudget {
    /// An empty one of so many bytes.
    pub(crate) fn within(most: usize) -> Self {
        Self { most, held: Mutex::default() }
    }

    /// One more holder of the content at this address; none where nobody holds it.
    pub(crate) fn share(self: &Arc<Self>, address: usize) -> Option<BudgetShare> {
        let mut held = self.held();
        held.contents.get_mut(&address)?.holders += 1;
        Some(BudgetShare { budget: Arc::clone(self), taken: Taken::Content(address) })
    }

    /// The first holder of the content at this address; none where there is no room for it.
    pub(crate) fn take_content(self: &Arc<Self>, address: usize, bytes: usize) -> Option<BudgetShare> {
        let mut held = self.held();
        held.grow(bytes, self.most)?;
        let shared = held.contents.entry(address).or_insert(Shared { bytes: 0, holders: 0 });
        shared.bytes += bytes;
        shared.holders += 1;
        Some(BudgetShare { budget: Arc::clone(self), taken: Taken::Content(address) })
    }

    /// Bytes that nothing else shares; none where there is no room for them.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize) -> Option<BudgetShare> {
        self.held().grow(bytes, self.most)?;
        Some(BudgetShare { budget: Arc::clone(self), taken: Taken::Bytes(bytes) })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn grow(&mut self, bytes: usize, most: usize) -> Option<()> {
        let all = self.all.checked_add(bytes).filter(|all| *all <= most)?;
        self.all = all;
        Some(())
    }

    /// One holder less of the content at this address.
    fn release(&mut self, address: usize) {
        let Some(shared) = self.contents.get_mut(&address) else { return };
        shared.holders -= 1;
        if shared.holders == 0 {
            self.all -= shared.bytes;
            self.contents.remove(&address);
        }
    }
}

/// What one answer has of the budget, given back when this is dropped.
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
