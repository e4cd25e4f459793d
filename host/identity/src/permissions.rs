//! Permissions of a member: in the organization, and actions in single repositories or in all
//! (`*`).

use packhouse_store::RepositoryId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Rights;

/// A permission in the organization.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// Manage audit, SSO, formats, other members' tokens, and keys of the organization.
    ManageOwnerAccount,
    /// Manage members and invitations.
    ManageMembers,
    /// Manage repositories.
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
    /// Fetch packages.
    Read,
    /// Publish packages.
    Publish,
    /// Delete packages.
    Delete,
}

/// Actions that are permitted in one repository, or in all.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RepositoryPermission {
    /// The repository's id, or `*` for all repositories.
    pub repository: String,
    /// The actions that are permitted there.
    pub actions: Vec<RepositoryAction>,
}

/// All permissions of a member.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Permissions {
    /// Permissions in the organization.
    #[serde(default)]
    pub organization: Vec<Permission>,
    /// Permissions in repositories.
    #[serde(default)]
    pub repositories: Vec<RepositoryPermission>,
}

impl Permissions {
    /// All permissions in an organization, for its owner. `ManageServer` is not listed:
    /// [`of_organization`](Self::of_organization) adds it for owners of the first organization.
    pub fn everything() -> Permissions {
        use Permission::{ManageMembers, ManageOwnerAccount, ManageRepositories, ManageSubscribers};
        use RepositoryAction::{Delete, Publish, Read};
        let all = RepositoryPermission { repository: ALL.to_owned(), actions: vec![Read, Publish, Delete] };
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

    /// Reports whether stored permissions contain manage-owner-account and so make a member an
    /// owner. At least one owner must remain.
    pub fn of_an_owner(json: &str) -> bool {
        Permissions::read(json).holds(Permission::ManageOwnerAccount)
    }

    /// Removes duplicates. The order of first occurrence stays.
    pub fn deduplicated(self) -> Permissions {
        let mut once = Permissions::default();
        for permission in self.organization {
            add(&mut once.organization, permission);
        }
        for RepositoryPermission { repository, actions } in self.repositories {
            let at = once.repositories.iter().position(|known| known.repository == repository);
            let mut known = match at {
                Some(at) => once.repositories.remove(at),
                None => RepositoryPermission { repository, actions: Vec::new() },
            };
            actions.into_iter().for_each(|action| add(&mut known.actions, action));
            once.repositories.insert(at.unwrap_or(once.repositories.len()), known);
        }
        once
    }

    /// Reports whether `self` contains all of `other`. A member may grant only permissions that the
    /// member holds, and manage only members whose permissions the member holds.
    pub fn covers(&self, other: &Permissions) -> bool {
        // An owner of the first organization manages the server without an explicit permission. In
        // other organizations the permission does not exist.
        let held = |permission: &Permission| {
            self.holds(*permission)
                || (*permission == Permission::ManageServer && self.holds(Permission::ManageOwnerAccount))
        };
        let organization = other.organization.iter().all(held);
        organization
            && other.repositories.iter().all(|needed| {
                let held =
                    |action: &RepositoryAction| self.actions(&needed.repository).any(|held| held == *action);
                needed.actions.iter().all(held)
            })
    }

    /// Reports whether the member is read-only: the member may neither publish nor delete anywhere,
    /// and is not an owner.
    pub fn read_only(&self) -> bool {
        let reads =
            |one: &RepositoryPermission| one.actions.iter().all(|action| *action == RepositoryAction::Read);
        !self.holds(Permission::ManageOwnerAccount) && self.repositories.iter().all(reads)
    }

    /// The ids of the repositories that are listed individually.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.repositories.iter().map(|one| one.repository.as_str()).filter(|name| *name != ALL)
    }

    /// The actions permitted in a repository, including those for all repositories.
    fn actions<'a>(&'a self, repository: &'a str) -> impl Iterator<Item = RepositoryAction> + 'a {
        let named =
            self.repositories.iter().filter(move |one| one.repository == ALL || one.repository == repository);
        named.flat_map(|one| &one.actions).copied()
    }

    /// Reports whether the member has this permission.
    pub fn holds(&self, permission: Permission) -> bool {
        self.organization.contains(&permission)
    }

    /// The member's rights in a repository.
    pub fn rights(&self, repository: RepositoryId) -> Rights {
        self.rights_in(&repository.to_string())
    }

    /// The member's rights in a new repository, which no permission lists individually yet.
    pub fn rights_in_a_new_one(&self) -> Rights {
        self.rights_in(ALL)
    }

