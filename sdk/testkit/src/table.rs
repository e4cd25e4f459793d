//! A table of requests, run in any world: natively over the memory host, or through the component and the runtime.

use crate::answer::Answer;
use crate::case::Case;
use crate::effects::Effects;
use crate::kept_table::Table;
use crate::request::TestRequest;

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
