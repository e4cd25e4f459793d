//! Versions of gems, compared as `Gem::Version` compares them.

use std::cmp::Ordering;

/// Longest version, in bytes.
const LONGEST: usize = 80;

/// Returns true if a gem can be published with this version: numbers and words separated by dots,
/// with a number first.
pub(crate) fn is_version(text: &str) -> bool {
    let mut parts = text.split('.');
    let first =
        parts.next().is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    first
        && text.len() <= LONGEST
        && parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Returns true for a pre-release: a version that contains a letter.
pub(crate) fn is_prerelease(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// A number or a word of a version. A word sorts before every number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Segment<'a> {
    Word(&'a str),
    /// The count of digits and the digits, both without leading zeros. In this form, numbers sort
    /// by value.
    Number(usize, &'a str),
}

/// Compares two versions as `Gem::Version` does. Ignores zeros at the end, and zeros directly
/// before the first word.
pub(crate) fn compare(one: &str, other: &str) -> Ordering {
    let (one, other) = (segments(one), segments(other));
    let zero = Segment::Number(0, "");
    for at in 0..one.len().max(other.len()) {
        let order = one.get(at).unwrap_or(&zero).cmp(other.get(at).unwrap_or(&zero));
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

/// Splits a version into numbers and words. Drops zeros directly before the first word.
fn segments(text: &str) -> Vec<Segment<'_>> {
    let mut found = Vec::new();
    for part in text.split(|symbol: char| !symbol.is_ascii_alphanumeric()) {
        let mut rest = part;
        while let Some(first) = rest.chars().next() {
            let digits = first.is_ascii_digit();
            let end = rest.find(|symbol: char| symbol.is_ascii_digit() != digits).unwrap_or(rest.len());
            let (run, after) = rest.split_at(end);
            let bare = run.trim_start_matches('0');
            found.push(if digits { Segment::Number(bare.len(), bare) } else { Segment::Word(run) });
            rest = after;
        }
    }
    if let Some(word) = found.iter().position(|segment| matches!(segment, Segment::Word(_))) {
        let numbers = found.get(..word).unwrap_or_default();
        let left =
            numbers.iter().rposition(|segment| *segment != Segment::Number(0, "")).map_or(0, |at| at + 1);
        found.drain(left..word);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn versions_are_compared_as_ruby_does_it() {
        for (lower, higher) in [
            ("1.9", "1.10"),
            ("1.0.rc1", "1.0"),
            ("1.0.a", "1.0.b"),
            ("1.0.a9", "1.0.a10"),
            ("1.0.0.beta.2", "1.0.0.rc.1"),
            ("7.0.0.rc2", "7.0.x"),
            ("1.0", "1.0.1"),
            ("2", "10"),
        ] {
            assert_eq!(compare(lower, higher), Ordering::Less, "{lower} {higher}");
            assert_eq!(compare(higher, lower), Ordering::Greater, "{lower} {higher}");
        }
        for (one, other) in [("1.0", "1.0.0"), ("1.0.rc1", "1.rc1"), ("1.0.0.a.0.b", "1.a.0.b"), ("0.a", "a")]
        {
            assert_eq!(compare(one, other), Ordering::Equal, "{one} {other}");
        }
        assert!(
            is_version("1.0.0.pre1")
                && !is_version("1..0")
                && !is_version("a.1")
                && !is_version("1.0-java")
                && !is_version("")
        );
    }

    proptest! {
        #[test]
        fn any_text_is_compared(one in ".{0,20}", other in "[0-9a-z.]{0,20}") {
            let _ = (compare(&one, &other), is_version(&one), is_version(&other));
        }
    }
}
