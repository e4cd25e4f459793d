//! Versions (PEP 440): parsing, spelling and order.

use core::cmp::Ordering;
use core::fmt;

/// Maximum bytes of a version's text.
const LONGEST: usize = 200;

/// A version. Equal versions may have different spellings (`1.0` and `1.0.0`), but the same
/// [`Version::key`].
#[derive(Clone, Debug)]
pub(crate) struct Version {
    epoch: u64,
    release: Vec<u64>,
    pre: Option<(Stage, u64)>,
    post: Option<u64>,
    dev: Option<u64>,
    local: Vec<Label>,
}

/// Stage of a pre-release, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Alpha,
    Beta,
    Candidate,
}

/// A segment of a local version. Texts sort before all numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    Text(String),
    Number(u64),
}

/// Position of a version among the versions with the same release numbers.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum ReleasePosition {
    /// A development release that belongs to no pre-release or post-release.
    First,
    Pre(Stage, u64),
    /// A final release or a post-release.
    Last,
}

impl Version {
    /// Parses a version in any spelling that PEP 440 allows.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.len() > LONGEST || !text.is_ascii() {
            return None;
        }
        let text = text.to_ascii_lowercase();
        let mut rest = Cursor(text.strip_prefix('v').unwrap_or(&text));
        let mut first = rest.number()?;
        let epoch = if rest.take("!") { core::mem::replace(&mut first, rest.number()?) } else { 0 };
        let mut release = vec![first];
        while let Some(number) = rest.tried(|rest| rest.take(".").then(|| rest.number())?) {
            release.push(number);
        }
        let pre = rest.tried(pre);
        let post = rest.tried(post);
        let dev = rest.tried(|rest| {
            rest.separator();
            rest.take("dev").then(|| rest.counted())
        });
        let local = if rest.take("+") { local(rest.0)? } else { Vec::new() };
        let ended = rest.0.is_empty() || !local.is_empty();
        ended.then_some(Self { epoch, release, pre, post, dev, local })
    }

    /// Returns a text that is the same for equal versions, and different for different versions.
    pub(crate) fn key(&self) -> String {
        Self { release: self.significant().to_vec(), ..self.clone() }.to_string()
    }

    /// Returns a text whose byte order is the order of versions. Equal versions have the same text.
    pub(crate) fn sort_key(&self) -> String {
        let mut key = sortable(self.epoch);
        self.significant().iter().for_each(|number| key += &format!("1{}", sortable(*number)));
        key.push('0');
        match self.position() {
            ReleasePosition::First => key.push('0'),
            ReleasePosition::Pre(stage, number) => key += &format!("1{}{}", stage as u8, sortable(number)),
            ReleasePosition::Last => key.push('2'),
        }
        key += &self.post.map_or("0".to_owned(), |number| format!("1{}", sortable(number)));
        key += &self.dev.map_or("1".to_owned(), |number| format!("0{}", sortable(number)));
        for label in &self.local {
            match label {
                // The `!` ends the label, and sorts before every character of a label.
                Label::Text(text) => key += &format!("1{text}!"),
                Label::Number(number) => key += &format!("2{}", sortable(*number)),
            }
        }
        key.push('0');
        key
    }

    /// Returns true if installers skip the version unless the user requests pre-releases.
    pub(crate) fn is_prerelease(&self) -> bool {
        self.pre.is_some() || self.dev.is_some()
    }

    /// Returns the release numbers without trailing zeros, but at least one number.
    fn significant(&self) -> &[u64] {
        let count = self.release.iter().rposition(|number| *number != 0).map_or(1, |last| last + 1);
        self.release.get(..count).unwrap_or_default()
    }

    fn position(&self) -> ReleasePosition {
        match (self.pre, self.post, self.dev) {
            (None, None, Some(_)) => ReleasePosition::First,
            (Some((stage, number)), ..) => ReleasePosition::Pre(stage, number),
            (None, ..) => ReleasePosition::Last,
        }
    }
}

/// Renders a number so that the texts sort like the numbers: a letter for the count of digits, then
/// the digits.
fn sortable(number: u64) -> String {
    let digits = number.to_string();
    let length = u8::try_from(digits.len()).unwrap_or(u8::MAX);
    format!("{}{digits}", char::from(b'a'.saturating_add(length)))
}

