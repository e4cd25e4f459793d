//! Cached list of a range of records: one list for all limits.

use std::sync::Arc;

use crate::changes::Dependencies;
use crate::records::{Entry, MAX_SCAN, MAX_SCAN_BYTES};

/// The first records of a range.
#[derive(Clone)]
pub(super) struct Listing {
    pub(super) entries: Arc<[Entry]>,
    /// True if the limit ended the read, so that more records may exist. Otherwise the list has all
    /// records, or as many as one result may have.
    pub(super) open: bool,
}

impl Listing {
    /// List from a database result for this limit.
    pub(super) fn of(entries: Vec<Entry>, limit: usize) -> Listing {
        Listing { open: entries.len() >= limit, entries: entries.into() }
    }

    pub(super) fn last(&self) -> Option<&str> {
        self.entries.last().map(|entry| entry.key.as_str())
    }

    /// True if the list has enough records for this limit, or all records.
    pub(super) fn answers(&self, limit: u32) -> bool {
        !self.open || self.entries.len() >= usize::try_from(limit).unwrap_or(usize::MAX)
    }

    pub(super) fn first(&self, limit: usize) -> Arc<[Entry]> {
        match self.entries.get(..limit) {
            Some(first) if first.len() < self.entries.len() => first.into(),
            _ => Arc::clone(&self.entries),
        }
    }

    /// True if the database could return the list as one result.
    pub(super) fn is_within_bounds(&self) -> bool {
        let bytes: u64 = self.entries.iter().map(|entry| entry.value.len() as u64).sum();
        let count = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
        !self.entries.is_empty() && count <= MAX_SCAN && bytes <= MAX_SCAN_BYTES
    }

    /// Dependencies of this list, which are the first records after `after` that begin with
    /// `prefix`.
    pub(super) fn dependencies(&self, prefix: &str, after: Option<&str>) -> Dependencies {
        let mut dependencies = Dependencies::default();
        let last = self.last().filter(|_| self.open);
        dependencies.on_records(prefix, after, last);
        dependencies
    }
}
