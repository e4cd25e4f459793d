//! The one place that decides access on the repository host: credential × repository × intent → allowed, or which
//! refusal. It reads no storage and no clock of its own; whoever asks hands in the facts.
//!
//! The questions are put in the order of judgement of the API's description, from "no or refused credential" to
//! "disabled format"; what stands before (malformed, address) and after it (size, version, body) is not here.

mod facts;
mod refused_credential;

use std::borrow::Cow;

use packhouse_wire::catalogue::{self, Code};

pub use self::facts::{
    AccessAction, KeyFacts, Kind, RepositoryFacts, ResolvedCredential, Rights, State, TokenFacts,
};
pub use self::refused_credential::ended;

/// What the format's description declares about refusals.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rules<'a> {
    /// Whether the username beside a token counts.
    pub checks_username: bool,
    /// Usernames that go with any token.
    pub token_usernames: Cow<'a, [String]>,
    /// The status for a refused credential on reads: 401 or 404.
    pub refused_read_status: u16,
    /// The status for a refused credential on writes.
    pub refused_write_status: u16,
    /// The status where the credential does not reach a repository that is no proxy.
    pub not_reached_status: u16,
    /// Formats of tokens that work besides `generic`.
    pub token_formats: Cow<'a, [String]>,
}

/// One question.
#[derive(Clone, Debug)]
pub struct AccessRequest<'a> {
    /// The repository; none when there is none of that name in this organization.
    pub repository: Option<RepositoryFacts>,
    /// The format's rules, of the repository or of the claim that matched.
    pub rules: &'a Rules<'a>,
    /// What was presented.
    pub presented: &'a ResolvedCredential,
    /// What is wanted.
    pub wanted: AccessAction,
    /// The time in ms since 1970.
    pub now: i64,
}

/// Whether it may be done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum AccessDecision {
    /// It may.
    Allowed,
    /// It may not.
    Refused(Refusal),
}

/// Which answer refuses.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// The row of the catalogue.
    pub code: &'static Code,
    /// The status, which a format's description may have changed.
    pub status: u16,
    /// The sentence, filled in.
    pub sentence: String,
    /// Which refusal it is more exactly than its row says, for formats that tell it apart.
    pub reason: Option<&'static str>,
}

impl Refusal {
    /// A refusal as the catalogue has it.
    pub fn of(code: &'static Code) -> Refusal {
        Refusal { code, status: code.status, sentence: code.sentence.to_owned(), reason: None }
    }

    fn action(wanted: AccessAction) -> Refusal {
        let code = &catalogue::ACTION_NOT_IN_SCOPE;
        Refusal { sentence: code.with(wanted.name()), ..Refusal::of(code) }
    }
}

/// Whether nobody knows who asks: no credential, or one that is not taken wherever it is shown. A user name that does not go with
/// a token is another matter: who has the token may know what it reaches.
pub fn is_stranger(presented: &ResolvedCredential, now: i64) -> bool {
    *presented == ResolvedCredential::Nothing || ended(presented, now).is_some()
}

/// Decides. Every request for a package passes here once, with the rights read in the same statement as the
/// repository's revision.
pub fn decide(question: &AccessRequest<'_>) -> AccessDecision {
    match refusal(question) {
        Some(refusal) => AccessDecision::Refused(refusal),
        None => AccessDecision::Allowed,
    }
}

