use std::time::Instant;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::clock::Moment;

/// Metrics of the leases of this process.
pub(super) struct LeaseMeters {
    held: Gauge,
    holders: Gauge,
    age: Gauge,
    renewed: Counter,
    lost: Counter,
    dropped: Counter,
    waits: Histogram,
    expired: Counter,
    sent: Counter,
    received: Counter,
    recovered: Counter,
}

impl Default for LeaseMeters {
    fn default() -> LeaseMeters {
        const NOTICES: &str = "packhouse_lease_notices_total";
        LeaseMeters {
            held: gauge!("packhouse_lease_held"),
            holders: gauge!("packhouse_lease_holders"),
            age: gauge!("packhouse_lease_age_seconds"),
            renewed: counter!("packhouse_lease_renewals_total"),
            lost: counter!("packhouse_lease_losses_total"),
            dropped: counter!("packhouse_lease_invalidations_total"),
            waits: histogram!("packhouse_lease_wait_seconds"),
            expired: counter!("packhouse_lease_expiries_waited_total"),
            sent: counter!(NOTICES, "kind" => "sent"),
            received: counter!(NOTICES, "kind" => "received"),
            recovered: counter!(NOTICES, "kind" => "recovered"),
        }
    }
}

impl LeaseMeters {
    /// Records a renewal that was requested at this moment. `holders` counts all servers with a
    /// lease, including this one.
    pub(super) fn renewed(&self, requested: Moment, holders: usize) {
        self.held.set(1.0);
        self.age.set(requested.elapsed().as_secs_f64());
        self.holders.set(f64::from(u32::try_from(holders).unwrap_or(u32::MAX)));
        self.renewed.increment(1);
    }

    /// Records the loss of the lease.
    pub(super) fn lost(&self) {
        self.held.set(0.0);
        self.lost.increment(1);
    }

    /// Counts dropped results of look-ups.
    pub(super) fn dropped(&self, answers: usize) {
        self.dropped.increment(answers as u64);
    }

    /// Measures the wait of a commit, until the result is dropped.
    pub(super) fn waiting(&self) -> impl Drop + use<> {
        Waiting { begun: Instant::now(), waits: self.waits.clone() }
    }

    /// Counts a commit that waited for the end of a lease.
    pub(super) fn expired(&self) {
        self.expired.increment(1);
    }

    pub(super) fn sent(&self, notices: usize) {
        self.sent.increment(notices as u64);
    }

    pub(super) fn received(&self, notices: usize) {
        self.received.increment(notices as u64);
    }

    /// Counts changes that were read from the table because their notice did not arrive.
    pub(super) fn recovered(&self, changes: usize) {
        self.recovered.increment(changes as u64);
    }
}

struct Waiting {
    begun: Instant,
    waits: Histogram,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.waits.record(self.begun.elapsed().as_secs_f64());
    }
}
