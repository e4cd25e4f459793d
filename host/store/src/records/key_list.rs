//! Keys of a range in one block of memory. One block makes it cheap to copy a list of thousands in
//! which one key changed, and to read all keys in order.

use std::fmt;

/// List of keys in the order of their insertion.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeyList {
    text: String,
    /// End of each key in `text`. One result has at most 10,000 keys of 1,024 bytes.
    ends: Vec<u32>,
}

impl KeyList {
    /// Number of keys in the list.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let key = self.text.get(start..*end as usize).unwrap_or_default();
            start = *end as usize;
            key
        })
    }

    #[must_use]
    pub fn last(&self) -> Option<&str> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Size of all keys in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + 4 * self.ends.len()
    }

    pub(super) fn with_capacity(keys: usize, bytes: usize) -> KeyList {
        KeyList { text: String::with_capacity(bytes), ends: Vec::with_capacity(keys) }
    }

    pub(super) fn push(&mut self, key: &str) {
        self.text.push_str(key);
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
    }

    /// Appends the keys `from..to` of another list.
    pub(super) fn extend_from(&mut self, other: &KeyList, from: usize, to: usize) {
        let (start, end) = (other.start(from), other.start(to));
        let moved = self.text.len();
        self.text.push_str(other.text.get(start..end).unwrap_or_default());
        let ends = other.ends.get(from..to).unwrap_or_default();
        self.ends.extend(ends.iter().map(|end| {
            let end = *end as usize - start + moved;
            u32::try_from(end).unwrap_or(u32::MAX)
        }));
    }

    /// Index of the first key, from `from` on, that is not less than `key`. The keys must be in
    /// byte order.
    pub(super) fn position(&self, from: usize, key: &str) -> usize {
        let (mut low, mut high) = (from.min(self.len()), self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle).is_some_and(|there| there < key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    pub(super) fn get(&self, number: usize) -> Option<&str> {
        let end = *self.ends.get(number)?;
        self.text.get(self.start(number)..end as usize)
    }

    /// Start of the key of this index, or the end of the last key.
    fn start(&self, number: usize) -> usize {
        let before = number.checked_sub(1).and_then(|before| self.ends.get(before).or(self.ends.last()));
        before.map_or(0, |end| *end as usize)
    }
}

impl<K: AsRef<str>> FromIterator<K> for KeyList {
    fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> KeyList {
        let mut list = KeyList::default();
        keys.into_iter().for_each(|key| list.push(key.as_ref()));
        list
    }
}

impl fmt::Debug for KeyList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_and_copied() {
        let list: KeyList = ["a", "bb", "", "d\u{e9}"].into_iter().collect();
        assert_eq!(list.iter().collect::<Vec<_>>(), ["a", "bb", "", "d\u{e9}"]);
        assert_eq!((list.len(), list.last(), list.get(4)), (4, Some("d\u{e9}"), None));
        let mut copied = KeyList::with_capacity(3, 8);
        copied.push("0");
        copied.extend_from(&list, 1, 2);
        copied.extend_from(&list, 3, 4);
        copied.extend_from(&list, 4, 4);
        assert_eq!(copied.iter().collect::<Vec<_>>(), ["0", "bb", "d\u{e9}"]);
        assert_eq!(KeyList::default().last(), None);
    }

    #[test]
    fn positions_are_those_of_a_search() {
        let keys = ["b", "c", "c/1", "d"];
        let list: KeyList = keys.into_iter().collect();
        for key in ["a", "b", "bb", "c", "c/", "c/1", "d", "e"] {
            for from in 0..=keys.len() {
                let expected = keys.iter().position(|there| *there >= key).unwrap_or(4).max(from);
                assert_eq!(list.position(from, key), expected, "{key} from {from}");
            }
        }
    }
}
