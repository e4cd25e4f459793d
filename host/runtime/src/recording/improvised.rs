//! What a replay answers by itself, where the recording was not asked: what is told of the request and the repositories, and whatever
//! changes nothing but a handle of the call's own.

use serde_json::{Value, json};

use super::file::{RecordedAnswer, RecordedRepository};
use super::player::Player;
use super::spoken::{Spoken, Writing, bytes, handle};

/// Interfaces and resources whose functions answer nothing.
const SILENT: [&str; 4] = ["http.intent", "http.response-options", "records.transaction", "upstream.fetch"];

impl Player {
    /// The answer; none where only the host of the recorded call could have known.
    pub(super) fn improvised(&mut self, import: &str, arguments: &[Value]) -> Option<RecordedAnswer> {
        let (of, function) = import.rsplit_once('.')?;
        let told = match (of, function) {
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
        Some(RecordedAnswer::Ok(told))
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
            // A component that does not ask treats all publishes alike, and hardly any is a move.
            "moved" => json!(false),
            _ => return None,
        })
    }

    fn repository(&self, number: u32) -> Option<&RecordedRepository> {
        let call = &self.call;
        call.target.iter().chain(&call.others).find(|repository| repository.handle == number)
    }

    /// Of a blob that the guest wrote itself.
    fn of_blob(&self, function: &str, arguments: &[Value]) -> Option<Value> {
        let written = self.written(handle(arguments.first()?, "blob")?)?;
        match function {
            "size" => Some(json!(written.len())),
            "read" => {
                let number = |at: usize| usize::try_from(arguments.get(at)?.as_u64()?).ok();
                let from = number(1)?.min(written.len());
                let until = from.saturating_add(number(2)?).min(written.len());
                Some(written.get(from..until)?.to_vec().write(&mut Writing::replaying()))
            }
            _ => None,
        }
    }

    /// An answer to be shown: with what was written in place of the handle on it.
    pub(super) fn shown(&self, answer: &Value) -> Value {
        let mut shown = answer.clone();
        let content = shown.get_mut("ok").and_then(|response| response.get_mut("content"));
        if let Some(content) = content
            && let Some(written) =
                content.get("blob").and_then(|blob| handle(blob, "blob")).and_then(|blob| self.written(blob))
        {
            *content = json!({"written": bytes(written)});
        }
        shown
    }
}
