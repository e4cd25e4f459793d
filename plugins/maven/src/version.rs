//! Which of two versions is newer, by Maven's own order (`ComparableVersion`).
//!
//! A version is a list of numbers, words and lists: `-` and every change between digits and letters open a list of their own.
//! Zeros and release words at a list's end do not count, so that `1`, `1.0` and `1-ga` are equal.

use std::cmp::Ordering;

/// Words that come before a release, in order; the empty word is the release, `sp` comes after it, and others after that.
const QUALIFIERS: [&str; 7] = ["alpha", "beta", "milestone", "rc", "snapshot", "", "sp"];

/// Where the release stands in [`QUALIFIERS`].
const RELEASE: usize = 5;

/// A version as it is compared. Two that Maven holds equal (`1.0`, `1.0.0`) are ordered by their text, so that what is made
/// of a sorted list is the same every time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    text: String,
    items: Vec<Item>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    /// Digits without leading zeros, of any length; zero is empty.
    Number(String),
    /// In lower case, its short forms spelt out.
    Word(String),
    List(Vec<Item>),
}

impl Version {
    /// Any text is a version.
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), items: parse(&text.to_lowercase()) }
    }

    /// As it was given.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// As Maven compares them, whatever their text.
    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        compare_lists(&self.items, &other.items)
    }

    /// Whether it comes before a release.
    pub(crate) fn is_prerelease(&self) -> bool {
        comes_before(&self.items)
    }

    /// Whether it is one that is still being worked on.
    pub(crate) fn is_snapshot(&self) -> bool {
        is_snapshot(&self.text)
    }
}

/// Whether it has a word of before the release: `alpha`, `beta`, `milestone`, `rc`, `snapshot`.
fn comes_before(items: &[Item]) -> bool {
    items.iter().any(|item| match item {
        Item::Number(_) => false,
        Item::Word(word) => QUALIFIERS.iter().take(RELEASE).any(|before| before == word),
        Item::List(items) => comes_before(items),
    })
}

/// Whether Maven refuses this character in coordinates.
pub(crate) fn is_impossible(symbol: char) -> bool {
    symbol.is_whitespace() || "\\:\"<>|?*[](){},".contains(symbol)
}

/// Whether an artifact can have this version: it is a folder, and no `${…}` that nobody filled in.
pub(crate) fn is_possible(version: &str) -> bool {
    let is_path = matches!(version, "" | "." | "..") || version.contains('/');
    !is_path && !version.contains(is_impossible)
}

