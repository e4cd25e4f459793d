//! A table of requests, run in any world: natively over the memory host, or through the component and the runtime.

use crate::answer::Answer;
use crate::effects::Effects;
use crate::kept_table::{Row, Table};
use crate::request::{Form, TestRequest};
use serde::{Deserialize, Serialize};

/// Somewhere that requests to one repository can be sent to.
pub trait World {
    /// Sends a request and waits for its answer.
    fn send(&mut self, request: &TestRequest) -> Answer;
    /// What the repository holds.
    fn effects(&mut self) -> Effects;
    /// A table without rows for a repository like this one, as long as that is hosted and nothing was done in it.
    fn blank(&self) -> Option<Table> {
        None
    }
}

/// One row: a request, and what must come back. Rows run in their order, in one repository.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Row", into = "Row")]
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

/// A row whose answer was not as it must be.
#[derive(Clone, Debug)]
pub struct Missed {
    /// The row, and what of the answer is not as it must be, a line each, and the answer.
    pub text: String,
    /// What came back.
    pub answer: Answer,
}

/// Runs a table: every row, whatever became of those before. In a row's target, `{last}` stands for the last segment of the
/// path that the newest `Location` was, as the name of an upload that the rows before began.
pub fn examine(world: &mut dyn World, cases: &[Case]) -> Vec<Missed> {
    let (mut missed, mut last) = (Vec::new(), String::new());
    for case in cases {
        let target = case.request.target.replace("{last}", &last);
        let answer = world.send(&TestRequest { target, ..case.request.clone() });
        if let Some(location) = answer.header("location") {
            let path = location.split(['?', '#']).next().unwrap_or_default();
            last = path.rsplit('/').next().unwrap_or_default().to_owned();
        }
        let differences = case.differences(&answer);
        if !differences.is_empty() {
            let TestRequest { method, target, .. } = &case.request;
            let text =
                format!("{}: {method} {target}\n  {}\n{answer}\n", case.name, differences.join("\n  "));
            missed.push(Missed { text, answer });
        }
    }
    missed
}

/// Runs a table as [`examine`] does. Under `packhouse plugins test` its rows run through the component as well, where the repository is
/// hosted and they are the first to be sent to it.
///
/// # Panics
/// When a row's answer is not as it must be, with all such rows and what came back.
#[track_caller]
pub fn run(world: &mut dyn World, cases: &[Case]) {
    if let Some(blank) = world.blank() {
        Table { cases: cases.to_vec(), ..blank }.keep();
    }
    let missed = examine(world, cases);
    let report: String = missed.iter().map(|missed| format!("\n{}", missed.text)).collect();
    assert!(report.is_empty(), "{report}");
}
