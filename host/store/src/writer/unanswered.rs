//! Unanswered jobs, which show how long the oldest one has waited.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Submission times of the unanswered jobs, in order.
#[derive(Default)]
pub(super) struct Unanswered(Mutex<BTreeMap<u64, Instant>>);

/// Represents an unanswered job until it is dropped.
pub(super) struct Ticket {
    number: u64,
    of: Arc<Unanswered>,
}

impl Unanswered {
    fn jobs(&self) -> MutexGuard<'_, BTreeMap<u64, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job until its ticket is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Ticket {
        let mut jobs = self.jobs();
        let number = jobs.last_key_value().map_or(0, |(last, _)| last.wrapping_add(1));
        jobs.insert(number, Instant::now());
        drop(jobs);
        Ticket { number, of: Arc::clone(self) }
    }

    /// Age of the oldest unanswered job.
    pub(super) fn oldest(&self) -> Option<Duration> {
        self.jobs().first_key_value().map(|(_, since)| since.elapsed())
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.of.jobs().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_job_is_reported_until_it_is_answered() {
        let unanswered = Arc::<Unanswered>::default();
        assert_eq!(unanswered.oldest(), None);
        let (first, begun) = (unanswered.begin(), Instant::now());
        while begun.elapsed() < Duration::from_millis(2) {
            std::hint::spin_loop();
        }
        let second = unanswered.begin();
        assert!(unanswered.oldest().unwrap() >= Duration::from_millis(2));
        drop(first);
        assert!(unanswered.oldest().unwrap() <= begun.elapsed());
        drop(second);
        assert_eq!(unanswered.oldest(), None);
    }
}
