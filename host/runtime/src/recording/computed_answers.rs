//! Answers that a replay computes itself if the recording has none. These answers state facts about
//! the request and its repositories, or belong to host calls that only change a handle.

use serde_json::{Value, json};

use super::file::{RecordedAnswer, RecordedRepository};
use super::player::Player;
use super::trace_value::{TraceValue, TraceWriter, bytes, handle};

/// Interfaces and resources whose functions return nothing.
const SILENT: [&str; 4] = ["http.intent", "http.response-options", "records.transaction", "upstream.fetch"];

impl Player {
    /// Returns the answer, or none if only the host of the recorded call could know it.
    pub(super) fn computed(&mut self, import: &str, arguments: &[Value]) -> Option<RecordedAnswer> {
        let (of, function) = import.rsplit_once('.')?;
        let value = match (of, function) {
            ("http.request", _) => self.of_request(function)?,
            ("records.repository", "begin") => json!({"transaction": self.new_handle()}),
            ("records.repository", _) => {
                let repository = self.repository(handle(arguments.first()?, "repository")?)?;
                match function {
                    "name" => json!(repository.name),
                    "kind" => json!(repository.kind),
                    "settings" => json!(repository.settings),
                    _ => return None,
                }
            }
            ("records.transaction", "commit") | ("upstream.fetch", "start") => return None,
            (_, "new") => json!({of.rsplit('.').next().unwrap_or(of): self.new_handle()}),
            ("host", "log")
            | ("upstream", "leave_out")
            | ("blobs.writer", "write" | "append" | "write_parts")
            | ("upstream.reply", "expect") => Value::Null,
            ("host", "now") => json!(self.recorded_at()),
            ("blobs.writer", "finish") | ("memo.making", "finish" | "finish_noted") => {
                json!({"blob": self.new_handle()})
            }
            ("memo", "find") => Value::Null,
            ("memo", "find_noted") => {
                json!(arguments.get(1)?.as_array()?.iter().map(|_| Value::Null).collect::<Vec<_>>())
            }
            ("memo.making", "start") => json!({"making": self.new_handle()}),
            ("blobs.blob", _) => self.of_blob(function, arguments)?,
            _ if SILENT.contains(&of) => Value::Null,
            _ => return None,
        };
        Some(RecordedAnswer::Ok(value))
    }

    fn of_request(&self, function: &str) -> Option<Value> {
        let request = self.request();
        let pair = |(name, value): &(String, String)| json!({"name": name, "value": value});
        Some(match function {
            "method" => json!(request.method),
            "claim" => json!(request.claim),
            "path" => json!(request.path),
            "query" => json!(request.query),
            "headers" => Value::Array(request.headers.iter().map(pair).collect()),
            "address" => json!(request.address),
            "caller" => json!(request.caller),
            // The recorded component did not call `moved`, so the answer is unknown. False is
            // almost always right, because few publishes are moves.
            "moved" => json!(false),
            _ => return None,
        })
    }

    fn repository(&self, number: u32) -> Option<&RecordedRepository> {
        let call = &self.call;
        call.target.iter().chain(&call.others).find(|repository| repository.handle == number)
    }

    /// Answers for a blob that the guest wrote itself.
    fn of_blob(&self, function: &str, arguments: &[Value]) -> Option<Value> {
        let written = self.written(handle(arguments.first()?, "blob")?)?;
        match function {
            "size" => Some(json!(written.len())),
            "read" => {
                let number = |at: usize| usize::try_from(arguments.get(at)?.as_u64()?).ok();
                let from = number(1)?.min(written.len());
                let until = from.saturating_add(number(2)?).min(written.len());
                Some(written.get(from..until)?.to_vec().write(&mut TraceWriter::replaying()))
            }
            _ => None,
        }
    }

    /// Prepares an answer for display: the written bytes replace their handle.
    pub(super) fn displayed(&self, answer: &Value) -> Value {
        let mut displayed = answer.clone();
        let content = displayed.get_mut("ok").and_then(|response| response.get_mut("content"));
        if let Some(content) = content
            && let Some(written) =
                content.get("blob").and_then(|blob| handle(blob, "blob")).and_then(|blob| self.written(blob))
        {
            *content = json!({"written": bytes(written)});
        }
        displayed
    }
}