/// Whether a version is still being worked on: `SNAPSHOT`, or ends in `-SNAPSHOT`.
pub(crate) fn is_snapshot(version: &str) -> bool {
    version == "SNAPSHOT" || version.ends_with("-SNAPSHOT")
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        self.compare(other).then_with(|| self.text.cmp(&other.text))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn parse(text: &str) -> Vec<Item> {
    let mut lists: Vec<Vec<Item>> = Vec::new();
    let mut list: Vec<Item> = Vec::new();
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
            // A word before digits, as in `.rc1`, counts as if `-` stood before it.
            _ if c.is_ascii_digit() && !digits && !token.is_empty() => {
                if !list.is_empty() {
                    lists.push(std::mem::take(&mut list));
                }
                list.push(Item::Word(spelt_out(&token)));
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

/// What a token is. An empty one (`1..2`) is zero.
fn item(token: &str, digits: bool) -> Item {
    if digits || token.is_empty() {
        Item::Number(token.trim_start_matches('0').to_owned())
    } else {
        Item::Word(named(token).to_owned())
    }
}

/// One letter directly before digits is short for a word.
fn spelt_out(token: &str) -> String {
    match token {
        "a" => "alpha",
        "b" => "beta",
        "m" => "milestone",
        word => named(word),
    }
    .to_owned()
}

fn named(word: &str) -> &str {
    match word {
        "ga" | "final" | "release" => "",
        "cr" => "rc",
        word => word,
    }
}

/// Each list becomes the last item of the one before it, without what does not count at its end.
fn fold(lists: Vec<Vec<Item>>, last: Vec<Item>) -> Vec<Item> {
    lists.into_iter().rev().fold(trimmed(last), |inner, mut outer| {
        outer.push(Item::List(inner));
        trimmed(outer)
    })
}

fn trimmed(mut list: Vec<Item>) -> Vec<Item> {
    let mut at = list.len();
    while let Some(item) = at.checked_sub(1).and_then(|last| list.get(last)) {
        at -= 1;
        match item {
            _ if is_nothing(item) => drop(list.remove(at)),
            Item::List(_) => {}
            Item::Number(_) | Item::Word(_) => break,
        }
    }
    list
}

fn is_nothing(item: &Item) -> bool {
    match item {
        Item::Number(text) | Item::Word(text) => text.is_empty(),
        Item::List(items) => items.is_empty(),
    }
}

fn compare(left: &Item, right: &Item) -> Ordering {
    use Item::{List, Number, Word};
    match (left, right) {
        (Number(left), Number(right)) => left.len().cmp(&right.len()).then_with(|| left.cmp(right)),
        (Word(left), Word(right)) => rank(left).cmp(&rank(right)),
        (List(left), List(right)) => compare_lists(left, right),
        (Number(_), Word(_) | List(_)) | (List(_), Word(_)) => Ordering::Greater,
        (Word(_), Number(_) | List(_)) | (List(_), Number(_)) => Ordering::Less,
    }
}

fn compare_lists(left: &[Item], right: &[Item]) -> Ordering {
    (0..left.len().max(right.len()))
        .map(|at| match (left.get(at), right.get(at)) {
            (Some(left), Some(right)) => compare(left, right),
            (Some(left), None) => against_nothing(left),
            (None, Some(right)) => against_nothing(right).reverse(),
            (None, None) => Ordering::Equal,
        })
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// How an item compares with the end of the other version.
fn against_nothing(item: &Item) -> Ordering {
    match item {
        Item::Number(digits) => digits.len().cmp(&0),
        Item::Word(word) => rank(word).cmp(&(RELEASE, "")),
        Item::List(items) => {
            items.iter().map(against_nothing).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        }
    }
}

fn rank(word: &str) -> (usize, &str) {
    match QUALIFIERS.iter().position(|&known| known == word) {
        Some(place) => (place, ""),
        None => (QUALIFIERS.len(), word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Maven's order, without the text that decides between equals.
    fn order(left: &str, right: &str) -> Ordering {
        compare_lists(&Version::new(left).items, &Version::new(right).items)
    }

    fn ascending(versions: &[&str]) {
        for (at, low) in versions.iter().enumerate() {
            for high in &versions[at + 1..] {
                assert_eq!(order(low, high), Ordering::Less, "{low} < {high}");
                assert_eq!(order(high, low), Ordering::Greater, "{high} > {low}");
            }
        }
    }

    /// The lists of Maven's own `ComparableVersionTest`.
    #[test]
    fn qualifiers_stand_in_mavens_order() {
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
    fn numbers_stand_in_mavens_order() {
        ascending(&[
            "2.0", "2.0.a", "2-1", "2.0.2", "2.0.123", "2.1.0", "2.1-a", "2.1b", "2.1-c", "2.1-1", "2.1.0.1",
            "2.2", "2.123", "11.a2", "11.a11", "11.b2", "11.b11", "11.m2", "11.m11", "11", "11.a", "11b",
            "11c", "11m",
        ]);
    }

    #[test]
    fn what_maven_holds_equal_is_equal() {
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
    fn single_comparisons_of_maven() {
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
    fn snapshots_are_told_by_their_end() {
        assert!(is_snapshot("1.0-SNAPSHOT") && is_snapshot("SNAPSHOT"));
        assert!(!is_snapshot("1.0") && !is_snapshot("1.0SNAPSHOT") && !is_snapshot("SNAPSHOT-1"));
    }

    #[test]
    fn what_comes_before_a_release_is_told_by_its_words() {
        for text in ["1.0-SNAPSHOT", "1.0-rc1", "1.0.0.CR2", "2.0-M3", "1.0-alpha-1", "1b2"] {
            assert!(Version::new(text).is_prerelease(), "{text}");
        }
        for text in ["1.0", "1.0-jre", "31.1-android", "1.0.Final", "1.0-sp1", "2020.1"] {
            assert!(!Version::new(text).is_prerelease(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_ordered(left in "[0-9a-cxA-C.-]{0,12}", right in "\\PC{0,12}") {
            let (a, b) = (Version::new(&left), Version::new(&right));
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            prop_assert_eq!(a.cmp(&a), Ordering::Equal);
            prop_assert_eq!(a.into_text(), left);
        }
    }
}
