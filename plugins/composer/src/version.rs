//! Versions, normalised and compared as in Composer (<https://github.com/composer/semver>,
//! `VersionParser`).

use std::cmp::Ordering;

/// The length limit of a numbered version, in bytes.
const LONGEST: usize = 80;
/// The length limit of the name of a branch, in bytes.
const LONGEST_BRANCH: usize = 200;
/// The number for `x` in a numeric branch. It makes `1.x-dev` greater than each release `1.…`.
const ANY_NUMBER: u64 = 9_999_999;

/// The spellings of stabilities. A spelling comes before its own prefixes, because the parser takes
/// the first match.
const WORDS: [(&str, Stability); 9] = [
    ("stable", Stability::Stable),
    ("alpha", Stability::Alpha),
    ("beta", Stability::Beta),
    ("patch", Stability::Patch),
    ("rc", Stability::Candidate),
    ("pl", Stability::Patch),
    ("a", Stability::Alpha),
    ("b", Stability::Beta),
    ("p", Stability::Patch),
];

/// Stabilities, from the least stable to a patch of a stable version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Alpha,
    Beta,
    Candidate,
    Stable,
    Patch,
}

impl Stability {
    /// The spelling in a key.
    fn in_key(self) -> &'static str {
        match self {
            Self::Alpha => "-alpha",
            Self::Beta => "-beta",
            Self::Candidate => "-RC",
            Self::Stable => "",
            Self::Patch => "-patch",
        }
    }
}

/// A version. Named branches come first, in the order of their names, because Composer does not
/// define an order for them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(VersionKind);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum VersionKind {
    /// The name of a branch: `main` for `dev-main`.
    Branch(String),
    Numbered(Numbered),
}

/// A version with numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Numbered {
    /// Four numbers, or the numbers of a date.
    numbers: Vec<u64>,
    stability: Stability,
    /// The numbers after the stability: 2 in `beta2`.
    more: Vec<u64>,
    /// True for a development version.
    dev: bool,
}

impl Version {
    /// Reads a version; `None` if Composer cannot read the text either.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some((prefix, branch)) = text.split_at_checked("dev-".len())
            && prefix.eq_ignore_ascii_case("dev-")
        {
            return is_branch(branch).then(|| Self(VersionKind::Branch(branch.to_owned())));
        }
        if matches!(text, "master" | "trunk" | "default") {
            return Some(Self(VersionKind::Branch(text.to_owned())));
        }
        if text.len() > LONGEST || !text.is_ascii() {
            return None;
        }
        let (version, build) = text.split_once('+').unwrap_or((text, "x"));
        if build.is_empty() || build.contains(char::is_whitespace) {
            return None;
        }
        let lower = version.to_ascii_lowercase();
        let bare = lower.strip_prefix('v').unwrap_or(&lower);
        let read = classical(bare).or_else(|| dated(bare)).or_else(|| numeric_branch(bare));
        read.map(|numbered| Self(VersionKind::Numbered(numbered)))
    }

    /// The key of the version, which is the same for all its spellings.
    pub(crate) fn key(&self) -> String {
        match &self.0 {
            VersionKind::Branch(name) => format!("dev-{name}"),
            VersionKind::Numbered(Numbered { numbers, stability, more, dev }) => {
                let dev = if *dev { "-dev" } else { "" };
                format!("{}{}{}{dev}", dotted(numbers), stability.in_key(), dotted(more))
            }
        }
    }

    /// True for a named branch, which cannot be compared with numbered versions.
    pub(crate) fn is_named_branch(&self) -> bool {
        matches!(self.0, VersionKind::Branch(_))
    }

    /// True for a development version. Such a version is listed in the `~dev.json` of its package,
    /// and its file can be replaced.
    pub(crate) fn is_dev(&self) -> bool {
        match &self.0 {
            VersionKind::Branch(_) => true,
            VersionKind::Numbered(numbered) => numbered.dev,
        }
    }

    pub(crate) fn is_prerelease(&self) -> bool {
        match &self.0 {
            VersionKind::Branch(_) => true,
            VersionKind::Numbered(Numbered { stability, dev, .. }) => *dev || *stability < Stability::Stable,
        }
    }
}

impl Numbered {
    /// The stability as a sort key. A development version without a stability gets `None`, the
    /// lowest.
    fn rank(&self) -> Option<Stability> {
        let before_all = self.dev && self.stability == Stability::Stable;
        (!before_all).then_some(self.stability)
    }
}

impl Ord for Numbered {
    /// Orders a development version of a pre-release directly before the pre-release.
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |one: &Self| (one.rank(), one.more.clone(), !one.dev);
        self.numbers.cmp(&other.numbers).then_with(|| key(self).cmp(&key(other)))
    }
}

