//! Metrics of requests: their number by host, format, method and class of status, the time until
//! the response head, and the requests in flight. The first two metrics do not include a request
//! that hangs. The number of requests in flight and the age of the oldest one reveal it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use metrics::{Counter, Histogram};
use slab::Slab;

/// Labels for methods. All methods that are not listed share `other`, so that clients cannot create
/// labels.
const METHODS: [&str; 7] = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "other"];
/// Labels for the classes of status codes.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// Label of requests outside the repositories of a loaded format.
const NO_FORMAT: &str = "none";
/// Number of shards of the table of requests in flight.
const PARTS: usize = 8;
const REQUESTS: &str = "packhouse_requests_total";
const SECONDS: &str = "packhouse_request_seconds";

/// Request metrics of one host, with their handles looked up once.
pub struct RequestMeters {
    host: &'static str,
    /// Metrics without a format and of the formats known at the start.
    first: Vec<FormatMeters>,
    /// Metrics of formats added later.
    later: RwLock<Vec<FormatMeters>>,
    /// Requests of this host in flight.
    pub under_way: Arc<InFlightRequests>,
}

impl RequestMeters {
    /// Creates the metrics of a host that serves these formats.
    pub fn new(host: &'static str, formats: impl IntoIterator<Item = String>) -> RequestMeters {
        let formats = std::iter::once(NO_FORMAT.to_owned()).chain(formats);
        let first = formats.map(|format| FormatMeters::new(host, format)).collect();
        RequestMeters { host, first, later: RwLock::default(), under_way: Arc::default() }
    }

    /// Adds formats that the host serves from now on. Known formats are ignored.
    pub fn serves(&self, formats: impl IntoIterator<Item = String>) {
        let mut later = self.later.write().unwrap_or_else(PoisonError::into_inner);
        for format in formats {
            if !self.first.iter().chain(later.iter()).any(|known| known.format == format) {
                later.push(FormatMeters::new(self.host, format));
            }
        }
    }

    /// Counts a request. `format` is the format of the repository, if there is one; `took` is the
    /// time until the response head was ready.
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

    /// Updates the gauges for the number of requests in flight and the age of the oldest.
    pub fn set_gauges(&self) {
        let (count, oldest) = self.under_way.now();
        metrics::gauge!("packhouse_requests_in_flight", "host" => self.host).set(count as f64);
        metrics::gauge!("packhouse_requests_oldest_seconds", "host" => self.host).set(oldest.as_secs_f64());
    }
}

/// Request metrics of one format.
struct FormatMeters {
    host: &'static str,
    format: String,
    /// Counters by method and class of status.
    requests: Vec<Counter>,
    /// Histograms by method. Each is created by its first request: a histogram has many lines, and
    /// most methods are never used.
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

/// Requests in flight. A request leaves the table when the last byte of its response is passed to
/// the connection.
#[derive(Default)]
pub struct InFlightRequests {
    next: AtomicUsize,
    /// Shards, so that requests on different processors rarely contend for a lock.
    parts: [Mutex<Slab<Instant>>; PARTS],
}

impl InFlightRequests {
    /// Registers a request that began at `started`, until the returned value is dropped.
    pub fn begin(self: &Arc<Self>, started: Instant) -> InFlightTicket {
        let part = self.next.fetch_add(1, Ordering::Relaxed) % PARTS;
        let place = self.part(part).map(|mut part| part.insert(started));
        InFlightTicket { part, place, of: Arc::clone(self) }
    }

    /// Returns the number of requests and the age of the oldest.
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

/// A request in flight; dropping it removes the request from the table.
pub struct InFlightTicket {
    part: usize,
    place: Option<usize>,
    of: Arc<InFlightRequests>,
}

impl Drop for InFlightTicket {
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
    fn every_format_method_and_status_is_counted() {
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
    fn a_request_is_in_flight_until_its_ticket_is_dropped() {
        let under_way = Arc::<InFlightRequests>::default();
        let tickets: Vec<InFlightTicket> = (0..20).map(|_| under_way.begin(Instant::now())).collect();
        assert_eq!(under_way.now().0, 20);
        std::thread::sleep(Duration::from_millis(2));
        assert!(under_way.now().1 >= Duration::from_millis(2));
        drop(tickets);
        assert_eq!(under_way.now(), (0, Duration::ZERO));
    }
}
