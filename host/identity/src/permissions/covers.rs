//! Comparison of permissions: whether a member may grant others, or manage a member who has them.

use packhouse_runtime::{Folding, glob_match};

use super::patterns::{is_any, matches_name};
use super::{ALL, Permission, Permissions, RepositoryAction, RepositoryPermission};

/// The repositories of an entry that is compared with held entries.
enum NeededRepositories<'a> {
    /// One repository: its id, and its name if the repository exists.
    One(&'a str, Option<String>),
    /// All repositories whose names match the pattern.
    Named(&'a str),
}

impl Permissions {
    /// Reports whether `self` contains all of `other`. A member may grant only permissions that the
    /// member holds, and manage only members whose permissions the member holds. `name_of` returns
    /// the name of the repository with this id; it is called only if `self` has patterns of
    /// repository names.
    ///
    /// Each pattern of packages in `other` must be covered by a single pattern in `self`, as
    /// [`pattern_covers`] defines it. Two patterns that cover it only together are not enough.
    pub fn covers(&self, other: &Permissions, name_of: impl Fn(&str) -> Option<String>) -> bool {
        // An owner of the first organization manages the server without an explicit permission. In
        // other organizations the permission does not exist.
        let held = |permission: &Permission| {
            self.holds(*permission)
                || (*permission == Permission::ManageServer && self.holds(Permission::ManageOwnerAccount))
        };
        let organization = other.organization.iter().all(held);
        organization && other.repositories.iter().all(|needed| self.covers_entry(needed, &name_of))
    }

    fn covers_entry(&self, needed: &RepositoryPermission, name_of: &impl Fn(&str) -> Option<String>) -> bool {
        let repositories = match (needed.repository.as_deref(), needed.repository_name.as_deref()) {
            (Some(ALL), None) => NeededRepositories::Named(ALL),
            (Some(id), None) => {
                NeededRepositories::One(id, if self.has_name_patterns() { name_of(id) } else { None })
            }
            (None, Some(pattern)) => NeededRepositories::Named(pattern),
            // The entry is invalid and gives nothing. Nobody may grant it.
            _ => return false,
        };
        let applying: Vec<&RepositoryPermission> =
            self.repositories.iter().filter(|held| reaches(held, &repositories)).collect();
        needed.actions.iter().all(|action| self.covers_action(&applying, needed, *action))
    }

    fn covers_action(
        &self,
        applying: &[&RepositoryPermission],
        needed: &RepositoryPermission,
        action: RepositoryAction,
    ) -> bool {
        let held = || applying.iter().filter(move |held| held.permits(action));
        match action {
            RepositoryAction::Read => held().next().is_some(),
            // The permission to manage all repositories includes the right to manage one.
            RepositoryAction::Manage => self.holds(Permission::ManageRepositories) || held().next().is_some(),
            RepositoryAction::Publish | RepositoryAction::Delete => {
                let is_held = |pattern: &str| held().any(|held| covers_packages(held, pattern));
                match &needed.packages {
                    None => is_held(ALL),
                    Some(patterns) => patterns.iter().all(|pattern| is_held(pattern)),
                }
            }
        }
    }
}

/// Reports whether a held entry applies to all of these repositories.
fn reaches(held: &RepositoryPermission, needed: &NeededRepositories<'_>) -> bool {
    match (held.repository.as_deref(), held.repository_name.as_deref(), needed) {
        (Some(ALL), None, _) => true,
        (Some(id), None, NeededRepositories::One(needed, _)) => id == *needed,
        (None, Some(pattern), NeededRepositories::One(_, name)) => match name {
            Some(name) => matches_name(pattern, name),
            None => is_any(pattern),
        },
        (None, Some(pattern), NeededRepositories::Named(needed)) => glob_match(pattern, needed),
        _ => false,
    }
}

fn covers_packages(held: &RepositoryPermission, pattern: &str) -> bool {
    match &held.packages {
        None => true,
        Some(patterns) => patterns.iter().any(|held| pattern_covers(held, pattern)),
    }
}

/// Reports whether the pattern `held` matches every package that the pattern `needed` matches:
/// `@acme/*` covers `@acme/ui-*`. The comparison reads `needed` as a text, whose `*` only a `*` of
/// `held` can match. It must succeed for every rule by which formats fold names, so that the result
/// holds in a repository of any format.
#[must_use]
pub fn pattern_covers(held: &str, needed: &str) -> bool {
    [Folding::None, Folding::Lowercase, Folding::Pep503]
        .iter()
        .all(|folding| glob_match(&folding.fold(held), &folding.fold(needed)))
}
