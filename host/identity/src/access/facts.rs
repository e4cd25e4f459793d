//! The facts that access is decided from: what is wanted of a repository, and what the credential that came is and may.

use std::sync::Arc;

/// What a repository does with what is written to it, as far as access goes. A kind that is neither is treated as
/// hosted: whether it can be written is then the plugin's to say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// Holds what clients publish.
    Hosted,
    /// Holds what it fetches.
    Proxy,
    /// Shows its members.
    Group,
}

impl Kind {
    /// The kind by its name on the wire.
    pub fn of(name: &str) -> Kind {
        match name {
            "proxy" => Kind::Proxy,
            "group" => Kind::Group,
            _ => Kind::Hosted,
        }
    }
}

/// What the request would do, from the plugin's intent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AccessAction {
    /// Needs no credential.
    Open,
    /// Reads; `for_publish` when the read is part of a publish and so within a write credential's rights.
    Read {
        /// As the intent says.
        for_publish: bool,
    },
    /// Adds or changes.
    Publish,
    /// Takes away.
    Delete,
}

impl AccessAction {
    /// Whether it changes the repository.
    pub fn writes(self) -> bool {
        matches!(self, AccessAction::Publish | AccessAction::Delete)
    }

    /// The action as a refusal names it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            AccessAction::Open | AccessAction::Read { .. } => "read",
            AccessAction::Publish => "write",
            AccessAction::Delete => "delete",
        }
    }
}

/// Rights in one repository.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Rights {
    /// May read.
    pub read: bool,
    /// May publish.
    pub publish: bool,
    /// May delete.
    pub delete: bool,
}

impl Rights {
    /// What `write` of a token needs: both, and losing either one loses it.
    pub fn write(self) -> bool {
        self.publish && self.delete
    }
}

/// A token as the store found it, judged for one repository at one time. Service keys are tokens without an owner.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TokenFacts {
    /// Its `read` scope.
    pub read: bool,
    /// Its `write` scope.
    pub write: bool,
    /// Its format, as the API names it: `generic` works everywhere, another only where a plugin declares it.
    pub format: Arc<str>,
    /// When it was revoked, in ms since 1970.
    pub revoked_at: Option<i64>,
    /// When it expires, in ms since 1970; none for never.
    pub expires_at: Option<i64>,
    /// When a rotation ends it, in ms since 1970.
    pub ends_at: Option<i64>,
    /// Whether the repository is on its list, and exists in its organization.
    pub listed: bool,
    /// The owner's rights in the repository; none when it has no owner (service key, legacy token).
    pub owner: Option<Rights>,
    /// The username that goes with it where the format checks it; none: any will do.
    pub username: Option<Arc<str>>,
}

/// An access key as the store found it, judged for one repository at one time. It only ever reads, and any username goes
/// with it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyFacts {
    /// When it was revoked, in ms since 1970.
    pub revoked_at: Option<i64>,
    /// When it expires, in ms since 1970; none for never.
    pub expires_at: Option<i64>,
    /// When a rotation ends it, in ms since 1970.
    pub ends_at: Option<i64>,
    /// Whether its owner was given the repository.
    pub given: bool,
}

/// The state of a token or key, from its dates.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    /// Works.
    Active,
    /// Works until its scheduled end.
    Rotating,
    /// Was revoked, or ended by a rotation.
    Revoked,
    /// Ran out.
    Expired,
}

impl State {
    /// The state at `now`; all times in ms since 1970.
    pub fn at(now: i64, revoked_at: Option<i64>, expires_at: Option<i64>, ends_at: Option<i64>) -> State {
        let passed = |at: Option<i64>| at.is_some_and(|at| at <= now);
        match () {
            () if revoked_at.is_some() => State::Revoked,
            () if passed(expires_at) => State::Expired,
            () if passed(ends_at) => State::Revoked,
            () if ends_at.is_some() => State::Rotating,
            () => State::Active,
        }
    }

    /// The state's name in the API.
    pub fn name(self) -> &'static str {
        match self {
            State::Active => "active",
            State::Rotating => "rotating",
            State::Revoked => "revoked",
            State::Expired => "expired",
        }
    }

    /// Whether the credential is taken.
    pub fn works(self) -> bool {
        matches!(self, State::Active | State::Rotating)
    }
}

/// What came with the request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ResolvedCredential {
    /// No credential at all.
    Nothing,
    /// One that nobody knows.
    Unknown,
    /// A token or service key, and the username beside it (none when it came as a bearer).
    Token(TokenFacts, Option<String>),
    /// An access key.
    Key(KeyFacts),
    /// A member's own account, with its rights in the repository.
    Member(Rights),
}

/// What access needs to know of a repository.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RepositoryFacts {
    /// Its kind.
    pub kind: Kind,
    /// Whether anyone reads.
    pub public: bool,
    /// Whether its format is switched on.
    pub enabled: bool,
}
