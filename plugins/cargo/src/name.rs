//! Names of crates, and their paths in the index.

use packhouse_sdk::{Folding, Params};
use std::fmt;

/// Characters of the longest name, as on crates.io.
const NAME_LIMIT: usize = 64;

/// The name of a crate in its canonical spelling: in lower case, with `-` for `_`. Two crates whose
/// names differ only in case or in `-` and `_` would collide on many file systems and in every
/// `use`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(String);

impl Name {
    /// Reads a name in any spelling. `None` if the text is not a name: ASCII letters, digits, `-`
    /// and `_`, beginning with a letter.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let has_valid_ends = (1..=NAME_LIMIT).contains(&text.len())
            && text.starts_with(|first: char| first.is_ascii_alphabetic());
        let is_valid = has_valid_ends
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        is_valid.then(|| Self(Folding::Pep503.fold(text).into_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the crate's name in a request for a page of the index. `None` if the requested path
    /// is not the path of this crate's page.
    pub(crate) fn of_page(params: &Params<'_>) -> Option<Self> {
        let spelling = params.segment("name");
        let folders = [params.segment("first"), params.segment("second")];
        let path = folders.into_iter().filter(|folder| !folder.is_empty()).chain([spelling]);
        let lower = spelling.to_ascii_lowercase();
        let is_its_path = path.collect::<Vec<_>>().join("/") == index_path(&lower) && spelling == lower;
        Self::new(spelling).filter(|_| is_its_path)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The path of a crate in the index, for its name in lower case: `1/a`, `2/ab`, `3/a/abc`,
/// `ab/cd/abcd`.
pub(crate) fn index_path(lower: &str) -> String {
    match index_folders(lower) {
        folders if lower.is_empty() => folders,
        folders => format!("{folders}/{lower}"),
    }
}

/// The folders in the path of a crate in the index: `ab/cd` for `abcd`. An upstream's template for
/// download addresses can contain them as `{prefix}`.
pub(crate) fn index_folders(name: &str) -> String {
    let part = |from: usize, to: usize| name.get(from..to).unwrap_or_default();
    match name.len() {
        0 => String::new(),
        length @ (1 | 2) => length.to_string(),
        3 => format!("3/{}", part(0, 1)),
        _ => format!("{}/{}", part(0, 2), part(2, 4)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_spelling_of_a_name_is_folded() {
        for (text, name) in [
            ("serde_json", Some("serde-json")),
            ("Serde-JSON", Some("serde-json")),
            ("a", Some("a")),
            ("", None),
            ("1a", None),
            ("_a", None),
            ("a.b", None),
            ("a/b", None),
            ("é", None),
        ] {
            assert_eq!(Name::new(text).as_ref().map(Name::as_str), name, "{text}");
        }
        assert_eq!(Name::new(&"a".repeat(65)), None);
    }

    #[test]
    fn pages_have_the_paths_that_cargo_requests() {
        for (name, at) in [
            ("a", "1/a"),
            ("ab", "2/ab"),
            ("abc", "3/a/abc"),
            ("abcd", "ab/cd/abcd"),
            ("serde_json", "se/rd/serde_json"),
        ] {
            assert_eq!(index_path(name), at);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_handled(text in "\\PC{0,70}") {
            let _ = index_path(&text);
            if let Some(name) = Name::new(&text) {
                prop_assert_eq!(Name::new(name.as_str()), Some(name));
            }
        }
    }
}
