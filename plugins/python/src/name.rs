//! Project names (PEP 508), and the normalized form in which they are compared, stored and
//! addressed (PEP 503).

use packhouse_sdk::{Intent, Params};

/// Maximum bytes of a name. A name of this length fits into path segments and record keys.
const LONGEST: usize = 200;

/// Normalizes a project name: converts it to lower case, and replaces each sequence of `-`, `_` and
/// `.` by one `-`. `None` for an invalid name. A valid name contains only ASCII letters, digits and
/// these three marks, and begins and ends with a letter or digit.
pub(crate) fn project(name: &str) -> Option<String> {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    let inside = bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
    let valid = edge(bytes.first()) && edge(bytes.last()) && inside && bytes.len() <= LONGEST;
    valid.then(|| normalize(name))
}

/// Adds the project in the parameter `project` to an intent. An invalid name adds nothing.
pub(crate) fn about(intent: Intent, params: &Params<'_>) -> Intent {
    match project(params.segment("project")) {
        Some(project) => intent.about_package(project),
        None => intent,
    }
}

fn normalize(name: &str) -> String {
    let words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::project;
    use proptest::prelude::*;

    #[test]
    fn names_are_compared_in_one_form() {
        for (name, expected) in [
            ("Foo.Bar", Some("foo-bar")),
            ("foo-_.bar", Some("foo-bar")),
            ("FOO", Some("foo")),
            ("a", Some("a")),
            ("zope.interface", Some("zope-interface")),
            ("", None),
            ("-a", None),
            ("a_", None),
            ("a b", None),
            ("a/b", None),
            ("ä", None),
        ] {
            assert_eq!(project(name).as_deref(), expected, "{name}");
        }
        assert_eq!(project(&"a".repeat(201)), None);
    }

    proptest! {
        #[test]
        fn a_normalised_name_stays_as_it_is(name in "[A-Za-z0-9]([A-Za-z0-9._-]{0,20}[A-Za-z0-9])?") {
            let once = project(&name).unwrap();
            prop_assert_eq!(project(&once), Some(once.clone()));
            prop_assert!(once.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'));
        }

        #[test]
        fn any_text_is_read(name in ".{0,40}") {
            let _ = project(&name);
        }
    }
}
