//! Dependencies of a reader on the content of a repository.

use serde::{Deserialize, Serialize};

use super::sorted::Sorted;
use crate::blobs::Blob;
use crate::ids::CacheName;
use crate::records::range::{Range, just_after};

/// Maximum number of individual dependencies. Readers with more depend on everything.
const MOST: usize = 512;

/// Content of one repository that a result depends on: records (present or absent), key ranges, the
/// catalog, held blobs and cached upstream responses.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Dependencies {
    pub(super) everything: bool,
    pub(super) records: Sorted<Box<str>>,
    pub(super) ranges: Sorted<KeyRange>,
    pub(super) packages: Sorted<Box<str>>,
    pub(super) all_packages: bool,
    /// Ids of rows of blobs.
    pub(super) blobs: Sorted<i64>,
    pub(super) answers: Sorted<CacheName>,
}

/// Keys from `from` (included) to `end` (excluded).
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(super) struct KeyRange {
    pub(super) from: Box<str>,
    pub(super) end: Box<str>,
}

impl KeyRange {
    pub(super) fn has(&self, key: &str) -> bool {
        *self.from <= *key && *key < *self.end
    }

    fn holds(&self, other: &KeyRange) -> bool {
        self.from <= other.from && other.end <= self.end
    }
}

impl Dependencies {
    /// Adds the record of this key, or its absence.
    pub fn on_record(&mut self, key: &str) {
        if !self.everything && !self.records.contains(key) {
            self.records.insert(key.into());
            self.bound();
        }
    }

    /// Adds all records whose keys begin with `prefix` and come after `after`. If reading stopped
    /// at the key `last`, the range ends there (included).
    pub fn on_records(&mut self, prefix: &str, after: Option<&str>, last: Option<&str>) {
        // An empty range cannot change.
        let Some(Range { from, end }) = Range::new(prefix, after) else { return };
        let end = last.map_or(end, just_after);
        self.on_range(&KeyRange { from: from.into(), end: end.into() });
    }

    /// Adds a range unless a known range contains it. A reader that lists keys and then reads the
    /// records in parts thus depends on one range.
    fn on_range(&mut self, range: &KeyRange) {
        if !self.everything && !self.ranges.iter().any(|known| known.holds(range)) {
            self.ranges.insert(range.clone());
            self.bound();
        }
    }

    /// Adds the catalog entries of a package, or their absence.
    pub fn on_package(&mut self, name: &str) {
        if !self.everything {
            self.packages.insert(name.into());
            self.bound();
        }
    }

    /// Adds the catalog entries of all packages.
    pub fn on_all_packages(&mut self) {
        self.all_packages = true;
    }

    /// Adds the fact that a record of the repository holds this blob.
    pub fn on_blob(&mut self, blob: &Blob) {
        match blob.stored_row() {
            Some(row) => self.on_blob_row(row),
            None => self.on_everything(),
        }
    }

    pub(super) fn on_blob_row(&mut self, row: i64) {
        if !self.everything {
            self.blobs.insert(row);
            self.bound();
        }
    }

    /// Adds the cached upstream response of this name, or its absence.
    pub fn on_answer(&mut self, name: &CacheName) {
        if !self.everything {
            self.answers.insert(*name);
            self.bound();
        }
    }

    /// Makes the reader depend on every later commit.
    pub fn on_everything(&mut self) {
        *self = Dependencies { everything: true, ..Dependencies::default() };
    }

    /// True if it has only dependencies on single records.
    #[must_use]
    pub fn are_single_records(&self) -> bool {
        let Dependencies { everything, records: _, ranges, packages, all_packages, blobs, answers } = self;
        !everything
            && !all_packages
            && ranges.is_empty()
            && packages.is_empty()
            && blobs.is_empty()
            && answers.is_empty()
    }

    /// Adds all dependencies of `other`.
    pub fn extend(&mut self, other: &Dependencies) {
        if other.everything {
            self.on_everything();
        }
        if self.everything {
            return;
        }
        self.records.extend(&other.records);
        other.ranges.iter().for_each(|range| self.on_range(range));
        if self.everything {
            return;
        }
        self.packages.extend(&other.packages);
        self.blobs.extend(&other.blobs);
        self.answers.extend(&other.answers);
        self.all_packages |= other.all_packages;
        self.bound();
    }

    /// Approximate size in memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        const EACH: usize = 32;
        let texts = self.records.iter().chain(self.packages.iter());
        let ranges = self.ranges.iter().map(|range| range.from.len() + range.end.len() + EACH);
        texts.map(|text| text.len() + EACH).chain(ranges).sum::<usize>()
            + (self.blobs.len() + self.answers.len()) * EACH
    }

    fn bound(&mut self) {
        let records = self.records.len() + self.ranges.len() + self.packages.len();
        if records + self.blobs.len() + self.answers.len() > MOST {
            self.on_everything();
        }
    }
}