/// Decides where a request names no repository: whether its credential is taken. What it reaches is another question.
pub fn decide_credential(question: &AccessRequest<'_>) -> AccessDecision {
    match refused_credential(question).filter(|_| question.wanted != AccessAction::Open) {
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
        .or_else(|| write_to_what_has_no_storage(question, repository))
        .or_else(|| scope(question))
        .or_else(|| clamp(question))
        .or_else(|| disabled(repository))
}

/// An `open` intent, or a read of a public repository, unless a credential that is refused came with it.
fn anyone_may(question: &AccessRequest<'_>) -> bool {
    let Some(repository) = question.repository else { return false };
    match question.wanted {
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

/// A credential that came and is not taken: unknown, ended, or with another's name.
fn refused_presented(question: &AccessRequest<'_>) -> Option<Refusal> {
    let sentence = refused_credential::refused(question.rules, question.presented, question.now)?;
    // What is read in order to be written is part of the write: told otherwise, a client takes it for success.
    let part_of_write =
        question.wanted.writes() || question.wanted == AccessAction::Read { for_publish: true };
    let status =
        if part_of_write { question.rules.refused_write_status } else { question.rules.refused_read_status };
    let code = if status == 404 { &catalogue::NOT_FOUND } else { &catalogue::UNAUTHORIZED };
    Some(Refusal { sentence, ..Refusal::of(code) })
}

fn goes_with(rules: &Rules<'_>, token: &TokenFacts, username: Option<&str>) -> bool {
    let Some(username) = username else { return true };
    rules.token_usernames.iter().any(|known| known == username)
        || token.username.as_ref().is_none_or(|known| known.eq_ignore_ascii_case(username))
}

/// An access key's owner was not given the repository: as [`Refusal::reason`].
pub const KEY_NOT_REACHED: &str = "key_not_reached";

/// Authentication rule 6 of the specification: a proxy that is not reached is not there.
fn not_reached(question: &AccessRequest<'_>, repository: RepositoryFacts) -> Option<Refusal> {
    let reaches = match question.presented {
        ResolvedCredential::Token(token, _) => token.listed && token.owner.is_none_or(|owner| owner.read),
        ResolvedCredential::Member(rights) => rights.read || rights.publish || rights.delete,
        ResolvedCredential::Key(key) => key.given,
        ResolvedCredential::Nothing | ResolvedCredential::Unknown => false,
    };
    if reaches {
        return None;
    }
    if repository.kind == Kind::Proxy || question.rules.not_reached_status == 404 {
        return Some(Refusal::of(&catalogue::NOT_FOUND));
    }
    let key = matches!(question.presented, ResolvedCredential::Key(_));
    let reason = key.then_some(KEY_NOT_REACHED);
    Some(Refusal { reason, ..Refusal::of(&catalogue::REPOSITORY_NOT_REACHED) })
}

/// A token made for one format is refused on every proxy, of that format or of another.
fn token_format_on_proxy(question: &AccessRequest<'_>, repository: RepositoryFacts) -> Option<Refusal> {
    let ResolvedCredential::Token(token, _) = question.presented else { return None };
    let special = *token.format != *GENERIC;
    (special && repository.kind == Kind::Proxy).then(|| Refusal::of(&catalogue::FORMAT_TOKEN_ON_PROXY))
}

/// Rule R4, and the same for groups.
fn write_to_what_has_no_storage(
    question: &AccessRequest<'_>,
    repository: RepositoryFacts,
) -> Option<Refusal> {
    match (question.wanted.writes(), repository.kind) {
        (true, Kind::Proxy) => Some(Refusal::of(&catalogue::WRITES_NOT_PERMITTED_ON_PROXY)),
        (true, Kind::Group) => Some(Refusal::of(&catalogue::WRITES_NOT_PERMITTED_ON_GROUP)),
        _ => None,
    }
}

fn scope(question: &AccessRequest<'_>) -> Option<Refusal> {
    let within = match question.presented {
        ResolvedCredential::Token(token, _) => token_scope(question, token),
        ResolvedCredential::Member(rights) => member_scope(question.wanted, *rights),
        ResolvedCredential::Key(_) => !question.wanted.writes(),
        ResolvedCredential::Nothing | ResolvedCredential::Unknown => false,
    };
    (!within).then(|| Refusal::action(question.wanted))
}

fn token_scope(question: &AccessRequest<'_>, token: &TokenFacts) -> bool {
    let format = *token.format == *GENERIC
        || question.rules.token_formats.iter().any(|known| **known == *token.format);
    format
        && match question.wanted {
            AccessAction::Open => true,
            AccessAction::Read { for_publish } => token.read || (for_publish && token.write),
            AccessAction::Publish | AccessAction::Delete => token.write,
        }
}

fn member_scope(wanted: AccessAction, rights: Rights) -> bool {
    match wanted {
        AccessAction::Open => true,
        AccessAction::Read { for_publish } => rights.read || (for_publish && rights.publish),
        AccessAction::Publish => rights.publish,
        AccessAction::Delete => rights.delete,
    }
}

/// Authentication rule 5: a token writes no longer than its owner may.
fn clamp(question: &AccessRequest<'_>) -> Option<Refusal> {
    let ResolvedCredential::Token(TokenFacts { owner: Some(owner), .. }, _) = question.presented else {
        return None;
    };
    (question.wanted.writes() && !owner.write()).then(|| Refusal::of(&catalogue::REVOKED_AUTHORITY_CLAMP))
}

fn disabled(repository: RepositoryFacts) -> Option<Refusal> {
    (!repository.enabled).then(|| Refusal::of(&catalogue::FORMAT_DISABLED))
}

/// The format of a token that works on every format of package.
pub const GENERIC: &str = "generic";

impl<'a> From<&'a packhouse_runtime::Description> for Rules<'a> {
    /// Where the description names no format of token, its own name is one.
    fn from(description: &'a packhouse_runtime::Description) -> Rules<'a> {
        Rules {
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
