//! Wrong passwords make the next attempt wait, longer each time and at most a minute. Tokens are never held up. Kept in memory,
//! bounded, and what is tried often stays longest; a node counts for itself.
//!
//! An attempt counts against its account. Its network counts only once many accounts are tried from there, so that one script
//! behind an office's address holds up nobody else. From a network in which an account has signed in, that account's wrong
//! attempts in that network count and nothing else does: guesses from elsewhere, and at others, lock nobody out.
//!
//! Attempts under way are no failures. Where they would be too many if all of them turned out wrong, the next one waits until one
//! of them is decided.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quick_cache::unsync::Cache;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use packhouse_config::client_network::ClientNetwork;

/// Wrong attempts at an account that cost nothing.
const FREE: u32 = 5;
/// Accounts that may be wrong in one network before the network counts.
const MANY: usize = 10;
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(60);
/// After so long without a wrong attempt all is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(15 * 60);
/// Accounts, networks, and accounts in networks that are remembered at one time, of each.
const REMEMBERED: usize = 20_000;
/// Different wrong passwords of an account in a network after which a password that was right is looked at like any other.
const GUESSES: u32 = 20;
/// Wrong passwords that are told apart there: a script repeats the same few, somebody who guesses does not.
const REPEATED: usize = 4;

/// Who tries from where.
#[derive(Clone, Copy, Debug)]
pub struct Who<'a> {
    /// The account's e-mail address, whether there is one or not.
    pub account: &'a str,
    /// Where the attempt comes from.
    pub network: ClientNetwork,
}

/// Whether an attempt may be looked at.
#[derive(Debug)]
pub(crate) enum Turn {
    /// It may; [`Throttle::end`] is told what became of it.
    Now(Ticket),
    /// Not before one of those under way is decided.
    Later,
    /// Not for so many seconds, rounded up.
    Wait(u64),
}

/// An attempt under way.
#[derive(Debug)]
pub(crate) struct Ticket {
    account: u64,
    network: u64,
    /// The account in the network.
    place: u64,
    /// Whether the account had signed in there before.
    known: bool,
}

impl Ticket {
    /// Under which name it counts as under way for the account.
    fn counted(&self) -> u64 {
        if self.known { self.place } else { self.account }
    }
}

/// Who failed how often.
pub(crate) struct Throttle {
    state: Mutex<State>,
    names: RandomState,
    decided: Notify,
}

struct State {
    accounts: Cache<u64, Failures>,
    networks: Cache<u64, Network>,
    /// Accounts in networks in which they have signed in.
    places: Cache<u64, Place>,
    under_way: HashMap<u64, u32>,
}

#[derive(Clone, Copy, Default)]
struct Failures {
    count: u32,
    last: Option<Instant>,
}

impl Failures {
    /// How many still count.
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

/// What is tried from a network by those who have not signed in there.
#[derive(Clone, Default)]
struct Network {
    /// Accounts that were wrong and not right since, and when.
    wrong: Vec<(u64, Instant)>,
    /// Attempts at further accounts.
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

/// An account in a network in which it has signed in.
#[derive(Clone, Copy, Default)]
struct Place {
    failures: Failures,
    /// Different wrong passwords.
    guesses: Failures,
    /// The last of them.
    recent: [u64; REPEATED],
}

impl Place {
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

impl State {
    fn ticket(&self, [account, network, place]: [u64; 3]) -> Ticket {
        Ticket { account, network, place, known: self.places.contains_key(&place) }
    }

    /// The account's, as far as they count for this attempt.
    fn failures(&self, ticket: &Ticket) -> Failures {
        let failures = if ticket.known {
            self.places.get(&ticket.place).map(|place| place.failures)
        } else {
            self.accounts.get(&ticket.account).copied()
        };
        failures.unwrap_or_default()
    }

    fn wait(&self, ticket: &Ticket, now: Instant) -> Option<u64> {
        let own = self.failures(ticket).wait(FREE, now);
        let shared = self.networks.get(&ticket.network).filter(|_| !ticket.known);
        let shared = shared.map_or(Duration::ZERO, |network| network.beyond.wait(0, now));
        let wait = own.max(shared);
        (!wait.is_zero()).then(|| wait.as_secs_f64().ceil() as u64)
    }

