//! The report of a round: seeds, counts by fault, times to recover.

use crate::checker::{Violation, check};
use crate::history::{Event, Micros, Operation, Outcome};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A fault that happened.
#[derive(Clone, Debug)]
pub struct Incident {
    /// Its name.
    pub name: &'static str,
    /// When it began.
    pub begun: Micros,
    /// When it ended.
    pub ended: Micros,
    /// When every server worked again.
    pub recovered: Micros,
}

/// A rolling restart.
#[derive(Clone, Copy, Debug)]
pub struct Rolling {
    /// True if the balancer tried another server when one did not accept a connection.
    pub retries: bool,
    /// Number of requests through the balancer during the restart.
    pub requests: usize,
    /// Number of requests that got no complete answer, or 503 with `Retry-After`.
    pub failed: usize,
    /// Duration of the restart.
    pub took: Micros,
}

/// The results of a round.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed, which repeats the round as far as random numbers determine it.
    pub seed: u64,
    /// Number of servers.
    pub servers: usize,
    /// The events that clients observed.
    pub events: Vec<Event>,
    /// The faults.
    pub incidents: Vec<Incident>,
    /// The rolling restarts.
    pub rolling: Vec<Rolling>,
    /// The violations.
    pub violations: Vec<Violation>,
    /// The ends of the servers' logs, if there was a violation.
    pub logs: String,
}

impl Report {
    /// Checks the events.
    pub fn new(
        seed: u64,
        servers: usize,
        events: Vec<Event>,
        incidents: Vec<Incident>,
        rolling: Vec<Rolling>,
    ) -> Self {
        let violations = check(&events);
        Self { seed, servers, events, incidents, rolling, violations, logs: String::new() }
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let mut text =
            format!("seed {}, {} servers, {} operations\n", self.seed, self.servers, self.events.len());
        self.write_operations(&mut text);
        self.write_incidents(&mut text);
        for rolling in &self.rolling {
            let Rolling { retries, requests, failed, took } = rolling;
            let how = if *retries { "with" } else { "without" };
            let seconds = *took as f64 / 1e6;
            let _ = writeln!(
                text,
                "rolling restart {how} retries: {failed} of {requests} requests failed in {seconds:.1} s"
            );
        }
        let _ = writeln!(text, "violations: {}", self.violations.len());
        for violation in self.violations.iter().take(20) {
            let _ = writeln!(text, "  {violation:.600}");
        }
        text
    }

    fn write_operations(&self, text: &mut String) {
        let mut counts = BTreeMap::<&str, BTreeMap<String, usize>>::new();
        for event in &self.events {
            let outcome = match &event.outcome {
                Outcome::Odd(_) => "odd".to_owned(),
                other => format!("{other:?}").to_lowercase(),
            };
            *counts.entry(name(&event.what)).or_default().entry(outcome).or_default() += 1;
        }
        for (what, outcomes) in counts {
            let outcomes: Vec<String> =
                outcomes.iter().map(|(outcome, count)| format!("{outcome} {count}")).collect();
            let _ = writeln!(text, "  {what:<9} {}", outcomes.join(", "));
        }
        let _ = writeln!(text, "  attempts with revoked credentials: {}", self.tries_of_revoked());
    }

    /// Number of uses of a token after the answer to its revocation.
    pub fn tries_of_revoked(&self) -> usize {
        let mut ended = BTreeMap::<&str, Micros>::new();
        for event in &self.events {
            if let (Operation::Revoke { token }, Outcome::Done) = (&event.what, &event.outcome) {
                let known = ended.entry(token).or_insert(event.ended);
                *known = event.ended.min(*known);
            }
        }
        let late = |event: &&Event| match &event.what {
            Operation::Use { token } => ended.get(token.as_str()).is_some_and(|ended| event.begun >= *ended),
            _ => false,
        };
        self.events.iter().filter(late).count()
    }

    fn write_incidents(&self, text: &mut String) {
        let mut by_name = BTreeMap::<&str, Vec<&Incident>>::new();
        for incident in &self.incidents {
            by_name.entry(incident.name).or_default().push(incident);
        }
        let _ = writeln!(
            text,
            "  {:<20} {:>5} {:>8} {:>6} {:>6} {:>24}",
            "fault", "times", "done", "503", "broken", "recovered, s: median, most"
        );
        for (name, incidents) in by_name {
            let mut times: Vec<Micros> = incidents.iter().map(|one| one.recovered - one.ended).collect();
            times.sort_unstable();
            let during = |outcome: fn(&Outcome) -> bool| {
                let inside = |event: &&Event| {
                    outcome(&event.outcome)
                        && incidents
                            .iter()
                            .any(|one| event.ended >= one.begun && event.ended <= one.recovered)
                };
                self.events.iter().filter(inside).count()
            };
            let done = during(|outcome| !outcome.unknown());
            let (away, broken) = (during(|one| *one == Outcome::Away), during(|one| *one == Outcome::Broken));
            let seconds = |time: Option<&Micros>| time.copied().unwrap_or_default() as f64 / 1e6;
            let (median, most) = (seconds(times.get(times.len() / 2)), seconds(times.last()));
            let _ = writeln!(
                text,
                "  {name:<20} {:>5} {done:>8} {away:>6} {broken:>6} {median:>16.2} {most:>7.2}",
                incidents.len()
            );
        }
    }
}

fn name(what: &Operation) -> &'static str {
    match what {
        Operation::Publish { .. } => "publishes",
        Operation::Read { .. } => "reads",
        Operation::Delete { .. } => "deletions",
        Operation::Loss { .. } => "losses",
        Operation::Index { .. } => "indexes",
        Operation::Create { .. } => "tokens",
        Operation::Revoke { .. } => "endings",
        Operation::Use { .. } => "uses",
        Operation::Storage { .. } => "storage",
    }
}
