//! What answers a call that is replayed: the recording, question by question. Behind the first question that is another than the recorded
//! one it goes on as far as it can, so that a mended component comes to its answer: with what the recording was told of the same question
//! elsewhere, and by itself where no storage and no other system is needed (`improvised.rs`).

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::file::{RecordedAnswer, RecordedCall, RecordedImport, RecordedRequest};
use super::spoken::{as_bytes, handle};

/// Bytes that are put together of what a guest writes, at most: to show its answer.
const MOST_WRITTEN: usize = 16 << 20;

/// Where a replay goes another way.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// It asked another question than was recorded.
    Import {
        /// How many it had asked in this call before.
        place: usize,
        /// The recorded one; none where the call had ended there.
        recorded: Option<RecordedImport>,
        /// Its name.
        import: String,
        /// What was asked.
        arguments: Vec<Value>,
    },
    /// It ended where a further question was recorded.
    Ended {
        /// How many it had asked in this call before.
        place: usize,
        /// The recorded one.
        recorded: RecordedImport,
    },
    /// It answered something else.
    Outcome,
}

/// See the module.
pub(crate) struct Player {
    request: RecordedRequest,
    recorded_at: u64,
    pub(super) call: RecordedCall,
    /// The next question that was recorded.
    place: usize,
    /// How many questions it has asked.
    asked: usize,
    pub(super) difference: Option<Difference>,
    /// The recorded answers of the call, by question.
    known: HashMap<String, Vec<usize>>,
    /// Whether the host ended the recorded call at the question that was asked last, and so here too.
    pub(super) is_stopped: bool,
    /// The question that could not be answered.
    pub(super) unanswered: Option<String>,
    pub(super) answer: Option<Value>,
    next_handle: u32,
    /// What was written by handles of writers and blobs, as far as it is known.
    written: BTreeMap<u32, Vec<u8>>,
}

impl Player {
    /// For one call after another of this request. `highest` is the highest handle of the recording.
    pub(super) fn new(request: RecordedRequest, recorded_at: u64, highest: u32) -> Player {
        Player {
            request,
            recorded_at,
            call: RecordedCall::default(),
            place: 0,
            asked: 0,
            difference: None,
            known: HashMap::new(),
            is_stopped: false,
            unanswered: None,
            answer: None,
            next_handle: highest,
            written: BTreeMap::new(),
        }
    }

    /// Begins this call.
    pub(super) fn begin(&mut self, call: RecordedCall) {
        self.known.clear();
        for (place, asked) in call.imports.iter().enumerate() {
            self.known.entry(question(&asked.import, &asked.arguments)).or_default().push(place);
        }
        (self.call, self.place, self.asked) = (call, 0, 0);
        (self.is_stopped, self.unanswered, self.answer) = (false, None, None);
    }

    /// The guest's answer.
    pub(super) fn answered(&mut self, answer: Value) {
        self.answer = Some(answer);
    }

    /// A question of the guest's.
    pub(super) fn ask(&mut self, import: String, arguments: Vec<Value>) -> RecordedAnswer {
        let told = self.told(&import, &arguments);
        self.asked += 1;
        if let RecordedAnswer::Ok(value) = &told {
            self.note_written(&import, &arguments, value);
        }
        told
    }

    fn told(&mut self, import: &str, arguments: &[Value]) -> RecordedAnswer {
        let recorded = self.call.imports.get(self.place);
        if self.difference.is_none() {
            if let Some(recorded) = recorded.filter(|it| it.import == import && it.arguments == arguments) {
                let told = recorded.answer.clone();
                self.place += 1;
                return self.stopping(told);
            }
            self.difference = Some(Difference::Import {
                place: self.asked,
                recorded: recorded.cloned(),
                import: import.to_owned(),
                arguments: arguments.to_vec(),
            });
        }
        if let Some(told) = self.recalled(import, arguments) {
            return told;
        }
        if let Some(told) = self.improvised(import, arguments) {
            return told;
        }
        self.unanswered = Some(question(import, arguments));
        RecordedAnswer::Stopped(format!("the recording has no answer to {}", question(import, arguments)))
    }

    /// Where the recorded call ended in the host, this one does.
    fn stopping(&mut self, told: Option<RecordedAnswer>) -> RecordedAnswer {
        let told = told.unwrap_or_else(|| RecordedAnswer::Stopped("the call ended here".to_owned()));
        self.is_stopped = matches!(told, RecordedAnswer::Stopped(_));
        told
    }

