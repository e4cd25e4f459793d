//! How much a database was asked.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of a database.
pub(super) struct Counters {
    pub(super) statements: AtomicU64,
    pub(super) commits: AtomicU64,
    /// The most rows that a transaction of the upkeep has changed.
    pub(super) most_changed_slowly: AtomicU64,
    /// The statements again, for the metrics of the process.
    metric: metrics::Counter,
    /// What was read, for tests of how.
    #[cfg(test)]
    pub(super) ran: std::sync::Mutex<Vec<(String, Vec<super::Value>)>>,
}

impl Default for Counters {
    fn default() -> Counters {
        let metric = metrics::counter!("packhouse_store_statements_total");
        Counters {
            statements: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            most_changed_slowly: AtomicU64::new(0),
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
