//! Rows of a table: a request and the expected response.

use crate::answer::Answer;
use crate::request::{Form, TestRequest};

/// Row of a table: a request and the expected response. Rows run in order, in one repository.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// Behaviour that the row shows, in words.
    pub name: String,
    /// Request to send.
    pub request: TestRequest,
    pub(crate) status: u16,
    pub(crate) code: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) absent: Vec<String>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) contains: Vec<String>,
    pub(crate) lacks: Vec<String>,
}

impl Case {
    /// Creates a row with this name: a request of this method to this target, and the expected
    /// status.
    pub fn new(name: &str, method: &str, target: &str, status: u16) -> Self {
        Self { name: name.to_owned(), request: TestRequest::new(method, target), status, ..Self::default() }
    }

    /// Sends a header field; `name` is in lower case.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.request.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends the request to this claim of the description instead of the repository's address.
    pub fn claim(mut self, name: &str) -> Self {
        self.request.claim = Some(name.to_owned());
        self
    }

    /// Sends a body.
    pub fn body(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.request.body = bytes.as_ref().to_vec();
        self
    }

    /// Sends a further form field.
    pub fn part(mut self, name: &str, filename: Option<&str>, value: impl AsRef<[u8]>) -> Self {
        let (filename, value) = (filename.map(str::to_owned), value.as_ref().to_vec());
        self.request.parts.push(Form { name: name.to_owned(), filename, value });
        self
    }

    /// Expects a failure with this code.
    pub fn code(mut self, code: &str) -> Self {
        self.code = Some(code.to_owned());
        self
    }

    /// Expects this header field; `name` is in lower case.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Expects that this header field is absent.
    pub fn no_header(mut self, name: &str) -> Self {
        self.absent.push(name.to_owned());
        self
    }

    /// Expects exactly this content.
    pub fn content(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.body = Some(bytes.as_ref().to_vec());
        self
    }

    /// Expects that the content contains this text.
    pub fn contains(mut self, text: &str) -> Self {
        self.contains.push(text.to_owned());
        self
    }

    /// Expects that the content does not contain this text.
    pub fn lacks(mut self, text: &str) -> Self {
        self.lacks.push(text.to_owned());
        self
    }

    /// Returns the differences between a response and the expected one, one line each.
    pub fn differences(&self, answer: &Answer) -> Vec<String> {
        let mut differences = Vec::new();
        let mut check = |holds: bool, what: String| {
            if !holds {
                differences.push(what);
            }
        };
        check(answer.status == self.status, format!("status {}, not {}", answer.status, self.status));
        if let Some(code) = &self.code {
            check(answer.code() == code, format!("code {:?}, not {code:?}", answer.code()));
        }
        for (name, value) in &self.headers {
            let found = answer.header(name);
            check(found == Some(value), format!("header {name}: {found:?}, not {value:?}"));
        }
        for name in &self.absent {
            check(answer.header(name).is_none(), format!("header {name} is there"));
        }
        if let Some(body) = &self.body {
            check(answer.body == *body, format!("content is not {:?}", String::from_utf8_lossy(body)));
        }
        let text = answer.text();
        for expected in &self.contains {
            check(text.contains(expected), format!("content does not contain {expected:?}"));
        }
        for forbidden in &self.lacks {
            check(!text.contains(forbidden), format!("content contains {forbidden:?}"));
        }
        differences
    }
}
