//! Versions as Composer normalises and compares them.

use std::cmp::Ordering;

/// Bytes of a version.
const LONGEST: usize = 80;

/// A version, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// Up to four numbers, what it is short of, and whether it is a development of that.
    Number { numbers: [u64; 4], stability: Stability, more: Vec<u64>, dev: bool },
    /// A branch: `dev-main`.
    Branch(String),
}

/// In the order in which they are released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stability {
    Alpha,
    Beta,
    Candidate,
    Stable,
    Patch,
}

/// Spellings, the longest of those that begin alike first, and how each is written.
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

impl Version {
    /// Reads one. None for what is none, and for one that is a branch of many numbers (`1.x-dev`), which nobody publishes as a file.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte);
        if text.is_empty() || text.len() > LONGEST || !text.bytes().all(plain) {
            return None;
        }
        if let Some(branch) = text.strip_prefix("dev-") {
            let start = branch.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
            return (start && !branch.contains("..")).then(|| Self::Branch(branch.to_owned()));
        }
        // Build metadata counts for nothing.
        let lower = text.split('+').next().unwrap_or_default().to_ascii_lowercase();
        let mut rest = lower.strip_prefix('v').unwrap_or(&lower);
        let mut numbers = [0; 4];
        let mut count = 0;
        while let Some(place) = numbers.get_mut(count) {
            let end = rest.find(|symbol: char| !symbol.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, after) = rest.split_at(end);
            *place = digits.parse().ok()?;
            (rest, count) = (after, count + 1);
            match rest.strip_prefix('.') {
                Some(next) if next.starts_with(|symbol: char| symbol.is_ascii_digit()) => rest = next,
                _ => break,
            }
        }
        let (stability, more, rest) = stability(rest)?;
        let dev = match rest.trim_start_matches(['-', '.']) {
            "dev" => true,
            "" if rest.is_empty() => false,
            _ => return None,
        };
        Some(Self::Number { numbers, stability, more, dev })
    }

    /// The same text for all spellings of a version.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Branch(name) => format!("dev-{name}"),
            Self::Number { numbers, stability, more, dev } => {
                let numbers = numbers.map(|number| number.to_string()).join(".");
                let word = match stability {
                    Stability::Alpha => "-alpha",
                    Stability::Beta => "-beta",
                    Stability::Candidate => "-RC",
                    Stability::Stable => "",
                    Stability::Patch => "-patch",
                };
                let more = more.iter().map(u64::to_string).collect::<Vec<_>>().join(".");
                format!("{numbers}{word}{more}{}", if *dev { "-dev" } else { "" })
            }
        }
    }

    /// Whether it stands in a package's `~dev.json`.
    pub(crate) fn is_dev(&self) -> bool {
        matches!(self, Self::Branch(_) | Self::Number { dev: true, .. })
    }

    /// Whether it is a pre-release.
    pub(crate) fn is_prerelease(&self) -> bool {
        match self {
            Self::Branch(_) => true,
            Self::Number { stability, dev, .. } => *dev || *stability < Stability::Stable,
        }
    }
}

/// The stability that is said, with its numbers, and what stands behind it.
fn stability(rest: &str) -> Option<(Stability, Vec<u64>, &str)> {
    let bare = rest.trim_start_matches(['-', '.', '_']);
    let found = WORDS.iter().find_map(|(word, stability)| Some((*stability, bare.strip_prefix(word)?)));
    let Some((stability, after)) = found else { return Some((Stability::Stable, Vec::new(), rest)) };
    let end = after
        .find(|symbol: char| !symbol.is_ascii_digit() && symbol != '.' && symbol != '-')
        .unwrap_or(after.len());
    let (numbers, mut left) = after.split_at(end);
    // A mark before `dev` is not of the numbers.
    let digits = numbers.trim_end_matches(['-', '.']);
    if digits.len() < numbers.len() {
        left = after.get(digits.len()..)?;
    }
    let parts = digits.split(['.', '-']).filter(|part| !part.is_empty());
    let more = parts.map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()?;
    if !left.is_empty() && digits.is_empty() && left.starts_with(|symbol: char| symbol.is_ascii_alphabetic())
    {
        return None;
    }
    Some((stability, more, left))
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Branch(one), Self::Branch(other)) => one.cmp(other),
            (Self::Branch(_), _) => Ordering::Less,
            (_, Self::Branch(_)) => Ordering::Greater,
            (
                Self::Number { numbers, stability, more, dev },
                Self::Number { numbers: n, stability: s, more: m, dev: d },
            ) => (numbers, !dev, stability, more).cmp(&(n, !d, s, m)),
        }
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::Version;
    use proptest::prelude::*;

    #[test]
    fn versions_are_normalised_as_composer_does_it() {
        for (text, key) in [
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
        ] {
            assert_eq!(Version::parse(text).map(|version| version.key()).as_deref(), Some(key), "{text}");
        }
        for none in
            ["", "latest", "1.x-dev", "dev-", "dev-../x", "1.0/2", "1.0-foo", "1..0", "1.0.0.0.0", "dev-a b"]
        {
            assert_eq!(Version::parse(none), None, "{none}");
        }
    }

    #[test]
    fn versions_have_an_order() {
        let order = [
            "dev-main",
            "1.0.0-dev",
            "1.0.0-alpha1",
            "1.0.0-beta2",
            "1.0.0-beta10",
            "1.0.0-RC1",
            "1.0.0",
            "1.0.0-p1",
            "1.9",
            "1.10",
        ];
        for pair in order.windows(2) {
            assert!(Version::parse(pair[0]) < Version::parse(pair[1]), "{pair:?}");
        }
    }

    proptest! {
        #[test]
        fn a_key_is_a_version_of_the_same_key(text in "v?[0-9]{1,3}(\\.[0-9]{1,3}){0,3}(-?(alpha|beta|RC|b|a|p)[.]?[0-9]{0,2})?(-dev)?|dev-[a-z]{1,8}") {
            if let Some(version) = Version::parse(&text) {
                prop_assert_eq!(Version::parse(&version.key()).map(|again| again.key()), Some(version.key()), "{}", text);
            }
        }

        #[test]
        fn any_text_is_read(text in ".{0,40}|[0-9a-z.+-]{0,20}") {
            let _ = Version::parse(&text);
        }
    }
}
