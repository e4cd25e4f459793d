//! A model of the protocol in docs/explanation/leases.md. The tests explore all of its states. A
//! server answers from memory and may stop at any moment. A writer's notices may be late or lost. A
//! transaction of an older program version runs beside the writer. One fact changes; the server's
//! answers must never be older than the version that callers know. The tests must also find faults
//! that are planted in the protocol.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here fails a test")]

use std::collections::{HashMap, VecDeque};

/// Duration of a lease in ticks, by a right clock and by the slowest allowed clock. `OUTLASTING` is
/// how long other servers wait for its end, by the fastest allowed clock.
const LEASE: u8 = 4;
const SLOW_LEASE: u8 = 5;
const OUTLASTING: u8 = 5;
/// Number of commits.
const COMMITS: u8 = 2;

/// A fault in the protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fault {
    None,
    /// The writer answers its caller before the other servers have dropped the changed fact.
    AckBeforeDrop,
    /// The server acknowledges a notice before it has dropped the fact.
    DropAfterAnswer,
    /// The lease begins when the answer arrived, not when it was requested.
    LeaseFromAnswer,
    /// Other servers wait only as long as the lease lasts by their own clocks, without a margin.
    NoMargin,
    /// The writer reads the list of lease holders before its commit.
    ListBeforeCommit,
    /// The writer removes the row of a server although the server has renewed it.
    RemoveRenewed,
    /// A renewal does not read the changes whose notices may be lost.
    RenewWithoutReading,
    /// The server caches a value after a notice, although it read the value before the notice.
    KeepWhatWasReadBefore,
    /// A server whose row was removed continues with its memory.
    GoOnWithoutRow,
    /// A transaction of an older version does not wait.
    OlderDoesNotWait,
    /// The database grants leases while a transaction of an older version waits.
    GrantMeanwhile,
}

const FAULTS: [Fault; 11] = [
    Fault::AckBeforeDrop,
    Fault::DropAfterAnswer,
    Fault::LeaseFromAnswer,
    Fault::NoMargin,
    Fault::ListBeforeCommit,
    Fault::RemoveRenewed,
    Fault::RenewWithoutReading,
    Fault::KeepWhatWasReadBefore,
    Fault::GoOnWithoutRow,
    Fault::OlderDoesNotWait,
    Fault::GrantMeanwhile,
];

/// A statement that takes or renews the lease.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Renewal {
    None,
    Sent { age: u8, joins: bool },
    Done { age: u8, joins: bool, granted: Option<bool>, observed: u8 },
}

