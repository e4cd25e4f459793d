//! The only place that decides access on the repository host. A credential, a repository and an
//! intent result in "allowed" or in one refusal. The module reads neither storage nor clock:
//! callers pass in the facts.
//!
//! Checks run in the order that the API documentation states, from "no or refused credential" to
//! "disabled format". Other modules make the earlier checks (malformed request, address) and the
//! later ones (size, version, body).

mod facts;
mod refused_credential;

use std::borrow::Cow;

use packhouse_wire::catalogue::{self, Code};

pub use self::facts::{
    AccessAction, CredentialState, KeyFacts, RepositoryFacts, RepositoryKind, ResolvedCredential, Rights,
    TokenFacts,
};
pub use self::refused_credential::{NEEDS_FACTOR, NEEDS_TOKEN, SUSPENDED, ended};

/// A format's rules for credentials and refusals, as its description declares them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FormatRules<'a> {
    /// True if the username that is sent with a token must match.
    pub checks_username: bool,
    /// Usernames that are accepted with any token.
    pub token_usernames: Cow<'a, [String]>,
    /// The status for a refused credential on reads: 401 or 404.
    pub refused_read_status: u16,
    /// The status for a refused credential on writes.
    pub refused_write_status: u16,
    /// The status if the credential does not cover a repository that is not a proxy.
    pub not_reached_status: u16,
    /// Formats of tokens that are accepted in addition to `generic`.
    pub token_formats: Cow<'a, [String]>,
}

/// The facts of one access decision.
#[derive(Clone, Debug)]
pub struct AccessRequest<'a> {
    /// The repository. `None` if the organization has no repository of that name.
    pub repository: Option<RepositoryFacts>,
    /// Rules of the repository's format, or of the format whose claimed path the request matches.
    pub rules: &'a FormatRules<'a>,
    pub presented: &'a ResolvedCredential,
    pub action: AccessAction,
    /// The time in ms since 1970.
    pub now: i64,
}

/// Result of an access decision.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AccessDecision {
    Allowed,
    Refused(Refusal),
}

/// The response to a refused request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// The entry in the catalogue of errors.
    pub code: &'static Code,
    /// The HTTP status. A format's description may override the catalogue's.
    pub status: u16,
    /// The catalogue's sentence with its placeholders filled in.
    pub sentence: String,
    /// A more exact reason than the code, for formats that distinguish it.
    pub reason: Option<&'static str>,
}

impl Refusal {
    /// A refusal with the catalogue's status and sentence.
    pub fn of(code: &'static Code) -> Refusal {
        Refusal { code, status: code.status, sentence: code.sentence.to_owned(), reason: None }
    }

    fn out_of_scope(action: AccessAction) -> Refusal {
        let code = &catalogue::ACTION_NOT_IN_SCOPE;
        Refusal { sentence: code.with(action.name()), ..Refusal::of(code) }
    }
}

/// Reports whether the caller is unauthenticated: it sent no credential, or one that is refused
/// everywhere. A caller with a valid token and a wrong user name is not unauthenticated: the holder
/// of the token may know what it covers.
pub fn is_unauthenticated(presented: &ResolvedCredential, now: i64) -> bool {
    *presented == ResolvedCredential::Nothing || ended(presented, now).is_some()
}

/// Decides about a request for a package. Every such request calls this function once. The caller
/// has read the rights in the same database statement as the repository's revision.
pub fn decide(question: &AccessRequest<'_>) -> AccessDecision {
    match refusal(question) {
        Some(refusal) => AccessDecision::Refused(refusal),
        None => AccessDecision::Allowed,
    }
}

/// Decides about a request that names no repository: only the credential itself is checked, not
/// what it covers.
pub fn decide_credential(question: &AccessRequest<'_>) -> AccessDecision {
    match refused_credential(question).filter(|_| question.action != AccessAction::Open) {
        Some(refusal) => AccessDecision::Refused(refusal),
        None => AccessDecision::Allowed,
    }
}

fn refusal(question: &AccessRequest<'_>) -> Option<Refusal> {
    if let Some(facts) = question.repository.filter(|_| anyone_may(question)) {
        return disabled(facts);
    }
    if let Some(refused) = refused_credential(question) {
        return Some(refused);
    }
    let Some(repository) = question.repository else {
        return Some(Refusal::of(&catalogue::NOT_FOUND));
    };
    not_reached(question, repository)
        .or_else(|| token_format_on_proxy(question, repository))
        .or_else(|| write_without_storage(question, repository))
        .or_else(|| scope(question))
        .or_else(|| clamp(question))
        .or_else(|| disabled(repository))
}

/// Reports whether the request needs no credential: an `open` intent, or a read of a public
/// repository that does not carry a refused credential.
fn anyone_may(question: &AccessRequest<'_>) -> bool {
    let Some(repository) = question.repository else { return false };
    match question.action {
        AccessAction::Open => true,
        AccessAction::Read { .. } => repository.public && refused_presented(question).is_none(),
        AccessAction::Publish | AccessAction::Delete => false,
    }
}

fn refused_credential(question: &AccessRequest<'_>) -> Option<Refusal> {
    if *question.presented == ResolvedCredential::Nothing {
        return Some(Refusal::of(&catalogue::UNAUTHORIZED));
    }
    refused_presented(question)
}

