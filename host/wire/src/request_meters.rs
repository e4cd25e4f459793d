//! Requests: counted by host, format, method and class of status, their times until the head of the answer, and those that are
//! under way. What hangs is in none of the first two, so it shows in the last: how many there are, and how old the oldest is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use metrics::{Counter, Histogram};
use slab::Slab;

/// The methods that have a label of their own; all others share one, so that nobody can make labels.
const METHODS: [&str; 7] = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "other"];
/// The first digits of a status.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// The label of what is below no repository of a loaded format.
const NO_FORMAT: &str = "none";
/// In how many parts the requests under way are kept.
const PARTS: usize = 8;
const REQUESTS: &str = "packhouse_requests_total";
const SECONDS: &str = "packhouse_request_seconds";

/// The meters of one host, looked up once.
pub struct RequestMeters {
    host: &'static str,
    formats: Vec<String>,
    requests: Vec<Counter>,
    /// Made by the first request of its kind: each is many lines, and most kinds never come.
    seconds: Vec<OnceLock<Histogram>>,
    /// What is under way.
    pub under_way: Arc<UnderWay>,
}

impl RequestMeters {
    /// Of a host that serves these formats.
    pub fn new(host: &'static str, formats: impl IntoIterator<Item = String>) -> RequestMeters {
        metrics::describe_counter!(REQUESTS, "Requests by host, format, method and class of status");
        metrics::describe_histogram!(SECONDS, metrics::Unit::Seconds, "Time until the head of an answer");
        let formats: Vec<String> = std::iter::once(NO_FORMAT.to_owned()).chain(formats).collect();
        let mut requests = Vec::new();
        for format in &formats {
            for method in METHODS {
                for status in CLASSES {
                    requests.push(metrics::counter!(REQUESTS, "host" => host, "format" => format.clone(), "method" => method, "status" => status));
                }
            }
        }
        let seconds = (0..formats.len() * METHODS.len()).map(|_| OnceLock::new()).collect();
        RequestMeters { host, formats, requests, seconds, under_way: Arc::default() }
    }

    /// Counts a request, below a repository of this format if of any, that took this long until its answer's head was ready.
    pub fn answered(&self, format: Option<&str>, method: &Method, status: StatusCode, took: Duration) {
        let format = format.and_then(|format| self.formats.iter().position(|known| known == format));
        let method = METHODS.iter().position(|known| *known == method.as_str());
        let (format, method) = (format.unwrap_or_default(), method.unwrap_or(METHODS.len() - 1));
        let kind = format * METHODS.len() + method;
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(requests) = self.requests.get(kind * CLASSES.len() + class) {
            requests.increment(1);
        }
        if let Some(seconds) = self.seconds.get(kind) {
            seconds.get_or_init(|| self.histogram(format, method)).record(took.as_secs_f64());
        }
    }

    fn histogram(&self, format: usize, method: usize) -> Histogram {
        let format = self.formats.get(format).cloned().unwrap_or_default();
        let method = METHODS.get(method).copied().unwrap_or_default();
        metrics::histogram!(SECONDS, "host" => self.host, "format" => format, "method" => method)
    }

    /// Sets what says how many are under way, and how old the oldest is.
    pub fn set_gauges(&self) {
        let (count, oldest) = self.under_way.now();
        metrics::gauge!("packhouse_requests_in_flight", "host" => self.host).set(count as f64);
        metrics::gauge!("packhouse_requests_oldest_seconds", "host" => self.host).set(oldest.as_secs_f64());
    }
}

/// Requests that are under way, each until the last byte of its answer is handed over.
#[derive(Default)]
pub struct UnderWay {
    next: AtomicUsize,
    /// In several parts, so that requests on different processors seldom meet.
    parts: [Mutex<Slab<Instant>>; PARTS],
}

impl UnderWay {
    /// One more, which began at `started`, until the value is dropped.
    pub fn begin(self: &Arc<Self>, started: Instant) -> Ticket {
        let part = self.next.fetch_add(1, Ordering::Relaxed) % PARTS;
        let place = self.part(part).map(|mut part| part.insert(started));
        Ticket { part, place, of: Arc::clone(self) }
    }

    /// How many there are, and how old the oldest is.
    fn now(&self) -> (usize, Duration) {
        let parts = self.parts.iter().map(|part| {
            let part = part.lock().unwrap_or_else(PoisonError::into_inner);
            let oldest = part.iter().map(|(_, begun)| begun).min();
            (part.len(), oldest.map_or(Duration::ZERO, Instant::elapsed))
        });
        parts.fold((0, Duration::ZERO), |(count, oldest), (more, age)| (count + more, oldest.max(age)))
    }

    fn part(&self, part: usize) -> Option<MutexGuard<'_, Slab<Instant>>> {
        let part = self.parts.get(part)?;
        Some(part.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A request that is under way.
pub struct Ticket {
    part: usize,
    place: Option<usize>,
    of: Arc<UnderWay>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some((mut part, place)) = self.of.part(self.part).zip(self.place) {
            part.try_remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_method_and_status_has_a_place() {
        let meters = RequestMeters::new("packages", ["one".to_owned(), "two".to_owned()]);
        for format in [None, Some("one"), Some("two"), Some("not loaded")] {
            for method in [Method::GET, Method::TRACE, Method::from_bytes(b"ODD").unwrap()] {
                for status in [200, 304, 404, 503] {
                    meters.answered(format, &method, StatusCode::from_u16(status).unwrap(), Duration::ZERO);
                }
            }
        }
        assert_eq!(meters.requests.len(), 3 * METHODS.len() * CLASSES.len());
    }

    #[test]
    fn what_is_under_way_is_there_until_it_is_dropped() {
        let under_way = Arc::<UnderWay>::default();
        let tickets: Vec<Ticket> = (0..20).map(|_| under_way.begin(Instant::now())).collect();
        assert_eq!(under_way.now().0, 20);
        std::thread::sleep(Duration::from_millis(2));
        assert!(under_way.now().1 >= Duration::from_millis(2));
        drop(tickets);
        assert_eq!(under_way.now(), (0, Duration::ZERO));
    }
}
