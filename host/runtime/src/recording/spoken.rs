//! How values of the contract stand in a recording: as JSON that a person can read. Bytes are `{"text": …}` where they are UTF-8, else
//! `{"base64": …}`; a handle is `{"blob": 7}`, by a number that no other handle of the recording has.

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

/// A value that goes over the contract's border.
pub(crate) trait Spoken {
    /// As it stands in a recording.
    fn write(&self, to: &mut Writing) -> Value;

    /// What stands there; none where that is something else.
    fn read(value: &Value) -> Option<Self>
    where
        Self: Sized;

    /// A list of them.
    fn write_all(items: &[Self], to: &mut Writing) -> Value
    where
        Self: Sized,
    {
        Value::Array(items.iter().map(|item| item.write(to)).collect())
    }

    /// As [`read`](Spoken::read), of a list of them.
    fn read_all(value: &Value) -> Option<Vec<Self>>
    where
        Self: Sized,
    {
        value.as_array()?.iter().map(Self::read).collect()
    }
}

/// What is written: how handles are numbered, and how many bytes it has come to.
#[derive(Default)]
pub(crate) struct Writing {
    /// The numbers of handles, by kind and by what the host's table knows them as; none where handles are numbers already.
    numbers: Option<HashMap<(&'static str, u32), u32>>,
    next: u32,
    /// Whether a handle that is written is a new one, which the table may have given the place of one that is gone.
    pub(crate) gives: bool,
    /// Bytes of texts and the like that were written.
    pub(crate) bytes: usize,
    /// From so many on nothing is copied any more.
    pub(crate) most: usize,
}

impl Writing {
    /// Of a call that is recorded, up to so many bytes.
    pub(super) fn recording(most: usize) -> Writing {
        Writing { numbers: Some(HashMap::new()), most, ..Writing::default() }
    }

    /// Of a call that is replayed, whose handles are known by their numbers.
    pub(super) fn replaying() -> Writing {
        Writing { most: usize::MAX, ..Writing::default() }
    }

    /// The number of a handle.
    pub(super) fn number(&mut self, kind: &'static str, rep: u32) -> u32 {
        let Some(numbers) = &mut self.numbers else { return rep };
        if let (false, Some(number)) = (self.gives, numbers.get(&(kind, rep))) {
            return *number;
        }
        self.next = self.next.saturating_add(1);
        numbers.insert((kind, rep), self.next);
        self.next
    }

    /// Counts bytes; false where they are too many to be copied.
    fn takes(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes).saturating_add(16);
        self.bytes <= self.most
    }
}

/// Bytes as they stand in a recording.
pub(super) fn bytes(value: &[u8]) -> Value {
    match std::str::from_utf8(value) {
        Ok(text) => json!({"text": text}),
        Err(_) => json!({"base64": STANDARD.encode(value)}),
    }
}

/// Bytes that stand in a recording.
pub(super) fn as_bytes(value: &Value) -> Option<Vec<u8>> {
    if let Some(text) = value.get("text") {
        return Some(text.as_str()?.as_bytes().to_vec());
    }
    STANDARD.decode(value.get("base64")?.as_str()?).ok()
}

/// The number of the handle that stands in a recording.
pub(super) fn handle(value: &Value, kind: &str) -> Option<u32> {
    value.get(kind)?.as_u64().and_then(|number| u32::try_from(number).ok())
}

impl Spoken for u8 {
    fn write(&self, to: &mut Writing) -> Value {
        to.takes(1);
        json!(self)
    }

    fn read(value: &Value) -> Option<u8> {
        u8::try_from(value.as_u64()?).ok()
    }

    fn write_all(items: &[u8], to: &mut Writing) -> Value {
        if to.takes(items.len()) { bytes(items) } else { Value::Null }
    }

