//! What clients did and what they were answered, with the times of both on one monotonic clock.

use packhouse_tests::Response;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Microseconds since the history began.
pub type Micros = u64;

/// How an operation ended for who asked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Outcome {
    /// It was done: any 2xx that this operation is answered with.
    Done,
    /// 404.
    NotThere,
    /// 401.
    Refused,
    /// 409.
    Conflict,
    /// 500 `stored_data_damaged`: the file is known, and its bytes are lost.
    Damaged,
    /// 503 with `Retry-After`: it may or may not have been done.
    Away,
    /// No answer, or none to its end: it may or may not have been done.
    Broken,
    /// Anything else: never right.
    Odd(String),
}

impl Outcome {
    /// Of an answer; `done` are the statuses that say that it was done.
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

    /// Whether nobody can say if it was done.
    pub fn unknown(&self) -> bool {
        matches!(self, Self::Away | Self::Broken)
    }
}

fn tells_of_damage(answer: &Response) -> bool {
    answer.header("retry-after").is_none() && answer.text().contains("stored_data_damaged")
}

/// By which way a request went.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way {
    /// Through the balancer.
    Balanced,
    /// Straight to the server of this number.
    Server(usize),
}

/// An operation. A path is `FORMAT/PACKAGE/VERSION`, a package `FORMAT/PACKAGE`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum What {
    /// Bytes of this SHA-256 were published. `once`: this format takes a path only once.
    Publish {
        /// Where.
        path: String,
        /// The bytes.
        digest: String,
        /// Whether another of the same path is refused.
        once: bool,
    },
    /// A path was read; with [`Outcome::Done`] these bytes came.
    Read {
        /// Where.
        path: String,
        /// SHA-256 of what came.
        digest: String,
    },
    /// A version was deleted.
    Delete {
        /// Which.
        path: String,
    },
    /// The object with the bytes of this SHA-256 was removed from S3 behind the servers' backs.
    Loss {
        /// The bytes.
        digest: String,
    },
    /// A package's index was read; with [`Outcome::Done`] it listed these versions.
    Index {
        /// Of which.
        package: String,
        /// The versions.
        listed: BTreeSet<String>,
    },
    /// A token was made.
    Create {
        /// Its id.
        token: String,
    },
    /// A token was revoked, or rotated with no overlap.
    Revoke {
        /// Its id.
        token: String,
    },
    /// A token was shown, where it is good for a read.
    Use {
        /// Its id.
        token: String,
    },
    /// The storage was counted, after garbage was collected and with nothing under way.
    Storage {
        /// Rows of blobs whose object is not there.
        missing: u64,
        /// Objects that no row names.
        orphans: u64,
        /// Rows of blobs that no record names.
        unnamed: u64,
        /// Multipart uploads that were not finished.
        unfinished: u64,
    },
}

/// One of them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Event {
    /// When the request was sent.
    pub begun: Micros,
    /// When its answer was there, or it was given up.
    pub ended: Micros,
    /// Where it was sent.
    pub way: Way,
    /// What was asked.
    pub what: What,
    /// What came of it.
    pub outcome: Outcome,
    /// Whether everything was well again and nothing else under way: then there must be an answer.
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
    /// Now.
    pub fn now(&self) -> Micros {
        micros(self.start.elapsed())
    }

    /// Records an operation that ends now.
    pub fn record(&self, begun: Micros, way: Way, what: What, outcome: Outcome, last: bool) {
        // Taken before the lock, so that waiting for it lengthens nothing.
        let event = Event { begun, ended: self.now(), way, what, outcome, last };
        self.events.lock().unwrap().push(event);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.events.lock().unwrap().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those from this number on.
    pub fn since(&self, number: usize) -> Vec<Event> {
        self.events.lock().unwrap().iter().skip(number).cloned().collect()
    }
}

/// As microseconds.
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
