//! Composer 2's minified metadata: the first version whole, of each further one what differs from the one before.

use serde_json::{Map, Value};

/// The member that says so.
pub(crate) const FORM: &str = "composer/2.0";
/// Stands for a member that the version before had.
const UNSET: &str = "__unset";

/// What is to be written of `now` behind `before`.
pub(crate) fn difference(before: &Map<String, Value>, now: &Map<String, Value>) -> Map<String, Value> {
    let changed = now.iter().filter(|(name, value)| before.get(*name) != Some(value));
    let mut written: Map<String, Value> =
        changed.map(|(name, value)| (name.clone(), value.clone())).collect();
    for name in before.keys().filter(|name| !now.contains_key(*name)) {
        written.insert(name.clone(), UNSET.into());
    }
    written
}

/// Makes of `version` what is written of the next one.
pub(crate) fn apply(version: &mut Map<String, Value>, written: Map<String, Value>) {
    for (name, value) in written {
        if value == UNSET {
            version.remove(&name);
        } else {
            version.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_gives_back_each_version(
            versions in prop::collection::vec(prop::collection::btree_map("[a-d]", 0..3u8, 0..4), 0..6),
        ) {
            let (mut before, mut read) = (Map::new(), Map::new());
            for version in versions {
                let now: Map<String, Value> = version.into_iter().map(|(name, value)| (name, value.into())).collect();
                apply(&mut read, difference(&before, &now));
                prop_assert_eq!(&read, &now);
                before = now;
            }
        }
    }
}