/// The refusal of a credential that is unknown, has ended, or came with the wrong user name.
fn refused_presented(question: &AccessRequest<'_>) -> Option<Refusal> {
    let sentence = refused_credential::refused(question.rules, question.presented, question.now)?;
    // A read for a publish is part of the write. With the status for reads, a client could mistake
    // the refusal for an absent package and continue.
    let part_of_write =
        question.action.writes() || question.action == AccessAction::Read { for_publish: true };
    let status =
        if part_of_write { question.rules.refused_write_status } else { question.rules.refused_read_status };
    let code = if status == 404 { &catalogue::NOT_FOUND } else { &catalogue::UNAUTHORIZED };
    Some(Refusal { sentence, ..Refusal::of(code) })
}

fn goes_with(rules: &FormatRules<'_>, token: &TokenFacts, username: Option<&str>) -> bool {
    let Some(username) = username else { return true };
    rules.token_usernames.iter().any(|known| known == username)
        || token.username.as_ref().is_none_or(|known| known.eq_ignore_ascii_case(username))
}

/// [`Refusal::reason`] if the owner of an access key has no access to the repository.
pub const KEY_NOT_REACHED: &str = "key_not_reached";

/// Refuses a credential that does not cover the repository. By authentication rule 6 of the
/// specification, the answer for a proxy is "not found".
fn not_reached(question: &AccessRequest<'_>, repository: RepositoryFacts) -> Option<Refusal> {
    let reaches = match question.presented {
        ResolvedCredential::Token(token, _) => token.listed && token.owner.is_none_or(|owner| owner.read),
        ResolvedCredential::Member(rights) => rights.read || rights.publish || rights.delete,
        ResolvedCredential::Key(key) => key.given,
        ResolvedCredential::Nothing | ResolvedCredential::Unknown | ResolvedCredential::Refused(_) => false,
    };
    if reaches {
        return None;
    }
    if repository.kind == RepositoryKind::Proxy || question.rules.not_reached_status == 404 {
        return Some(Refusal::of(&catalogue::NOT_FOUND));
    }
    let key = matches!(question.presented, ResolvedCredential::Key(_));
    let reason = key.then_some(KEY_NOT_REACHED);
    Some(Refusal { reason, ..Refusal::of(&catalogue::REPOSITORY_NOT_REACHED) })
}

/// Refuses a token for a single format on every proxy, whatever the proxy's format.
fn token_format_on_proxy(question: &AccessRequest<'_>, repository: RepositoryFacts) -> Option<Refusal> {
    let ResolvedCredential::Token(token, _) = question.presented else { return None };
    let special = *token.format != *GENERIC;
    (special && repository.kind == RepositoryKind::Proxy)
        .then(|| Refusal::of(&catalogue::FORMAT_TOKEN_ON_PROXY))
}

/// Refuses writes to a proxy by rule R4 of the specification, and writes to a group.
fn write_without_storage(question: &AccessRequest<'_>, repository: RepositoryFacts) -> Option<Refusal> {
    match (question.action.writes(), repository.kind) {
        (true, RepositoryKind::Proxy) => Some(Refusal::of(&catalogue::WRITES_NOT_PERMITTED_ON_PROXY)),
        (true, RepositoryKind::Group) => Some(Refusal::of(&catalogue::WRITES_NOT_PERMITTED_ON_GROUP)),
        _ => None,
    }
}

fn scope(question: &AccessRequest<'_>) -> Option<Refusal> {
    let within = match question.presented {
        ResolvedCredential::Token(token, _) => token_scope(question, token),
        ResolvedCredential::Member(rights) => member_scope(question.action, *rights),
        ResolvedCredential::Key(_) => !question.action.writes(),
        ResolvedCredential::Nothing | ResolvedCredential::Unknown | ResolvedCredential::Refused(_) => false,
    };
    (!within).then(|| Refusal::out_of_scope(question.action))
}

fn token_scope(question: &AccessRequest<'_>, token: &TokenFacts) -> bool {
    let format = *token.format == *GENERIC
        || question.rules.token_formats.iter().any(|known| **known == *token.format);
    format
        && match question.action {
            AccessAction::Open => true,
            AccessAction::Read { for_publish } => token.read || (for_publish && token.write),
            AccessAction::Publish | AccessAction::Delete => token.write,
        }
}

fn member_scope(action: AccessAction, rights: Rights) -> bool {
    match action {
        AccessAction::Open => true,
        AccessAction::Read { for_publish } => rights.read || (for_publish && rights.publish),
        AccessAction::Publish => rights.publish,
        AccessAction::Delete => rights.delete,
    }
}

/// Refuses a write if the owner of the token may not write (authentication rule 5).
fn clamp(question: &AccessRequest<'_>) -> Option<Refusal> {
    let ResolvedCredential::Token(TokenFacts { owner: Some(owner), .. }, _) = question.presented else {
        return None;
    };
    (question.action.writes() && !owner.write()).then(|| Refusal::of(&catalogue::REVOKED_AUTHORITY_CLAMP))
}

fn disabled(repository: RepositoryFacts) -> Option<Refusal> {
    (!repository.enabled).then(|| Refusal::of(&catalogue::FORMAT_DISABLED))
}

/// The token format that is valid for packages of every format.
pub const GENERIC: &str = "generic";

impl<'a> From<&'a packhouse_runtime::Description> for FormatRules<'a> {
    /// If the description names no token format, the format's own name is accepted.
    fn from(description: &'a packhouse_runtime::Description) -> FormatRules<'a> {
        FormatRules {
            checks_username: description.checks_username,
            token_usernames: Cow::Borrowed(&description.token_usernames),
            refused_read_status: description.refused_read_status,
            refused_write_status: description.refused_write_status,
            not_reached_status: description.not_reached_status,
            token_formats: Cow::Borrowed(if description.token_formats.is_empty() {
                std::slice::from_ref(&description.format)
            } else {
                &description.token_formats
            }),
        }
    }
}

#[cfg(test)]
mod tests;
