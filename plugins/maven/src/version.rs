//! Maven's own order of versions (`ComparableVersion`).
//!
//! A version is a list of numbers, words and lists. `-`, and every change between digits and
//! letters, start a nested list. Zeros and release words at the end of a list are ignored, so that
//! `1`, `1.0` and `1-ga` are equal.

use std::cmp::Ordering;

/// Words with a fixed rank, in order. The empty word is the release. Words before it mark
/// pre-releases; `sp` and all other words come after it.
const QUALIFIERS: [&str; 7] = ["alpha", "beta", "milestone", "rc", "snapshot", "", "sp"];

/// Index of the release in [`QUALIFIERS`].
const RELEASE: usize = 5;

/// A version that can be compared. Versions that Maven treats as equal (`1.0`, `1.0.0`) are ordered
/// by their text, so that documents made from a sorted list are always the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MavenVersion {
    text: String,
    items: Vec<VersionItem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum VersionItem {
    /// Digits without leading zeros, of any length; zero is empty.
    Number(String),
    /// A word in lower case, with short forms expanded.
    Word(String),
    List(Vec<VersionItem>),
}

impl MavenVersion {
    /// Parses a version. Any text is valid.
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), items: parse(&text.to_lowercase()) }
    }

    /// Returns the original text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Compares as Maven does, without regard to the original text.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        compare_lists(&self.items, &other.items)
    }

    /// Returns true if the version comes before a release.
    pub(crate) fn is_prerelease(&self) -> bool {
        has_prerelease_word(&self.items)
    }

    /// Returns true if the version is still in development.
    pub(crate) fn is_snapshot(&self) -> bool {
        is_snapshot(&self.text)
    }
}

/// Returns true if there is a word for a pre-release: `alpha`, `beta`, `milestone`, `rc` or
/// `snapshot`.
fn has_prerelease_word(items: &[VersionItem]) -> bool {
    items.iter().any(|item| match item {
        VersionItem::Number(_) => false,
        VersionItem::Word(word) => QUALIFIERS.iter().take(RELEASE).any(|before| before == word),
        VersionItem::List(items) => has_prerelease_word(items),
    })
}

/// Returns true if Maven refuses this character in coordinates.
pub(crate) fn is_forbidden(symbol: char) -> bool {
    symbol.is_whitespace() || "\\:\"<>|?*[](){},".contains(symbol)
}

/// Returns true if an artifact can have this version. The version must be a valid name of a folder,
/// without characters that Maven forbids, such as those of an unresolved `${…}`.
pub(crate) fn is_possible(version: &str) -> bool {
    let is_path = matches!(version, "" | "." | "..") || version.contains('/');
    !is_path && !version.contains(is_forbidden)
}

/// Returns true if a version is still in development: it is `SNAPSHOT`, or ends with `-SNAPSHOT`.
pub(crate) fn is_snapshot(version: &str) -> bool {
    version == "SNAPSHOT" || version.ends_with("-SNAPSHOT")
}

impl Ord for MavenVersion {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other).then_with(|| self.text.cmp(&other.text))
    }
}

