//! Form of contract values in a recording: JSON that a person can read. Bytes are `{"text": …}` if
//! they are UTF-8, or else `{"base64": …}`. A handle is `{"blob": 7}`, with a number that no other
//! handle of the recording has.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use wasmtime::component::Resource;

use crate::bindings::packhouse::format::http::Failure;
use crate::state::blobs::{BlobRep, UploadRep, WriterRep};
use crate::state::http::{IntentRep, RequestRep, ResponseOptionsRep};
use crate::state::memo::MakingRep;
use crate::state::records::RepositoryRep;
use crate::state::transaction::TransactionRep;
use crate::state::upstream::{FetchRep, ReplyRep};

/// A value that crosses the border of the contract.
pub(crate) trait TraceValue {
    /// Converts the value to its recorded form.
    fn write(&self, to: &mut TraceWriter) -> Value;

    /// Reads the recorded form. Returns none if the JSON has another form.
    fn read(value: &Value) -> Option<Self>
    where
        Self: Sized;

    fn write_all(items: &[Self], to: &mut TraceWriter) -> Value
    where
        Self: Sized,
    {
        Value::Array(items.iter().map(|item| item.write(to)).collect())
    }

    /// Reads a list, like [`read`](TraceValue::read).
    fn read_all(value: &Value) -> Option<Vec<Self>>
    where
        Self: Sized,
    {
        value.as_array()?.iter().map(Self::read).collect()
    }
}

/// State of a writer: numbers of handles, and the number of written bytes.
#[derive(Default)]
pub(crate) struct TraceWriter {
    /// Numbers of handles, by kind and by index in the host's table. None in a replay, where each
    /// handle is its number.
    numbers: Option<HashMap<(&'static str, u32), u32>>,
    next: u32,
    /// True while the writer writes an answer, whose handles are new. A new handle may reuse the
    /// table index of a dropped one.
    pub(crate) gives: bool,
    /// Written bytes of strings and other values.
    pub(crate) bytes: usize,
    /// Limit of bytes above which nothing is copied.
    pub(crate) most: usize,
}

impl TraceWriter {
    /// Writer for a recorded call, with a limit in bytes.
    pub(super) fn recording(most: usize) -> TraceWriter {
        TraceWriter { numbers: Some(HashMap::new()), most, ..TraceWriter::default() }
    }

    /// Writer for a replayed call, whose handles are known by their numbers.
    pub(super) fn replaying() -> TraceWriter {
        TraceWriter { most: usize::MAX, ..TraceWriter::default() }
    }

    pub(super) fn number(&mut self, kind: &'static str, rep: u32) -> u32 {
        let Some(numbers) = &mut self.numbers else { return rep };
        if let (false, Some(number)) = (self.gives, numbers.get(&(kind, rep))) {
            return *number;
        }
        self.next = self.next.saturating_add(1);
        numbers.insert((kind, rep), self.next);
        self.next
    }

    /// Counts bytes. Returns false if there are too many to copy.
    fn takes(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes).saturating_add(16);
        self.bytes <= self.most
    }
}

/// Converts bytes to their recorded form.
pub(super) fn bytes(value: &[u8]) -> Value {
    match std::str::from_utf8(value) {
        Ok(text) => json!({"text": text}),
        Err(_) => json!({"base64": STANDARD.encode(value)}),
    }
}

/// Reads bytes from their recorded form.
pub(super) fn as_bytes(value: &Value) -> Option<Vec<u8>> {
    if let Some(text) = value.get("text") {
        return Some(text.as_str()?.as_bytes().to_vec());
    }
    STANDARD.decode(value.get("base64")?.as_str()?).ok()
}

/// Reads the number of a recorded handle.
pub(super) fn handle(value: &Value, kind: &str) -> Option<u32> {
    value.get(kind)?.as_u64().and_then(|number| u32::try_from(number).ok())
}

impl TraceValue for u8 {
    fn write(&self, to: &mut TraceWriter) -> Value {
        to.takes(1);
        json!(self)
    }

    fn read(value: &Value) -> Option<u8> {
        u8::try_from(value.as_u64()?).ok()
    }

