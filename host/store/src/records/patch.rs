//! Bringing a kept list of records up to date: what commits touched of it is taken from memory, or read in one statement, and the rest
//! stays.

use crate::changes::TouchedRange;
use crate::db::{Value, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::Entry;
use crate::records::cache::Question;
use crate::records::key_list::KeyList;
use crate::records::range::Range;
use crate::records::read::entry;
use crate::store::Store;

/// Records that are read one by one rather than with all of their list.
const MOST: usize = 32;

/// What was touched of a range, as it is at one moment.
pub(super) struct Patch {
    /// The repository's revision at that moment.
    pub(super) at: u64,
    /// The keys that were touched, in their order.
    pub(super) keys: Vec<Box<str>>,
    /// Those of them that have a record.
    pub(super) entries: Vec<Entry>,
}

impl Store {
    /// What commits after `since` touched of this range. None where that is not known, or so much that the whole is better read again.
    pub(super) async fn patch(
        &self,
        repository: RepositoryId,
        range: &Range,
        since: u64,
        now: u64,
    ) -> Result<Option<Patch>, StoreError> {
        let asked = TouchedRange { range, since, now, most: MOST };
        let keys = self.inner.changes.touched(repository, asked).filter(|keys| !keys.is_empty());
        let Some(keys) = keys else { return Ok(None) };
        if let Some(entries) = self.all_written(repository, &keys, now) {
            return Ok(Some(Patch { at: now, keys, entries }));
        }
        let mut values = values![repository.0];
        values.extend(keys.iter().map(|key| Value::from(&**key)));
        let rows = self.inner.db.fetch_few(sql(keys.len()), values).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let at = first.columns().unsigned("at")?;
        // What was touched between the question and the statement must be among it.
        let known = self.inner.changes.touched(repository, TouchedRange { now: at, ..asked });
        if known.as_ref() != Some(&keys) {
            return Ok(None);
        }
        let present = rows.iter().filter_map(|row| match row.columns().opt_text("key") {
            Ok(None) => None,
            _ => Some(entry(row)),
        });
        let mut entries = present.collect::<Result<Vec<Entry>, _>>()?;
        entries.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        Ok(Some(Patch { at, keys, entries }))
    }

    /// The records of these keys as all of them were at `now`, in the order of the keys, where this process wrote each.
    fn all_written(&self, repository: RepositoryId, keys: &[Box<str>], now: u64) -> Option<Vec<Entry>> {
        let mut entries = Vec::with_capacity(keys.len());
        for key in keys {
            let place = (repository, Question::Record(String::from(&**key)));
            entries.extend(self.inner.record_cache.written(&self.inner.changes, &place, now)?);
        }
        Some(entries)
    }
}

/// The repository's revision, with the records of so many keys.
fn sql(keys: usize) -> String {
    let places: Vec<String> = (2..keys + 2).map(|at| format!("${at}")).collect();
    format!(
        "SELECT p.revision AS at, r.key, r.value, r.revision FROM repositories p \
         LEFT JOIN records r ON r.repository = p.id AND r.key IN ({}) WHERE p.id = $1",
        places.join(",")
    )
}

impl Patch {
    /// The list with what was touched put in its place.
    pub(super) fn of(&self, list: &[Entry]) -> Vec<Entry> {
        let mut patched = Vec::with_capacity(list.len() + self.entries.len());
        let mut rest = list;
        let mut entries = self.entries.iter().peekable();
        for touched in &self.keys {
            let at = rest.partition_point(|entry| entry.key.as_str() < &**touched);
            let (before, from) = rest.split_at_checked(at).unwrap_or((rest, &[]));
            patched.extend_from_slice(before);
            rest = match from.split_first() {
                Some((entry, after)) if entry.key == **touched => after,
                _ => from,
            };
            patched.extend(entries.next_if(|entry| entry.key == **touched).cloned());
        }
        patched.extend_from_slice(rest);
        patched
    }

    /// The same for a list of keys.
    pub(super) fn of_keys(&self, list: &KeyList) -> KeyList {
        let more: usize = self.entries.iter().map(|entry| entry.key.len()).sum();
        let mut patched = KeyList::with_capacity(list.len() + self.entries.len(), list.bytes() + more);
        let mut from = 0;
        let mut entries = self.entries.iter().peekable();
        for touched in &self.keys {
            let at = list.position(from, touched);
            patched.extend_from(list, from, at);
            from = if list.get(at) == Some(touched) { at + 1 } else { at };
            if let Some(entry) = entries.next_if(|entry| entry.key == **touched) {
                patched.push(&entry.key);
            }
        }
        patched.extend_from(list, from, list.len());
        patched
    }
}
