//! Rules that the host and the test hosts share. They decide how names of packages match the
//! patterns in settings (`claimed_names`, `min_release_age_except`), and which releases a proxy may
//! offer. They also decide which versions an advisory affects, and where long lists of keys are cut
//! into runs.
//!
//! People write patterns, and formats normalise names; a [`Folding`] converts both to one spelling.

#![warn(missing_docs)]

mod affected;
mod release;
mod runs;

use std::borrow::Cow;

pub use affected::{AffectedRange, AffectedVersions, Place, RangeEvent, places};
pub use release::{JudgedReleases, Judgement, PackageRules, Release, ReleaseRules, ReleaseVerdict};
pub use runs::{runs, runs_of_page};
use serde::{Deserialize, Serialize};

/// True if a name matches a pattern, in which `*` stands for any text, including an empty text. Use
/// [`NamePatterns`] or [`Folding::covers`] for names of packages.
///
/// ```
/// assert!(packhouse_names::glob_match("@acme/*", "@acme/lib"));
/// assert!(!packhouse_names::glob_match("lib", "lib2"));
/// ```
pub fn glob_match(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let (between, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in between.split('*') {
        match name.split_once(part) {
            Some((_, after)) => name = after,
            None => return false,
        }
    }
    name.ends_with(last)
}

/// Rule that decides which spellings of a name are equal in a format.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Folding {
    /// Each spelling is a separate name.
    #[default]
    None,
    /// Upper and lower case are equal.
    Lowercase,
    /// Normalisation of PEP 503: upper and lower case are equal, and every run of `-`, `_` and `.`
    /// is one `-`.
    Pep503,
}

impl Folding {
    /// Converts a name or a pattern to the normalised spelling.
    ///
    /// ```
    /// use packhouse_names::Folding;
    /// assert_eq!(Folding::Pep503.fold("Acme._*"), "acme-*");
    /// ```
    pub fn fold(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::None => Cow::Borrowed(text),
            Self::Lowercase => Cow::Owned(text.to_lowercase()),
            Self::Pep503 => {
                let mut folded = String::with_capacity(text.len());
                for letter in text.chars() {
                    match letter {
                        '-' | '_' | '.' if folded.ends_with('-') => {}
                        '-' | '_' | '.' => folded.push('-'),
                        letter => folded.extend(letter.to_lowercase()),
                    }
                }
                Cow::Owned(folded)
            }
        }
    }

    /// True if one of these patterns matches this name after both are converted to the normalised
    /// spelling.
    pub fn covers<P: AsRef<str>>(self, patterns: &[P], name: &str) -> bool {
        let name = self.fold(name);
        patterns.iter().any(|pattern| glob_match(&self.fold(pattern.as_ref()), &name))
    }
}

/// Patterns for names of packages, as people write them. Comparing them with a name requires the
/// format's folding.
///
/// ```
/// use packhouse_names::{Folding, NamePatterns};
/// let patterns = NamePatterns::from(vec!["Acme_*".to_owned()]);
/// assert!(patterns.cover(Folding::Pep503, "acme-tool"));
/// assert!(!patterns.cover(Folding::None, "acme-tool"));
/// ```
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct NamePatterns(Vec<String>);

impl NamePatterns {
    /// True if one of the patterns matches this name after both are converted to the normalised
    /// spelling.
    pub fn cover(&self, folding: Folding, name: &str) -> bool {
        folding.covers(&self.0, name)
    }

    /// Returns the patterns as they were written.
    pub fn written(&self) -> &[String] {
        &self.0
    }
}

impl From<Vec<String>> for NamePatterns {
    fn from(patterns: Vec<String>) -> Self {
        Self(patterns)
    }
}

#[cfg(test)]
mod tests {
    use super::{Folding, glob_match};

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("app", "app", true),
            ("app", "apps", false),
            ("Demo", "demo", false),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("*x", "x", true),
            ("team/*", "team/a/b", true),
            ("team/*", "team", false),
            ("@acme/*", "@acme2/lib", false),
            ("org.example*", "org.example.sub:lib", true),
            ("org.example:*", "org.examples:lib", false),
            ("*-internal", "a-internal", true),
            ("@*/own-*", "@acme/own-lib", true),
            ("@*/own-*", "@acme/lib", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "acb", false),
            ("a**b", "ab", true),
            ("ab*ba", "aba", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(glob_match(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_are_folded_as_names_are() {
        for (folding, pattern, name, expected) in [
            (Folding::None, "Acme", "acme", false),
            (Folding::Lowercase, "Team/*", "team/app", true),
            (Folding::Lowercase, "a_b", "a-b", false),
            (Folding::Pep503, "Our.*", "our-tool", true),
            (Folding::Pep503, "our_tool", "Our.-_Tool", true),
            (Folding::Pep503, "our-*", "ours", false),
            (Folding::Pep503, "*_Tool", "our-tool", true),
        ] {
            assert_eq!(folding.covers(&[pattern], name), expected, "{folding:?} {pattern} {name}");
        }
    }
}
