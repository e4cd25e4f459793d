//! Counts the outcomes of requests to a proxy's upstream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::Counter;
use serde::Serialize;
use utoipa::ToSchema;

/// How a request was answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CacheOutcome {
    /// A cached response was fresh, or the upstream confirmed it.
    Hit,
    /// The upstream sent a new response.
    Miss,
    /// The answer was a stale cached response.
    Stale,
    /// The request got no answer.
    Error,
}

/// Counts of one repository since this program started.
pub(crate) struct OutcomeCounts {
    own: [AtomicU64; 4],
    metrics: [Counter; 4],
}

/// The counts in the API.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
pub struct CountsView {
    /// Requests answered from the cache.
    hits: u64,
    /// Requests answered by the upstream.
    misses: u64,
    /// Requests answered with a stale copy from the cache.
    stale: u64,
    errors: u64,
}

impl OutcomeCounts {
    /// Starts at zero. `repository` is its name in the metrics; without it, the metrics combine all
    /// repositories.
    pub(crate) fn new(repository: Option<&str>) -> Arc<OutcomeCounts> {
        let metrics = ["hit", "miss", "stale", "error"].map(|result| match repository {
            Some(repository) => metrics::counter!("packhouse_upstream_answers_total", "repository" => repository.to_owned(), "result" => result),
            None => metrics::counter!("packhouse_upstream_answers_total", "result" => result),
        });
        Arc::new(OutcomeCounts { own: Default::default(), metrics })
    }

    pub(crate) fn count(&self, outcome: CacheOutcome) {
        let at = outcome as usize;
        if let (Some(own), Some(metric)) = (self.own.get(at), self.metrics.get(at)) {
            own.fetch_add(1, Ordering::Relaxed);
            metric.increment(1);
        }
    }

    pub(crate) fn view(&self) -> CountsView {
        let [hits, misses, stale, errors] = self.own.each_ref().map(|count| count.load(Ordering::Relaxed));
        CountsView { hits, misses, stale, errors }
    }
}
