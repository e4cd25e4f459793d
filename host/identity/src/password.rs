//! Passwords: Argon2id, on threads of its own and a few at a time, because one check costs tens of milliseconds and
//! megabytes by design.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use tokio::sync::{Semaphore, SemaphorePermit};

use packhouse_config::Secret;

use crate::boxed;

/// Checks that may wait for each that runs: a second and a half of work, which whoever comes later would wait for in vain.
const WAITING: usize = 64;

/// Checks passwords, at most as many at once as there are processors.
#[derive(Clone)]
pub struct Passwords {
    places: Arc<Semaphore>,
    at_once: usize,
    waiting: Arc<AtomicUsize>,
}

/// Hashes of passwords that are being made, and those that wait for their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashing {
    /// Those that are being made.
    pub running: usize,
    /// The most that are at one time.
    pub at_once: usize,
    /// Those that wait.
    pub waiting: usize,
    /// The most checks that wait; what comes then is refused.
    pub most_waiting: usize,
}

/// A password was not looked at: too many others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many passwords wait to be checked")
    }
}

impl std::error::Error for Busy {}

/// A hash that waits for its turn.
struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
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
    /// A checker for this process.
    pub fn new() -> Passwords {
        Passwords::at_once(std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
    }

    fn at_once(at_once: usize) -> Passwords {
        Passwords { places: Arc::new(Semaphore::new(at_once)), at_once, waiting: Arc::default() }
    }

    /// What runs and what waits at the moment.
    pub fn now(&self) -> Hashing {
        let running = self.at_once.saturating_sub(self.places.available_permits());
        let waiting = self.waiting.load(Ordering::Relaxed);
        Hashing { running, at_once: self.at_once, waiting, most_waiting: self.at_once * WAITING }
    }

    /// Waits for a turn, which ends when the permit is dropped.
    async fn turn(&self) -> anyhow::Result<SemaphorePermit<'_>> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(Arc::clone(&self.waiting));
        Ok(self.places.acquire().await?)
    }

    /// The hash to be kept, in PHC form.
    #[boxed]
    pub async fn hash(&self, password: Secret) -> anyhow::Result<String> {
        let _place = self.turn().await?;
        metrics::counter!("packhouse_password_hashes_total").increment(1);
        tokio::task::spawn_blocking(move || hash(&password)).await?
    }

    /// Whether the password is that of the hash. With no hash, as for a member who is not known, one that no password has
    /// is checked instead, so that the answer takes as long. An error when too many wait already: anybody can make one wait.
    #[boxed]
    pub async fn check(&self, password: Secret, known: Option<String>) -> anyhow::Result<bool> {
        let Hashing { waiting, most_waiting, .. } = self.now();
        if waiting >= most_waiting {
            metrics::counter!("packhouse_password_checks_refused_total").increment(1);
            return Err(Busy.into());
        }
        let _place = self.turn().await?;
        metrics::counter!("packhouse_password_hashes_total").increment(1);
        let known = known.filter(|hash| !hash.is_empty());
        let right =
            tokio::task::spawn_blocking(move || verify(&password, known.as_deref().unwrap_or(NOBODY)))
                .await?;
        Ok(right)
    }
}

/// The hash of no password: a digest of zeros, made with the same effort as any other.
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
        let kept = passwords.hash(Secret::new("correct horse")).await.unwrap();
        assert!(kept.starts_with("$argon2id$"), "{kept}");
        assert!(passwords.check(Secret::new("correct horse"), Some(kept.clone())).await.unwrap());
        assert!(!passwords.check(Secret::new("correct hors"), Some(kept)).await.unwrap());
    }

    #[tokio::test]
    async fn no_more_wait_than_there_is_room_for() {
        let passwords = Passwords::at_once(1);
        let place = passwords.turn().await.unwrap();
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
        drop(place);
        assert!(!check().await.unwrap());
    }

    #[tokio::test]
    async fn nobody_signs_in_without_a_hash() {
        let passwords = Passwords::new();
        for password in ["", "password"] {
            assert!(!passwords.check(Secret::new(password), None).await.unwrap());
            assert!(!passwords.check(Secret::new(password), Some(String::new())).await.unwrap());
        }
    }

    #[test]
    fn the_hash_of_nobody_costs_as_much_as_any_other() {
        let made = hash(&Secret::new("x")).unwrap();
        let (made, nobody) = (PasswordHash::new(&made).unwrap(), PasswordHash::new(NOBODY).unwrap());
        assert_eq!(made.algorithm, nobody.algorithm);
        assert_eq!(made.params, nobody.params);
        assert_eq!(made.salt.map(|salt| salt.len()), nobody.salt.map(|salt| salt.len()));
        assert_eq!(made.hash.map(|hash| hash.len()), nobody.hash.map(|hash| hash.len()));
    }
}
