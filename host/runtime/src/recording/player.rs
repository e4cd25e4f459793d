//! Answers for a replayed call. They come from the recording, host call by host call. After the
//! first host call that differs, the replay continues as far as it can, so that a fixed component
//! reaches its answer. The player then uses the recorded answer of an equal host call elsewhere, or
//! computes answers that need no storage and no other system (`computed_answers.rs`).

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::file::{RecordedAnswer, RecordedCall, RecordedImport, RecordedRequest};
use super::trace_value::{as_bytes, handle};

/// Most bytes that are collected from a guest's writes to display its answer.
const MOST_WRITTEN: usize = 16 << 20;

/// First difference between a replay and its recording.
#[derive(Clone, Debug, PartialEq)]
pub enum Difference {
    /// The replay made a host call that differs from the recorded one.
    Import {
        /// Number of earlier host calls in this call.
        place: usize,
        /// The recorded host call. None if the recorded call ended there.
        recorded: Option<RecordedImport>,
        import: String,
        arguments: Vec<Value>,
    },
    /// The replay ended where the recording has a further host call.
    Ended {
        /// Number of earlier host calls in this call.
        place: usize,
        recorded: RecordedImport,
    },
    Outcome,
}

/// Source of answers for a replayed call.
pub(crate) struct Player {
    request: RecordedRequest,
    recorded_at: u64,
    pub(super) call: RecordedCall,
    /// Index of the next recorded host call.
    place: usize,
    /// Number of host calls so far.
    calls: usize,
    pub(super) difference: Option<Difference>,
    /// Indexes of recorded host calls with the same import and arguments.
    known: HashMap<String, Vec<usize>>,
    /// True if the host ended the recorded call at the latest host call. The replay ends there too.
    pub(super) is_stopped: bool,
    /// The host call that could not be answered.
    pub(super) unanswered: Option<String>,
    pub(super) answer: Option<Value>,
    next_handle: u32,
    /// Known bytes that were written, by handle of a writer or blob.
    written: BTreeMap<u32, Vec<u8>>,
}

impl Player {
    /// Prepares a replay of the calls of one request. `highest` is the highest handle of the
    /// recording.
    pub(super) fn new(request: RecordedRequest, recorded_at: u64, highest: u32) -> Player {
        Player {
            request,
            recorded_at,
            call: RecordedCall::default(),
            place: 0,
            calls: 0,
            difference: None,
            known: HashMap::new(),
            is_stopped: false,
            unanswered: None,
            answer: None,
            next_handle: highest,
            written: BTreeMap::new(),
        }
    }

    pub(super) fn begin(&mut self, call: RecordedCall) {
        self.known.clear();
        for (place, host_call) in call.imports.iter().enumerate() {
            self.known
                .entry(host_call_text(&host_call.import, &host_call.arguments))
                .or_default()
                .push(place);
        }
        (self.call, self.place, self.calls) = (call, 0, 0);
        (self.is_stopped, self.unanswered, self.answer) = (false, None, None);
    }

    pub(super) fn answered(&mut self, answer: Value) {
        self.answer = Some(answer);
    }

    /// Answers a host call of the guest.
    pub(super) fn ask(&mut self, import: String, arguments: Vec<Value>) -> RecordedAnswer {
        let answer = self.answer_to(&import, &arguments);
        self.calls += 1;
        if let RecordedAnswer::Ok(value) = &answer {
            self.note_written(&import, &arguments, value);
        }
        answer
    }

    fn answer_to(&mut self, import: &str, arguments: &[Value]) -> RecordedAnswer {
        let recorded = self.call.imports.get(self.place);
        if self.difference.is_none() {
            if let Some(recorded) = recorded.filter(|it| it.import == import && it.arguments == arguments) {
                let answer = recorded.answer.clone();
                self.place += 1;
                return self.stopping(answer);
            }
            self.difference = Some(Difference::Import {
                place: self.calls,
                recorded: recorded.cloned(),
                import: import.to_owned(),
                arguments: arguments.to_vec(),
            });
        }
        if let Some(answer) = self.recorded_elsewhere(import, arguments) {
            return answer;
        }
        if let Some(answer) = self.computed(import, arguments) {
            return answer;
        }
        self.unanswered = Some(host_call_text(import, arguments));
        RecordedAnswer::Stopped(format!(
            "the recording has no answer to {}",
            host_call_text(import, arguments)
        ))
    }

    /// Ends the replay where the host ended the recorded call.
    fn stopping(&mut self, answer: Option<RecordedAnswer>) -> RecordedAnswer {
        let answer = answer.unwrap_or_else(|| RecordedAnswer::Stopped("the call ended here".to_owned()));
        self.is_stopped = matches!(answer, RecordedAnswer::Stopped(_));
        answer
    }

    /// Returns the recorded answer of an equal host call: the next one after the current position,
    /// or else the last one before it.
    fn recorded_elsewhere(&mut self, import: &str, arguments: &[Value]) -> Option<RecordedAnswer> {
        let places = self.known.get(&host_call_text(import, arguments))?;
        let place = places.iter().find(|&&place| place >= self.place).or(places.last())?;
        let answer = self.call.imports.get(*place)?.answer.clone()?;
        if *place >= self.place {
            self.place = place + 1;
        }
        (!matches!(answer, RecordedAnswer::Stopped(_))).then_some(answer)
    }

    /// Compares the ended call with the recording.
    pub(super) fn end(&mut self, is_same_outcome: bool) {
        if self.difference.is_some() {
            return;
        }
        self.difference = match self.call.imports.get(self.place) {
            Some(recorded) => Some(Difference::Ended { place: self.calls, recorded: recorded.clone() }),
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

    /// Returns the known bytes of a writer or blob.
    pub(super) fn written(&self, handle: u32) -> Option<&[u8]> {
        self.written.get(&handle).map(Vec::as_slice)
    }

    /// Collects the bytes that the guest writes, so that its answer can be displayed.
    fn note_written(&mut self, import: &str, arguments: &[Value], answer: &Value) {
        let argument = |at: usize, kind: &str| arguments.get(at).and_then(|value| handle(value, kind));
        match import {
            "blobs.writer.new" => {
                if let Some(writer) = handle(answer, "writer") {
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
                if let (Some(blob), Some(bytes)) = (handle(answer, "blob"), bytes) {
                    self.written.insert(blob, bytes);
                }
            }
            "memo.making.finish" | "memo.making.finish_noted" => {
                let bytes = arguments.last().and_then(as_bytes);
                if let (Some(blob), Some(bytes)) = (handle(answer, "blob"), bytes) {
                    self.written.insert(blob, bytes);
                }
            }
            _ => {}
        }
    }

    /// Returns a section of written bytes.
    fn section(&self, section: &Value) -> Option<Vec<u8>> {
        let written = self.written.get(&handle(section.get("of")?, "blob")?)?;
        let number = |of: &str| usize::try_from(section.get(of)?.as_u64()?).ok();
        let from = number("offset")?;
        written.get(from..from.checked_add(number("length")?)?).map(<[u8]>::to_vec)
    }

    /// Appends bytes to a writer. Unknown bytes make the whole writer unknown.
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

/// A host call with its arguments in one line.
pub(super) fn host_call_text(import: &str, arguments: &[Value]) -> String {
    let arguments: Vec<String> = arguments.iter().map(Value::to_string).collect();
    format!("{import}({})", arguments.join(", "))
}
