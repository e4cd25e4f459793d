//! A row of a table: a request, and what must come back.

use crate::answer::Answer;
use crate::request::{Form, TestRequest};

/// One row: a request, and what must come back. Rows run in their order, in one repository.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// What it shows, in words.
    pub name: String,
    /// The request.
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
    /// A row with this name: a request of this method to this target, which must be answered with this status.
    pub fn new(name: &str, method: &str, target: &str, status: u16) -> Self {
        Self { name: name.to_owned(), request: TestRequest::new(method, target), status, ..Self::default() }
    }

    /// Sends a header field; `name` in lower case.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.request.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sends it to this claim of the description's, in place of the repository's address.
    pub fn claim(mut self, name: &str) -> Self {
        self.request.claim = Some(name.to_owned());
        self
    }

    /// Sends a body.
    pub fn body(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.request.body = bytes.as_ref().to_vec();
        self
    }

    /// Sends one more field of a form.
    pub fn part(mut self, name: &str, filename: Option<&str>, value: impl AsRef<[u8]>) -> Self {
        let (filename, value) = (filename.map(str::to_owned), value.as_ref().to_vec());
        self.request.parts.push(Form { name: name.to_owned(), filename, value });
        self
    }

    /// A failure's code must be this.
    pub fn code(mut self, code: &str) -> Self {
        self.code = Some(code.to_owned());
        self
    }

    /// A header field must be this; `name` in lower case.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// There must be no such header field.
    pub fn no_header(mut self, name: &str) -> Self {
        self.absent.push(name.to_owned());
        self
    }

    /// The content must be this.
    pub fn content(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.body = Some(bytes.as_ref().to_vec());
        self
    }

    /// The content must hold this.
    pub fn contains(mut self, text: &str) -> Self {
        self.contains.push(text.to_owned());
        self
    }

    /// The content must not hold this.
    pub fn lacks(mut self, text: &str) -> Self {
        self.lacks.push(text.to_owned());
        self
    }

    /// What of an answer is not as it must be, a line each.
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
        for wanted in &self.contains {
            check(text.contains(wanted), format!("content does not hold {wanted:?}"));
        }
        for unwanted in &self.lacks {
            check(!text.contains(unwanted), format!("content holds {unwanted:?}"));
        }
        differences
    }
}
