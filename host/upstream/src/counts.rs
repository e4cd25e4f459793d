//! Counts how requests to a proxy's upstream were answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::Counter;
use serde::Serialize;
use utoipa::ToSchema;

/// How a request was answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CacheOutcome {
    /// By a cached response that is fresh, or that the upstream confirmed.
    Hit,
    /// By the upstream.
    Miss,
    /// By a cached response that is older than it should be.
    Stale,
    /// Not at all.
    Error,
}

/// Counts outcomes for one repository since this program started.
pub(crate) struct OutcomeCounts {
    own: [AtomicU64; 4],
    metrics: [Counter; 4],
}

/// The counts as the API shows them.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
pub struct CountsView {
    /// Answered from the cache.
    hits: u64,
    /// Answered by the upstream.
    misses: u64,
    /// Answered with a copy older than it should be.
    stale: u64,
    /// Not answered.
    errors: u64,
}

impl OutcomeCounts {
    /// Starts at zero. `repository` is its name in the metrics; without one, all repositories are counted together there.
    pub(crate) fn new(repository: Option<&str>) -> Arc<OutcomeCounts> {
        let metrics = ["hit", "miss", "stale", "error"].map(|result| match repository {
            Some(repository) => metrics::counter!("packhouse_upstream_answers_total", "repository" => repository.to_owned(), "result" => result),
            None => metrics::counter!("packhouse_upstream_answers_total", "result" => result),
        });
        Arc::new(OutcomeCounts { own: Default::default(), metrics })
    }

    /// Adds one.
    pub(crate) fn count(&self, outcome: CacheOutcome) {
        let at = outcome as usize;
        if let (Some(own), Some(metric)) = (self.own.get(at), self.metrics.get(at)) {
            own.fetch_add(1, Ordering::Relaxed);
            metric.increment(1);
        }
    }

    /// The counts now.
    pub(crate) fn view(&self) -> CountsView {
        let [hits, misses, stale, errors] = self.own.each_ref().map(|count| count.load(Ordering::Relaxed));
        CountsView { hits, misses, stale, errors }
    }
}
