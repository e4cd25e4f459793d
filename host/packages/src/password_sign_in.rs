//! A member's own e-mail address and password as a package client's credential. The slow hash runs once; a password that was right
//! is recognized for a while.

use std::net::IpAddr;

use http::HeaderValue;
use http::header::RETRY_AFTER;
use packhouse_store::{MemberRow, OrganizationId};

use crate::error_response::HttpError;
use packhouse_app::App;
use packhouse_config::client_network::ClientNetwork;
use packhouse_identity::{self as identity, Attempt, Outcome, Secret, Who};
use packhouse_wire::catalogue;

/// An e-mail address and a password, as a package client sends them.
pub(crate) struct SignIn<'a> {
    /// The organization that the request is for.
    pub organization: OrganizationId,
    /// What stands for the e-mail address.
    pub username: &'a str,
    /// The password.
    pub password: Secret,
    /// The client's address.
    pub peer: IpAddr,
}

/// The member of this organization with this e-mail and password; none for a wrong one. 429 with the time to wait after too
/// many wrong ones.
pub(crate) async fn sign_in(app: &App, sign_in: SignIn<'_>) -> Result<Option<MemberRow>, HttpError> {
    let SignIn { organization, username, password, peer } = sign_in;
    let Some(account) = identity::email(username) else { return Ok(None) };
    let found = app.store.members_by_email(&account).await?;
    let member = found.into_iter().find(|row| row.organization == organization);
    let network = ClientNetwork::of(peer);
    let who = Who { account: &account, network };
    let known = |member: &MemberRow| app.sign_ins.recognizes(who, &password, &member.password_hash);
    if member.as_ref().is_some_and(known) {
        return Ok(member);
    }
    let hashes = member.iter().map(|member| member.password_hash.clone()).collect();
    match app.sign_ins.attempt(Attempt { account, network, password, hashes }).await {
        Outcome::Right(_) => Ok(member),
        Outcome::Wrong => Ok(None),
        Outcome::HeldUp(seconds) => Err(too_many(seconds)),
        Outcome::Failed => Err(HttpError::of(&catalogue::INTERNAL)),
    }
}

fn too_many(seconds: u64) -> HttpError {
    HttpError::of(&catalogue::TOO_MANY_ATTEMPTS)
        .and_header(RETRY_AFTER, HeaderValue::from(seconds))
        .of_credential()
}