impl PartialOrd for MavenVersion {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn parse(text: &str) -> Vec<VersionItem> {
    let mut lists: Vec<Vec<VersionItem>> = Vec::new();
    let mut list: Vec<VersionItem> = Vec::new();
    let mut token = String::new();
    let mut digits = false;
    for c in text.chars() {
        match c {
            '.' | '-' => {
                list.push(item(&token, digits));
                token.clear();
                if c == '-' {
                    lists.push(std::mem::take(&mut list));
                }
                continue;
            }
            // A word directly before digits, as in `.rc1`, starts a nested list, as if it followed
            // a `-`.
            _ if c.is_ascii_digit() && !digits && !token.is_empty() => {
                if !list.is_empty() {
                    lists.push(std::mem::take(&mut list));
                }
                list.push(VersionItem::Word(expand_letter(&token)));
                lists.push(std::mem::take(&mut list));
                token.clear();
            }
            _ if !c.is_ascii_digit() && digits && !token.is_empty() => {
                list.push(item(&token, true));
                lists.push(std::mem::take(&mut list));
                token.clear();
            }
            _ => {}
        }
        digits = c.is_ascii_digit();
        token.push(c);
    }
    if !token.is_empty() {
        if !digits && !list.is_empty() {
            lists.push(std::mem::take(&mut list));
        }
        list.push(item(&token, digits));
    }
    fold(lists, list)
}

/// Parses a token. An empty token (`1..2`) is zero.
fn item(token: &str, digits: bool) -> VersionItem {
    if digits || token.is_empty() {
        VersionItem::Number(token.trim_start_matches('0').to_owned())
    } else {
        VersionItem::Word(canonical_word(token).to_owned())
    }
}

/// Expands a letter directly before digits to the word that it stands for: `a1` means `alpha1`.
fn expand_letter(token: &str) -> String {
    match token {
        "a" => "alpha",
        "b" => "beta",
        "m" => "milestone",
        word => canonical_word(word),
    }
    .to_owned()
}

fn canonical_word(word: &str) -> &str {
    match word {
        "ga" | "final" | "release" => "",
        "cr" => "rc",
        word => word,
    }
}

/// Nests the lists: each list becomes the last item of the one before it. Empty items at the end of
/// a list are removed.
fn fold(lists: Vec<Vec<VersionItem>>, last: Vec<VersionItem>) -> Vec<VersionItem> {
    lists.into_iter().rev().fold(trimmed(last), |inner, mut outer| {
        outer.push(VersionItem::List(inner));
        trimmed(outer)
    })
}

fn trimmed(mut list: Vec<VersionItem>) -> Vec<VersionItem> {
    let mut at = list.len();
    while let Some(item) = at.checked_sub(1).and_then(|last| list.get(last)) {
        at -= 1;
        match item {
            _ if is_empty_item(item) => drop(list.remove(at)),
            VersionItem::List(_) => {}
            VersionItem::Number(_) | VersionItem::Word(_) => break,
        }
    }
    list
}

fn is_empty_item(item: &VersionItem) -> bool {
    match item {
        VersionItem::Number(text) | VersionItem::Word(text) => text.is_empty(),
        VersionItem::List(items) => items.is_empty(),
    }
}

fn compare(left: &VersionItem, right: &VersionItem) -> Ordering {
    use VersionItem::{List, Number, Word};
    match (left, right) {
        (Number(left), Number(right)) => left.len().cmp(&right.len()).then_with(|| left.cmp(right)),
        (Word(left), Word(right)) => rank(left).cmp(&rank(right)),
        (List(left), List(right)) => compare_lists(left, right),
        (Number(_), Word(_) | List(_)) | (List(_), Word(_)) => Ordering::Greater,
        (Word(_), Number(_) | List(_)) | (List(_), Number(_)) => Ordering::Less,
    }
}

fn compare_lists(left: &[VersionItem], right: &[VersionItem]) -> Ordering {
    (0..left.len().max(right.len()))
        .map(|at| match (left.get(at), right.get(at)) {
            (Some(left), Some(right)) => compare(left, right),
            (Some(left), None) => compare_with_end(left),
            (None, Some(right)) => compare_with_end(right).reverse(),
            (None, None) => Ordering::Equal,
        })
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Compares an item with the end of a shorter list.
fn compare_with_end(item: &VersionItem) -> Ordering {
    match item {
        VersionItem::Number(digits) => digits.len().cmp(&0),
        VersionItem::Word(word) => rank(word).cmp(&(RELEASE, "")),
        VersionItem::List(items) => {
            items.iter().map(compare_with_end).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }
    }
}

fn rank(word: &str) -> (usize, &str) {
    match QUALIFIERS.iter().position(|&known| known == word) {
        Some(rank) => (rank, ""),
        None => (QUALIFIERS.len(), word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Maven's order, without the comparison of the texts.
    fn order(left: &str, right: &str) -> Ordering {
        compare_lists(&MavenVersion::new(left).items, &MavenVersion::new(right).items)
    }

    fn ascending(versions: &[&str]) {
        for (at, low) in versions.iter().enumerate() {
            for high in &versions[at + 1..] {
                assert_eq!(order(low, high), Ordering::Less, "{low} < {high}");
                assert_eq!(order(high, low), Ordering::Greater, "{high} > {low}");
            }
        }
    }

    /// The versions of Maven's own `ComparableVersionTest`.
    #[test]
    fn qualifiers_are_in_mavens_order() {
        ascending(&[
            "1-alpha2snapshot",
            "1-alpha2",
            "1-alpha-123",
            "1-beta-2",
            "1-beta123",
            "1-m2",
            "1-m11",
            "1-rc",
            "1-cr2",
            "1-rc123",
            "1-SNAPSHOT",
            "1",
            "1-sp",
            "1-sp2",
            "1-sp123",
            "1-abc",
            "1-def",
            "1-pom-1",
            "1-1-snapshot",
            "1-1",
            "1-2",
            "1-123",
        ]);
    }

    #[test]
    fn numbers_are_in_mavens_order() {
        ascending(&[
            "2.0", "2.0.a", "2-1", "2.0.2", "2.0.123", "2.1.0", "2.1-a", "2.1b", "2.1-c", "2.1-1", "2.1.0.1",
            "2.2", "2.123", "11.a2", "11.a11", "11.b2", "11.b11", "11.m2", "11.m11", "11", "11.a", "11b",
            "11c", "11m",
        ]);
    }

    #[test]
    fn versions_that_maven_treats_as_equal_are_equal() {
        for (left, right) in [
            ("1", "1.0"),
            ("1", "1.0.0"),
            ("1.0", "1.0.0"),
            ("1", "1-0"),
            ("1", "1.0-0"),
            ("1.0", "1.0-0"),
            ("1a", "1-a"),
            ("1a", "1.0-a"),
            ("1.0a", "1-a"),
            ("1x", "1.0.0-x"),
            ("1ga", "1"),
            ("1release", "1"),
            ("1final", "1"),
            ("1cr", "1rc"),
            ("1a1", "1-alpha-1"),
            ("1b2", "1-beta-2"),
            ("1m3", "1-milestone-3"),
            ("1X", "1x"),
            ("1GA", "1"),
            ("1.0.RC2", "1.0-RC2"),
            ("0.0", "0"),
            ("00001", "1"),
            ("1.0.0.x", "1-x"),
        ] {
            assert_eq!(order(left, right), Ordering::Equal, "{left} = {right}");
        }
    }

    #[test]
    fn versions_are_compared_as_maven_does_it() {
        for (low, high) in [
            ("1", "2"),
            ("1.5", "2"),
            ("1", "2.5"),
            ("1.0", "1.1"),
            ("1.0.0", "1.1"),
            ("1.1", "1.2.0"),
            ("1.0-alpha-1", "1.0"),
            ("1.0-alpha-1", "1.0-alpha-2"),
            ("1.0-alpha-1", "1.0-beta-1"),
            ("1.0-beta-1", "1.0-SNAPSHOT"),
            ("1.0-SNAPSHOT", "1.0"),
            ("1.0-alpha-1-SNAPSHOT", "1.0-alpha-1"),
            ("1.0", "1.0-1"),
            ("1.0-1", "1.0-2"),
            ("2.0-1", "2.0.1"),
            ("2.0.1-klm", "2.0.1-lmn"),
            ("2.0.1", "2.0.1-xyz"),
            ("2.0.1-xyz", "2.0.1-123"),
            ("6.1.0rc3", "6.1.0"),
            ("6.1.0rc3", "6.1H.5-beta"),
            ("6.1.0", "6.1H.5-beta"),
            ("1.0.0.RC1", "1.0.0-RC2"),
            ("4.0.0.Beta3", "4.0.0-RC1"),
            ("0.7", "2"),
            ("0.2", "1.0.7"),
            ("20190126.230843", "1234567890.12345678901234567890"),
        ] {
            assert_eq!(order(low, high), Ordering::Less, "{low} < {high}");
        }
    }

    #[test]
    fn snapshots_are_recognized_by_their_end() {
        assert!(is_snapshot("1.0-SNAPSHOT") && is_snapshot("SNAPSHOT"));
        assert!(!is_snapshot("1.0") && !is_snapshot("1.0SNAPSHOT") && !is_snapshot("SNAPSHOT-1"));
    }

    #[test]
    fn prereleases_are_recognized_by_their_words() {
        for text in ["1.0-SNAPSHOT", "1.0-rc1", "1.0.0.CR2", "2.0-M3", "1.0-alpha-1", "1b2"] {
            assert!(MavenVersion::new(text).is_prerelease(), "{text}");
        }
        for text in ["1.0", "1.0-jre", "31.1-android", "1.0.Final", "1.0-sp1", "2020.1"] {
            assert!(!MavenVersion::new(text).is_prerelease(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_ordered(left in "[0-9a-cxA-C.-]{0,12}", right in "\\PC{0,12}") {
            let (a, b) = (MavenVersion::new(&left), MavenVersion::new(&right));
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            prop_assert_eq!(a.cmp(&a), Ordering::Equal);
            prop_assert_eq!(a.into_text(), left);
        }
    }
}
