//! Attempts to sign in with a password, on both hosts. Concurrent equal attempts count as one and
//! are checked once. The [`throttle`](super::throttle) delays guesses. A correct password is
//! remembered for a while, so that it is accepted again without the slow hash. The remembered value
//! is a keyed hash of the password together with its stored hash. After a change of the password,
//! the stored hash is another, so the old password no longer matches.
//!
//! A code of a second factor is a further attempt after the password. The throttle counts wrong
//! codes like wrong passwords, and a right password alone clears nothing. The caller may count the
//! codes at an account of their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use super::password::Busy;
use super::throttle::{Admission, AttemptTicket, SignInSource, Throttle};
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
    pub factors: Factors,
}

/// Factors that decide about an attempt to sign in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Factors {
    /// The password decides about the attempt.
    Password,
    /// A code follows the password. The throttle counts a right password neither as right nor as
    /// wrong: [`SignIns::second_factor`] decides.
    PasswordAndCode,
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

/// Result of the check of a code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CodeOutcome {
    Right,
    Wrong,
    /// The code was not checked. The client has to wait for this number of seconds.
    HeldUp(u64),
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
        parts.push(match attempt.factors {
            Factors::Password => "password",
            Factors::PasswordAndCode => "code",
        });
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

    /// Checks a code of the account's second factor after its password. `check` accepts each code
    /// only once. The result counts like that of a password.
    pub async fn second_factor<E>(
        &self,
        who: SignInSource<'_>,
        code: &Secret,
        check: impl Future<Output = Result<bool, E>>,
    ) -> Result<CodeOutcome, E> {
        let guess = self.guess(code);
        let ticket = match self.admit(who, guess).await {
            Ok(ticket) => ticket,
            Err(seconds) => return Ok(CodeOutcome::HeldUp(seconds)),
        };
        let mut open = OpenAttempt { throttle: &self.throttle, ticket: Some(ticket) };
        let is_right = check.await?;
        let Some(ticket) = open.ticket.take() else { return Ok(CodeOutcome::Wrong) };
        if is_right {
            self.throttle.right(ticket);
            return Ok(CodeOutcome::Right);
        }
        self.throttle.wrong(ticket, guess, Instant::now());
        Ok(CodeOutcome::Wrong)
    }

    /// Waits until the throttle admits an attempt. The error is the number of seconds that the
    /// client has to wait.
    async fn admit(&self, who: SignInSource<'_>, guess: u64) -> Result<AttemptTicket, u64> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let held_up = |seconds| {
            self.throttle.held_up(who, guess, Instant::now());
            Err(seconds)
        };
        loop {
            let decided = self.throttle.decided();
            match self.throttle.begin(who, Instant::now()) {
                Admission::Now(ticket) => return Ok(ticket),
                Admission::Wait(seconds) => return held_up(seconds),
                Admission::Later if tokio::time::timeout_at(deadline, decided).await.is_err() => {
                    return held_up(1);
                }
                Admission::Later => (),
            }
        }
    }

    async fn decide(&self, attempt: Attempt) -> SignInOutcome {
        let guess = self.guess(&attempt.password);
        let ticket = match self.admit(attempt.who(), guess).await {
            Ok(ticket) => ticket,
            Err(seconds) => return SignInOutcome::HeldUp(seconds),
        };
        match self.check(&attempt).await {
            Ok(right) if right.contains(&true) => {
                match attempt.factors {
                    Factors::Password => self.throttle.right(ticket),
                    Factors::PasswordAndCode => self.throttle.undecided(&ticket),
                }
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

/// Guard that ends an attempt as undecided if nothing decides it, as when the client disconnects.
struct OpenAttempt<'a> {
    throttle: &'a Throttle,
    ticket: Option<AttemptTicket>,
}

impl Drop for OpenAttempt<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.throttle.undecided(&ticket);
        }
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
            factors: Factors::Password,
        }
    }

    fn who(account: &str) -> SignInSource<'_> {
        SignInSource { account, network: ClientNetwork::of([192, 0, 2, 1].into()) }
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

    #[tokio::test]
    async fn a_right_password_does_not_clear_the_wrong_codes_that_follow_it() {
        let passwords = Passwords::new();
        let hash = passwords.hash(Secret::new("right")).await.unwrap();
        let sign_ins = SignIns::new(passwords);
        let hashes = [hash];
        let first = || Attempt { factors: Factors::PasswordAndCode, ..attempt("a@x", "right", &hashes) };
        let code = |code: &'static str, right: bool| {
            let sign_ins = Arc::clone(&sign_ins);
            async move {
                let check = async { Ok::<bool, ()>(right) };
                sign_ins.second_factor(who("a@x"), &Secret::new(code), check).await.unwrap()
            }
        };
        for guess in ["1", "2", "3"] {
            assert_eq!(sign_ins.attempt(first()).await, SignInOutcome::Right(vec![true]));
            assert_eq!(code(guess, false).await, CodeOutcome::Wrong);
        }
        assert_eq!(sign_ins.attempt(first()).await, SignInOutcome::Right(vec![true]));
        assert_eq!(code("right", true).await, CodeOutcome::Right);
        for guess in ["1", "2", "3", "4", "5", "6"] {
            assert_eq!(sign_ins.attempt(first()).await, SignInOutcome::Right(vec![true]));
            assert_eq!(code(guess, false).await, CodeOutcome::Wrong);
        }
        assert!(matches!(sign_ins.attempt(first()).await, SignInOutcome::HeldUp(_)));
        assert!(matches!(code("right", true).await, CodeOutcome::HeldUp(_)));
    }

    #[tokio::test]
    async fn a_code_whose_check_is_dropped_holds_up_no_other_attempt() {
        let sign_ins = SignIns::new(Passwords::new());
        for _ in 0..30 {
            let code = Secret::new("1");
            let never = std::future::pending::<Result<bool, ()>>();
            let mut check = Box::pin(sign_ins.second_factor(who("a@x"), &code, never));
            assert!(futures::poll!(&mut check).is_pending());
        }
        let code = Secret::new("2");
        let check = sign_ins.second_factor(who("a@x"), &code, async { Ok::<bool, ()>(true) });
        assert_eq!(check.await, Ok(CodeOutcome::Right));
    }
}