/// A query whose result will be cached.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Fill {
    None,
    Requested { dropped: bool },
    Read { version: u8, dropped: bool },
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Writer {
    Idle,
    /// `there`: the server's row existed before the commit. The writer uses this only with
    /// [`Fault::ListBeforeCommit`]; otherwise it reads the list of lease holders after the commit.
    Listed {
        there: bool,
    },
    Committed {
        there: bool,
    },
    /// `same`: the server has not renewed its row since the writer read the list.
    Waiting {
        elapsed: u8,
        same: bool,
    },
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Older {
    Idle,
    Waiting { elapsed: u8, there: bool },
    Done,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct ModelState {
    /// The committed version, and the version that callers know.
    version: u8,
    acknowledged: u8,
    row: bool,
    running: bool,
    /// True if the server believes that its row exists.
    joined: bool,
    left: u8,
    memory: Option<u8>,
    position: u8,
    renewal: Renewal,
    fill: Fill,
    writer: Writer,
    older: Older,
    /// Notices and acknowledgements in transit, one bit for each version. A message that the model
    /// never delivers is lost.
    notices: u8,
    answers: u8,
    /// True if the server acknowledged a notice before it dropped the fact.
    owes_drop: bool,
}

const START: ModelState = ModelState {
    version: 0,
    acknowledged: 0,
    row: false,
    running: true,
    joined: false,
    left: 0,
    memory: None,
    position: 0,
    renewal: Renewal::None,
    fill: Fill::None,
    writer: Writer::Idle,
    older: Older::Idle,
    notices: 0,
    answers: 0,
    owes_drop: false,
};

/// Takes a step's name and its effect.
type Add<'a> = dyn FnMut(&'static str, &dyn Fn(&mut ModelState)) + 'a;

impl ModelState {
    fn drop_memory(&mut self) {
        self.memory = None;
        match &mut self.fill {
            Fill::None => {}
            Fill::Requested { dropped } | Fill::Read { dropped, .. } => *dropped = true,
        }
    }

    fn is_wrong(&self) -> bool {
        self.running && self.left > 0 && self.memory.is_some_and(|version| version < self.acknowledged)
    }

    /// One tick for every process, stopped or not.
    fn tick(mut self) -> ModelState {
        self.left = self.left.saturating_sub(1);
        match &mut self.renewal {
            Renewal::None => {}
            Renewal::Sent { age, .. } | Renewal::Done { age, .. } => *age = (*age + 1).min(SLOW_LEASE),
        }
        if let Writer::Waiting { elapsed, .. } = &mut self.writer {
            *elapsed = (*elapsed + 1).min(OUTLASTING);
        }
        if let Older::Waiting { elapsed, .. } = &mut self.older {
            *elapsed = (*elapsed + 1).min(OUTLASTING);
        }
        self
    }

    fn next(self, fault: Fault) -> Vec<(&'static str, ModelState)> {
        let mut next = vec![("tick", self.tick())];
        let mut add = |name, change: &dyn Fn(&mut ModelState)| {
            let mut state = self;
            change(&mut state);
            next.push((name, state));
        };
        add("stop or continue", &|state| state.running = !state.running);
        self.server(fault, &mut add);
        self.database(fault, &mut add);
        self.writer(fault, &mut add);
        self.older(fault, &mut add);
        next
    }

    /// Steps of the server, unless it is stopped.
    fn server(&self, fault: Fault, add: &mut Add<'_>) {
        if !self.running {
            return;
        }
        if self.renewal == Renewal::None {
            let joins = !self.joined;
            add("request the lease", &|state| {
                if joins {
                    state.drop_memory();
                    state.left = 0;
                }
                state.renewal = Renewal::Sent { age: 0, joins };
            });
        }
        if let Renewal::Done { age, joins, granted, observed } = self.renewal {
            add("receive the lease", &|state| {
                state.renewal = Renewal::None;
                if joins {
                    state.position = observed;
                } else if observed > state.position && fault != Fault::RenewWithoutReading {
                    state.drop_memory();
                    state.position = observed;
                }
                match granted {
                    Some(true) => {
                        state.joined = true;
                        let age = if fault == Fault::LeaseFromAnswer { 0 } else { age };
                        state.left = state.left.max(SLOW_LEASE.saturating_sub(age));
                    }
                    Some(false) => {
                        state.joined = false;
                        if fault == Fault::GoOnWithoutRow {
                            state.left = state.left.max(SLOW_LEASE.saturating_sub(age));
                        } else {
                            state.drop_memory();
                            state.left = 0;
                        }
                    }
                    None => {}
                }
            });
        }
        if self.fill == Fill::None && self.left > 0 && self.memory.is_none() {
            add("ask", &|state| state.fill = Fill::Requested { dropped: false });
        }
        if let Fill::Read { version, dropped } = self.fill {
            add("keep", &|state| {
                state.fill = Fill::None;
                if !dropped || fault == Fault::KeepWhatWasReadBefore {
                    state.memory = Some(version);
                }
            });
        }
        if self.owes_drop {
            add("drop late", &|state| {
                state.owes_drop = false;
                state.drop_memory();
            });
        }
        for version in (1..=COMMITS + 1).filter(|version| self.notices & (1 << version) != 0) {
            add("receive a notice", &|state| {
                state.notices &= !(1 << version);
                if state.joined {
                    if fault == Fault::DropAfterAnswer {
                        state.owes_drop = true;
                    } else {
                        state.drop_memory();
                    }
                    state.answers |= 1 << version;
                }
            });
        }
    }

    /// Steps of the database for statements in transit.
    fn database(&self, fault: Fault, add: &mut Add<'_>) {
        if let Renewal::Sent { age, joins } = self.renewal {
            add("take the lease", &|state| {
                let locked = matches!(state.older, Older::Waiting { .. }) && fault != Fault::GrantMeanwhile;
                // After a transaction of an older version, the database grants no lease for a
                // while.
                let shut = joins && state.older == Older::Done;
                let granted = if locked { None } else { Some(if joins { !shut } else { state.row }) };
                if granted == Some(true) {
                    state.row = true;
                    if let Writer::Waiting { same, .. } = &mut state.writer {
                        *same = false;
                    }
                }
                state.renewal = Renewal::Done { age, joins, granted, observed: state.version };
            });
        }
        if let Fill::Requested { dropped } = self.fill {
            add("answer", &|state| state.fill = Fill::Read { version: state.version, dropped });
        }
    }

    fn writer(&self, fault: Fault, add: &mut Add<'_>) {
        // Duration of a wait by the writer's own clock; one fault leaves out the margin.
        let enough = if fault == Fault::NoMargin { LEASE } else { OUTLASTING };
        match self.writer {
            Writer::Idle if self.version < COMMITS => {
                add("begin to commit", &|state| state.writer = Writer::Listed { there: state.row });
            }
            Writer::Idle => {}
            Writer::Listed { there } => add("commit", &|state| {
                state.version += 1;
                state.writer = Writer::Committed { there };
            }),
            Writer::Committed { there } => add("list", &|state| {
                let there = if fault == Fault::ListBeforeCommit { there } else { state.row };
                if there && fault != Fault::AckBeforeDrop {
                    state.notices |= 1 << state.version;
                    state.writer = Writer::Waiting { elapsed: 0, same: true };
                } else {
                    if there {
                        state.notices |= 1 << state.version;
                    }
                    state.acknowledged = state.version;
                    state.writer = Writer::Idle;
                }
            }),
            Writer::Waiting { elapsed, same } => {
                if self.answers & (1 << self.version) != 0 {
                    add("receive the answer", &|state| {
                        state.answers &= !(1 << state.version);
                        state.acknowledged = state.version;
                        state.writer = Writer::Idle;
                    });
                }
                if elapsed >= enough {
                    add("wait no longer", &|state| {
                        if same || fault == Fault::RemoveRenewed {
                            state.row = false;
                        }
                        state.acknowledged = state.version;
                        state.writer = Writer::Idle;
                    });
                }
            }
        }
    }

    /// Steps of one transaction of an older program version, beside the writer.
    fn older(&self, fault: Fault, add: &mut Add<'_>) {
        match self.older {
            Older::Idle if self.writer == Writer::Idle && self.version < COMMITS => {
                add("an older transaction begins", &|state| {
                    state.older = Older::Waiting { elapsed: 0, there: state.row };
                });
            }
            Older::Waiting { elapsed, there }
                if (elapsed >= OUTLASTING || !there || fault == Fault::OlderDoesNotWait)
                    && self.writer == Writer::Idle =>
            {
                add("an older transaction commits", &|state| {
                    state.row = false;
                    state.version += 1;
                    state.acknowledged = state.version;
                    state.older = Older::Done;
                });
            }
            _ => {}
        }
    }
}

/// Explores all reachable states; the error is the path to a wrong state.
fn explore(fault: Fault) -> Result<usize, Vec<&'static str>> {
    let mut from: HashMap<ModelState, Option<(ModelState, &'static str)>> = HashMap::from([(START, None)]);
    let mut queue = VecDeque::from([START]);
    while let Some(state) = queue.pop_front() {
        if state.is_wrong() {
            let (mut way, mut at) = (Vec::new(), state);
            while let Some(Some((before, step))) = from.get(&at).copied() {
                way.push(step);
                at = before;
            }
            way.reverse();
            return Err(way);
        }
        for (step, next) in state.next(fault) {
            from.entry(next).or_insert_with(|| {
                queue.push_back(next);
                Some((state, step))
            });
        }
    }
    Ok(from.len())
}

#[test]
fn no_answer_is_older_than_an_acknowledged_change() {
    let states = explore(Fault::None).unwrap_or_else(|way| panic!("{way:?}"));
    println!("{states} states");
    assert!(states > 10_000, "{states}");
}

#[test]
fn each_planted_fault_is_found() {
    for fault in FAULTS {
        match explore(fault) {
            Err(way) => println!("{fault:?}: {} steps: {way:?}", way.len()),
            Ok(states) => panic!("{fault:?} was not found in {states} states"),
        }
    }
}
