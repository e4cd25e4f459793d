//! Runs of a repository's keys, and the records of a run. A long document is built from one piece
//! for each run.

use crate::host::{HostRun, HostRuns};
use crate::repository::Scan;
use crate::{Entry, Error, Repository};

/// Consecutive keys of a repository, from [`Repository::runs`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyRun {
    /// Common prefix of the keys.
    prefix: String,
    /// Key before the first one, if any.
    after: Option<String>,
    /// Last key.
    last: String,
    count: u32,
}

impl KeyRun {
    /// Returns the last key without the prefix.
    #[must_use]
    pub fn last(&self) -> &str {
        self.last.get(self.prefix.len()..).unwrap_or_default()
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn count(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX)
    }

    /// Returns the position of the run among the keys below the prefix: the key before the run, and
    /// its last key. Use it in the name of a piece that is made from the run's records.
    #[must_use]
    pub fn place(&self) -> String {
        let after = self.after.as_deref().unwrap_or_default();
        [after.get(self.prefix.len()..).unwrap_or_default(), "\n", self.last()].concat()
    }
}

impl Repository {
    /// Cuts all keys that begin with `prefix` into runs, in their order. A run has 32 keys on
    /// average and at most 128. Adding or removing a key changes only the run that contains it, and
    /// at most one neighbour. With [`piece`](Self::piece), a document of thousands of records is
    /// built from one piece for each run. The piece is named by the [place](KeyRun::place) of the
    /// run and made from [its records](Self::run_records).
    ///
    /// # Errors
    /// Returns the host's error.
    pub fn runs(&self, prefix: &str) -> Result<Vec<KeyRun>, Error> {
        let mut all: Vec<KeyRun> = Vec::new();
        loop {
            let after = all.last().map(|run| run.last.clone());
            let HostRuns { runs, more } = self.host().runs(prefix, after.as_deref())?;
            let ended = !more || runs.is_empty();
            for HostRun { last, count } in runs {
                let after = all.last().map(|run| run.last.clone());
                all.push(KeyRun { prefix: prefix.to_owned(), after, last, count });
            }
            if ended {
                return Ok(all);
            }
        }
    }

    /// Returns the current records of a run. Records that were removed since the run was cut are
    /// left out. New records between the keys of the run are included.
    pub fn run_records<'a>(&'a self, run: &'a KeyRun) -> RunRecords<'a> {
        // The page has exactly as many records as there are keys. A larger page would read later
        // records too, and a piece would then depend on their changes.
        let scan = self.scan(run.prefix.as_str()).page(run.count);
        RunRecords {
            scan: match &run.after {
                Some(after) => scan.after(after.as_str()),
                None => scan,
            },
            last: &run.last,
            ended: false,
        }
    }

    /// Returns the records of these keys. An earlier read must have found these keys next to one
    /// another below `prefix`, after the key `before`. Records that were removed since that read
    /// are left out, and so are new records between the keys.
    pub fn neighbours<'a>(
        &'a self,
        prefix: &str,
        before: Option<&str>,
        keys: &'a [String],
    ) -> Neighbours<'a> {
        // The page has exactly as many records as there are keys. A larger page would read later
        // records too, and a piece would then depend on their changes.
        let scan = self.scan(prefix).page(u32::try_from(keys.len()).unwrap_or(u32::MAX));
        let scan = match before {
            Some(before) => scan.after(before),
            None => scan,
        };
        Neighbours { repository: self, scan: Some(scan), keys: keys.iter() }
    }
}

/// Iterator over the records of a run, from [`Repository::run_records`]. The iterator ends after an
/// error.
pub struct RunRecords<'a> {
    scan: Scan<'a>,
    last: &'a str,
    ended: bool,
}

impl Iterator for RunRecords<'_> {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.scan.next()?;
        if let Ok(entry) = &next {
            // Stop here. The scan would read another page only to find nothing.
            self.ended = entry.key.as_str() >= self.last;
            if entry.key.as_str() > self.last {
                return None;
            }
        }
        Some(next)
    }
}

/// Iterator over consecutive records, from [`Repository::neighbours`].
pub struct Neighbours<'a> {
    repository: &'a Repository,
    /// `None` after an unexpected key was found.
    scan: Option<Scan<'a>>,
    keys: std::slice::Iter<'a, String>,
}

impl Iterator for Neighbours<'_> {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let key = self.keys.next()?;
            match self.scan.as_mut().map(|scan| scan.next()) {
                Some(Some(Ok(entry))) if entry.key == *key => return Some(Ok(entry)),
                Some(Some(Err(error))) => return Some(Err(error)),
                // A concurrent commit changed the keys. Read the remaining records one by one.
                _ => self.scan = None,
            }
            if let Some(found) = self.repository.get(key).transpose() {
                return Some(found);
            }
        }
    }
}