    /// What was told of the same question elsewhere: the next time behind what was asked last, else the last time before.
    fn recalled(&mut self, import: &str, arguments: &[Value]) -> Option<RecordedAnswer> {
        let places = self.known.get(&question(import, arguments))?;
        let place = places.iter().find(|&&place| place >= self.place).or(places.last())?;
        let told = self.call.imports.get(*place)?.answer.clone()?;
        if *place >= self.place {
            self.place = place + 1;
        }
        (!matches!(told, RecordedAnswer::Stopped(_))).then_some(told)
    }

    /// Whether the call did what was recorded, now that it has ended.
    pub(super) fn end(&mut self, is_same_outcome: bool) {
        if self.difference.is_some() {
            return;
        }
        self.difference = match self.call.imports.get(self.place) {
            Some(recorded) => Some(Difference::Ended { place: self.asked, recorded: recorded.clone() }),
            None => (!is_same_outcome).then_some(Difference::Outcome),
        };
    }

    pub(super) fn new_handle(&mut self) -> u32 {
        self.next_handle = self.next_handle.saturating_add(1);
        self.next_handle
    }

    pub(super) fn request(&self) -> &RecordedRequest {
        &self.request
    }

    pub(super) fn recorded_at(&self) -> u64 {
        self.recorded_at
    }

    /// What is known to stand behind a handle of a writer or a blob.
    pub(super) fn written(&self, handle: u32) -> Option<&[u8]> {
        self.written.get(&handle).map(Vec::as_slice)
    }

    /// Follows what the guest writes, so that its answer can be shown.
    fn note_written(&mut self, import: &str, arguments: &[Value], told: &Value) {
        let argument = |at: usize, kind: &str| arguments.get(at).and_then(|value| handle(value, kind));
        match import {
            "blobs.writer.new" => {
                if let Some(writer) = handle(told, "writer") {
                    self.written.insert(writer, Vec::new());
                }
            }
            "blobs.writer.write" => {
                let bytes = arguments.get(1).and_then(as_bytes);
                self.append(argument(0, "writer"), bytes);
            }
            "blobs.writer.append" => {
                let bytes = argument(1, "blob").and_then(|blob| self.written.get(&blob).cloned());
                self.append(argument(0, "writer"), bytes);
            }
            "blobs.writer.write_parts" => {
                for part in arguments.get(1).and_then(Value::as_array).into_iter().flatten() {
                    let bytes = match part.get("bytes") {
                        Some(bytes) => as_bytes(bytes),
                        None => part.get("section").and_then(|section| self.section(section)),
                    };
                    self.append(argument(0, "writer"), bytes);
                }
            }
            "blobs.writer.finish" => {
                let bytes = argument(0, "writer").and_then(|writer| self.written.remove(&writer));
                if let (Some(blob), Some(bytes)) = (handle(told, "blob"), bytes) {
                    self.written.insert(blob, bytes);
                }
            }
            "memo.making.finish" | "memo.making.finish_noted" => {
                let bytes = arguments.last().and_then(as_bytes);
                if let (Some(blob), Some(bytes)) = (handle(told, "blob"), bytes) {
                    self.written.insert(blob, bytes);
                }
            }
            _ => {}
        }
    }

    /// What lies in a section of what was written.
    fn section(&self, section: &Value) -> Option<Vec<u8>> {
        let written = self.written.get(&handle(section.get("of")?, "blob")?)?;
        let number = |of: &str| usize::try_from(section.get(of)?.as_u64()?).ok();
        let from = number("offset")?;
        written.get(from..from.checked_add(number("length")?)?).map(<[u8]>::to_vec)
    }

    /// What is not known of a writer makes all of it unknown.
    fn append(&mut self, writer: Option<u32>, bytes: Option<Vec<u8>>) {
        let Some(writer) = writer else { return };
        let held: usize = self.written.values().map(Vec::len).sum();
        let bytes = bytes.filter(|bytes| held.saturating_add(bytes.len()) <= MOST_WRITTEN);
        match (self.written.get_mut(&writer), bytes) {
            (Some(written), Some(bytes)) => written.extend_from_slice(&bytes),
            _ => {
                self.written.remove(&writer);
            }
        }
    }
}

/// A question in one line.
pub(super) fn question(import: &str, arguments: &[Value]) -> String {
    let arguments: Vec<String> = arguments.iter().map(Value::to_string).collect();
    format!("{import}({})", arguments.join(", "))
}
