//! Responses that tests receive, the same for every world.

use std::panic::Location;

/// Response or failure of a format. The host would still format a failure as an error response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Header fields; names in lower case.
    pub headers: Vec<(String, String)>,
    /// Whole body. For a failure, its messages, one per line.
    pub body: Vec<u8>,
    /// For a failure, the code and message of each problem.
    pub problems: Vec<(String, String)>,
    /// Time of the last change, as Unix time in ms.
    pub modified: Option<u64>,
}

impl Answer {
    /// Returns the response itself if it has this status.
    ///
    /// # Panics
    /// If the response has another status; the message contains the response.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        let at = Location::caller();
        assert!(self.status == status, "{at}: expected {status}, found {self}");
        self
    }

    /// Returns the first header field of this name, which must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns the content as text; invalid UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the content as a JSON document; null if it is not JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns the code of the first problem; empty without problems.
    pub fn code(&self) -> &str {
        self.problems.first().map_or("", |(code, _)| code)
    }

    /// Creates a refusal with one problem.
    pub fn refusal(status: u16, code: &str, message: &str) -> Self {
        let problems = vec![(code.to_owned(), message.to_owned())];
        Self { status, problems, body: message.as_bytes().to_vec(), ..Self::default() }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{} {}", self.status, self.code())?;
        self.headers.iter().try_for_each(|(name, value)| write!(out, "\n{name}: {value}"))?;
        write!(out, "\n\n{}", self.text())
    }
}
