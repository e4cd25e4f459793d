//! Permissions of a member: in the organization, and actions in repositories. An entry names one
//! repository, all repositories (`*`), or all repositories whose names match a pattern. It may
//! limit publishing and deleting to packages whose names match patterns.

mod check;
mod covers;
mod patterns;

use packhouse_store::{MemberRow, RepositoryId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

pub use self::check::check_patterns;
pub use self::covers::pattern_covers;
pub use self::patterns::PackagePatterns;
use crate::access::Rights;

/// A permission in the organization.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// Manage audit, SSO, formats, other members' tokens, and keys of the organization.
    ManageOwnerAccount,
    /// Manage members, invitations, teams and service accounts.
    ManageMembers,
    /// Create, change and delete repositories of the organization.
    ManageRepositories,
    /// Manage subscribers and their access keys.
    ManageSubscribers,
    /// Manage the server itself: its settings and plugins. This permission exists only in the first
    /// organization, whose owners have it.
    ManageServer,
}

impl Permission {
    pub const ALL: [Permission; 5] = [
        Permission::ManageOwnerAccount,
        Permission::ManageMembers,
        Permission::ManageRepositories,
        Permission::ManageSubscribers,
        Permission::ManageServer,
    ];

    /// The permission's name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Permission::ManageOwnerAccount => "manage-owner-account",
            Permission::ManageMembers => "manage-members",
            Permission::ManageRepositories => "manage-repositories",
            Permission::ManageSubscribers => "manage-subscribers",
            Permission::ManageServer => "manage-server",
        }
    }
}

/// An action in a repository.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RepositoryAction {
    /// List and fetch packages, without changes.
    Read,
    /// Publish new packages and new versions.
    Publish,
    /// Delete packages.
    Delete,
    /// Manage the repository: its settings, upstream, members, service keys, trusted publishers,
    /// retention, quota and trash.
    Manage,
}

/// Actions that are permitted in one repository, or in several. An entry has exactly one of
/// `repository` and `repository_name`.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RepositoryPermission {
    /// The repository's id, or `*` for all repositories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// A pattern of repository names, in which `*` stands for any text. The entry also applies to
    /// repositories that are created later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_name: Option<String>,
    /// The actions that are permitted there.
    pub actions: Vec<RepositoryAction>,
    /// Patterns of the packages that may be published and deleted, in which `*` stands for any
    /// text. Absent for all packages. They do not limit `read` and `manage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages: Option<Vec<String>>,
}

impl RepositoryPermission {
    /// Reports whether the entry applies to this repository. An entry that names its repositories
    /// in both ways or in neither applies to none.
    fn applies_to(&self, id: &str, name: &str) -> bool {
        match (&self.repository, &self.repository_name) {
            (Some(repository), None) => repository == ALL || repository == id,
            (None, Some(pattern)) => patterns::matches_name(pattern, name),
            _ => false,
        }
    }

    /// Reports whether the entry permits the action for at least one package.
    fn permits(&self, action: RepositoryAction) -> bool {
        let limited_to_none = self.packages.as_ref().is_some_and(Vec::is_empty);
        let is_by_package = matches!(action, RepositoryAction::Publish | RepositoryAction::Delete);
        self.actions.contains(&action) && !(is_by_package && limited_to_none)
    }
}

/// All permissions of a member.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Permissions {
    /// Permissions that concern the whole organization; empty by default.
    #[serde(default)]
    pub organization: Vec<Permission>,
    /// Permissions in repositories. Entries for one repository add up.
    #[serde(default)]
    pub repositories: Vec<RepositoryPermission>,
}

impl Permissions {
    /// All permissions in an organization, for its owner. `ManageServer` is not listed:
    /// [`of_organization`](Self::of_organization) adds it for owners of the first organization.
    /// `Manage` is not listed either, because `ManageRepositories` includes it.
    pub fn everything() -> Permissions {
        use Permission::{ManageMembers, ManageOwnerAccount, ManageRepositories, ManageSubscribers};
        use RepositoryAction::{Delete, Publish, Read};
        let all = RepositoryPermission {
            repository: Some(ALL.to_owned()),
            repository_name: None,
            actions: vec![Read, Publish, Delete],
            packages: None,
        };
        let organization = vec![ManageOwnerAccount, ManageMembers, ManageRepositories, ManageSubscribers];
        Permissions { organization, repositories: vec![all] }
    }

    /// The effective permissions in an organization. In the server's first organization, an owner
    /// also manages the server; in any other, no member does.
    pub fn of_organization(mut self, first: bool) -> Permissions {
        let manages =
            first && (self.holds(Permission::ManageServer) || self.holds(Permission::ManageOwnerAccount));
        self.organization.retain(|permission| *permission != Permission::ManageServer);
        self.organization.extend(manages.then_some(Permission::ManageServer));
        self
    }

    /// Parses the stored form. A text that cannot be parsed gives no permission.
    pub fn read(json: &str) -> Permissions {
        serde_json::from_str(json).unwrap_or_default()
    }

