//! Attempts to sign in with a password, on both hosts. Concurrent equal attempts count as one and
//! are checked once. The [`throttle`](super::throttle) delays guesses. A correct password is
//! remembered for a while, so that it is accepted again without the slow hash. The remembered value
//! is a keyed hash of the password together with its stored hash. After a change of the password,
//! the stored hash is another, so the old password no longer matches.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use super::password::Busy;
use super::throttle::{Admission, SignInSource, Throttle};
use super::{Passwords, Secret};
use packhouse_config::client_network::ClientNetwork;

/// Time for which a correct password is remembered after its last use.
const REMEMBERED: Duration = Duration::from_secs(300);
/// Maximum number of remembered passwords.
const MAX_REMEMBERED: usize = 10_000;
/// Longest time that an attempt waits for other attempts that are under way.
const PATIENCE: Duration = Duration::from_secs(10);
/// Delay in seconds for attempts that arrive while too many checks wait.
const BUSY: u64 = 2;

/// An attempt to sign in with a password.
pub struct Attempt {
    /// The e-mail address that was entered. There may be no such account.
    pub account: String,
    pub network: ClientNetwork,
    pub password: Secret,
    /// Password hashes of the members with this address. Empty if no member has it.
    pub hashes: Vec<String>,
}

impl Attempt {
    fn who(&self) -> SignInSource<'_> {
        SignInSource { account: &self.account, network: self.network }
    }
}

/// Result of an attempt to sign in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SignInOutcome {
    /// The password matches at least one hash. The flags say for each hash whether it matches.
    Right(Vec<bool>),
    /// The password matches no hash.
    Wrong,
    /// The password was not checked. The client has to wait for this number of seconds.
    HeldUp(u64),
    /// The check failed. The log has the error.
    Failed,
}

type Key = [u8; 32];

/// Checks passwords with throttling, deduplication and a memory of correct passwords.
pub struct SignIns {
    passwords: Passwords,
    throttle: Throttle,
    under_way: Mutex<HashMap<Key, watch::Receiver<Option<SignInOutcome>>>>,
    right: Cache<Key, Instant>,
    key: [u8; 32],
}

impl SignIns {
    pub fn new(passwords: Passwords) -> Arc<Self> {
        Arc::new(Self {
            passwords,
            throttle: Throttle::new(),
            under_way: Mutex::default(),
            right: Cache::new(MAX_REMEMBERED),
            key: rand::random(),
        })
    }

    /// Reports whether this password was recently found to match the hash and may be accepted
    /// without another check.
    pub fn recognizes(&self, who: SignInSource<'_>, password: &Secret, hash: &str) -> bool {
        let key = self.keyed(&[hash, password.reveal()]);
        let known = self.right.get(&key).is_some_and(|at| at.elapsed() < REMEMBERED);
        if !known || !self.throttle.accepts_remembered(who, Instant::now()) {
            return false;
        }
        self.right.insert(key, Instant::now());
        true
    }