    fn read_all(value: &Value) -> Option<Vec<u8>> {
        as_bytes(value)
    }
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Spoken for $number {
            fn write(&self, to: &mut Writing) -> Value {
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

impl Spoken for bool {
    fn write(&self, to: &mut Writing) -> Value {
        to.takes(1);
        json!(self)
    }

    fn read(value: &Value) -> Option<bool> {
        value.as_bool()
    }
}

impl Spoken for () {
    fn write(&self, to: &mut Writing) -> Value {
        to.takes(0);
        Value::Null
    }

    fn read(value: &Value) -> Option<()> {
        value.as_null()
    }
}

/// Only ever written.
impl Spoken for &str {
    fn write(&self, to: &mut Writing) -> Value {
        if to.takes(self.len()) { json!(self) } else { Value::Null }
    }

    fn read(_: &Value) -> Option<Self> {
        None
    }
}

impl Spoken for String {
    fn write(&self, to: &mut Writing) -> Value {
        self.as_str().write(to)
    }

    fn read(value: &Value) -> Option<String> {
        value.as_str().map(str::to_owned)
    }
}

impl<T: Spoken> Spoken for Vec<T> {
    fn write(&self, to: &mut Writing) -> Value {
        T::write_all(self, to)
    }

    fn read(value: &Value) -> Option<Vec<T>> {
        T::read_all(value)
    }
}

impl<T: Spoken> Spoken for Option<T> {
    fn write(&self, to: &mut Writing) -> Value {
        self.as_ref().map_or(Value::Null, |value| value.write(to))
    }

    fn read(value: &Value) -> Option<Option<T>> {
        if value.is_null() { Some(None) } else { T::read(value).map(Some) }
    }
}

impl<A: Spoken, B: Spoken> Spoken for (A, B) {
    fn write(&self, to: &mut Writing) -> Value {
        Value::Array(vec![self.0.write(to), self.1.write(to)])
    }

    fn read(value: &Value) -> Option<(A, B)> {
        let [one, other] = value.as_array()?.as_slice() else { return None };
        Some((A::read(one)?, B::read(other)?))
    }
}

/// What a call answered: `{"ok": …}`, or `{"refused": …}` where it is a refusal in the format's words.
impl<T: Spoken> Spoken for Result<T, Failure> {
    fn write(&self, to: &mut Writing) -> Value {
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

/// What stands behind a handle.
trait Kind: 'static {
    /// As recordings call it.
    const NAME: &'static str;
}

macro_rules! kinds {
    ($($rep:ty as $name:literal),* $(,)?) => {$(
        impl Kind for $rep {
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

impl<T: Kind> Spoken for Resource<T> {
    fn write(&self, to: &mut Writing) -> Value {
        to.takes(8);
        let number = to.number(T::NAME, self.rep());
        Value::Object(Map::from_iter([(T::NAME.to_owned(), json!(number))]))
    }

    fn read(value: &Value) -> Option<Resource<T>> {
        handle(value, T::NAME).map(Resource::new_own)
    }
}

/// Records stand as objects of their fields.
macro_rules! records {
    ($($record:ty { $($field:ident),* $(,)? })*) => {$(
        impl crate::recording::spoken::Spoken for $record {
            fn write(&self, to: &mut crate::recording::spoken::Writing) -> serde_json::Value {
                let mut fields = serde_json::Map::new();
                $(fields.insert(stringify!($field).replace('_', "-"), self.$field.write(to));)*
                serde_json::Value::Object(fields)
            }

            fn read(value: &serde_json::Value) -> Option<Self> {
                Some(Self {
                    $($field: crate::recording::spoken::Spoken::read(value.get(stringify!($field).replace('_', "-"))?)?,)*
                })
            }
        }
    )*};
}

/// Cases stand as their name, or as an object of it with what they hold.
macro_rules! variants {
    ($($variant:ty { $($bare:ident),*; $($full:ident),* })*) => {$(
        impl crate::recording::spoken::Spoken for $variant {
            fn write(&self, _to: &mut crate::recording::spoken::Writing) -> serde_json::Value {
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
                    return crate::recording::spoken::Spoken::read(held).map(Self::$full);
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

    fn back<T: Spoken>(value: &T) -> (Value, Option<T>) {
        let written = value.write(&mut Writing::replaying());
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
    fn a_handle_has_a_number_that_no_other_has() {
        let mut to = Writing::recording(usize::MAX);
        let blob = |rep| Resource::<BlobRep>::new_own(rep);
        to.gives = true;
        assert_eq!(blob(3).write(&mut to), json!({"blob": 1}));
        to.gives = false;
        assert_eq!(blob(3).write(&mut to), json!({"blob": 1}), "the same");
        assert_eq!(Resource::<WriterRep>::new_own(3).write(&mut to), json!({"writer": 2}));
        to.gives = true;
        assert_eq!(blob(3).write(&mut to), json!({"blob": 3}), "another in the same place");
    }

    #[test]
    fn nothing_is_copied_past_the_bound() {
        let mut to = Writing::recording(100);
        assert!(vec![1_u8; 50].write(&mut to).is_object());
        assert!(vec![1_u8; 50].write(&mut to).is_null());
        assert!(to.bytes > 100);
    }
}
