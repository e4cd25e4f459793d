//! Texts about files, collected in whatever order the files come and written version by version. Where they are many they lie with the
//! host meanwhile.

use crate::index::key_of;
use packhouse_sdk::{Blob, Context, Error, Output, Writer};
use serde_json::Value;
use std::collections::BTreeMap;

/// Bytes of texts that are held here.
const HELD: usize = 1 << 20;

/// Texts that are collected.
pub(crate) struct FileEntries<'a> {
    cx: &'a Context,
    writer: Option<Writer>,
    held: String,
    /// Bytes of all.
    length: u64,
    /// Where those of each version lie, by its key.
    places: BTreeMap<String, Vec<Place>>,
}

/// Texts that stand next to each other: where they begin and end.
type Place = (u64, u64);

impl<'a> FileEntries<'a> {
    pub(crate) fn new(cx: &'a Context) -> Self {
        Self { cx, writer: None, held: String::new(), length: 0, places: BTreeMap::new() }
    }

    /// Adds what is to be said of a file of this version.
    pub(crate) fn add(&mut self, version: &str, entry: &Value) -> Result<(), Error> {
        let text = format!(",{entry}");
        let (start, end) = (self.length, self.length + text.len() as u64);
        let places = self.places.entry(key_of(version)).or_default();
        match places.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => places.push((start, end)),
        }
        self.length = end;
        self.held.push_str(&text);
        if self.held.len() > HELD { self.hand_over() } else { Ok(()) }
    }

    fn hand_over(&mut self) -> Result<(), Error> {
        let held = std::mem::take(&mut self.held);
        self.writer.get_or_insert_with(|| self.cx.writer()).write(held.as_bytes())
    }

    /// Ends the collecting.
    pub(crate) fn by_version(mut self) -> Result<EntriesByVersion, Error> {
        if self.writer.is_some() {
            self.hand_over()?;
        }
        let blob = self.writer.map(Writer::finish).transpose()?;
        Ok(EntriesByVersion { blob, held: self.held, places: self.places })
    }
}

/// Texts that were collected.
pub(crate) struct EntriesByVersion {
    /// Where they lie, if they are not held here.
    blob: Option<Blob>,
    held: String,
    places: BTreeMap<String, Vec<Place>>,
}

impl EntriesByVersion {
    /// Writes those of a version as a list.
    pub(crate) fn write(&self, version: &str, out: &mut Output<'_>) -> Result<(), Error> {
        out.push("[")?;
        let places = self.places.get(&key_of(version)).map_or(&[][..], Vec::as_slice);
        for (at, (start, end)) in places.iter().enumerate() {
            // Before the first there is no comma.
            let start = start + u64::from(at == 0);
            match &self.blob {
                Some(blob) => out.append(&blob.slice(start, end - start)?)?,
                None => out.push(self.held.get(start as usize..*end as usize).unwrap_or_default())?,
            }
        }
        out.push("]")
    }
}
