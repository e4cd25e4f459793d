//! Throttle for wrong passwords. Each wrong password delays the next attempt, longer each time and
//! at most for a minute. Tokens are never delayed. The counters are in memory and bounded, with the
//! most frequent attempts kept longest. Each server has its own counters.
//!
//! A wrong attempt delays later attempts at the same account. Once attempts from one network have
//! failed at many accounts, they also delay other attempts from this network. A single script
//! behind an office's address therefore delays no other member there. If an account has signed in
//! from a network before, its attempts from this network have a counter of their own. So guesses
//! from other networks, and at other accounts, lock no member out.
//!
//! Attempts under way are not failures yet. But the throttle adds them to the failures, as if all
//! of them were wrong. If the sum is too high, the next attempt waits until one of them is decided.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quick_cache::unsync::Cache;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use packhouse_config::client_network::ClientNetwork;

/// Number of wrong attempts at an account without a delay.
const FREE: u32 = 5;
/// Number of accounts with wrong attempts from one network before the network itself is delayed.
const MANY: usize = 10;
/// Longest delay of an attempt.
const LONGEST: Duration = Duration::from_secs(60);
/// Time without a wrong attempt after which the failures are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(15 * 60);
/// Maximum number of remembered accounts, of networks, and of accounts in a network.
const REMEMBERED: usize = 20_000;
/// Number of different wrong passwords for an account from a network after which a remembered
/// password is no longer accepted without a check.
const GUESSES: u32 = 20;
/// Number of recent wrong passwords that are told apart: a script repeats the same few, a guesser
/// does not.
const REPEATED: usize = 4;

/// Account and network of an attempt.
#[derive(Clone, Copy, Debug)]
pub struct SignInSource<'a> {
    /// The e-mail address that was entered. There may be no such account.
    pub account: &'a str,
    pub network: ClientNetwork,
}

/// Answer of the throttle to an attempt.
#[derive(Debug)]
pub(crate) enum Admission {
    /// The password may be checked. The caller then reports the result with [`Throttle::right`],
    /// [`Throttle::wrong`] or [`Throttle::undecided`].
    Now(AttemptTicket),
    /// The attempt has to wait until an attempt under way is decided.
    Later,
    /// The attempt is refused for this number of seconds, rounded up.
    Wait(u64),
}

/// An admitted attempt whose password is being checked. The numbers are keyed hashes.
#[derive(Debug)]
pub(crate) struct AttemptTicket {
    account: u64,
    network: u64,
    /// The account together with the network.
    pair: u64,
    /// True if the account has signed in from the network before.
    known: bool,
}

impl AttemptTicket {
    /// Returns the key of the counter that includes this attempt while it is under way.
    fn counted(&self) -> u64 {
        if self.known { self.pair } else { self.account }
    }
}

/// Throttle with counters of wrong attempts.
pub(crate) struct Throttle {
    state: Mutex<ThrottleState>,
    names: RandomState,
    decided: Notify,
}

struct ThrottleState {
    accounts: Cache<u64, Failures>,
    networks: Cache<u64, Network>,
    /// Accounts in networks from which they have signed in.
    known_accounts: Cache<u64, KnownAccount>,
    under_way: HashMap<u64, u32>,
}

#[derive(Clone, Copy, Default)]
struct Failures {
    count: u32,
    last: Option<Instant>,
}

impl Failures {
    /// Number of failures that are not forgotten yet.
    fn standing(self, now: Instant) -> u32 {
        let fresh = self.last.is_some_and(|last| now.saturating_duration_since(last) <= FORGOTTEN);
        if fresh { self.count } else { 0 }
    }

    fn add(&mut self, now: Instant) {
        *self = Self { count: self.standing(now).saturating_add(1), last: Some(now) };
    }

    fn wait(self, free: u32, now: Instant) -> Duration {
        let doublings = self.standing(now).saturating_sub(free);
        match (doublings, self.last) {
            (0, _) | (_, None) => Duration::ZERO,
            (more, Some(last)) => {
                let wait = Duration::from_secs(1 << (more - 1).min(6)).min(LONGEST);
                (last + wait).saturating_duration_since(now)
            }
        }
    }
}

