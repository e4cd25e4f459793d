//! Builder for a document of many parts. It holds only some of them in the plugin's memory.

use crate::host::HostWritten;
use crate::{Blob, Content, Context, Error, Section, Writer};
use serde::Serialize;

/// Number of bytes that are buffered before they are handed to the host.
const INLINE: usize = 1 << 20;
/// Number of texts and sections that are buffered before they are handed to the host.
const PARTS: usize = 20_000;

/// Builder for the content of a response. Small content becomes inline bytes, larger content a
/// blob.
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
    /// Parts that were added before the buffer and not yet handed to the host.
    parts: Vec<OutputPart>,
    /// Number of bytes of the texts among the parts.
    held: usize,
    buffer: Vec<u8>,
    writer: Option<Writer>,
}

enum OutputPart {
    Text(Vec<u8>),
    Section(Section),
}

impl<'a> Output<'a> {
    /// Creates an empty document.
    pub fn new(cx: &'a Context) -> Self {
        Self { cx, parts: Vec::new(), held: 0, buffer: Vec::new(), writer: None }
    }

    /// Adds text.
    ///
    /// # Errors
    /// The host's error if the blob cannot be written.
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
    /// [`Error::Other`] if the value cannot be written as JSON; otherwise the errors of
    /// [`Output::push`].
    pub fn json(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        let text = serde_json::to_string(value)?;
        self.push(&text)
    }

    /// Adds the bytes of a blob without passing them through the plugin's memory. The document then
    /// becomes a blob, however small it is.
    ///
    /// # Errors
    /// Fails like [`Output::push`].
    pub fn append(&mut self, blob: &Blob) -> Result<(), Error> {
        self.hand_over()?;
        self.writer.get_or_insert_with(|| self.cx.writer()).append(blob)
    }

    /// Adds a section of a piece, like [`append`](Self::append). The builder hands several sections
    /// to the host in one call.
    pub fn add(&mut self, section: Section) {
        self.end_text();
        self.parts.push(OutputPart::Section(section));
    }

    fn end_text(&mut self) {
        if !self.buffer.is_empty() {
            self.held += self.buffer.len();
            self.parts.push(OutputPart::Text(std::mem::take(&mut self.buffer)));
        }
    }

    /// Hands the buffered parts to the host.
    fn hand_over(&mut self) -> Result<(), Error> {
        self.end_text();
        if self.parts.is_empty() {
            return Ok(());
        }
        let writer = self.writer.get_or_insert_with(|| self.cx.writer());
        self.held = 0;
        let mut parts = std::mem::take(&mut self.parts);
        let written = parts.iter_mut().map(|part| match part {
            OutputPart::Text(text) => HostWritten::Bytes(std::mem::take(text)),
            OutputPart::Section(section) => section.written(),
        });
        writer.write_parts(written.collect())
    }

    /// Returns the whole document.
    ///
    /// # Errors
    /// Fails like [`Output::push`].
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