impl PartialOrd for Numbered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn dotted(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
}

/// Returns true if this can be the name of a git branch. Checks only those rules of git that matter
/// for a path.
fn is_branch(name: &str) -> bool {
    name.len() <= LONGEST_BRANCH
        && !name.contains("..")
        && !name.contains(|symbol: char| symbol.is_whitespace() || symbol.is_control() || symbol == '\\')
        && name.split('/').all(|part| !part.is_empty() && !part.starts_with('.'))
}

/// Reads up to four numbers with dots between them.
fn classical(text: &str) -> Option<Numbered> {
    let (mut numbers, mut rest) = (Vec::new(), text);
    loop {
        let (digits, after) = digits(rest);
        numbers.push(number(digits)?);
        rest = after;
        let more = after.strip_prefix('.').filter(|more| more.starts_with(|c: char| c.is_ascii_digit()));
        match more {
            Some(more) if numbers.len() < 4 => rest = more,
            _ => break,
        }
    }
    numbers.resize(4, 0);
    numbered(numbers, rest)
}

/// Reads a date: a year, up to six pairs of digits and up to two more numbers, each with or without
/// a separator.
fn dated(text: &str) -> Option<Numbered> {
    let step = |from: &[usize], lengths: &[usize]| -> Vec<usize> {
        let one = |at: &usize| {
            let rest = text.get(*at..).unwrap_or_default();
            let bare = rest.strip_prefix(['.', ':', '-']).unwrap_or(rest);
            let start = text.len() - bare.len();
            let length = digits(bare).0.len();
            let ends = lengths.iter().filter(move |taken| **taken <= length);
            ends.map(move |taken| start + taken).collect::<Vec<_>>()
        };
        let mut ends: Vec<usize> = from.iter().flat_map(one).collect();
        ends.sort_unstable();
        ends.dedup();
        ends
    };
    let year = 4;
    if digits(text).0.len() < year {
        return None;
    }
    let (mut all, mut reached) = (Vec::new(), vec![year]);
    for _ in 0..6 {
        reached = step(&reached, &[2]);
        all.extend(reached.iter().copied());
    }
    reached = all.clone();
    for _ in 0..2 {
        reached = step(&reached, &[1, 2, 3]);
        all.extend(reached.iter().copied());
    }
    all.sort_unstable();
    all.into_iter().rev().find_map(|end| {
        let (date, rest) = text.split_at_checked(end)?;
        let mut numbers = date.split(['.', ':', '-']).map(number).collect::<Option<Vec<u64>>>()?;
        numbers.resize(numbers.len().max(4), 0);
        numbered(numbers, rest)
    })
}

/// Reads a numeric branch: `1.x-dev`, `1.2.x-dev`.
fn numeric_branch(text: &str) -> Option<Numbered> {
    let bare = text.strip_suffix("dev")?;
    let bare = bare.strip_suffix(['.', '-']).unwrap_or(bare);
    let mut numbers = Vec::new();
    for (at, part) in bare.split('.').enumerate() {
        let any = matches!(part, "x" | "*") && at > 0;
        numbers.push(if any { ANY_NUMBER } else { number(part)? });
    }
    if numbers.len() > 4 {
        return None;
    }
    numbers.resize(4, ANY_NUMBER);
    Some(Numbered { numbers, stability: Stability::Stable, more: Vec::new(), dev: true })
}

/// Reads the text after the numbers; `None` unless it consists of an optional stability with
/// numbers and an optional `dev`.
fn numbered(numbers: Vec<u64>, rest: &str) -> Option<Numbered> {
    let rest = rest.strip_prefix(['.', '_', '-']).unwrap_or(rest);
    let word = WORDS.iter().find_map(|(word, stability)| Some((*stability, rest.strip_prefix(word)?)));
    let (stability, mut rest) = word.unwrap_or((Stability::Stable, rest));
    let mut more = Vec::new();
    while word.is_some() {
        let (found, after) = digits(rest.strip_prefix(['.', '-']).unwrap_or(rest));
        if found.is_empty() {
            break;
        }
        more.push(number(found)?);
        rest = after;
    }
    if stability == Stability::Stable {
        more.clear();
    }
    let dev = rest.strip_prefix(['.', '-']).unwrap_or(rest) == "dev";
    (dev || rest.is_empty()).then_some(Numbered { numbers, stability, more, dev })
}