/// Wrong attempts from a network at accounts that have not signed in from this network before.
#[derive(Clone, Default)]
struct Network {
    /// Accounts with a wrong attempt and no correct one since, with the time of the last attempt.
    wrong: Vec<(u64, Instant)>,
    /// Wrong attempts at accounts beyond the first [`MANY`].
    beyond: Failures,
}

impl Network {
    fn standing(&self, now: Instant) -> usize {
        let fresh = |at: &Instant| now.saturating_duration_since(*at) <= FORGOTTEN;
        self.wrong.iter().filter(|(_, at)| fresh(at)).count()
    }

    fn wrong(&mut self, account: u64, now: Instant) {
        self.wrong.retain(|(_, at)| now.saturating_duration_since(*at) <= FORGOTTEN);
        let there = self.wrong.len();
        match self.wrong.iter_mut().find(|(known, _)| *known == account) {
            Some((_, at)) => *at = now,
            None if there < MANY => self.wrong.push((account, now)),
            None => self.beyond.add(now),
        }
    }
}

/// An account in a network from which it has signed in.
#[derive(Clone, Copy, Default)]
struct KnownAccount {
    failures: Failures,
    /// Wrong passwords, without recent repetitions.
    guesses: Failures,
    /// The most recent different wrong passwords.
    recent: [u64; REPEATED],
}

impl KnownAccount {
    fn guessed(&mut self, password: u64, now: Instant) {
        if !self.recent.contains(&password) {
            self.guesses.add(now);
            self.recent.rotate_right(1);
            if let Some(first) = self.recent.first_mut() {
                *first = password;
            }
        }
    }
}

impl ThrottleState {
    fn ticket(&self, [account, network, pair]: [u64; 3]) -> AttemptTicket {
        AttemptTicket { account, network, pair, known: self.known_accounts.contains_key(&pair) }
    }

    /// The failures that delay this attempt: those of the account in this network if it has signed
    /// in there before, otherwise those of the account.
    fn failures(&self, ticket: &AttemptTicket) -> Failures {
        let failures = if ticket.known {
            self.known_accounts.get(&ticket.pair).map(|known| known.failures)
        } else {
            self.accounts.get(&ticket.account).copied()
        };
        failures.unwrap_or_default()
    }

    fn wait(&self, ticket: &AttemptTicket, now: Instant) -> Option<u64> {
        let own = self.failures(ticket).wait(FREE, now);
        let shared = self.networks.get(&ticket.network).filter(|_| !ticket.known);
        let shared = shared.map_or(Duration::ZERO, |network| network.beyond.wait(0, now));
        let wait = own.max(shared);
        (!wait.is_zero()).then(|| wait.as_secs_f64().ceil() as u64)
    }

    /// Reports whether there would be too many failures if all attempts under way turned out wrong.
    fn is_busy(&self, ticket: &AttemptTicket, now: Instant) -> bool {
        let under_way = |name: u64| self.under_way.get(&name).copied().unwrap_or_default();
        let (own, shared) = (under_way(ticket.counted()), under_way(ticket.network));
        let wrong = self.networks.get(&ticket.network).map_or(0, |network| network.standing(now));
        let own_busy = own > 0 && self.failures(ticket).standing(now) + own >= FREE;
        let shared_busy = !ticket.known && shared > 0 && wrong + shared as usize >= MANY;
        own_busy || shared_busy
    }

    /// Counts the start or the end of an attempt.
    fn count(&mut self, ticket: &AttemptTicket, begins: bool) {
        let names = [Some(ticket.counted()), Some(ticket.network).filter(|_| !ticket.known)];
        for name in names.into_iter().flatten() {
            let count = self.under_way.entry(name).or_default();
            *count = if begins { count.saturating_add(1) } else { count.saturating_sub(1) };
            if *count == 0 {
                self.under_way.remove(&name);
            }
        }
    }
}

impl Throttle {
    pub(crate) fn new() -> Throttle {
        let state = ThrottleState {
            accounts: Cache::new(REMEMBERED),
            networks: Cache::new(REMEMBERED),
            known_accounts: Cache::new(REMEMBERED),
            under_way: HashMap::new(),
        };
        Throttle { state: Mutex::new(state), names: RandomState::new(), decided: Notify::new() }
    }

