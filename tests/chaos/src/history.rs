//! The clients' operations with their outcomes. All times are from one monotonic clock.

use packhouse_tests::Response;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Microseconds since the history began.
pub type Micros = u64;

/// The outcome of an operation for its client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// Success: a 2xx status that this operation allows.
    Done,
    /// 404.
    NotThere,
    /// 401.
    Refused,
    /// 409.
    Conflict,
    /// 500 `stored_data_damaged`: the file is known, but its bytes are lost.
    Damaged,
    /// 503 with `Retry-After`: the operation may have taken effect.
    Away,
    /// An incomplete answer or none at all: the operation may have taken effect.
    Broken,
    /// Anything else, which is always wrong.
    Odd(String),
}

impl Outcome {
    /// Classifies an answer; `done` lists the statuses that mean success.
    pub fn of(answer: &std::io::Result<Response>, done: &[u16]) -> Self {
        match answer {
            Err(_) => Self::Broken,
            Ok(answer) if done.contains(&answer.status) => Self::Done,
            Ok(answer) => match answer.status {
                401 => Self::Refused,
                404 => Self::NotThere,
                409 => Self::Conflict,
                500 if tells_of_damage(answer) => Self::Damaged,
                503 if answer.header("retry-after").is_some() => Self::Away,
                status => Self::Odd(format!("{status} {:.300}", answer.text())),
            },
        }
    }

    /// Returns true if the operation may or may not have taken effect.
    pub fn unknown(&self) -> bool {
        matches!(self, Self::Away | Self::Broken)
    }
}

fn tells_of_damage(answer: &Response) -> bool {
    answer.header("retry-after").is_none() && answer.text().contains("stored_data_damaged")
}

/// The way that a request takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// Through the balancer.
    Balanced,
    /// Straight to the server with this number.
    Server(usize),
}

/// An operation. A path is `FORMAT/PACKAGE/VERSION`, a package is `FORMAT/PACKAGE`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Operation {
    /// Bytes with this SHA-256 were published.
    Publish {
        /// Their path.
        path: String,
        /// SHA-256 of the bytes.
        digest: String,
        /// True if another publish at the same path must be refused.
        once: bool,
    },
    /// A path was read; with [`Outcome::Done`] these bytes arrived.
    Read {
        /// The path.
        path: String,
        /// SHA-256 of the bytes that arrived.
        digest: String,
    },
    /// A version was deleted.
    Delete {
        /// Its path.
        path: String,
    },
    /// The test removed the object with this SHA-256 from S3; no server took part.
    Loss {
        /// SHA-256 of the bytes.
        digest: String,
    },
    /// A package's index was read; with [`Outcome::Done`] it listed these versions.
    Index {
        /// The package.
        package: String,
        /// The versions.
        listed: BTreeSet<String>,
    },
    /// A token was created.
    Create {
        /// Its id.
        token: String,
    },
    /// A token was revoked, or replaced by a rotation without overlap.
    Revoke {
        /// Its id.
        token: String,
    },
    /// A token was used for a read that it allows.
    Use {
        /// Its id.
        token: String,
    },
    /// The test counted objects and rows after garbage collection, while no operation ran.
    Storage {
        /// Rows of blobs whose object is missing.
        missing: u64,
        /// Objects without a row.
        orphans: u64,
        /// Rows of blobs without a record.
        unnamed: u64,
        /// Unfinished multipart uploads.
        unfinished: u64,
    },
}

/// An operation with its times and its outcome.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    /// When the request was sent.
    pub begun: Micros,
    /// When the answer was complete, or the client gave up.
    pub ended: Micros,
    /// The way that the request took.
    pub way: Way,
    /// The operation.
    pub what: Operation,
    /// Its outcome.
    pub outcome: Outcome,
    /// True for operations after the last fault, while nothing else runs. The servers must answer
    /// these operations.
    pub last: bool,
}

/// A recorder of events.
#[derive(Debug)]
pub struct History {
    start: Instant,
    events: Mutex<Vec<Event>>,
}

impl Default for History {
    fn default() -> Self {
        Self { start: Instant::now(), events: Mutex::default() }
    }
}

impl History {
    /// The current time.
    pub fn now(&self) -> Micros {
        micros(self.start.elapsed())
    }

    /// Records an operation that ends now.
    pub fn record(&self, begun: Micros, way: Way, what: Operation, outcome: Outcome, last: bool) {
        // Read the clock before the lock, so that waiting for the lock does not lengthen the
        // operation.
        let event = Event { begun, ended: self.now(), way, what, outcome, last };
        self.events.lock().unwrap().push(event);
    }

    /// The number of events.
    pub fn len(&self) -> usize {
        self.events.lock().unwrap().len()
    }

    /// Returns true if there are no events.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The events from this number on.
    pub fn since(&self, number: usize) -> Vec<Event> {
        self.events.lock().unwrap().iter().skip(number).cloned().collect()
    }
}

/// A duration in microseconds.
pub fn micros(time: Duration) -> Micros {
    u64::try_from(time.as_micros()).unwrap_or(Micros::MAX)
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |time: Micros| time as f64 / 1e6;
        write!(
            f,
            "{:.3}–{:.3} s {:?} {:?} {:?}",
            seconds(self.begun),
            seconds(self.ended),
            self.way,
            self.what,
            self.outcome
        )
    }
}