    fn write_all(items: &[u8], to: &mut TraceWriter) -> Value {
        if to.takes(items.len()) { bytes(items) } else { Value::Null }
    }

    fn read_all(value: &Value) -> Option<Vec<u8>> {
        as_bytes(value)
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl TraceValue for $number {
            fn write(&self, to: &mut TraceWriter) -> Value {
                to.takes(8);
                json!(self)
            }

            fn read(value: &Value) -> Option<$number> {
                <$number>::try_from(value.as_u64()?).ok()
            }
        }
    )*};
}

numbers!(u16, u32, u64);

impl TraceValue for bool {
    fn write(&self, to: &mut TraceWriter) -> Value {
        to.takes(1);
        json!(self)
    }

    fn read(value: &Value) -> Option<bool> {
        value.as_bool()
    }
}

impl TraceValue for () {
    fn write(&self, to: &mut TraceWriter) -> Value {
        to.takes(0);
        Value::Null
    }

    fn read(value: &Value) -> Option<()> {
        value.as_null()
    }
}

/// Can only be written, never read.
impl TraceValue for &str {
    fn write(&self, to: &mut TraceWriter) -> Value {
        if to.takes(self.len()) { json!(self) } else { Value::Null }
    }

    fn read(_: &Value) -> Option<Self> {
        None
    }
}

impl TraceValue for String {
    fn write(&self, to: &mut TraceWriter) -> Value {
        self.as_str().write(to)
    }

    fn read(value: &Value) -> Option<String> {
        value.as_str().map(str::to_owned)
    }
}

impl<T: TraceValue> TraceValue for Vec<T> {
    fn write(&self, to: &mut TraceWriter) -> Value {
        T::write_all(self, to)
    }

    fn read(value: &Value) -> Option<Vec<T>> {
        T::read_all(value)
    }
}

impl<T: TraceValue> TraceValue for Option<T> {
    fn write(&self, to: &mut TraceWriter) -> Value {
        self.as_ref().map_or(Value::Null, |value| value.write(to))
    }

    fn read(value: &Value) -> Option<Option<T>> {
        if value.is_null() { Some(None) } else { T::read(value).map(Some) }
    }
}

impl<A: TraceValue, B: TraceValue> TraceValue for (A, B) {
    fn write(&self, to: &mut TraceWriter) -> Value {
        Value::Array(vec![self.0.write(to), self.1.write(to)])
    }

    fn read(value: &Value) -> Option<(A, B)> {
        let [one, other] = value.as_array()?.as_slice() else { return None };
        Some((A::read(one)?, B::read(other)?))
    }
}

/// Result of a call: `{"ok": …}`, or `{"refused": …}` for a refusal in the format's words.
impl<T: TraceValue> TraceValue for Result<T, Failure> {
    fn write(&self, to: &mut TraceWriter) -> Value {
        match self {
            Ok(value) => json!({"ok": value.write(to)}),
            Err(failure) => json!({"refused": failure.write(to)}),
        }
    }

    fn read(value: &Value) -> Option<Self> {
        match value.get("refused") {
            Some(failure) => Failure::read(failure).map(Err),
            None => T::read(value.get("ok")?).map(Ok),
        }
    }
}

/// Type of the object behind a handle.
trait HandleKind: 'static {
    const NAME: &'static str;
}

macro_rules! kinds {
    ($($rep:ty as $name:literal),* $(,)?) => {$(
        impl HandleKind for $rep {
            const NAME: &'static str = $name;
        }
    )*};
}

kinds! {
    RequestRep as "request",
    IntentRep as "intent",
    ResponseOptionsRep as "response-options",
    BlobRep as "blob",
    WriterRep as "writer",
    UploadRep as "upload",
    MakingRep as "making",
    RepositoryRep as "repository",
    TransactionRep as "transaction",
    FetchRep as "fetch",
    ReplyRep as "reply",
}

impl<T: HandleKind> TraceValue for Resource<T> {
    fn write(&self, to: &mut TraceWriter) -> Value {
        to.takes(8);
        let number = to.number(T::NAME, self.rep());
        Value::Object(Map::from_iter([(T::NAME.to_owned(), json!(number))]))
    }