    /// Resolves when the next attempt is decided.
    pub(crate) fn decided(&self) -> Notified<'_> {
        self.decided.notified()
    }

    /// Admits an attempt, or says how long it has to wait.
    pub(crate) fn begin(&self, who: SignInSource<'_>, now: Instant) -> Admission {
        let mut state = self.lock();
        let ticket = state.ticket(self.keys_of(who));
        if let Some(seconds) = state.wait(&ticket, now) {
            return Admission::Wait(seconds);
        }
        if state.is_busy(&ticket, now) {
            return Admission::Later;
        }
        state.count(&ticket, true);
        Admission::Now(ticket)
    }

    /// Records a correct password. The account's failures are forgotten. From now on, the account
    /// has its own counter in this network. The network's failures at other accounts remain, so
    /// that an attacker cannot clear them with an account of their own.
    pub(crate) fn right(&self, ticket: AttemptTicket) {
        let mut state = self.lock();
        state.count(&ticket, false);
        if !ticket.known {
            state.accounts.remove(&ticket.account);
        }
        state.known_accounts.insert(ticket.pair, KnownAccount::default());
        if let Some(mut network) = state.networks.get_mut(&ticket.network) {
            network.wrong.retain(|(account, _)| *account != ticket.account);
        }
        drop(state);
        self.decided.notify_waiters();
    }

    /// Records a wrong password. `password` is a keyed hash of the password.
    pub(crate) fn wrong(&self, ticket: AttemptTicket, password: u64, now: Instant) {
        let mut state = self.lock();
        state.count(&ticket, false);
        if ticket.known {
            let mut known = state.known_accounts.get(&ticket.pair).copied().unwrap_or_default();
            known.failures.add(now);
            known.guessed(password, now);
            state.known_accounts.insert(ticket.pair, known);
        } else {
            let mut failures = state.accounts.get(&ticket.account).copied().unwrap_or_default();
            failures.add(now);
            state.accounts.insert(ticket.account, failures);
            let mut network = state.networks.get(&ticket.network).cloned().unwrap_or_default();
            network.wrong(ticket.account, now);
            state.networks.insert(ticket.network, network);
        }
        drop(state);
        self.decided.notify_waiters();
    }

    /// Records that the password could not be checked.
    pub(crate) fn undecided(&self, ticket: &AttemptTicket) {
        let mut state = self.lock();
        state.count(ticket, false);
        drop(state);
        self.decided.notify_waiters();
    }

    /// Records an attempt that was refused without a check. The attempt still counts as a guess,
    /// which [`accepts_remembered`](Throttle::accepts_remembered) takes into account.
    pub(crate) fn held_up(&self, who: SignInSource<'_>, password: u64, now: Instant) {
        let [_, _, pair] = self.keys_of(who);
        if let Some(mut known) = self.lock().known_accounts.get_mut(&pair) {
            known.guessed(password, now);
        }
    }

    /// Reports whether a recently correct password may be accepted without another check. While
    /// attempts are delayed, there are two conditions: the account has signed in from this network
    /// before, and few different passwords for the account were tried from there. Otherwise an
    /// attacker would learn immediately which guess is right.
    pub(crate) fn accepts_remembered(&self, who: SignInSource<'_>, now: Instant) -> bool {
        let state = self.lock();
        let ticket = state.ticket(self.keys_of(who));
        if state.wait(&ticket, now).is_none() {
            return true;
        }
        let known = state.known_accounts.get(&ticket.pair).copied();
        known.is_some_and(|known| known.guesses.standing(now) < GUESSES)
    }

    fn keys_of(&self, SignInSource { account, network }: SignInSource<'_>) -> [u64; 3] {
        let name = |kind: u8, account: &str, network: Option<ClientNetwork>| {
            self.names.hash_one((kind, account, network))
        };
        [name(0, account, None), name(1, "", Some(network)), name(2, account, Some(network))]
    }

    fn lock(&self) -> MutexGuard<'_, ThrottleState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
