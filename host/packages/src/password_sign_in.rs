//! Sign-in of package clients with a member's e-mail address and password. The server computes the
//! slow hash once, and then recognizes a correct password for a while.

use std::net::IpAddr;

use http::HeaderValue;
use http::header::RETRY_AFTER;
use packhouse_store::{MemberRow, OrganizationId};

use crate::error_response::HttpError;
use packhouse_app::App;
use packhouse_config::client_network::ClientNetwork;
use packhouse_identity::{self as identity, Attempt, Secret, SignInOutcome, SignInSource};
use packhouse_wire::catalogue;

/// An e-mail address and a password from a package client.
pub(crate) struct SignIn<'a> {
    pub organization: OrganizationId,
    /// The user name, which should be an e-mail address.
    pub username: &'a str,
    pub password: Secret,
    pub peer: IpAddr,
}

/// Returns the organization's member with this e-mail address and password, or `None` if they are
/// wrong. Fails with 429 and the time to wait after too many wrong passwords.
pub(crate) async fn sign_in(app: &App, sign_in: SignIn<'_>) -> Result<Option<MemberRow>, HttpError> {
    let SignIn { organization, username, password, peer } = sign_in;
    let Some(account) = identity::email(username) else { return Ok(None) };
    let found = app.store.members_by_email(&account).await?;
    let member = found.into_iter().find(|row| row.organization == organization);
    let network = ClientNetwork::of(peer);
    let who = SignInSource { account: &account, network };
    let known = |member: &MemberRow| app.sign_ins.recognizes(who, &password, &member.password_hash);
    if member.as_ref().is_some_and(known) {
        return Ok(member);
    }
    let hashes = member.iter().map(|member| member.password_hash.clone()).collect();
    match app.sign_ins.attempt(Attempt { account, network, password, hashes }).await {
        SignInOutcome::Right(_) => Ok(member),
        SignInOutcome::Wrong => Ok(None),
        SignInOutcome::HeldUp(seconds) => Err(too_many(seconds)),
        SignInOutcome::Failed => Err(HttpError::of(&catalogue::INTERNAL)),
    }
}

fn too_many(seconds: u64) -> HttpError {
    HttpError::of(&catalogue::TOO_MANY_ATTEMPTS)
        .and_header(RETRY_AFTER, HeaderValue::from(seconds))
        .of_credential()
}
