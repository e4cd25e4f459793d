//! Assembly of a transaction from its steps.

#![allow(unreachable_pub, reason = "named by the generated code, which is public")]

use std::collections::HashMap;

use bytes::Bytes;
use packhouse_store::{
    CatalogChange, Change, Digest, Expectation, MAX_CHANGES, MAX_COMMIT_BYTES, MAX_KEY_BYTES,
    MAX_VALUE_BYTES, RepositoryId, Sha256,
};

/// A change of one repository that is being assembled. `commit` reports the first problem with it.
pub struct TransactionRep {
    pub(crate) repository: RepositoryId,
    pub(crate) changes: Vec<Change>,
    positions: HashMap<String, usize>,
    pub(crate) catalog: Vec<CatalogChange>,
    /// Packages that the change is about although it does not list them.
    pub(crate) about: Vec<String>,
    bytes: usize,
    pub(crate) problem: Option<String>,
}

impl TransactionRep {
    pub(crate) fn new(repository: RepositoryId) -> TransactionRep {
        TransactionRep {
            repository,
            changes: Vec::new(),
            positions: HashMap::new(),
            catalog: Vec::new(),
            about: Vec::new(),
            bytes: 0,
            problem: None,
        }
    }

    /// Stores the first problem, which `commit` reports. Later changes are no longer collected.
    pub(crate) fn refuse(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
        self.changes = Vec::new();
        self.catalog = Vec::new();
        self.about = Vec::new();
    }

    pub(crate) fn weigh(&mut self, bytes: usize) -> Result<(), String> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_COMMIT_BYTES {
            return Err(format!("a transaction may have at most {MAX_COMMIT_BYTES} bytes"));
        }
        if self.changes.len() + self.catalog.len() + self.about.len() >= MAX_CHANGES {
            return Err(format!("a transaction may have at most {MAX_CHANGES} changes"));
        }
        Ok(())
    }

    /// Adds a change, which replaces an earlier change of the same key.
    pub(crate) fn change(&mut self, change: Change, bytes: usize) -> Result<(), String> {
        let key = change.key();
        if key.is_empty() || key.len() > MAX_KEY_BYTES || key.contains('\0') {
            return Err(format!(
                "a key must have 1 to {MAX_KEY_BYTES} bytes without NUL, not {} bytes",
                key.len()
            ));
        }
        if let Some(earlier) = self.positions.get(key).and_then(|&position| self.changes.get_mut(position)) {
            *earlier = change;
            self.bytes = self.bytes.saturating_add(bytes);
            return if self.bytes > MAX_COMMIT_BYTES { self.weigh(0) } else { Ok(()) };
        }
        self.weigh(key.len().saturating_add(bytes))?;
        self.positions.insert(key.to_owned(), self.changes.len());
        self.changes.push(change);
        Ok(())
    }

    pub(crate) fn put(
        &mut self,
        key: String,
        value: Vec<u8>,
        expect: Expectation,
        blobs: &[String],
    ) -> Result<(), String> {
        if value.len() > MAX_VALUE_BYTES {
            return Err(format!(
                "a value of {} bytes; store values of more than {MAX_VALUE_BYTES} bytes as a blob",
                value.len()
            ));
        }
        let bytes = value.len() + blobs.len() * size_of::<Sha256>();
        let blobs = blobs.iter().map(|digest| sha256(digest)).collect::<Result<Vec<_>, _>>()?;
        self.change(Change::Put { key, value: Bytes::from(value), expect, blobs }, bytes)
    }

    /// Names a package that the change is about although it does not list it.
    pub(crate) fn about_package(&mut self, name: String) -> Result<(), String> {
        self.weigh(name.len())?;
        self.about.push(name);
        Ok(())
    }

    /// Hides a version, or one file of it if a path is given.
    pub(crate) fn hide(&mut self, name: String, version: String, path: Option<String>) -> Result<(), String> {
        self.weigh(name.len() + version.len() + path.as_ref().map_or(0, String::len))?;
        self.catalog.push(match path {
            None => CatalogChange::Hide { name, version },
            Some(path) => CatalogChange::HideFile { name, version, path },
        });
        Ok(())
    }
}

fn sha256(text: &str) -> Result<Sha256, String> {
    parsed(text)?.sha256().ok_or_else(|| format!("a record must reference blobs by sha256, not by {text:?}"))
}

/// Parses a digest in the contract's notation.
pub(crate) fn parsed(text: &str) -> Result<Digest, String> {
    text.parse().map_err(|error: packhouse_store::StoreError| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(transaction: &mut TransactionRep, key: &str, value: &[u8]) -> Result<(), String> {
        transaction.put(key.to_owned(), value.to_vec(), Expectation::Anything, &[])
    }

    #[test]
    fn a_later_change_of_a_key_replaces_the_earlier() {
        let mut transaction = TransactionRep::new(RepositoryId(1));
        put(&mut transaction, "a", b"1").unwrap();
        put(&mut transaction, "b", b"2").unwrap();
        put(&mut transaction, "a", b"3").unwrap();
        let pairs = transaction.changes.iter().map(|change| match change {
            Change::Put { key, value, .. } => (key.as_str(), value.as_ref()),
            _ => panic!("only puts"),
        });
        let values: Vec<(&str, &[u8])> = pairs.collect();
        assert_eq!(values, [("a", b"3".as_ref()), ("b", b"2".as_ref())]);
    }

    #[test]
    fn changes_beyond_the_limits_are_refused() {
        let refused = |key: &str, value: &[u8]| put(&mut TransactionRep::new(RepositoryId(1)), key, value);
        assert!(refused("", b"").is_err());
        assert!(refused("a\0b", b"").is_err());
        assert!(refused(&"k".repeat(MAX_KEY_BYTES + 1), b"").is_err());
        assert!(refused("k", &vec![0; MAX_VALUE_BYTES + 1]).is_err());
        let mut many = TransactionRep::new(RepositoryId(1));
        let filled = (0..MAX_CHANGES).all(|number| put(&mut many, &number.to_string(), b"").is_ok());
        assert!(filled && put(&mut many, "one more", b"").is_err());
    }

    #[test]
    fn repeated_changes_of_one_key_are_bounded_too() {
        let mut transaction = TransactionRep::new(RepositoryId(1));
        let value = vec![0; MAX_VALUE_BYTES];
        let puts = (0..100).take_while(|_| put(&mut transaction, "k", &value).is_ok()).count();
        assert!(puts <= MAX_COMMIT_BYTES / MAX_VALUE_BYTES);
    }
}