/// Splits a text after the digits at its start.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|symbol: char| !symbol.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// The number with these digits; `None` if there are no digits, or the number exceeds 64 bits.
fn number(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(text: &str) -> Option<String> {
        Version::parse(text).map(|version| version.key())
    }

    #[test]
    fn versions_are_normalised_as_in_composer() {
        for (text, expected) in [
            ("1.0", "1.0.0.0"),
            ("v1.2.3", "1.2.3.0"),
            ("1.0.0-beta2", "1.0.0.0-beta2"),
            ("1.0.0-RC.1", "1.0.0.0-RC1"),
            ("1.0.0RC1", "1.0.0.0-RC1"),
            ("1.0a1", "1.0.0.0-alpha1"),
            ("1.0-stable", "1.0.0.0"),
            ("1.0-p1", "1.0.0.0-patch1"),
            ("1.0.0+build", "1.0.0.0"),
            ("1.0.0-dev", "1.0.0.0-dev"),
            ("1.0.0-beta1-dev", "1.0.0.0-beta1-dev"),
            ("dev-main", "dev-main"),
            ("18446744073709551615.01", "18446744073709551615.1.0.0"),
            ("9007199254740993", "9007199254740993.0.0.0"),
        ] {
            assert_eq!(key(text).as_deref(), Some(expected), "{text}");
        }
        let long = "1".repeat(81);
        for invalid in [
            "",
            "latest",
            "dev-",
            "dev-../x",
            "1.0/2",
            "1.0-foo",
            "1..0",
            "1.0.0.0.0",
            "dev-a b",
            "dev-a//b",
            "dev-/a",
            "dev-.a",
            "v",
            "1.0-beta-x",
            "x-dev",
            "1.x",
            "1.x.y-dev",
            "1.0+",
            "2024.1.1.1.1",
            "18446744073709551616",
            &long,
        ] {
            assert_eq!(key(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn branches_and_dates_are_versions() {
        for (text, expected) in [
            ("dev-feature/a", "dev-feature/a"),
            ("dev-dependabot/composer/a-b-1.2", "dev-dependabot/composer/a-b-1.2"),
            ("dev-#12", "dev-#12"),
            ("master", "dev-master"),
            ("DEV-Main", "dev-Main"),
            ("1.x-dev", "1.9999999.9999999.9999999-dev"),
            ("v11.x-dev", "11.9999999.9999999.9999999-dev"),
            ("1.2.x-dev", "1.2.9999999.9999999-dev"),
            ("1.*-dev", "1.9999999.9999999.9999999-dev"),
            ("20240131", "20240131.0.0.0"),
            ("2010-01-02", "2010.1.2.0"),
            ("2010.01.02", "2010.1.2.0"),
            ("2010-01-02-beta1", "2010.1.2.0-beta1"),
            ("20100102-203040", "20100102.203040.0.0"),
            ("2010.01.02.10.20.30", "2010.1.2.10.20.30"),
            ("2010-01-02.5-dev", "2010.1.2.5-dev"),
        ] {
            assert_eq!(key(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn versions_have_an_order() {
        let rising = [
            "dev-main",
            "1.0.0-dev",
            "1.0.0-alpha7",
            "1.0.0-alpha8-dev",
            "1.0.0-alpha8",
            "1.0.0-beta2",
            "1.0.0-beta10",
            "1.0.0-RC1",
            "1.0.0",
            "1.0.0-p1",
            "1.0.0-p8-dev",
            "1.0.0-p8",
            "1.9",
            "1.10",
            "1.x-dev",
            "2.0",
            "9007199254740993",
            "18446744073709551615",
        ];
        for pair in rising.windows(2) {
            assert!(Version::parse(pair[0]) < Version::parse(pair[1]), "{pair:?}");
        }
    }

    proptest! {
        #[test]
        fn a_key_is_read_as_the_same_version(
            text in "v?[0-9]{1,3}(\\.[0-9]{1,3}){0,4}(-alpha|beta|-RC\\.|b|-a|p|\\.x)?[0-9]{0,2}(-dev)?"
        ) {
            if let Some(version) = Version::parse(&text) {
                prop_assert_eq!(Version::parse(&version.key()), Some(version), "{}", text);
            }
        }

        #[test]
        fn any_text_is_handled(text in "(20[0-9]{2})?[0-9.+abdeprvcx_äß😀 /:-]{0,40}") {
            let _ = Version::parse(&text);
        }

        #[test]
        fn the_order_is_consistent(some in prop::collection::vec("[0-2]\\.[0-2](-a1|-a2|-dev|-p|\\.x-dev)?", 3)) {
            let some: Vec<Version> = some.iter().filter_map(|text| Version::parse(text)).collect();
            for one in &some {
                for other in &some {
                    prop_assert_eq!(one.cmp(other), other.cmp(one).reverse());
                    prop_assert_eq!(one.cmp(other).is_eq(), one == other);
                }
            }
            let mut sorted = some.clone();
            sorted.sort();
            prop_assert!(sorted.windows(2).all(|pair| pair[0] <= pair[1]));
        }
    }
}
