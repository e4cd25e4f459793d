//! The protocol of docs/LEASES.md as a model, every state of which is looked at: a server that answers from memory and may be stopped
//! at any moment, a writer whose notices may come late or never, and a transaction of an older version. One fact changes; what the
//! server answers from memory must never be older than what a caller was told. Faults planted into the protocol must be found.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here fails a test")]

use std::collections::{HashMap, VecDeque};

/// A lease in ticks, by a clock that is right, and by one that is slow by the most that is allowed; how long others wait for its end by
/// the fastest clock that is allowed.
const LEASE: u8 = 4;
const SLOW_LEASE: u8 = 5;
const OUTLASTING: u8 = 5;
/// Commits that are made.
const COMMITS: u8 = 2;

/// What is done wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fault {
    None,
    /// The caller is told before the others dropped what was changed.
    AckBeforeDrop,
    /// The server answers before it has dropped.
    DropAfterAnswer,
    /// The lease lasts from when the answer came, not from when it was asked for.
    LeaseFromAnswer,
    /// Others wait no longer than the lease lasts by their own clocks.
    NoMargin,
    /// Who holds a lease is asked before the commit.
    ListBeforeCommit,
    /// The row of a server is removed though it was renewed.
    RemoveRenewed,
    /// A renewal does not read what notices may have missed.
    RenewWithoutReading,
    /// What was read before a change was dropped is kept after it.
    KeepWhatWasReadBefore,
    /// A server whose row is gone goes on with what it had.
    GoOnWithoutRow,
    /// A transaction of an older version does not wait.
    OlderDoesNotWait,
    /// Leases are granted while such a transaction waits.
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
    Done { age: u8, joins: bool, granted: Option<bool>, seen: u8 },
}

/// A question on its way to memory.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Fill {
    None,
    Asked { dropped: bool },
    Read { version: u8, dropped: bool },
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
enum Writer {
    Idle,
    /// The row was there before the commit, where that is asked.
    Listed {
        there: bool,
    },
    Committed {
        there: bool,
    },
    /// `same`: the row was not renewed since the list.
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
struct State {
    /// What is committed, and what callers were told.
    version: u8,
    told: u8,
    row: bool,
    running: bool,
    /// Whether the server believes in its row.
    joined: bool,
    left: u8,
    memory: Option<u8>,
    position: u8,
    renewal: Renewal,
    fill: Fill,
    writer: Writer,
    older: Older,
    /// Notices and answers on their way, a bit for each version. What is never delivered is lost.
    notices: u8,
    answers: u8,
    /// A notice was answered and nothing dropped yet.
    owes_drop: bool,
}

const START: State = State {
    version: 0,
    told: 0,
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

/// Takes a step's name and what it changes.
type Add<'a> = dyn FnMut(&'static str, &dyn Fn(&mut State)) + 'a;

impl State {
    fn drop_memory(&mut self) {
        self.memory = None;
        match &mut self.fill {
            Fill::None => {}
            Fill::Asked { dropped } | Fill::Read { dropped, .. } => *dropped = true,
        }
    }

    fn is_wrong(&self) -> bool {
        self.running && self.left > 0 && self.memory.is_some_and(|version| version < self.told)
    }

    /// One tick for everybody, stopped or not.
    fn tick(mut self) -> State {
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

    fn next(self, fault: Fault) -> Vec<(&'static str, State)> {
        let mut next = vec![("tick", self.tick())];
        let mut add = |name, change: &dyn Fn(&mut State)| {
            let mut state = self;
            change(&mut state);
            next.push((name, state));
        };
        add("stop or go on", &|state| state.running = !state.running);
        self.server(fault, &mut add);
        self.database(fault, &mut add);
        self.writer(fault, &mut add);
        self.older(fault, &mut add);
        next
    }

    /// What the server does, unless it is stopped.
    fn server(&self, fault: Fault, add: &mut Add<'_>) {
        if !self.running {
            return;
        }
        if self.renewal == Renewal::None {
            let joins = !self.joined;
            add("ask for the lease", &|state| {
                if joins {
                    state.drop_memory();
                    state.left = 0;
                }
                state.renewal = Renewal::Sent { age: 0, joins };
            });
        }
        if let Renewal::Done { age, joins, granted, seen } = self.renewal {
            add("hear of the lease", &|state| {
                state.renewal = Renewal::None;
                if joins {
                    state.position = seen;
                } else if seen > state.position && fault != Fault::RenewWithoutReading {
                    state.drop_memory();
                    state.position = seen;
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
            add("ask", &|state| state.fill = Fill::Asked { dropped: false });
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
            add("hear a notice", &|state| {
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

    /// What the database does with statements on their way.
    fn database(&self, fault: Fault, add: &mut Add<'_>) {
        if let Renewal::Sent { age, joins } = self.renewal {
            add("take the lease", &|state| {
                let locked = matches!(state.older, Older::Waiting { .. }) && fault != Fault::GrantMeanwhile;
                // After such a transaction none is granted for a while.
                let shut = joins && state.older == Older::Done;
                let granted = if locked { None } else { Some(if joins { !shut } else { state.row }) };
                if granted == Some(true) {
                    state.row = true;
                    if let Writer::Waiting { same, .. } = &mut state.writer {
                        *same = false;
                    }
                }
                state.renewal = Renewal::Done { age, joins, granted, seen: state.version };
            });
        }
        if let Fill::Asked { dropped } = self.fill {
            add("answer", &|state| state.fill = Fill::Read { version: state.version, dropped });
        }
    }

    fn writer(&self, fault: Fault, add: &mut Add<'_>) {
        // How long a wait lasts by the writer's own clock; a fault leaves out the margin.
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
                    state.told = state.version;
                    state.writer = Writer::Idle;
                }
            }),
            Writer::Waiting { elapsed, same } => {
                if self.answers & (1 << self.version) != 0 {
                    add("hear the answer", &|state| {
                        state.answers &= !(1 << state.version);
                        state.told = state.version;
                        state.writer = Writer::Idle;
                    });
                }
                if elapsed >= enough {
                    add("wait no longer", &|state| {
                        if same || fault == Fault::RemoveRenewed {
                            state.row = false;
                        }
                        state.told = state.version;
                        state.writer = Writer::Idle;
                    });
                }
            }
        }
    }

    /// One transaction of an older version, beside the writer.
    fn older(&self, fault: Fault, add: &mut Add<'_>) {
        match self.older {
            Older::Idle if self.writer == Writer::Idle && self.version < COMMITS => {
                add("an older one begins", &|state| {
                    state.older = Older::Waiting { elapsed: 0, there: state.row };
                });
            }
            Older::Waiting { elapsed, there }
                if (elapsed >= OUTLASTING || !there || fault == Fault::OlderDoesNotWait)
                    && self.writer == Writer::Idle =>
            {
                add("an older one commits", &|state| {
                    state.row = false;
                    state.version += 1;
                    state.told = state.version;
                    state.older = Older::Done;
                });
            }
            _ => {}
        }
    }
}

/// All states that can come about; of one that is wrong the way that leads there.
fn explore(fault: Fault) -> Result<usize, Vec<&'static str>> {
    let mut from: HashMap<State, Option<(State, &'static str)>> = HashMap::from([(START, None)]);
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
fn nothing_older_is_answered_than_a_caller_was_told() {
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
