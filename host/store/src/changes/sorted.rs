//! A small sorted set. Thousands of answers and records own such sets. A `BTreeSet` would need
//! several times the memory, because its smallest node has room for eleven entries.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Sorted<T>(Vec<T>);

impl<T> Default for Sorted<T> {
    fn default() -> Sorted<T> {
        Sorted(Vec::new())
    }
}

impl<T: Ord> Sorted<T> {
    pub(super) fn insert(&mut self, thing: T) {
        if let Err(at) = self.0.binary_search(&thing) {
            self.insert_at(at, thing);
        }
    }

    fn insert_at(&mut self, at: usize, thing: T) {
        if self.0.len() == self.0.capacity() {
            // Reserves little, because most sets stay small.
            self.0.reserve_exact((self.0.len() / 2).max(1));
        }
        self.0.insert(at, thing);
    }

    pub(super) fn contains<Q: Ord + ?Sized>(&self, thing: &Q) -> bool
    where
        T: Borrow<Q>,
    {
        self.0.binary_search_by(|known| known.borrow().cmp(thing)).is_ok()
    }

    /// Adds all entries of `other`.
    pub(super) fn extend(&mut self, other: &Sorted<T>)
    where
        T: Clone,
    {
        for thing in &other.0 {
            if let Err(at) = self.0.binary_search(thing) {
                self.insert_at(at, thing.clone());
            }
        }
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn it_holds_what_a_tree_would() {
        let (mut sorted, mut tree) = (Sorted::default(), BTreeSet::new());
        for number in (0..200_u32).map(|number| number * 7919 % 101) {
            sorted.insert(number);
            tree.insert(number);
            assert!(sorted.iter().eq(tree.iter()) && sorted.len() == tree.len());
        }
        assert!((0..120).all(|number| sorted.contains(&number) == tree.contains(&number)));
        let mut other = Sorted::default();
        [3, 500, 1000].into_iter().for_each(|number| other.insert(number));
        sorted.extend(&other);
        tree.extend([3, 500, 1000]);
        assert!(sorted.iter().eq(tree.iter()));
    }
}
