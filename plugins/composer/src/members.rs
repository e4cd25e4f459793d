//! The JSON members of a version, and Composer 2's minified form of a list of versions. The first
//! version in a minified list is complete. Each later version has only the members that differ from
//! the version before it.
//!
//! This module keeps the value of a member as JSON text. Values are compared as text, and numbers
//! keep their spelling.

use packhouse_sdk::Error;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The value of the member `minified`, which announces this form.
pub(crate) const FORM: &str = "composer/2.0";
/// The value for a member that the previous version has and this version lacks.
const UNSET: &str = "\"__unset\"";

/// The JSON members of a version by name, each value as JSON text.
pub(crate) type Members = BTreeMap<String, Rc<str>>;

/// The members of a parsed object.
pub(crate) fn of_object(object: &Map<String, Value>) -> Members {
    object.iter().map(|(name, value)| (name.clone(), value.to_string().into())).collect()
}

/// The members of an object whose values are not parsed.
pub(crate) fn of_raw(object: &BTreeMap<String, Box<RawValue>>) -> Members {
    object.iter().map(|(name, value)| (name.clone(), value.get().into())).collect()
}

/// The object with these members.
///
/// # Errors
/// [`Error::Other`] for a value that is not JSON.
pub(crate) fn to_raw(members: &Members) -> Result<BTreeMap<String, Box<RawValue>>, Error> {
    let raw = |(name, json): (&String, &Rc<str>)| {
        Ok((name.clone(), RawValue::from_string(json.as_ref().to_owned())?))
    };
    members.iter().map(raw).collect()
}

/// The value of a member that is a string; `None` if it is not a string.
pub(crate) fn text(members: &Members, member: &str) -> Option<String> {
    serde_json::from_str(members.get(member)?).ok()
}

/// The value of a member that is an object; `None` if it is not an object.
pub(crate) fn object(members: &Members, member: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(members.get(member)?).ok()
}

/// Returns the members to write for the version `now` if `before` is the previous version in the
/// list.
pub(crate) fn difference<'a>(before: &'a Members, now: &'a Members) -> BTreeMap<&'a str, &'a str> {
    let changed = now.iter().filter(|(name, json)| before.get(*name) != Some(json));
    let changed = changed.map(|(name, json)| (name.as_str(), json.as_ref()));
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    changed.chain(gone.map(|name| (name.as_str(), UNSET))).collect()
}

/// Changes `version` into the next version of a minified list. `written` has the members that the
/// list contains for the next version.
pub(crate) fn apply(version: &mut Members, written: Members) {
    for (name, json) in written {
        if json.as_ref() == UNSET {
            version.remove(&name);
        } else {
            version.insert(name, json);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn version() -> impl Strategy<Value = Members> {
        let value = prop::sample::select(vec!["0", "1", "\"x\"", "[\"a\"]", "{\"a\":1}", "null"]);
        let value = value.prop_map(Rc::<str>::from);
        prop::collection::btree_map("[a-d]", value, 0..4)
    }

    proptest! {
        #[test]
        fn minified_versions_expand_to_the_same_versions(all in prop::collection::vec(version(), 0..6)) {
            let (mut before, mut read) = (Members::new(), Members::new());
            for now in all {
                let written = difference(&before, &now);
                let written = written.into_iter().map(|(name, json)| (name.to_owned(), json.into()));
                apply(&mut read, written.collect());
                prop_assert_eq!(&read, &now);
                before = now;
            }
        }
    }
}
