//! Packages that a credential may publish and delete, if it has no owner. The rights of its maker
//! limit it only when it is created.

use packhouse_identity::permissions::{PackagePatterns, RepositoryAction, pattern_covers};
use packhouse_store::RepositoryRow;
use packhouse_wire::catalogue;

use crate::error::ApiError;
use crate::operations::Actor;

/// Packages that a member may both publish and delete in each of several repositories. A package
/// must match a pattern of each list; without lists, all packages are included.
#[derive(Debug)]
pub(in crate::operations) struct PackageLimits(Vec<Vec<String>>);

impl PackageLimits {
    pub(in crate::operations) fn of(actor: &Actor, repositories: &[RepositoryRow]) -> PackageLimits {
        let mut lists = Vec::new();
        for row in repositories {
            for action in [RepositoryAction::Publish, RepositoryAction::Delete] {
                if let PackagePatterns::Only(list) = actor.permissions().patterns(row.id, &row.name, action) {
                    lists.push(list);
                }
            }
        }
        PackageLimits(lists)
    }

    /// Returns whether the member may write all packages of these patterns; `None` stands for every
    /// package.
    pub(in crate::operations) fn include(&self, patterns: Option<&[String]>) -> bool {
        match patterns {
            None => self.0.is_empty(),
            Some(patterns) => patterns.iter().all(|pattern| self.includes(pattern)),
        }
    }

    fn includes(&self, pattern: &str) -> bool {
        self.0.iter().all(|list| list.iter().any(|held| pattern_covers(held, pattern)))
    }

    /// Patterns of the packages that are in every list; `None` if no list limits them.
    fn patterns(&self) -> Option<Vec<String>> {
        if self.0.is_empty() {
            return None;
        }
        let mut common: Vec<String> = Vec::new();
        for pattern in self.0.iter().flatten().filter(|pattern| self.includes(pattern)) {
            if !common.contains(pattern) {
                common.push(pattern.clone());
            }
        }
        Some(common)
    }
}

/// Returns the packages of a credential without an owner that the actor creates for these
/// repositories: the requested ones, or those that the actor may write. `None` stands for every
/// package. 403 `role_mismatch` if the actor may not write the requested ones, or none.
pub(in crate::operations) fn of_maker(
    actor: &Actor,
    repositories: &[RepositoryRow],
    requested: Option<Vec<String>>,
) -> Result<Option<Vec<String>>, ApiError> {
    let limits = PackageLimits::of(actor, repositories);
    let packages = match requested {
        Some(patterns) => Some(patterns),
        None => limits.patterns(),
    };
    let held = packages.as_ref().is_none_or(|patterns| !patterns.is_empty());
    actor.judge(held && limits.include(packages.as_deref()), &catalogue::ROLE_MISMATCH)?;
    Ok(packages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn a_package_must_match_each_list() {
        let limits = PackageLimits(vec![texts(&["@acme/*", "lib"]), texts(&["@acme/ui-*", "lib", "other"])]);
        assert_eq!(limits.patterns(), Some(texts(&["lib", "@acme/ui-*"])));
        assert!(limits.include(Some(&texts(&["@acme/ui-kit", "lib"]))));
        assert!(!limits.include(Some(&texts(&["@acme/api"]))) && !limits.include(None));
        let disjoint = PackageLimits(vec![texts(&["a-*"]), texts(&["b-*"])]);
        assert_eq!(disjoint.patterns(), Some(Vec::new()));
    }

    #[test]
    fn without_lists_every_package_is_included() {
        let limits = PackageLimits(Vec::new());
        assert_eq!(limits.patterns(), None);
        assert!(limits.include(None) && limits.include(Some(&texts(&["*"]))));
    }
}
