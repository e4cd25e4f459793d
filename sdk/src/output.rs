//! A document that is put together piece by piece, so that no more than a part of it is in the guest's memory.

use crate::host::HostWritten;
use crate::{Blob, Content, Context, Error, Section, Writer};
use serde::Serialize;

/// Bytes that need not be a blob, and that are handed to one at a time.
const INLINE: usize = 1 << 20;
/// Texts and sections that are handed over at one time: their list is bounded too.
const PARTS: usize = 20_000;

/// A document on its way to be a response's content: inline while it is small, else through a blob.
///
/// ```
/// use packhouse_sdk::{Content, Context, Error, Output};
///
/// fn names(cx: &Context, names: &[&str]) -> Result<Content, Error> {
///     let mut out = Output::new(cx);
///     for name in names {
///         out.json(name)?;
///         out.push("\n")?;
///     }
///     out.finish()
/// }
/// ```
pub struct Output<'a> {
    cx: &'a Context,
    /// What was added before the buffer and is not handed over yet.
    parts: Vec<Part>,
    /// Bytes of the texts among that.
    held: usize,
    buffer: Vec<u8>,
    writer: Option<Writer>,
}

enum Part {
    Text(Vec<u8>),
    Section(Section),
}

impl<'a> Output<'a> {
    /// An empty one.
    pub fn new(cx: &'a Context) -> Self {
        Self { cx, parts: Vec::new(), held: 0, buffer: Vec::new(), writer: None }
    }

    /// Adds text as it is.
    ///
    /// # Errors
    /// The host's, when the blob cannot be written.
    pub fn push(&mut self, text: &str) -> Result<(), Error> {
        if self.held + self.buffer.len() + text.len() > INLINE || self.parts.len() >= PARTS {
            self.hand_over()?;
        }
        self.buffer.extend_from_slice(text.as_bytes());
        Ok(())
    }

    /// Adds a value as JSON.
    ///
    /// # Errors
    /// [`Error::Other`] for a value that JSON cannot say; else as [`Output::push`].
    pub fn json(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        let text = serde_json::to_string(value)?;
        self.push(&text)
    }

    /// Adds a blob's bytes, without their passing through the guest's memory. What it is added to becomes a blob, however small.
    ///
    /// # Errors
    /// As [`Output::push`].
    pub fn append(&mut self, blob: &Blob) -> Result<(), Error> {
        self.hand_over()?;
        self.writer.get_or_insert_with(|| self.cx.writer()).append(blob)
    }

    /// Adds some of a piece, as [`append`](Self::append) does. All that is added in this way is handed over to the host together.
    pub fn add(&mut self, section: Section) {
        self.end_text();
        self.parts.push(Part::Section(section));
    }

    fn end_text(&mut self) {
        if !self.buffer.is_empty() {
            self.held += self.buffer.len();
            self.parts.push(Part::Text(std::mem::take(&mut self.buffer)));
        }
    }

    /// Hands over what was added.
    fn hand_over(&mut self) -> Result<(), Error> {
        self.end_text();
        if self.parts.is_empty() {
            return Ok(());
        }
        let writer = self.writer.get_or_insert_with(|| self.cx.writer());
        self.held = 0;
        let mut parts = std::mem::take(&mut self.parts);
        let written = parts.iter_mut().map(|part| match part {
            Part::Text(text) => HostWritten::Bytes(std::mem::take(text)),
            Part::Section(section) => section.written(),
        });
        writer.write_parts(written.collect())
    }

    /// All of it.
    ///
    /// # Errors
    /// As [`Output::push`].
    pub fn finish(mut self) -> Result<Content, Error> {
        if self.writer.is_none() && self.parts.is_empty() {
            return Ok(Content::Inline(self.buffer));
        }
        self.hand_over()?;
        match self.writer {
            None => Ok(Content::Inline(Vec::new())),
            Some(writer) => Ok(Content::Blob(writer.finish()?)),
        }
    }
}
