//! Patterns of package names that limit a right. `*` stands for any text, everything else for
//! itself.

use packhouse_runtime::{Folding, glob_match};

use super::{RepositoryAction, RepositoryPermission};

/// The packages for which a right is held.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PackagePatterns {
    /// The right holds for every package.
    All,
    /// The packages whose names match one of these patterns. An empty list means no package.
    Only(Vec<String>),
}

impl PackagePatterns {
    /// Returns the patterns of these entries together. Each of the entries permits the action.
    pub(super) fn of<'a>(
        entries: impl Iterator<Item = &'a RepositoryPermission>,
        action: RepositoryAction,
    ) -> PackagePatterns {
        let is_by_package = matches!(action, RepositoryAction::Publish | RepositoryAction::Delete);
        let mut patterns: Vec<String> = Vec::new();
        for entry in entries {
            match entry.packages.as_ref().filter(|_| is_by_package) {
                Some(packages) => patterns.extend(packages.iter().cloned()),
                None => return PackagePatterns::All,
            }
        }
        patterns.into()
    }

    /// Reports whether the right is held for this package. `folding` is the rule of the
    /// repository's format for equal spellings of names; it applies to the patterns and to the
    /// name.
    #[must_use]
    pub fn covers(&self, folding: Folding, package: &str) -> bool {
        match self {
            PackagePatterns::All => true,
            PackagePatterns::Only(patterns) => folding.covers(patterns, package),
        }
    }

    /// Reports whether the right is held for no package.
    #[must_use]
    pub fn is_none(&self) -> bool {
        matches!(self, PackagePatterns::Only(patterns) if patterns.is_empty())
    }
}

impl From<Vec<String>> for PackagePatterns {
    /// Reads a list of patterns. A pattern of only `*` stands for all packages.
    fn from(patterns: Vec<String>) -> PackagePatterns {
        if patterns.iter().any(|pattern| is_any(pattern)) {
            PackagePatterns::All
        } else {
            PackagePatterns::Only(patterns)
        }
    }
}

/// Reports whether a pattern matches every text.
pub(super) fn is_any(pattern: &str) -> bool {
    !pattern.is_empty() && pattern.bytes().all(|byte| byte == b'*')
}

/// Reports whether a repository's name matches a pattern. Names of repositories have one spelling,
/// so that nothing is folded.
pub(super) fn matches_name(pattern: &str, name: &str) -> bool {
    glob_match(pattern, name)
}