    fn read(value: &Value) -> Option<Resource<T>> {
        handle(value, T::NAME).map(Resource::new_own)
    }
}

/// Implements `TraceValue` for records, as objects of their fields.
macro_rules! records {
    ($($record:ty { $($field:ident),* $(,)? })*) => {$(
        impl crate::recording::trace_value::TraceValue for $record {
            fn write(&self, to: &mut crate::recording::trace_value::TraceWriter) -> serde_json::Value {
                let mut fields = serde_json::Map::new();
                $(fields.insert(stringify!($field).replace('_', "-"), self.$field.write(to));)*
                serde_json::Value::Object(fields)
            }

            fn read(value: &serde_json::Value) -> Option<Self> {
                Some(Self {
                    $($field: crate::recording::trace_value::TraceValue::read(value.get(stringify!($field).replace('_', "-"))?)?,)*
                })
            }
        }
    )*};
}

/// Implements `TraceValue` for variants, as a name or as an object with the name and the content.
macro_rules! variants {
    ($($variant:ty { $($bare:ident),*; $($full:ident),* })*) => {$(
        impl crate::recording::trace_value::TraceValue for $variant {
            fn write(&self, _to: &mut crate::recording::trace_value::TraceWriter) -> serde_json::Value {
                match self {
                    $(Self::$bare => serde_json::Value::String(stringify!($bare).to_ascii_lowercase()),)*
                    $(Self::$full(held) => {
                        let held = held.write(_to);
                        serde_json::Value::Object([(stringify!($full).to_ascii_lowercase(), held)].into_iter().collect())
                    })*
                }
            }

            fn read(value: &serde_json::Value) -> Option<Self> {
                $(if value.as_str().is_some_and(|name| name.eq_ignore_ascii_case(stringify!($bare))) {
                    return Some(Self::$bare);
                })*
                $(if let Some(held) = value.get(stringify!($full).to_ascii_lowercase()) {
                    return crate::recording::trace_value::TraceValue::read(held).map(Self::$full);
                })*
                None
            }
        }
    )*};
}

pub(super) use {records, variants};

#[cfg(test)]
mod tests {
    use super::*;

    fn back<T: TraceValue>(value: &T) -> (Value, Option<T>) {
        let written = value.write(&mut TraceWriter::replaying());
        let read = T::read(&written);
        (written, read)
    }

    #[test]
    fn values_are_read_back_as_they_were() {
        assert_eq!(back(&"a\u{0}ü".to_owned()).1, Some("a\u{0}ü".to_owned()));
        assert_eq!(back(&vec![0_u8, 255, 10]).1, Some(vec![0, 255, 10]));
        assert_eq!(back(&b"text".to_vec()), (json!({"text": "text"}), Some(b"text".to_vec())));
        assert_eq!(back(&Vec::<u8>::new()).1, Some(Vec::new()));
        assert_eq!(back(&Some(7_u64)).1, Some(Some(7)));
        assert_eq!(back(&None::<u64>).1, Some(None));
        assert_eq!(back(&vec![("a".to_owned(), "b".to_owned())]).1.unwrap().len(), 1);
        assert_eq!(back(&u64::MAX).1, Some(u64::MAX));
        assert_eq!(u16::read(&json!(70_000)), None);
    }

    #[test]
    fn each_handle_has_a_unique_number() {
        let mut to = TraceWriter::recording(usize::MAX);
        let blob = |rep| Resource::<BlobRep>::new_own(rep);
        to.gives = true;
        assert_eq!(blob(3).write(&mut to), json!({"blob": 1}));
        to.gives = false;
        assert_eq!(blob(3).write(&mut to), json!({"blob": 1}), "the same");
        assert_eq!(Resource::<WriterRep>::new_own(3).write(&mut to), json!({"writer": 2}));
        to.gives = true;
        assert_eq!(blob(3).write(&mut to), json!({"blob": 3}), "another with the same index");
    }

    #[test]
    fn nothing_is_copied_past_the_bound() {
        let mut to = TraceWriter::recording(100);
        assert!(vec![1_u8; 50].write(&mut to).is_object());
        assert!(vec![1_u8; 50].write(&mut to).is_null());
        assert!(to.bytes > 100);
    }
}