    fn rights_in(&self, repository: &str) -> Rights {
        let mut rights = Rights::default();
        for action in self.actions(repository) {
            match action {
                RepositoryAction::Read => rights.read = true,
                RepositoryAction::Publish => rights.publish = true,
                RepositoryAction::Delete => rights.delete = true,
            }
        }
        rights
    }
}

fn add<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// Wildcard for every repository.
const ALL: &str = "*";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_the_union_of_all_entries_for_the_repository() {
        let permissions = Permissions::read(
            r#"{"organization": ["manage-repositories"], "repositories": [
                {"repository": "*", "actions": ["read"]}, {"repository": "7", "actions": ["publish"]}]}"#,
        );
        assert!(permissions.holds(Permission::ManageRepositories));
        assert!(!permissions.holds(Permission::ManageOwnerAccount));
        assert_eq!(permissions.rights(RepositoryId(7)), Rights { read: true, publish: true, delete: false });
        assert_eq!(permissions.rights(RepositoryId(8)), Rights { read: true, ..Rights::default() });
        assert_eq!(permissions.rights_in_a_new_one(), Rights { read: true, ..Rights::default() });
    }

    fn held(json: &str) -> Permissions {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn only_held_permissions_are_covered() {
        let one = r#"{"repositories": [{"repository": "1", "actions": ["read", "publish"]}]}"#;
        let all = r#"{"repositories": [{"repository": "*", "actions": ["read"]}]}"#;
        let split = r#"{"repositories": [{"repository": "*", "actions": ["read"]}, {"repository": "1", "actions": ["publish"]}]}"#;
        let manager = r#"{"organization": ["manage-members"]}"#;
        for (holder, other, covered) in [
            (one, one, true),
            (one, all, false),
            (all, one, false),
            (split, one, true),
            (split, all, true),
            (one, split, false),
            (manager, "{}", true),
            ("{}", manager, false),
            (one, r#"{"repositories": [{"repository": "2", "actions": []}]}"#, true),
            (one, r#"{"repositories": [{"repository": "2", "actions": ["read"]}]}"#, false),
        ] {
            assert_eq!(held(holder).covers(&held(other)), covered, "{holder} {other}");
        }
        assert!(Permissions::everything().covers(&held(split)));
    }

    #[test]
    fn a_read_only_member_neither_writes_nor_owns() {
        for (json, read_only) in [
            ("{}", true),
            (r#"{"organization": ["manage-members", "manage-repositories", "manage-subscribers"]}"#, true),
            (r#"{"organization": ["manage-owner-account"]}"#, false),
            (r#"{"repositories": [{"repository": "*", "actions": ["read"]}]}"#, true),
            (r#"{"repositories": [{"repository": "1", "actions": ["read", "delete"]}]}"#, false),
            (r#"{"repositories": [{"repository": "1", "actions": ["publish"]}]}"#, false),
        ] {
            assert_eq!(held(json).read_only(), read_only, "{json}");
        }
    }

    #[test]
    fn duplicates_are_removed() {
        let twice = held(
            r#"{"organization": ["manage-members", "manage-members"], "repositories": [
                {"repository": "1", "actions": ["read", "read"]}, {"repository": "*", "actions": ["read"]},
                {"repository": "1", "actions": ["publish", "read"]}]}"#,
        );
        let once = held(
            r#"{"organization": ["manage-members"], "repositories": [
                {"repository": "1", "actions": ["read", "publish"]}, {"repository": "*", "actions": ["read"]}]}"#,
        );
        assert_eq!(twice.deduplicated(), once);
    }

    #[test]
    fn text_that_cannot_be_parsed_gives_no_permission() {
        for json in ["", "{", r#"{"organization": ["root"]}"#, r#"{"is_admin": true}"#] {
            assert_eq!(Permissions::read(json), Permissions::default(), "{json}");
        }
    }

    #[test]
    fn the_server_is_managed_from_the_first_organization_alone() {
        let named = r#"{"organization": ["manage-server"]}"#;
        for (json, first, manages) in [
            (r#"{"organization": ["manage-owner-account"]}"#, true, true),
            (r#"{"organization": ["manage-owner-account"]}"#, false, false),
            (named, true, true),
            (named, false, false),
            (r#"{"organization": ["manage-members"]}"#, true, false),
        ] {
            let held = held(json).of_organization(first);
            assert_eq!(held.holds(Permission::ManageServer), manages, "{json} {first}");
        }
        assert!(!Permissions::everything().holds(Permission::ManageServer));
    }

    #[test]
    fn serialized_names_match_the_api_names() {
        for permission in Permission::ALL {
            assert_eq!(serde_json::to_value(permission).unwrap(), permission.name());
        }
    }
}
