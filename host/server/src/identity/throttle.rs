//! Wrong passwords make the next attempt wait: for an account and for an address, longer each time. Tokens are never
//! held up. Kept in memory, bounded; a node counts for itself.

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
    failures: Mutex<HashMap<String, Failures>>,
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
        Throttle { failures: Mutex::new(HashMap::new()) }
    }

    /// How long these must wait before another attempt is looked at; none: not at all.
    pub(crate) fn wait(&self, who: &[&str], now: Instant) -> Option<Duration> {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        who.iter()
            .filter_map(|name| failures.get(*name))
            .map(|known| known.until().saturating_duration_since(now))
            .filter(|wait| !wait.is_zero())
            .max()
    }

    /// Counts a wrong attempt. It is counted before the password is looked at, and taken back by
    /// [`right`](Throttle::right), so that attempts at one time cannot outrun the count.
    pub(crate) fn wrong(&self, who: &[&str], now: Instant) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() + who.len() > REMEMBERED {
            make_room(&mut failures, now);
        }
        for name in who {
            let known = failures.entry((*name).to_owned()).or_insert(Failures { count: 0, last: now });
            if now.saturating_duration_since(known.last) > FORGOTTEN {
                known.count = 0;
            }
            *known = Failures { count: known.count.saturating_add(1), last: now };
        }
    }

    /// The attempt was right. The account, which stands first, starts anew; of the address only this attempt is taken
    /// back, so that nobody clears it with an account of their own.
    pub(crate) fn right(&self, who: &[&str]) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((account, addresses)) = who.split_first() else { return };
        failures.remove(*account);
        for address in addresses {
            if let Some(known) = failures.get_mut(*address) {
                known.count = known.count.saturating_sub(1);
            }
        }
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
                throttle.wait(&["a@x", "10.0.0.1"], now).map_or(0, |wait| wait.as_secs())
            })
            .collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(throttle.wait(&["b@x"], now), None);
        throttle.right(&["a@x", "10.0.0.1"]);
        assert_eq!(throttle.wait(&["a@x"], now), None);
    }

    #[test]
    fn a_wait_that_is_over_is_over() {
        let throttle = Throttle::new();
        let now = Instant::now();
        (0..6).for_each(|_| throttle.wrong(&["a@x"], now));
        assert!(throttle.wait(&["a@x"], now).is_some());
        assert_eq!(throttle.wait(&["a@x"], now + Duration::from_secs(1)), None);
    }

    #[test]
    fn the_table_is_bounded() {
        let throttle = Throttle::new();
        let now = Instant::now();
        for number in 0..25_000 {
            throttle.wrong(&[&number.to_string()], now);
        }
        assert!(throttle.failures.lock().unwrap().len() <= REMEMBERED);
    }
}
