//! An answer, the same for every world.

use std::panic::Location;

/// What came back: an answer, or a failure before the host gives it its shape.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// All of it; of a failure its messages, a line each.
    pub body: Vec<u8>,
    /// Of a failure: code and message of each problem.
    pub problems: Vec<(String, String)>,
    /// When what is served was last changed, in ms since 1970.
    pub modified: Option<u64>,
}

impl Answer {
    /// The answer itself, when it has this status.
    ///
    /// # Panics
    /// When it has another, with all that came back.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        let at = Location::caller();
        assert!(self.status == status, "{at}: expected {status}, found {self}");
        self
    }

    /// The first header field of this name, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The content as text; what is not UTF-8 is replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The content as a JSON document; null when it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The code of a failure's first problem; empty when it is none.
    pub fn code(&self) -> &str {
        self.problems.first().map_or("", |(code, _)| code)
    }

    /// A refusal with one problem.
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
