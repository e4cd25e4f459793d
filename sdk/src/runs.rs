//! A repository's keys cut into runs, and the records of a run: a long document is made in pieces, one for each.

use crate::host::{HostRun, HostRuns};
use crate::repository::Scan;
use crate::{Entry, Error, Repository};

/// Keys of a repository that stand next to each other, from [`Repository::runs`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyRun {
    /// What all of them begin with.
    prefix: String,
    /// The key before the first, if there is one.
    after: Option<String>,
    /// The last.
    last: String,
    count: u32,
}

impl KeyRun {
    /// What of the last key follows the prefix.
    #[must_use]
    pub fn last(&self) -> &str {
        self.last.get(self.prefix.len()..).unwrap_or_default()
    }

    /// How many keys there are in it.
    #[must_use]
    pub fn count(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX)
    }

    /// Its place among the keys below the prefix, for the name of a piece that is made of its records: after which key it begins and with
    /// which it ends.
    #[must_use]
    pub fn place(&self) -> String {
        let after = self.after.as_deref().unwrap_or_default();
        [after.get(self.prefix.len()..).unwrap_or_default(), "\n", self.last()].concat()
    }
}

impl Repository {
    /// All keys that begin with `prefix`, in their order, cut into runs of 32 keys on average and 128 at most. A key more or less changes
    /// the run that it is in, and its neighbour at most. With [`piece`](Self::piece) a document of thousands of records is made of one piece
    /// for each run, named by the [place](KeyRun::place) of its run and made of [its records](Self::run_records).
    ///
    /// # Errors
    /// The host's.
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

    /// The records of a run, as they are by now: what was removed meanwhile is left out, and what came in between is there.
    pub fn run_records<'a>(&'a self, run: &'a KeyRun) -> RunRecords<'a> {
        // Exactly as many: what comes after them is not read, and may change.
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

    /// The records of these keys, of which it was read before that they stand next to each other below `prefix`, after the key
    /// `before`. What was removed meanwhile is left out, and so is what came in between.
    pub fn neighbours<'a>(
        &'a self,
        prefix: &str,
        before: Option<&str>,
        keys: &'a [String],
    ) -> Neighbours<'a> {
        // Exactly as many: what comes after them is not read, and may change.
        let scan = self.scan(prefix).page(u32::try_from(keys.len()).unwrap_or(u32::MAX));
        let scan = match before {
            Some(before) => scan.after(before),
            None => scan,
        };
        Neighbours { repository: self, scan: Some(scan), keys: keys.iter() }
    }
}

/// An iterator over the records of a run, from [`Repository::run_records`]. It ends after an error.
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
            // Another page would be read only to find that there is no more.
            self.ended = entry.key.as_str() >= self.last;
            if entry.key.as_str() > self.last {
                return None;
            }
        }
        Some(next)
    }
}

/// An iterator over records that stand next to each other, from [`Repository::neighbours`].
pub struct Neighbours<'a> {
    repository: &'a Repository,
    /// None once something else was found than was expected.
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
                // Others were faster. Each is read by itself from here on.
                _ => self.scan = None,
            }
            if let Some(found) = self.repository.get(key).transpose() {
                return Some(found);
            }
        }
    }
}
