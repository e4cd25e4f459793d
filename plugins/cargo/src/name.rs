//! Names of crates and where the index has them.

use packhouse_sdk::{Folding, Params};
use std::fmt;

/// Characters of a name at most, as crates.io has it.
const LONGEST: usize = 64;

/// The name of a crate in the one spelling that stands for all: in lower case, with `-` for `_`. Two crates whose names differ in
/// nothing else would be one on many a disk and in every `use`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name(String);

impl Name {
    /// Of a name in any spelling; none for what is no name: letters of ASCII, digits, `-` and `_`, a letter first.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let fits = (1..=LONGEST).contains(&text.len())
            && text.starts_with(|first: char| first.is_ascii_alphabetic());
        let good =
            fits && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        good.then(|| Self(Folding::Pep503.fold(text).into_owned()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Of a request for a crate's page of the index; none where the page does not lie at that path.
    pub(crate) fn of_page(params: &Params<'_>) -> Option<Self> {
        let said = params.segment("name");
        let folders = [params.segment("first"), params.segment("second")];
        let path = folders.into_iter().filter(|folder| !folder.is_empty()).chain([said]);
        let lower = said.to_ascii_lowercase();
        let right = path.collect::<Vec<_>>().join("/") == place(&lower) && said == lower;
        Self::new(said).filter(|_| right)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Where the index has a crate, by its name in lower case: `1/a`, `2/ab`, `3/a/abc`, `ab/cd/abcd`.
pub(crate) fn place(lower: &str) -> String {
    match folders(lower) {
        folders if lower.is_empty() => folders,
        folders => format!("{folders}/{lower}"),
    }
}

/// The folders of that place: what a download's address may name as its prefix.
pub(crate) fn folders(name: &str) -> String {
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
    fn names_have_one_spelling() {
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
    fn pages_lie_where_cargo_looks() {
        for (name, at) in [
            ("a", "1/a"),
            ("ab", "2/ab"),
            ("abc", "3/a/abc"),
            ("abcd", "ab/cd/abcd"),
            ("serde_json", "se/rd/serde_json"),
        ] {
            assert_eq!(place(name), at);
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_name_or_none(text in "\\PC{0,70}") {
            let _ = place(&text);
            if let Some(name) = Name::new(&text) {
                prop_assert_eq!(Name::new(name.as_str()), Some(name));
            }
        }
    }
}
