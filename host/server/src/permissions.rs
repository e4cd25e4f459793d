//! What a member may do: permissions in the organization, and actions in repositories, one by one or in all (`*`).

use packhouse_store::RepositoryId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::access::Rights;

/// A permission in the organization.
#[expect(clippy::enum_variant_names, reason = "named as the specification and the API name them")]
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Permission {
    /// Audit, SSO, formats, other members' tokens, keys of the organization.
    ManageOwnerAccount,
    /// Members and invitations.
    ManageMembers,
    /// Repositories.
    ManageRepositories,
    /// Subscribers and their access keys.
    ManageSubscribers,
}

impl Permission {
    /// All there are.
    pub(crate) const ALL: [Permission; 4] = [
        Permission::ManageOwnerAccount,
        Permission::ManageMembers,
        Permission::ManageRepositories,
        Permission::ManageSubscribers,
    ];

    /// As it stands on the wire.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Permission::ManageOwnerAccount => "manage-owner-account",
            Permission::ManageMembers => "manage-members",
            Permission::ManageRepositories => "manage-repositories",
            Permission::ManageSubscribers => "manage-subscribers",
        }
    }
}

/// An action in a repository.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RepositoryAction {
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
pub(crate) struct RepositoryPermission {
    /// A repository's id, or `*` for all.
    pub(crate) repository: String,
    /// What may be done there.
    pub(crate) actions: Vec<RepositoryAction>,
}

/// All that a member may do.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Permissions {
    /// In the organization.
    #[serde(default)]
    pub(crate) organization: Vec<Permission>,
    /// In repositories.
    #[serde(default)]
    pub(crate) repositories: Vec<RepositoryPermission>,
}

impl Permissions {
    /// Everything: what the first owner gets.
    pub(crate) fn everything() -> Permissions {
        use RepositoryAction::{Delete, Publish, Read};
        let all = RepositoryPermission { repository: ALL.to_owned(), actions: vec![Read, Publish, Delete] };
        Permissions { organization: Permission::ALL.to_vec(), repositories: vec![all] }
    }

    /// As the store keeps them. What cannot be read gives nothing.
    pub(crate) fn read(json: &str) -> Permissions {
        serde_json::from_str(json).unwrap_or_default()
    }

    /// Whether the member holds this permission.
    pub(crate) fn holds(&self, permission: Permission) -> bool {
        self.organization.contains(&permission)
    }

    /// What the member may do in a repository.
    pub(crate) fn rights(&self, repository: RepositoryId) -> Rights {
        let mut rights = Rights::default();
        let id = repository.to_string();
        let named = self.repositories.iter().filter(|one| one.repository == ALL || one.repository == id);
        for action in named.flat_map(|one| &one.actions) {
            match action {
                RepositoryAction::Read => rights.read = true,
                RepositoryAction::Publish => rights.publish = true,
                RepositoryAction::Delete => rights.delete = true,
            }
        }
        rights
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
    }

    #[test]
    fn what_cannot_be_read_gives_nothing() {
        for json in ["", "{", r#"{"organization": ["root"]}"#, r#"{"is_admin": true}"#] {
            assert_eq!(Permissions::read(json), Permissions::default(), "{json}");
        }
    }

    #[test]
    fn names_on_the_wire_are_one() {
        for permission in Permission::ALL {
            assert_eq!(serde_json::to_value(permission).unwrap(), permission.name());
        }
    }
}
