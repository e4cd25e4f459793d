//! Collects a JSON text for each file, in any order, and later writes the texts grouped by version.
//! Texts that are too long for memory go to a blob of the host until then.

use crate::index::key_of;
use packhouse_sdk::{Blob, Context, Error, Output, Writer};
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum bytes of texts in memory.
const HELD: usize = 1 << 20;

/// A collection of texts about files.
pub(crate) struct FileEntries<'a> {
    cx: &'a Context,
    writer: Option<Writer>,
    held: String,
    /// Bytes of all texts together.
    length: u64,
    /// Positions of each version's texts, by the version's key.
    ranges: BTreeMap<String, Vec<TextRange>>,
}

/// Start and end of adjacent texts of one version.
type TextRange = (u64, u64);

impl<'a> FileEntries<'a> {
    pub(crate) fn new(cx: &'a Context) -> Self {
        Self { cx, writer: None, held: String::new(), length: 0, ranges: BTreeMap::new() }
    }

    /// Adds the text about a file of this version.
    pub(crate) fn add(&mut self, version: &str, entry: &Value) -> Result<(), Error> {
        let text = format!(",{entry}");
        let (start, end) = (self.length, self.length + text.len() as u64);
        let ranges = self.ranges.entry(key_of(version)).or_default();
        match ranges.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => ranges.push((start, end)),
        }
        self.length = end;
        self.held.push_str(&text);
        if self.held.len() > HELD { self.hand_over() } else { Ok(()) }
    }

    fn hand_over(&mut self) -> Result<(), Error> {
        let held = std::mem::take(&mut self.held);
        self.writer.get_or_insert_with(|| self.cx.writer()).write(held.as_bytes())
    }

    /// Ends the collection, and returns the texts by version.
    pub(crate) fn by_version(mut self) -> Result<EntriesByVersion, Error> {
        if self.writer.is_some() {
            self.hand_over()?;
        }
        let blob = self.writer.map(Writer::finish).transpose()?;
        Ok(EntriesByVersion { blob, held: self.held, ranges: self.ranges })
    }
}

/// Collected texts, ready to be written by version.
pub(crate) struct EntriesByVersion {
    /// All texts, if they were too long for memory. Otherwise `held` contains all texts.
    blob: Option<Blob>,
    held: String,
    ranges: BTreeMap<String, Vec<TextRange>>,
}

impl EntriesByVersion {
    /// Writes the texts of a version as a JSON list.
    pub(crate) fn write(&self, version: &str, out: &mut Output<'_>) -> Result<(), Error> {
        out.push("[")?;
        let ranges = self.ranges.get(&key_of(version)).map_or(&[][..], Vec::as_slice);
        for (at, (start, end)) in ranges.iter().enumerate() {
            // Each text begins with a comma, which the first entry of a list must not have.
            let start = start + u64::from(at == 0);
            match &self.blob {
                Some(blob) => out.append(&blob.slice(start, end - start)?)?,
                None => out.push(self.held.get(start as usize..*end as usize).unwrap_or_default())?,
            }
        }
        out.push("]")
    }
}
