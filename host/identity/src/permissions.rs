//! What a member may do: permissions in the organization, and actions in repositories, one by one or in all (`*`).

use packhouse_store::RepositoryId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Rights;

/// A permission in the organization.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Permission {
    /// Audit, SSO, formats, other members' tokens, keys of the organization.
    ManageOwnerAccount,
    /// Members and invitations.
    ManageMembers,
    /// Repositories.
    ManageRepositories,
    /// Subscribers and their access keys.
    ManageSubscribers,
    /// The server itself: its settings and plugins. It exists in the first organization alone, whose owners have it.
    ManageServer,
}

impl Permission {
    /// All there are.
    pub const ALL: [Permission; 5] = [
        Permission::ManageOwnerAccount,
        Permission::ManageMembers,
        Permission::ManageRepositories,
        Permission::ManageSubscribers,
        Permission::ManageServer,
    ];

    /// As it stands on the wire.
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
    /// Fetch.
    Read,
    /// Add.
    Publish,
    /// Take away.
    Delete,
}

/// Actions in one repository, or in all.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RepositoryPermission {
    /// A repository's id, or `*` for all.
    pub repository: String,
    /// What may be done there.
    pub actions: Vec<RepositoryAction>,
}

/// All that a member may do.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Permissions {
    /// In the organization.
    #[serde(default)]
    pub organization: Vec<Permission>,
    /// In repositories.
    #[serde(default)]
    pub repositories: Vec<RepositoryPermission>,
}

impl Permissions {
    /// Everything in an organization: what an owner gets. An owner of the first one manages the server besides, which need not be
    /// said: see [`of_organization`](Self::of_organization).
    pub fn everything() -> Permissions {
        use Permission::{ManageMembers, ManageOwnerAccount, ManageRepositories, ManageSubscribers};
        use RepositoryAction::{Delete, Publish, Read};
        let all = RepositoryPermission { repository: ALL.to_owned(), actions: vec![Read, Publish, Delete] };
        let organization = vec![ManageOwnerAccount, ManageMembers, ManageRepositories, ManageSubscribers];
        Permissions { organization, repositories: vec![all] }
    }

    /// What is held by these in an organization, which is or is not the server's first: there an owner manages the server too, and
    /// elsewhere nobody does.
    pub fn of_organization(mut self, first: bool) -> Permissions {
        let manages =
            first && (self.holds(Permission::ManageServer) || self.holds(Permission::ManageOwnerAccount));
        self.organization.retain(|permission| *permission != Permission::ManageServer);
        self.organization.extend(manages.then_some(Permission::ManageServer));
        self
    }

    /// As the store keeps them. What cannot be read gives nothing.
    pub fn read(json: &str) -> Permissions {
        serde_json::from_str(json).unwrap_or_default()
    }

    /// Whether those permissions, as the store keeps them, hold manage-owner-account: of such members one must remain.
    pub fn of_an_owner(json: &str) -> bool {
        Permissions::read(json).holds(Permission::ManageOwnerAccount)
    }

    /// The same with nothing said twice, in the order in which it was first said.
    pub fn once_each(self) -> Permissions {
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

    /// Whether all of `other` is held here too: what a member may grant, and whom it may manage.
    pub fn covers(&self, other: &Permissions) -> bool {
        // An owner of the first organization manages the server without its being said; of another there is no such permission.
        let held = |permission: &Permission| {
            self.holds(*permission)
                || (*permission == Permission::ManageServer && self.holds(Permission::ManageOwnerAccount))
        };
        let organization = other.organization.iter().all(held);
        organization
            && other.repositories.iter().all(|wanted| {
                let held =
                    |action: &RepositoryAction| self.actions(&wanted.repository).any(|held| held == *action);
                wanted.actions.iter().all(held)
            })
    }

    /// Whether this is a read-only member: neither publish nor delete anywhere, nor manage-owner-account.
    pub fn read_only(&self) -> bool {
        let reads =
            |one: &RepositoryPermission| one.actions.iter().all(|action| *action == RepositoryAction::Read);
        !self.holds(Permission::ManageOwnerAccount) && self.repositories.iter().all(reads)
    }

    /// The repositories that are named one by one.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.repositories.iter().map(|one| one.repository.as_str()).filter(|name| *name != ALL)
    }

    /// The actions held in a repository, or in `*`, in all.
    fn actions<'a>(&'a self, repository: &'a str) -> impl Iterator<Item = RepositoryAction> + 'a {
        let named =
            self.repositories.iter().filter(move |one| one.repository == ALL || one.repository == repository);
        named.flat_map(|one| &one.actions).copied()
    }

    /// Whether the member holds this permission.
    pub fn holds(&self, permission: Permission) -> bool {
        self.organization.contains(&permission)
    }

    /// What the member may do in a repository.
    pub fn rights(&self, repository: RepositoryId) -> Rights {
        self.rights_in(&repository.to_string())
    }

    /// What the member may do in a repository that has only just been made, and so is named by nobody's permissions.
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

/// Stands for every repository.
const ALL: &str = "*";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_the_union_of_what_names_the_repository() {
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
    fn nothing_is_covered_that_is_not_held() {
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
    fn a_read_only_member_changes_no_package_and_owns_nothing() {
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
    fn what_is_said_twice_is_kept_once() {
        let twice = held(
            r#"{"organization": ["manage-members", "manage-members"], "repositories": [
                {"repository": "1", "actions": ["read", "read"]}, {"repository": "*", "actions": ["read"]},
                {"repository": "1", "actions": ["publish", "read"]}]}"#,
        );
        let once = held(
            r#"{"organization": ["manage-members"], "repositories": [
                {"repository": "1", "actions": ["read", "publish"]}, {"repository": "*", "actions": ["read"]}]}"#,
        );
        assert_eq!(twice.once_each(), once);
    }

    #[test]
    fn what_cannot_be_read_gives_nothing() {
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
    fn names_on_the_wire_are_one() {
        for permission in Permission::ALL {
            assert_eq!(serde_json::to_value(permission).unwrap(), permission.name());
        }
    }
}
