//! What can be set for each repository.

use crate::FILE_LIMIT;
use crate::name::Name;
use packhouse_sdk::{Error, Repository};
use serde::Deserialize;

/// Those settings that matter to the format. A host that does not know one leaves it out.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Settings {
    /// Whether a version that was removed may be published again.
    pub(crate) republish_deleted: bool,
    /// Seconds for which a proxy does not offer what was published upstream.
    pub(crate) min_release_age_s: u64,
    /// Names for which that does not hold.
    min_release_age_except: Vec<String>,
    /// Whether a proxy still offers what it has fetched when it vanishes upstream.
    pub(crate) keep_withdrawn: bool,
    /// Names that are looked for in no proxy.
    claimed_names: Vec<String>,
    /// Bytes of a tarball that the operator allows.
    max_file_bytes: Option<u64>,
}

impl Settings {
    /// As the repository has them.
    pub(crate) fn of(repository: &Repository) -> Result<Self, Error> {
        repository.settings()
    }

    /// Bytes that a tarball may have.
    pub(crate) fn file_limit(&self) -> u64 {
        self.max_file_bytes.unwrap_or(FILE_LIMIT)
    }

    /// Whether a name belongs to this organization, published or not.
    pub(crate) fn claims(&self, name: &Name) -> bool {
        self.claimed_names.iter().any(|pattern| fits(pattern, name.as_str()))
    }

    /// How old a version of this package has to be, in ms; none for any age.
    pub(crate) fn min_age(&self, name: &Name) -> Option<u64> {
        let excepted = self.min_release_age_except.iter().any(|pattern| fits(pattern, name.as_str()));
        (self.min_release_age_s > 0 && !excepted).then(|| self.min_release_age_s.saturating_mul(1000))
    }
}

/// Whether a name is as a pattern says, in which `*` stands for any text. The host reads patterns alike.
fn fits(pattern: &str, name: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(fits("@acme/*", "@acme/lib") && fits("lib", "lib") && fits("*", "lib"));
        assert!(fits("@*/own-*", "@acme/own-lib") && fits("*-internal", "a-internal") && fits("a**b", "ab"));
        assert!(!fits("@*/own-*", "@acme/lib") && !fits("a*b*c", "acb") && !fits("ab*ba", "aba"));
        assert!(!fits("@acme/*", "@acme2/lib") && !fits("lib", "lib2"));
    }
}
