//! Updates of a cached list of records. Touched records come from memory or from one statement; the
//! rest of the list stays.

use crate::changes::TouchedRange;
use crate::db::{Value, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::Entry;
use crate::records::cache::RecordCacheKey;
use crate::records::key_list::KeyList;
use crate::records::range::Range;
use crate::records::read::entry;
use crate::store::Store;

/// Maximum touched records to read individually. Above this number, the whole list is read.
const MOST: usize = 32;

/// Touched records of a range at one moment.
pub(super) struct Patch {
    /// Revision of the repository at that moment.
    pub(super) at: u64,
    /// Touched keys in byte order.
    pub(super) keys: Vec<Box<str>>,
    /// Existing records of these keys.
    pub(super) entries: Vec<Entry>,
}

impl Store {
    /// Records of this range that commits after `since` touched. `None` if they are unknown, or so
    /// many that reading the whole list is better.
    pub(super) async fn patch(
        &self,
        repository: RepositoryId,
        range: &Range,
        since: u64,
        now: u64,
    ) -> Result<Option<Patch>, StoreError> {
        let query = TouchedRange { range, since, now, most: MOST };
        let keys = self.inner.changes.touched(repository, query).filter(|keys| !keys.is_empty());
        let Some(keys) = keys else { return Ok(None) };
        if let Some(entries) = self.all_written(repository, &keys, now) {
            return Ok(Some(Patch { at: now, keys, entries }));
        }
        let mut values = values![repository.0];
        values.extend(keys.iter().map(|key| Value::from(&**key)));
        let rows = self.inner.db.fetch_few(sql(keys.len()), values).await?;
        let Some(first) = rows.first() else { return Ok(None) };
        let at = first.columns().unsigned("at")?;
        // Commits between the look-up in the log and the statement must not have touched other
        // keys.
        let known = self.inner.changes.touched(repository, TouchedRange { now: at, ..query });
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

    /// Records of these keys exactly as they were at `now`, in order, if this process wrote all of
    /// them.
    fn all_written(&self, repository: RepositoryId, keys: &[Box<str>], now: u64) -> Option<Vec<Entry>> {
        let mut entries = Vec::with_capacity(keys.len());
        for key in keys {
            let place = (repository, RecordCacheKey::Record(String::from(&**key)));
            entries.extend(self.inner.record_cache.written(&self.inner.changes, &place, now)?);
        }
        Some(entries)
    }
}

/// SQL for the repository's revision and the records of so many keys.
fn sql(keys: usize) -> String {
    let places: Vec<String> = (2..keys + 2).map(|at| format!("${at}")).collect();
    format!(
        "SELECT p.revision AS at, r.key, r.value, r.revision FROM repositories p \
         LEFT JOIN records r ON r.repository = p.id AND r.key IN ({}) WHERE p.id = $1",
        places.join(",")
    )
}

impl Patch {
    /// The list with the touched records replaced.
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

    /// The list of keys with the touched keys replaced.
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