    /// Whether those under way would be too many if all of them turned out wrong.
    fn is_busy(&self, ticket: &Ticket, now: Instant) -> bool {
        let under_way = |name: u64| self.under_way.get(&name).copied().unwrap_or_default();
        let (own, shared) = (under_way(ticket.counted()), under_way(ticket.network));
        let wrong = self.networks.get(&ticket.network).map_or(0, |network| network.standing(now));
        let own_busy = own > 0 && self.failures(ticket).standing(now) + own >= FREE;
        let shared_busy = !ticket.known && shared > 0 && wrong + shared as usize >= MANY;
        own_busy || shared_busy
    }

    /// An attempt begins, or has ended.
    fn count(&mut self, ticket: &Ticket, begins: bool) {
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
    /// Knows nobody yet.
    pub(crate) fn new() -> Throttle {
        let state = State {
            accounts: Cache::new(REMEMBERED),
            networks: Cache::new(REMEMBERED),
            places: Cache::new(REMEMBERED),
            under_way: HashMap::new(),
        };
        Throttle { state: Mutex::new(state), names: RandomState::new(), decided: Notify::new() }
    }

    /// Resolves when an attempt that is under way now, or later, has been decided.
    pub(crate) fn decided(&self) -> Notified<'_> {
        self.decided.notified()
    }

    /// Whether an attempt may be looked at.
    pub(crate) fn begin(&self, who: Who<'_>, now: Instant) -> Turn {
        let mut state = self.lock();
        let ticket = state.ticket(self.names_of(who));
        if let Some(seconds) = state.wait(&ticket, now) {
            return Turn::Wait(seconds);
        }
        if state.is_busy(&ticket, now) {
            return Turn::Later;
        }
        state.count(&ticket, true);
        Turn::Now(ticket)
    }

    /// The password was right: the account starts anew, and its own attempts are all that counts for it in this network from now
    /// on. Of the network no more is taken back than this account's part, so that nobody clears it with an account of their own.
    pub(crate) fn right(&self, ticket: Ticket) {
        let mut state = self.lock();
        state.count(&ticket, false);
        if !ticket.known {
            state.accounts.remove(&ticket.account);
        }
        state.places.insert(ticket.place, Place::default());
        if let Some(mut network) = state.networks.get_mut(&ticket.network) {
            network.wrong.retain(|(account, _)| *account != ticket.account);
        }
        drop(state);
        self.decided.notify_waiters();
    }

    /// The password, of which this is a keyed hash, was wrong.
    pub(crate) fn wrong(&self, ticket: Ticket, password: u64, now: Instant) {
        let mut state = self.lock();
        state.count(&ticket, false);
        if ticket.known {
            let mut place = state.places.get(&ticket.place).copied().unwrap_or_default();
            place.failures.add(now);
            place.guessed(password, now);
            state.places.insert(ticket.place, place);
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

    /// Nobody found out whether the password was right.
    pub(crate) fn undecided(&self, ticket: &Ticket) {
        let mut state = self.lock();
        state.count(ticket, false);
        drop(state);
        self.decided.notify_waiters();
    }

    /// An attempt was not looked at. It was a guess all the same: whoever compares it with a password that was right asks
    /// [`goes_on`](Throttle::goes_on).
    pub(crate) fn held_up(&self, who: Who<'_>, password: u64, now: Instant) {
        let [_, _, place] = self.names_of(who);
        if let Some(mut place) = self.lock().places.get_mut(&place) {
            place.guessed(password, now);
        }
    }

    /// Whether a password that was right a short while ago is let in without being looked at again. Where attempts are held up,
    /// only in a network in which the account has signed in, and while nobody guesses there: else who guesses would learn at
    /// once which one is right.
    pub(crate) fn goes_on(&self, who: Who<'_>, now: Instant) -> bool {
        let state = self.lock();
        let ticket = state.ticket(self.names_of(who));
        if state.wait(&ticket, now).is_none() {
            return true;
        }
        let place = state.places.get(&ticket.place).copied();
        place.is_some_and(|place| place.guesses.standing(now) < GUESSES)
    }

    fn names_of(&self, Who { account, network }: Who<'_>) -> [u64; 3] {
        let name = |kind: u8, account: &str, network: Option<ClientNetwork>| {
            self.names.hash_one((kind, account, network))
        };
        [name(0, account, None), name(1, "", Some(network)), name(2, account, Some(network))]
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
