//! Password hashing with Argon2id. Hashes run on blocking threads, a few at a time: by design, each
//! costs tens of milliseconds and some megabytes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use tokio::sync::{Semaphore, SemaphorePermit};

use packhouse_config::Secret;

use crate::boxed;

/// Most checks that wait for each check that runs. A full queue takes about 1.5 seconds. A longer
/// queue would only make clients wait until they give up.
const WAITING: usize = 64;

/// Hashes and checks passwords. At any time it computes at most one hash per processor.
#[derive(Clone)]
pub struct Passwords {
    slots: Arc<Semaphore>,
    at_once: usize,
    waiting: Arc<AtomicUsize>,
}

/// Current load of the password hashing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashing {
    /// Number of hashes that are being computed.
    pub running: usize,
    /// Maximum number of concurrent hashes.
    pub at_once: usize,
    /// Number of hashes that wait for a slot.
    pub waiting: usize,
    /// Maximum of `waiting`. Further checks are refused.
    pub most_waiting: usize,
}

/// Error for a password that was not checked because too many other checks wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many passwords wait to be checked")
    }
}

impl std::error::Error for Busy {}

/// Guard that counts a hash as waiting for a slot until the guard is dropped.
struct WaitingHash(Arc<AtomicUsize>);

impl Drop for WaitingHash {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Passwords {
    fn default() -> Self {
        Self::new()
    }
}

impl Passwords {
    pub fn new() -> Passwords {
        Passwords::at_once(std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
    }

    fn at_once(at_once: usize) -> Passwords {
        Passwords { slots: Arc::new(Semaphore::new(at_once)), at_once, waiting: Arc::default() }
    }

    pub fn now(&self) -> Hashing {
        let running = self.at_once.saturating_sub(self.slots.available_permits());
        let waiting = self.waiting.load(Ordering::Relaxed);
        Hashing { running, at_once: self.at_once, waiting, most_waiting: self.at_once * WAITING }
    }

    /// Waits for a slot. Dropping the permit frees the slot.
    async fn slot(&self) -> anyhow::Result<SemaphorePermit<'_>> {
        if let Ok(slot) = self.slots.try_acquire() {
            return Ok(slot);
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = WaitingHash(Arc::clone(&self.waiting));
        Ok(self.slots.acquire().await?)
    }

    /// Returns the hash to store, in PHC string format.
    #[boxed]
    pub async fn hash(&self, password: Secret) -> anyhow::Result<String> {
        let _slot = self.slot().await?;
        metrics::counter!("packhouse_password_hashes_total").increment(1);
        tokio::task::spawn_blocking(move || hash(&password)).await?
    }

    /// Reports whether the password matches the hash. Without a hash, as for an unknown member, the
    /// function checks a hash that matches no password, so that the response takes equally long.
    /// Fails with `Busy` if too many checks already wait: each check costs work, and anyone can
    /// cause one.
    #[boxed]
    pub async fn check(&self, password: Secret, known: Option<String>) -> anyhow::Result<bool> {
        let Hashing { waiting, most_waiting, .. } = self.now();
        if waiting >= most_waiting {
            metrics::counter!("packhouse_password_checks_refused_total").increment(1);
            return Err(Busy.into());
        }
        let _slot = self.slot().await?;
        metrics::counter!("packhouse_password_hashes_total").increment(1);
        let known = known.filter(|hash| !hash.is_empty());
        let right =
            tokio::task::spawn_blocking(move || verify(&password, known.as_deref().unwrap_or(NOBODY)))
                .await?;
        Ok(right)
    }
}

/// A hash that matches no password: its digest is all zeros. Its cost parameters are the usual
/// ones.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$bm9ib2R5bm9ib2R5bm9ibw$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn hash(password: &Secret) -> anyhow::Result<String> {
    let hash = Argon2::default()
        .hash_password(password.reveal().as_bytes())
        .map_err(|error| anyhow::anyhow!("failed to hash a password: {error}"))?;
    Ok(hash.to_string())
}

fn verify(password: &Secret, hash: &str) -> bool {
    PasswordHash::new(hash)
        .is_ok_and(|parsed| Argon2::default().verify_password(password.reveal().as_bytes(), &parsed).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_is_checked_against_its_hash_alone() {
        let passwords = Passwords::new();
        let stored = passwords.hash(Secret::new("correct horse")).await.unwrap();
        assert!(stored.starts_with("$argon2id$"), "{stored}");
        assert!(passwords.check(Secret::new("correct horse"), Some(stored.clone())).await.unwrap());
        assert!(!passwords.check(Secret::new("correct hors"), Some(stored)).await.unwrap());
    }

    #[tokio::test]
    async fn checks_beyond_the_limit_are_refused() {
        let passwords = Passwords::at_once(1);
        let slot = passwords.slot().await.unwrap();
        let check = || passwords.check(Secret::new("x"), None);
        let mut waiting: Vec<_> = (0..WAITING).map(|_| Box::pin(check())).collect();
        for one in &mut waiting {
            assert!(futures::poll!(one).is_pending());
        }
        let now = Hashing { running: 1, at_once: 1, waiting: WAITING, most_waiting: WAITING };
        assert_eq!(passwords.now(), now);
        assert!(check().await.unwrap_err().is::<Busy>());
        drop(waiting);
        assert_eq!(passwords.now().waiting, 0);
        drop(slot);
        assert!(!check().await.unwrap());
    }

    #[tokio::test]
    async fn no_password_matches_a_missing_hash() {
        let passwords = Passwords::new();
        for password in ["", "password"] {
            assert!(!passwords.check(Secret::new(password), None).await.unwrap());
            assert!(!passwords.check(Secret::new(password), Some(String::new())).await.unwrap());
        }
    }

    #[test]
    fn the_hash_for_unknown_members_costs_as_much_as_any_other() {
        let made = hash(&Secret::new("x")).unwrap();
        let (made, nobody) = (PasswordHash::new(&made).unwrap(), PasswordHash::new(NOBODY).unwrap());
        assert_eq!(made.algorithm, nobody.algorithm);
        assert_eq!(made.params, nobody.params);
        assert_eq!(made.salt.map(|salt| salt.len()), nobody.salt.map(|salt| salt.len()));
        assert_eq!(made.hash.map(|hash| hash.len()), nobody.hash.map(|hash| hash.len()));
    }
}