    /// Returns the effective permissions of a member: the member's own, and those of all its teams.
    /// A team whose permissions cannot be parsed gives none.
    pub fn of_member(row: &MemberRow) -> Permissions {
        let mut permissions = Permissions::read(&row.permissions);
        if row.team_permissions.is_empty() {
            return permissions;
        }
        let teams: Vec<Value> = serde_json::from_str(&row.team_permissions).unwrap_or_default();
        for team in teams.into_iter().filter_map(|team| serde_json::from_value::<Permissions>(team).ok()) {
            permissions.organization.extend(team.organization);
            permissions.repositories.extend(team.repositories);
        }
        permissions.deduplicated()
    }

    /// Reports whether stored permissions contain manage-owner-account and so make a member an
    /// owner. At least one owner must remain.
    pub fn of_an_owner(json: &str) -> bool {
        Permissions::read(json).holds(Permission::ManageOwnerAccount)
    }

    /// Removes duplicates, and merges the entries that name the same repositories and the same
    /// packages. The order of first occurrence stays.
    pub fn deduplicated(self) -> Permissions {
        let mut once = Permissions::default();
        for permission in self.organization {
            add(&mut once.organization, permission);
        }
        for RepositoryPermission { repository, repository_name, actions, packages } in self.repositories {
            let is_same = |known: &RepositoryPermission| {
                known.repository == repository
                    && known.repository_name == repository_name
                    && known.packages == packages
            };
            let at = once.repositories.iter().position(is_same);
            let mut known = match at {
                Some(at) => once.repositories.remove(at),
                None => RepositoryPermission { repository, repository_name, actions: Vec::new(), packages },
            };
            actions.into_iter().for_each(|action| add(&mut known.actions, action));
            once.repositories.insert(at.unwrap_or(once.repositories.len()), known);
        }
        once
    }

    /// Reports whether the member is read-only: the member may neither publish, delete nor manage
    /// anywhere, and is not an owner.
    pub fn read_only(&self) -> bool {
        let reads =
            |one: &RepositoryPermission| one.actions.iter().all(|action| *action == RepositoryAction::Read);
        !self.holds(Permission::ManageOwnerAccount) && self.repositories.iter().all(reads)
    }

    /// The ids of the repositories that are listed individually.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.repositories.iter().filter_map(|one| one.repository.as_deref()).filter(|id| *id != ALL)
    }

    /// Reports whether an entry selects repositories by a pattern of their names.
    pub fn has_name_patterns(&self) -> bool {
        self.repositories.iter().any(|one| one.repository_name.is_some())
    }

    /// Reports whether the permissions use what servers of the version before teams do not know:
    /// patterns of packages or of repository names, or the action `manage`. Such a server reads no
    /// permission at all from them.
    pub fn needs_new_servers(&self) -> bool {
        self.repositories.iter().any(|one| {
            one.packages.is_some()
                || one.repository_name.is_some()
                || one.actions.contains(&RepositoryAction::Manage)
        })
    }

    /// Reports whether the member has this permission.
    pub fn holds(&self, permission: Permission) -> bool {
        self.organization.contains(&permission)
    }

    /// Reports whether the member may read every repository.
    pub fn reads_all(&self) -> bool {
        let is_all = |one: &RepositoryPermission| match (&one.repository, &one.repository_name) {
            (Some(repository), None) => repository == ALL,
            (None, Some(pattern)) => patterns::is_any(pattern),
            _ => false,
        };
        self.repositories.iter().any(|one| is_all(one) && one.permits(RepositoryAction::Read))
    }

    /// The member's rights in a repository. The rights to publish and to delete are present if they
    /// are for at least one package; [`patterns`](Self::patterns) returns which.
    pub fn rights(&self, repository: RepositoryId, name: &str) -> Rights {
        self.rights_in(&repository.to_string(), name)
    }

    /// The member's rights in a new repository of this name, which no permission lists by its id
    /// yet.
    pub fn rights_in_a_new_one(&self, name: &str) -> Rights {
        self.rights_in(ALL, name)
    }

    fn rights_in(&self, id: &str, name: &str) -> Rights {
        let mut rights = Rights::default();
        for entry in self.repositories.iter().filter(|entry| entry.applies_to(id, name)) {
            rights.read |= entry.permits(RepositoryAction::Read);
            rights.publish |= entry.permits(RepositoryAction::Publish);
            rights.delete |= entry.permits(RepositoryAction::Delete);
            rights.manage |= entry.permits(RepositoryAction::Manage);
        }
        rights
    }

    /// The packages for which the member has this right in a repository. For `read` and `manage`,
    /// which are rights on the whole repository, the result is all or none.
    pub fn patterns(
        &self,
        repository: RepositoryId,
        name: &str,
        action: RepositoryAction,
    ) -> PackagePatterns {
        let id = repository.to_string();
        let applying = self.repositories.iter().filter(|entry| entry.applies_to(&id, name));
        PackagePatterns::of(applying.filter(|entry| entry.permits(action)), action)
    }
}

fn add<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// Wildcard in an entry that stands for every repository.
const ALL: &str = "*";

#[cfg(test)]
mod tests;
