//! Wrong passwords make the next attempt wait: for an account and for an address, longer each time. Tokens are never
//! held up. Kept in memory, bounded; a node counts for itself.
//!
//! Nobody is locked out by the attempts of others: from an address at which an account has signed in, only the wrong attempts of
//! that account at that address and those of the address count, and no wait is longer than a minute.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wrong attempts that cost nothing.
const FREE: u32 = 5;
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(60);
/// After so long without a wrong attempt all is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(15 * 60);
/// Accounts and addresses remembered at one time.
const REMEMBERED: usize = 10_000;

/// Who failed how often.
pub(crate) struct Throttle {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    failures: HashMap<String, Failures>,
    /// Accounts with an address at which they signed in, and when.
    trusted: HashMap<String, Instant>,
}

impl Known {
    /// Under which names an attempt counts.
    fn names(&self, who: &[&str]) -> Vec<String> {
        let mut names: Vec<String> = who.iter().map(|name| (*name).to_owned()).collect();
        if let (Some(both), Some(account)) = (pair(who), names.first_mut())
            && self.trusted.contains_key(&both)
        {
            *account = both;
        }
        names
    }
}

/// An account at an address.
fn pair(who: &[&str]) -> Option<String> {
    match who {
        [account, address] => Some(format!("{account}\n{address}")),
        _ => None,
    }
}

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: Instant,
}

impl Failures {
    fn until(self) -> Instant {
        let doublings = self.count.saturating_sub(FREE);
        let wait = match doublings {
            0 => Duration::ZERO,
            more => Duration::from_secs(1 << (more - 1).min(6)).min(LONGEST),
        };
        self.last + wait
    }
}

impl Throttle {
    /// Knows nobody yet.
    pub(crate) fn new() -> Throttle {
        Throttle { known: Mutex::default() }
    }

    /// How many seconds, rounded up, these must wait before another attempt is looked at; none: not at all.
    pub(crate) fn wait(&self, who: &[&str], now: Instant) -> Option<u64> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let names = known.names(who);
        names
            .iter()
            .filter_map(|name| known.failures.get(name))
            .map(|known| known.until().saturating_duration_since(now))
            .filter(|wait| !wait.is_zero())
            .max()
            .map(|wait| wait.as_secs_f64().ceil() as u64)
    }

    /// Counts a wrong attempt. It is counted before the password is looked at, and taken back by
    /// [`right`](Throttle::right), so that attempts at one time cannot outrun the count.
    pub(crate) fn wrong(&self, who: &[&str], now: Instant) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let names = known.names(who);
        if known.failures.len() + who.len() > REMEMBERED {
            make_room(&mut known.failures, now);
        }
        for name in names {
            let known = known.failures.entry(name).or_insert(Failures { count: 0, last: now });
            if now.saturating_duration_since(known.last) > FORGOTTEN {
                known.count = 0;
            }
            *known = Failures { count: known.count.saturating_add(1), last: now };
        }
    }

    /// The attempt was right. The account, which stands first, starts anew; of the address only this attempt is taken
    /// back, so that nobody clears it with an account of their own.
    pub(crate) fn right(&self, who: &[&str], now: Instant) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let names = known.names(who);
        let Some((account, addresses)) = names.split_first() else { return };
        known.failures.remove(account);
        if let Some(both) = pair(who) {
            if known.trusted.len() >= REMEMBERED {
                forget_older_half(&mut known.trusted);
            }
            known.trusted.insert(both, now);
        }
        for address in addresses {
            if let Some(known) = known.failures.get_mut(address) {
                known.count = known.count.saturating_sub(1);
            }
        }
    }
}

fn forget_older_half(trusted: &mut HashMap<String, Instant>) {
    let mut times: Vec<Instant> = trusted.values().copied().collect();
    times.sort_unstable();
    if let Some(middle) = times.get(times.len() / 2).copied() {
        trusted.retain(|_, at| *at > middle);
    }
}

/// Forgets what is old; where nothing is, the half that failed longest ago.
fn make_room(failures: &mut HashMap<String, Failures>, now: Instant) {
    failures.retain(|_, known| now.saturating_duration_since(known.last) <= FORGOTTEN);
    if failures.len() >= REMEMBERED / 2 {
        let mut times: Vec<Instant> = failures.values().map(|known| known.last).collect();
        times.sort_unstable();
        if let Some(middle) = times.get(times.len() / 2).copied() {
            failures.retain(|_, known| known.last > middle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_grows_with_each_wrong_attempt_and_ends_with_a_right_one() {
        let throttle = Throttle::new();
        let now = Instant::now();
        let waits: Vec<u64> = (0..14)
            .map(|_| {
                throttle.wrong(&["a@x"], now);
                throttle.wait(&["a@x", "10.0.0.1"], now).unwrap_or_default()
            })
            .collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(throttle.wait(&["b@x"], now), None);
        throttle.right(&["a@x", "10.0.0.1"], now);
        assert_eq!(throttle.wait(&["a@x"], now), None);
    }

    #[test]
    fn a_wait_that_is_over_is_over() {
        let throttle = Throttle::new();
        let now = Instant::now();
        (0..6).for_each(|_| throttle.wrong(&["a@x"], now));
        assert!(throttle.wait(&["a@x"], now).is_some());
        assert_eq!(
            throttle.wait(&["a@x"], now + Duration::from_millis(300)),
            Some(1),
            "no less than it takes"
        );
        assert_eq!(throttle.wait(&["a@x"], now + Duration::from_secs(1)), None);
    }

    #[test]
    fn guesses_from_elsewhere_hold_up_nobody_who_signed_in_here_before() {
        let throttle = Throttle::new();
        let now = Instant::now();
        let (home, elsewhere) = (["a@x", "10.0.0.1"], ["a@x", "10.0.0.2"]);
        throttle.right(&home, now);
        (0..50).for_each(|_| throttle.wrong(&elsewhere, now));
        assert_eq!(throttle.wait(&elsewhere, now), Some(LONGEST.as_secs()));
        assert_eq!(
            throttle.wait(&["a@x", "10.0.0.3"], now),
            Some(LONGEST.as_secs()),
            "the account is guarded"
        );
        assert_eq!(throttle.wait(&home, now), None);
        (0..50).for_each(|_| throttle.wrong(&home, now));
        assert_eq!(
            throttle.wait(&home, now),
            Some(LONGEST.as_secs()),
            "and here too, for what is tried here"
        );
    }

    #[test]
    fn the_table_is_bounded() {
        let throttle = Throttle::new();
        let now = Instant::now();
        for number in 0..25_000 {
            throttle.wrong(&[&number.to_string()], now);
        }
        assert!(throttle.known.lock().unwrap().failures.len() <= REMEMBERED);
    }
}