    /// Checks a password. The check completes even if the caller stops waiting.
    pub async fn attempt(self: &Arc<Self>, attempt: Attempt) -> SignInOutcome {
        let mut parts = vec![attempt.account.as_str(), attempt.password.reveal()];
        let network = attempt.network.to_string();
        parts.push(&network);
        parts.extend(attempt.hashes.iter().map(String::as_str));
        let key = self.keyed(&parts);
        let mut outcome = self.join(key, attempt);
        match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(SignInOutcome::Failed),
            Err(_) => SignInOutcome::Failed,
        }
    }

    /// Joins an equal attempt that is under way, or starts a new one. Returns the receiver of its
    /// outcome.
    fn join(self: &Arc<Self>, key: Key, attempt: Attempt) -> watch::Receiver<Option<SignInOutcome>> {
        let mut under_way = self.lock();
        if let Some(known) = under_way.get(&key) {
            return known.clone();
        }
        let (decided, outcome) = watch::channel(None);
        under_way.insert(key, outcome.clone());
        drop(under_way);
        let (leaving, own) = (Leaving { sign_ins: Arc::clone(self), key }, Arc::clone(self));
        tokio::spawn(async move {
            let outcome = own.decide(attempt).await;
            // Equal attempts from now on start a check of their own.
            drop(leaving);
            // It is fine if every caller has stopped waiting.
            let _ = decided.send(Some(outcome));
        });
        outcome
    }

    async fn decide(&self, attempt: Attempt) -> SignInOutcome {
        let who = attempt.who();
        let guess = self.guess(&attempt.password);
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let held_up = |seconds| {
            self.throttle.held_up(who, guess, Instant::now());
            SignInOutcome::HeldUp(seconds)
        };
        let ticket = loop {
            let decided = self.throttle.decided();
            match self.throttle.begin(who, Instant::now()) {
                Admission::Now(ticket) => break ticket,
                Admission::Wait(seconds) => return held_up(seconds),
                Admission::Later if tokio::time::timeout_at(deadline, decided).await.is_err() => {
                    return held_up(1);
                }
                Admission::Later => (),
            }
        };
        match self.check(&attempt).await {
            Ok(right) if right.contains(&true) => {
                self.throttle.right(ticket);
                SignInOutcome::Right(right)
            }
            Ok(_) => {
                self.throttle.wrong(ticket, guess, Instant::now());
                SignInOutcome::Wrong
            }
            Err(error) if error.is::<Busy>() => {
                self.throttle.undecided(&ticket);
                SignInOutcome::HeldUp(BUSY)
            }
            Err(error) => {
                self.throttle.undecided(&ticket);
                tracing::error!(%error, "password check failed");
                SignInOutcome::Failed
            }
        }
    }

    /// Checks the password against each hash. Without a hash it still makes one check, so that the
    /// response time does not show whether the account exists.
    async fn check(&self, attempt: &Attempt) -> anyhow::Result<Vec<bool>> {
        if attempt.hashes.is_empty() {
            self.passwords.check(attempt.password.clone(), None).await?;
        }
        let mut all = Vec::with_capacity(attempt.hashes.len());
        for hash in &attempt.hashes {
            let right = self.passwords.check(attempt.password.clone(), Some(hash.clone())).await?;
            if right {
                self.right.insert(self.keyed(&[hash, attempt.password.reveal()]), Instant::now());
            }
            all.push(right);
        }
        Ok(all)
    }

    fn guess(&self, password: &Secret) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.keyed(&[password.reveal()]);
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    fn keyed(&self, parts: &[&str]) -> Key {
        let mut hash = Sha256::new_with_prefix(self.key);
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, watch::Receiver<Option<SignInOutcome>>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard that removes an attempt from the attempts under way when the guard is dropped.
struct Leaving {
    sign_ins: Arc<SignIns>,
    key: Key,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.sign_ins.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(account: &str, password: &str, hashes: &[String]) -> Attempt {
        Attempt {
            account: account.to_owned(),
            network: ClientNetwork::of([192, 0, 2, 1].into()),
            password: Secret::new(password),
            hashes: hashes.to_vec(),
        }
    }

    #[tokio::test]
    async fn equal_attempts_count_as_one_and_are_not_held_up() {
        let passwords = Passwords::new();
        let hash = passwords.hash(Secret::new("right")).await.unwrap();
        let sign_ins = SignIns::new(passwords);
        let hashes = [hash];
        for password in ["right", "wrong"] {
            let all = (0..50).map(|_| sign_ins.attempt(attempt("a@x", password, &hashes)));
            let all = futures::future::join_all(all).await;
            let expected =
                if password == "right" { SignInOutcome::Right(vec![true]) } else { SignInOutcome::Wrong };
            assert!(all.iter().all(|outcome| *outcome == expected), "{all:?}");
        }
        let who = |account| SignInSource { account, network: ClientNetwork::of([192, 0, 2, 1].into()) };
        assert!(sign_ins.recognizes(who("a@x"), &Secret::new("right"), &hashes[0]));
        assert!(!sign_ins.recognizes(who("a@x"), &Secret::new("wrong"), &hashes[0]));
        assert!(sign_ins.lock().is_empty());
    }

    #[tokio::test]
    async fn guesses_at_one_time_do_not_outrun_the_count() {
        let sign_ins = SignIns::new(Passwords::new());
        for account in ["nobody@x", "other@x"] {
            let guesses: Vec<Attempt> = (0..30).map(|n| attempt(account, &n.to_string(), &[])).collect();
            let all = guesses.into_iter().map(|guess| sign_ins.attempt(guess));
            let all = futures::future::join_all(all).await;
            let checked = all.iter().filter(|outcome| **outcome == SignInOutcome::Wrong).count();
            assert_eq!(checked, 6, "five free attempts, and the one that starts the delay: {all:?}");
        }
    }
}