/// Parses `[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?N?`.
fn pre(rest: &mut Cursor<'_>) -> Option<(Stage, u64)> {
    rest.separator();
    let words = [
        ("alpha", Stage::Alpha),
        ("beta", Stage::Beta),
        ("preview", Stage::Candidate),
        ("pre", Stage::Candidate),
        ("rc", Stage::Candidate),
        ("a", Stage::Alpha),
        ("b", Stage::Beta),
        ("c", Stage::Candidate),
    ];
    let (_, stage) = words.into_iter().find(|(word, _)| rest.take(word))?;
    Some((stage, rest.counted()))
}

/// Parses `-N`, or `[-_.]?(post|rev|r)[-_.]?N?`.
fn post(rest: &mut Cursor<'_>) -> Option<u64> {
    if let Some(number) = rest.tried(|rest| rest.take("-").then(|| rest.number())?) {
        return Some(number);
    }
    rest.separator();
    ["post", "rev", "r"].into_iter().any(|word| rest.take(word)).then(|| rest.counted())
}

/// Parses a local version, which is the whole rest of a version's text.
fn local(text: &str) -> Option<Vec<Label>> {
    let label = |piece: &str| {
        let valid = !piece.is_empty() && piece.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let number = piece.bytes().all(|byte| byte.is_ascii_digit());
        match (valid, number) {
            (true, true) => piece.parse().ok().map(Label::Number),
            (true, false) => Some(Label::Text(piece.to_owned())),
            (false, _) => None,
        }
    };
    text.split(['.', '-', '_']).map(label).collect()
}

/// The unread rest of a version's text.
#[derive(Clone, Copy)]
struct Cursor<'a>(&'a str);

impl Cursor<'_> {
    fn take(&mut self, word: &str) -> bool {
        self.0.strip_prefix(word).map(|rest| self.0 = rest).is_some()
    }

    fn separator(&mut self) {
        self.0 = self.0.strip_prefix(['-', '_', '.']).unwrap_or(self.0);
    }

    /// Reads a decimal number that fits into 64 bits.
    fn number(&mut self) -> Option<u64> {
        let end = self.0.find(|symbol: char| !symbol.is_ascii_digit()).unwrap_or(self.0.len());
        let (digits, rest) = self.0.split_at_checked(end)?;
        self.0 = rest;
        digits.parse().ok()
    }

    /// Reads `[-_.]?N`. A missing number is 0.
    fn counted(&mut self) -> u64 {
        let counted = self.tried(|rest| {
            rest.separator();
            rest.number()
        });
        counted.unwrap_or(0)
    }

    /// Calls `read`, and restores the position if it returns `None`.
    fn tried<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = *self;
        let found = read(self);
        if found.is_none() {
            *self = before;
        }
        found
    }
}

impl fmt::Display for Version {
    /// Writes the normalized spelling.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.epoch > 0 {
            write!(out, "{}!", self.epoch)?;
        }
        let release: Vec<String> = self.release.iter().map(u64::to_string).collect();
        out.write_str(&release.join("."))?;
        if let Some((stage, number)) = self.pre {
            let word = match stage {
                Stage::Alpha => "a",
                Stage::Beta => "b",
                Stage::Candidate => "rc",
            };
            write!(out, "{word}{number}")?;
        }
        self.post.map_or(Ok(()), |number| write!(out, ".post{number}"))?;
        self.dev.map_or(Ok(()), |number| write!(out, ".dev{number}"))?;
        for (at, label) in self.local.iter().enumerate() {
            out.write_str(if at == 0 { "+" } else { "." })?;
            match label {
                Label::Text(text) => out.write_str(text)?,
                Label::Number(number) => write!(out, "{number}")?,
            }
        }
        Ok(())
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let dev = |version: &Self| (version.dev.is_none(), version.dev);
        self.epoch
            .cmp(&other.epoch)
            .then_with(|| self.significant().cmp(other.significant()))
            .then_with(|| self.position().cmp(&other.position()))
            .then_with(|| self.post.cmp(&other.post))
            .then_with(|| dev(self).cmp(&dev(other)))
            .then_with(|| self.local.cmp(&other.local))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Version {}

