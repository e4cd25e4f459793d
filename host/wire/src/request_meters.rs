//! Requests: counted by host, format, method and class of status, their times until the head of the answer, and those that are
//! under way. What hangs is in none of the first two, so it shows in the last: how many there are, and how old the oldest is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
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
    /// Of no format, and of those that were served from the start.
    first: Vec<FormatMeters>,
    /// Of those that came later.
    later: RwLock<Vec<FormatMeters>>,
    /// What is under way.
    pub under_way: Arc<UnderWay>,
}

impl RequestMeters {
    /// Of a host that serves these formats.
    pub fn new(host: &'static str, formats: impl IntoIterator<Item = String>) -> RequestMeters {
        metrics::describe_counter!(REQUESTS, "Requests by host, format, method and class of status");
        metrics::describe_histogram!(SECONDS, metrics::Unit::Seconds, "Time until the head of an answer");
        let formats = std::iter::once(NO_FORMAT.to_owned()).chain(formats);
        let first = formats.map(|format| FormatMeters::new(host, format)).collect();
        RequestMeters { host, first, later: RwLock::default(), under_way: Arc::default() }
    }

    /// The host serves these formats from now on, some of them maybe already.
    pub fn serves(&self, formats: impl IntoIterator<Item = String>) {
        let mut later = self.later.write().unwrap_or_else(PoisonError::into_inner);
        for format in formats {
            if !self.first.iter().chain(later.iter()).any(|known| known.format == format) {
                later.push(FormatMeters::new(self.host, format));
            }
        }
    }

    /// Counts a request, below a repository of this format if of any, that took this long until its answer's head was ready.
    pub fn answered(&self, format: Option<&str>, method: &Method, status: StatusCode, took: Duration) {
        let format = format.unwrap_or(NO_FORMAT);
        if let Some(meters) = self.first.iter().find(|meters| meters.format == format) {
            return meters.answered(method, status, took);
        }
        let later = self.later.read().unwrap_or_else(PoisonError::into_inner);
        let meters = later.iter().find(|meters| meters.format == format).or(self.first.first());
        if let Some(meters) = meters {
            meters.answered(method, status, took);
        }
    }

    /// Sets what says how many are under way, and how old the oldest is.
    pub fn set_gauges(&self) {
        let (count, oldest) = self.under_way.now();
        metrics::gauge!("packhouse_requests_in_flight", "host" => self.host).set(count as f64);
        metrics::gauge!("packhouse_requests_oldest_seconds", "host" => self.host).set(oldest.as_secs_f64());
    }
}

/// The meters of one format.
struct FormatMeters {
    host: &'static str,
    format: String,
    /// By method and class of status.
    requests: Vec<Counter>,
    /// By method. Made by the first request of its kind: each is many lines, and most kinds never come.
    seconds: [OnceLock<Histogram>; METHODS.len()],
}

impl FormatMeters {
    fn new(host: &'static str, format: String) -> FormatMeters {
        let kinds = METHODS.iter().flat_map(|method| CLASSES.iter().map(move |class| (*method, *class)));
        let counter = |(method, status)| metrics::counter!(REQUESTS, "host" => host, "format" => format.clone(), "method" => method, "status" => status);
        let requests = kinds.map(counter).collect();
        FormatMeters { host, format, requests, seconds: Default::default() }
    }

    fn answered(&self, method: &Method, status: StatusCode, took: Duration) {
        let method = METHODS.iter().position(|known| *known == method.as_str()).unwrap_or(METHODS.len() - 1);
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(requests) = self.requests.get(method * CLASSES.len() + class) {
            requests.increment(1);
        }
        if let Some(seconds) = self.seconds.get(method) {
            seconds.get_or_init(|| self.histogram(method)).record(took.as_secs_f64());
        }
    }

    fn histogram(&self, method: usize) -> Histogram {
        let method = METHODS.get(method).copied().unwrap_or_default();
        metrics::histogram!(SECONDS, "host" => self.host, "format" => self.format.clone(), "method" => method)
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
        meters.serves(["two", "late", "late"].map(str::to_owned));
        for format in [None, Some("one"), Some("two"), Some("late"), Some("not loaded")] {
            for method in [Method::GET, Method::TRACE, Method::from_bytes(b"ODD").unwrap()] {
                for status in [200, 304, 404, 503] {
                    meters.answered(format, &method, StatusCode::from_u16(status).unwrap(), Duration::ZERO);
                }
            }
        }
        let formats = |all: &[FormatMeters]| all.iter().map(|of| of.format.clone()).collect::<Vec<_>>();
        assert_eq!(formats(&meters.first), ["none", "one", "two"]);
        assert_eq!(formats(&meters.later.read().unwrap()), ["late"]);
        assert!(meters.first.iter().all(|of| of.requests.len() == METHODS.len() * CLASSES.len()));
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
