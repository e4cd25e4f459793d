//! Attempts to sign in with a password, on both hosts. Equal attempts at one time are one check and one attempt; who guesses is
//! held up by the [`throttle`](super::throttle); what was right is recognized for a while without the slow hash, under a keyed
//! hash of the password and of what it was checked against: a changed password is asked for anew.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use super::password::Busy;
use super::throttle::{Throttle, Turn, Who};
use super::{Passwords, Secret};
use packhouse_config::client_network::ClientNetwork;

/// How long a right password is remembered after it was last used.
const REMEMBERED: Duration = Duration::from_secs(300);
/// How many are.
const MOST: usize = 10_000;
/// How long an attempt waits for those that are under way.
const PATIENCE: Duration = Duration::from_secs(10);
/// For how many seconds whoever comes while too many wait is held up.
const BUSY: u64 = 2;

/// One attempt.
pub struct Attempt {
    /// The account's e-mail address, whether there is one or not.
    pub account: String,
    /// Where it comes from.
    pub network: ClientNetwork,
    /// What was typed.
    pub password: Secret,
    /// The hashes of those whose password it may be; none where nobody has the address.
    pub hashes: Vec<String>,
}

impl Attempt {
    fn who(&self) -> Who<'_> {
        Who { account: &self.account, network: self.network }
    }
}

/// What became of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// For each hash, whether the password is its; one of them at least.
    Right(Vec<bool>),
    /// It is nobody's.
    Wrong,
    /// It was not looked at, and will not be for so many seconds.
    HeldUp(u64),
    /// It could not be checked; the log says why.
    Failed,
}

type Key = [u8; 32];

/// See the module.
pub struct SignIns {
    passwords: Passwords,
    throttle: Throttle,
    under_way: Mutex<HashMap<Key, watch::Receiver<Option<Outcome>>>>,
    right: Cache<Key, Instant>,
    key: [u8; 32],
}

impl SignIns {
    /// Nobody has tried yet.
    pub fn new(passwords: Passwords) -> Arc<Self> {
        Arc::new(Self {
            passwords,
            throttle: Throttle::new(),
            under_way: Mutex::default(),
            right: Cache::new(MOST),
            key: rand::random(),
        })
    }

    /// Whether this password was found to be that of the hash a short while ago, and may be taken without looking again.
    pub fn recognizes(&self, who: Who<'_>, password: &Secret, hash: &str) -> bool {
        let key = self.keyed(&[hash, password.reveal()]);
        let known = self.right.get(&key).is_some_and(|at| at.elapsed() < REMEMBERED);
        if !known || !self.throttle.goes_on(who, Instant::now()) {
            return false;
        }
        self.right.insert(key, Instant::now());
        true
    }

    /// Checks a password. It is decided even when whoever asked has gone.
    pub async fn attempt(self: &Arc<Self>, attempt: Attempt) -> Outcome {
        let mut parts = vec![attempt.account.as_str(), attempt.password.reveal()];
        let network = attempt.network.to_string();
        parts.push(&network);
        parts.extend(attempt.hashes.iter().map(String::as_str));
        let key = self.keyed(&parts);
        let mut outcome = self.join(key, attempt);
        match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Outcome::Failed),
            Err(_) => Outcome::Failed,
        }
    }

    /// The equal attempt that is under way, or a new one.
    fn join(self: &Arc<Self>, key: Key, attempt: Attempt) -> watch::Receiver<Option<Outcome>> {
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
            // Whoever comes from here on makes an attempt of its own.
            drop(leaving);
            // Nobody may be left to hear it.
            let _ = decided.send(Some(outcome));
        });
        outcome
    }

    async fn decide(&self, attempt: Attempt) -> Outcome {
        let who = attempt.who();
        let guess = self.guess(&attempt.password);
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let held_up = |seconds| {
            self.throttle.held_up(who, guess, Instant::now());
            Outcome::HeldUp(seconds)
        };
        let ticket = loop {
            let decided = self.throttle.decided();
            match self.throttle.begin(who, Instant::now()) {
                Turn::Now(ticket) => break ticket,
                Turn::Wait(seconds) => return held_up(seconds),
                Turn::Later if tokio::time::timeout_at(deadline, decided).await.is_err() => {
                    return held_up(1);
                }
                Turn::Later => (),
            }
        };
        match self.check(&attempt).await {
            Ok(right) if right.contains(&true) => {
                self.throttle.right(ticket);
                Outcome::Right(right)
            }
            Ok(_) => {
                self.throttle.wrong(ticket, guess, Instant::now());
                Outcome::Wrong
            }
            Err(error) if error.is::<Busy>() => {
                self.throttle.undecided(&ticket);
                Outcome::HeldUp(BUSY)
            }
            Err(error) => {
                self.throttle.undecided(&ticket);
                tracing::error!(%error, "a password could not be checked");
                Outcome::Failed
            }
        }
    }

    /// One check for each hash, and one where there is none, so that the answer tells nobody who is known.
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

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, watch::Receiver<Option<Outcome>>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes an attempt out of those under way, whatever becomes of it.
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
    async fn equal_attempts_are_one_and_none_of_them_is_held_up() {
        let passwords = Passwords::new();
        let hash = passwords.hash(Secret::new("right")).await.unwrap();
        let sign_ins = SignIns::new(passwords);
        let hashes = [hash];
        for password in ["right", "wrong"] {
            let all = (0..50).map(|_| sign_ins.attempt(attempt("a@x", password, &hashes)));
            let all = futures::future::join_all(all).await;
            let expected = if password == "right" { Outcome::Right(vec![true]) } else { Outcome::Wrong };
            assert!(all.iter().all(|outcome| *outcome == expected), "{all:?}");
        }
        let who = |account| Who { account, network: ClientNetwork::of([192, 0, 2, 1].into()) };
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
            let looked_at = all.iter().filter(|outcome| **outcome == Outcome::Wrong).count();
            assert_eq!(looked_at, 6, "five that are free, and the one that begins the wait: {all:?}");
        }
    }
}