#[cfg(test)]
mod tests {
    use super::Version;
    use proptest::prelude::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    /// The examples of PEP 440 and of the tests of `packaging`, in ascending order.
    #[test]
    fn versions_are_ordered() {
        let ordered = [
            "1.0.dev456",
            "1.0a1",
            "1.0a2.dev456",
            "1.0a12.dev456",
            "1.0a12",
            "1.0b1.dev456",
            "1.0b2",
            "1.0b2.post345.dev456",
            "1.0b2.post345",
            "1.0rc1.dev456",
            "1.0rc1",
            "1.0",
            "1.0+abc.5",
            "1.0+abc.7",
            "1.0+5",
            "1.0.post456.dev34",
            "1.0.post456",
            "1.0.15",
            "1.1.dev1",
            "1!0.1",
        ];
        for (at, low) in ordered.iter().enumerate() {
            for high in &ordered[at + 1..] {
                assert!(version(low) < version(high), "{low} < {high}");
                assert!(version(high) > version(low), "{high} > {low}");
                assert!(version(high).sort_key() > version(low).sort_key(), "{high} > {low}");
            }
        }
    }

    #[test]
    fn every_spelling_is_normalised() {
        for (text, normal) in [
            ("v1.0", "1.0"),
            (" 1.0\n", "1.0"),
            ("1.0-ALPHA.1", "1.0a1"),
            ("1.0c1", "1.0rc1"),
            ("1.0.pre", "1.0rc0"),
            ("1.0-1", "1.0.post1"),
            ("1.0rev2", "1.0.post2"),
            ("1.0-r4", "1.0.post4"),
            ("1.0_dev", "1.0.dev0"),
            ("1.0a-dev3", "1.0a0.dev3"),
            ("1.0+Ubuntu-1_x", "1.0+ubuntu.1.x"),
            ("0!1", "1"),
            ("2!01.002", "2!1.2"),
            ("1.0.post1.dev2+a", "1.0.post1.dev2+a"),
            ("20231231235959", "20231231235959"),
        ] {
            assert_eq!(version(text).to_string(), normal, "{text}");
        }
    }

    #[test]
    fn invalid_versions_are_refused() {
        for text in [
            "",
            "a",
            "1.",
            "1..0",
            "1.0+",
            "1.0+a..b",
            "1.0 1",
            "1.0-",
            "1.0x",
            "!1",
            "1!",
            "1.0+a+b",
            "1.0.dev1.dev2",
            "1.0post1a1",
            "99999999999999999999999",
            "１.0",
            "1.0+_",
            "=1.0",
        ] {
            assert!(Version::parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn equal_versions_have_one_key() {
        for (a, b) in [("1.0", "1.0.0"), ("1", "1.0"), ("0", "0.0"), ("1.0rc1", "1.0.0c1")] {
            assert!(version(a) == version(b) && version(a).key() == version(b).key(), "{a} {b}");
        }
        assert_eq!(version("1.0.10").key(), "1.0.10");
        assert_ne!(version("1.10").key(), version("1.1").key());
        assert!(version("1.0a1").is_prerelease() && version("1.dev0").is_prerelease());
        assert!(!version("1.0.post1").is_prerelease());
    }

    prop_compose! {
        fn text()(
            epoch in prop::option::of(0_u64..3), release in prop::collection::vec(0_u64..4, 1..4),
            pre in prop::option::of(("a|b|rc", 0_u64..3)), post in prop::option::of(0_u64..3),
            dev in prop::option::of(0_u64..3), local in prop::option::of("[a-z0-9]{1,2}(\\.[a-z0-9]{1,2})?"),
        ) -> String {
            let release: Vec<String> = release.iter().map(u64::to_string).collect();
            let mut text = epoch.map_or(String::new(), |epoch| format!("{epoch}!")) + &release.join(".");
            if let Some((word, number)) = pre { text += &format!("{word}{number}"); }
            if let Some(number) = post { text += &format!(".post{number}"); }
            if let Some(number) = dev { text += &format!(".dev{number}"); }
            if let Some(local) = local { text += &format!("+{local}"); }
            text
        }
    }

    proptest! {
        #[test]
        fn a_normalised_version_stays_as_it_is(text in text()) {
            let once = version(&text).to_string();
            prop_assert_eq!(version(&once).to_string(), once.clone());
            prop_assert!(version(&once) == version(&text));
        }

        #[test]
        fn the_order_is_total(a in text(), b in text(), c in text()) {
            let (a, b, c) = (version(&a), version(&b), version(&c));
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            prop_assert_eq!(a == b, a.key() == b.key());
            prop_assert_eq!(a.cmp(&b), a.sort_key().cmp(&b.sort_key()));
            if a <= b && b <= c { prop_assert!(a <= c); }
        }

        #[test]
        fn any_text_is_read(text in "[0-9a-z!.+_-]{0,20}|.{0,20}") {
            let _ = Version::parse(&text);
        }
    }
}
