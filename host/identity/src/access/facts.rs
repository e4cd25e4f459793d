//! The facts of an access decision: the requested action, and the state and rights of the
//! credential.

use std::sync::Arc;

/// The kind of a repository, as far as access depends on it. Other kinds count as hosted: their
/// plugin decides whether they can be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RepositoryKind {
    /// Stores packages that clients publish.
    Hosted,
    /// Caches what it fetches from an upstream.
    Proxy,
    /// Shows the packages of its members.
    Group,
}

impl RepositoryKind {
    /// Parses the kind's name in the API.
    pub fn of(name: &str) -> RepositoryKind {
        match name {
            "proxy" => RepositoryKind::Proxy,
            "group" => RepositoryKind::Group,
            _ => RepositoryKind::Hosted,
        }
    }
}

/// The requested action, derived from the plugin's intent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AccessAction {
    /// A request that needs no credential.
    Open,
    /// A read. With `for_publish` it is part of a publish, so that the right to write is
    /// sufficient.
    Read {
        for_publish: bool,
    },
    Publish,
    Delete,
}

impl AccessAction {
    /// Reports whether the action changes the repository.
    pub fn writes(self) -> bool {
        matches!(self, AccessAction::Publish | AccessAction::Delete)
    }

    /// The name of the action in a refusal.
    pub(crate) fn name(self) -> &'static str {
        match self {
            AccessAction::Open | AccessAction::Read { .. } => "read",
            AccessAction::Publish => "write",
            AccessAction::Delete => "delete",
        }
    }
}

/// Rights of a member in one repository. The rights to publish and to delete may be for some
/// packages only: then the package of a request is checked too.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Rights {
    pub read: bool,
    pub publish: bool,
    pub delete: bool,
    /// The right to manage the repository itself. It gives no access to packages.
    pub manage: bool,
}

impl Rights {
    /// Reports whether the owner's tokens may write: this takes both publish and delete.
    pub fn write(self) -> bool {
        self.publish && self.delete
    }
}

/// A token from the store, with its rights in one repository at one time. Service keys are tokens
/// without an owner.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TokenFacts {
    /// True if the token has the scope `read`.
    pub read: bool,
    /// True if the token has the scope `write`.
    pub write: bool,
    /// The token's format in the API. `generic` works everywhere, any other only where a plugin
    /// declares it.
    pub format: Arc<str>,
    /// Time of the revocation, in ms since 1970.
    pub revoked_at: Option<i64>,
    /// Expiry, in ms since 1970. `None` if the token never expires.
    pub expires_at: Option<i64>,
    /// Time at which a rotation ends the token, in ms since 1970.
    pub ends_at: Option<i64>,
    /// True if the token lists the repository and the repository exists in its organization.
    pub listed: bool,
    /// The owner's rights in the repository. `None` for a service key or a legacy token, which have
    /// no owner.
    pub owner: Option<Rights>,
    /// The username that a format may require with the token. `None` accepts any.
    pub username: Option<Arc<str>>,
}

/// An access key from the store, with its access to one repository at one time. A key can only
/// read, and any username is accepted with it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyFacts {
    /// Time of the revocation, in ms since 1970.
    pub revoked_at: Option<i64>,
    /// Expiry, in ms since 1970. `None` if the key never expires.
    pub expires_at: Option<i64>,
    /// Time at which a rotation ends the key, in ms since 1970.
    pub ends_at: Option<i64>,
    /// True if the key's owner has access to the repository.
    pub given: bool,
}

/// The state of a token or access key, derived from its dates.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CredentialState {
    Active,
    /// Valid until the end that a rotation scheduled.
    Rotating,
    /// Revoked, or ended by a rotation.
    Revoked,
    Expired,
}

impl CredentialState {
    /// The state at `now`. All times are in ms since 1970.
    pub fn at(
        now: i64,
        revoked_at: Option<i64>,
        expires_at: Option<i64>,
        ends_at: Option<i64>,
    ) -> CredentialState {
        let passed = |at: Option<i64>| at.is_some_and(|at| at <= now);
        match () {
            () if revoked_at.is_some() => CredentialState::Revoked,
            () if passed(expires_at) => CredentialState::Expired,
            () if passed(ends_at) => CredentialState::Revoked,
            () if ends_at.is_some() => CredentialState::Rotating,
            () => CredentialState::Active,
        }
    }

    /// The state's name in the API.
    pub fn name(self) -> &'static str {
        match self {
            CredentialState::Active => "active",
            CredentialState::Rotating => "rotating",
            CredentialState::Revoked => "revoked",
            CredentialState::Expired => "expired",
        }
    }

    /// Reports whether the credential is valid.
    pub fn works(self) -> bool {
        matches!(self, CredentialState::Active | CredentialState::Rotating)
    }
}

/// The credential of a request, as it was found in the store.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ResolvedCredential {
    /// The request has no credential.
    Nothing,
    /// The credential is not in the store.
    Unknown,
    /// The credential is known and refused everywhere, for the reason in this sentence.
    Refused(&'static str),
    /// A token or service key, and the username sent with it. A bearer has no username.
    Token(TokenFacts, Option<String>),
    Key(KeyFacts),
    /// A member's password, with the member's rights in the repository.
    Member(Rights),
}

/// The properties of a repository that access depends on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RepositoryFacts {
    pub kind: RepositoryKind,
    /// True if anyone may read the repository.
    pub public: bool,
    /// True if the repository's format is enabled.
    pub enabled: bool,
}
