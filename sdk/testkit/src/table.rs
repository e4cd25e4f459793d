//! Tables of requests that run in any [`World`]: in the memory host, or through the component and
//! the runtime.

use crate::answer::Answer;
use crate::case::Case;
use crate::effects::Effects;
use crate::request::TestRequest;
use crate::table_file::Table;

/// Target for requests to one repository.
pub trait World {
    /// Sends a request and waits for its response.
    fn send(&mut self, request: &TestRequest) -> Answer;
    /// Returns the contents of the repository.
    fn effects(&mut self) -> Effects;
    /// Returns a table without rows for a repository like this one; `None` unless it is hosted and
    /// has had no writes.
    fn blank(&self) -> Option<Table> {
        None
    }
}

/// Row whose response was not as expected.
#[derive(Clone, Debug)]
pub struct Missed {
    /// Text with the row, the differences, one line each, and the response.
    pub text: String,
    /// Response that was received.
    pub answer: Answer,
}

/// Runs every row of a table, even after a row fails. In a row's target, `{last}` stands for the
/// last path segment of the newest `Location`. This can be the name of an upload that an earlier
/// row began.
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

/// Runs a table like [`examine`]. Under `packhouse plugins test` the rows also run through the
/// component, if the repository is hosted and has had no writes.
///
/// # Panics
/// If a response is not as expected; the message contains all such rows and their responses.
#[track_caller]
pub fn run(world: &mut dyn World, cases: &[Case]) {
    if let Some(blank) = world.blank() {
        Table { cases: cases.to_vec(), ..blank }.store();
    }
    let missed = examine(world, cases);
    let report: String = missed.iter().map(|missed| format!("\n{}", missed.text)).collect();
    assert!(report.is_empty(), "{report}");
}
