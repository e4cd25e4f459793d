//! A token bucket. It allows a burst of permits, and then one permit in each interval.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A token bucket. It stores only the time at which the bucket will be full again, in nanoseconds
/// since the start (the generic cell rate algorithm).
pub(crate) struct TokenBucket {
    interval: u64,
    /// Maximum time by which `full_at` may be in the future if one more permit is to be available.
    slack: u64,
    start: Instant,
    full_at: AtomicU64,
}

impl TokenBucket {
    /// Creates a full bucket of `burst` permits.
    pub(crate) fn new(interval: Duration, burst: u32) -> TokenBucket {
        let slack = interval.saturating_mul(burst.saturating_sub(1));
        TokenBucket {
            interval: nanos(interval),
            slack: nanos(slack),
            start: Instant::now(),
            full_at: AtomicU64::new(0),
        }
    }

    /// Takes a permit. The error is the time until the next permit is available.
    pub(crate) fn take(&self) -> Result<(), Duration> {
        self.take_at(self.start.elapsed())
    }

    fn take_at(&self, since_start: Duration) -> Result<(), Duration> {
        let latest = nanos(since_start).saturating_add(self.slack);
        let taken = self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |full_at| {
            let full_at = full_at.max(nanos(since_start));
            (full_at <= latest).then(|| full_at.saturating_add(self.interval))
        });
        taken.map(drop).map_err(|full_at| Duration::from_nanos(full_at.saturating_sub(latest)))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_a_burst_and_then_one_permit_in_each_interval() {
        let ms = Duration::from_millis;
        let bucket = TokenBucket::new(ms(500), 3);
        for _ in 0..3 {
            bucket.take_at(ms(1_000)).unwrap();
        }
        assert_eq!(bucket.take_at(ms(1_000)), Err(ms(500)));
        assert_eq!(bucket.take_at(ms(1_400)), Err(ms(100)), "a refusal takes no permit");
        bucket.take_at(ms(1_500)).unwrap();
        assert_eq!(bucket.take_at(ms(1_500)), Err(ms(500)));
        // The clock of another thread may be slightly behind.
        assert_eq!(bucket.take_at(ms(1_499)), Err(ms(501)));
        for _ in 0..3 {
            bucket.take_at(ms(60_000)).unwrap();
        }
        assert_eq!(bucket.take_at(ms(60_000)), Err(ms(500)), "a pause fills the bucket, and no more");
    }
}
