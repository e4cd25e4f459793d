//! A member's own e-mail and password as a package client's credential. The slow hash runs once and its outcome is remembered
//! for a while, under a keyed hash of the password and of what it was checked against: a changed password is asked for anew.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderValue;
use http::header::RETRY_AFTER;
use packhouse_store::{MemberRow, OrganizationId};
use sha2::{Digest as _, Sha256};

use crate::app::App;
use crate::catalogue;
use crate::identity::{self, Secret};
use crate::packages::shape::Refused;

/// How long a right password is remembered.
const REMEMBERED: Duration = Duration::from_secs(300);
/// How many are.
const MOST: usize = 10_000;

static KEY: LazyLock<[u8; 32]> = LazyLock::new(rand::random);
static RIGHT: LazyLock<Mutex<HashMap<[u8; 32], Instant>>> = LazyLock::new(Mutex::default);

/// The member of this organization with this e-mail and password; none for a wrong one. 429 with the time to wait after too
/// many wrong ones.
pub(crate) async fn sign_in(
    app: &App,
    organization: OrganizationId,
    username: &str,
    password: Secret,
    peer: IpAddr,
) -> Result<Option<MemberRow>, Refused> {
    let Some(email) = identity::email(username) else { return Ok(None) };
    let member =
        app.store.members_by_email(&email).await?.into_iter().find(|row| row.organization == organization);
    let known = member.as_ref().map(|member| keyed(member, &password));
    if known.is_some_and(remembered) {
        return Ok(member);
    }
    let address = peer.to_string();
    let who = [email.as_str(), address.as_str()];
    if let Some(wait) = app.throttle.wait(&who, Instant::now()) {
        return Err(too_many(wait));
    }
    app.throttle.wrong(&who, Instant::now());
    let hash = member.as_ref().map(|member| member.password_hash.clone());
    let right = app.passwords.check(password, hash).await.map_err(|error| {
        tracing::error!(%error, "a password could not be checked");
        Refused::of(&catalogue::INTERNAL)
    })?;
    if right {
        app.throttle.right(&who, Instant::now());
        known.into_iter().for_each(remember);
    }
    Ok(member.filter(|_| right))
}

fn too_many(seconds: u64) -> Refused {
    Refused::of(&catalogue::TOO_MANY_ATTEMPTS)
        .and_header(RETRY_AFTER, HeaderValue::from(seconds))
        .of_credential()
}

fn keyed(member: &MemberRow, password: &Secret) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(*KEY);
    for part in [member.id.to_string().as_str(), &member.password_hash, password.reveal()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn remembered(key: [u8; 32]) -> bool {
    let right = RIGHT.lock().unwrap_or_else(PoisonError::into_inner);
    right.get(&key).is_some_and(|at| at.elapsed() < REMEMBERED)
}

fn remember(key: [u8; 32]) {
    let mut right = RIGHT.lock().unwrap_or_else(PoisonError::into_inner);
    if right.len() >= MOST {
        right.clear();
    }
    right.insert(key, Instant::now());
}
