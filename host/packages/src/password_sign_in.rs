//! Sign-in of package clients with a member's e-mail address and password. The server computes the
//! slow hash once, and then recognizes a correct password for a while.

use std::net::IpAddr;

use http::HeaderValue;
use http::header::RETRY_AFTER;
use packhouse_store::{MemberRow, OrganizationId, PasswordFactor};

use crate::error_response::HttpError;
use packhouse_app::App;
use packhouse_config::client_network::ClientNetwork;
use packhouse_identity::access::{NEEDS_FACTOR, NEEDS_TOKEN};
use packhouse_identity::{self as identity, Attempt, Factors, Secret, SignInOutcome, SignInSource};
use packhouse_wire::catalogue;

/// An e-mail address and a password from a package client.
pub(crate) struct SignIn<'a> {
    pub organization: OrganizationId,
    /// The user name, which should be an e-mail address.
    pub username: &'a str,
    pub password: Secret,
    pub peer: IpAddr,
}

/// Result of a check of e-mail address and password.
pub(crate) enum PasswordOutcome {
    Right(Box<MemberRow>),
    /// The password is right. But it needs a second factor, and a package client cannot send its
    /// code, so the password opens nothing here. The sentence is the reason.
    NeedsToken(&'static str),
    Wrong,
}

/// Checks the e-mail address and the password of a member of the organization. Fails with 429 and
/// the time to wait after too many wrong passwords.
pub(crate) async fn sign_in(app: &App, sign_in: SignIn<'_>) -> Result<PasswordOutcome, HttpError> {
    let SignIn { organization, username, password, peer } = sign_in;
    let Some(account) = identity::email(username) else { return Ok(PasswordOutcome::Wrong) };
    let found = app.store.members_by_email(&account).await?;
    let member = found.into_iter().find(|row| row.organization == organization);
    let network = ClientNetwork::of(peer);
    let who = SignInSource { account: &account, network };
    let factor = match &member {
        Some(member) => app.store.password_factor(member.id).await?,
        None => PasswordFactor::NotNeeded,
    };
    let factors = match factor {
        PasswordFactor::Confirmed => Factors::PasswordAndCode,
        PasswordFactor::NotNeeded | PasswordFactor::Missing => Factors::Password,
    };
    let outcome = |member: Option<MemberRow>| match (member, needs_token(factor)) {
        (Some(member), None) => PasswordOutcome::Right(Box::new(member)),
        (Some(_), Some(reason)) => PasswordOutcome::NeedsToken(reason),
        (None, _) => PasswordOutcome::Wrong,
    };
    let known = |member: &MemberRow| app.sign_ins.recognizes(who, &password, &member.password_hash);
    if member.as_ref().is_some_and(known) {
        return Ok(outcome(member));
    }
    let hashes = member.iter().map(|member| member.password_hash.clone()).collect();
    match app.sign_ins.attempt(Attempt { account, network, password, hashes, factors }).await {
        SignInOutcome::Right(_) => Ok(outcome(member)),
        SignInOutcome::Wrong => Ok(PasswordOutcome::Wrong),
        SignInOutcome::HeldUp(seconds) => Err(too_many(seconds)),
        SignInOutcome::Failed => Err(HttpError::of(&catalogue::INTERNAL)),
    }
}

/// Returns why a right password opens nothing here, if it needs a second factor.
pub(crate) fn needs_token(factor: PasswordFactor) -> Option<&'static str> {
    match factor {
        PasswordFactor::NotNeeded => None,
        PasswordFactor::Missing => Some(NEEDS_FACTOR),
        PasswordFactor::Confirmed => Some(NEEDS_TOKEN),
    }
}

fn too_many(seconds: u64) -> HttpError {
    HttpError::of(&catalogue::TOO_MANY_ATTEMPTS)
        .and_header(RETRY_AFTER, HeaderValue::from(seconds))
        .of_credential()
}
