//! Counters of the database's statements.

use std::sync::atomic::{AtomicU64, Ordering};

pub(super) struct Counters {
    pub(super) statements: AtomicU64,
    pub(super) commits: AtomicU64,
    /// Largest number of rows changed by one maintenance transaction.
    pub(super) most_changed_by_maintenance: AtomicU64,
    /// Number of statements, for the metrics endpoint.
    metric: metrics::Counter,
    /// Executed reading statements, for tests of their plans.
    #[cfg(test)]
    pub(super) ran: std::sync::Mutex<Vec<(String, Vec<super::Value>)>>,
}

impl Default for Counters {
    fn default() -> Counters {
        let metric = metrics::counter!("packhouse_store_statements_total");
        Counters {
            statements: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            most_changed_by_maintenance: AtomicU64::new(0),
            metric,
            #[cfg(test)]
            ran: std::sync::Mutex::default(),
        }
    }
}

impl Counters {
    pub(super) fn statement(&self) {
        self.statements_ran(1);
    }

    pub(super) fn statements_ran(&self, count: u64) {
        self.statements.fetch_add(count, Ordering::Relaxed);
        self.metric.increment(count);
    }
}
