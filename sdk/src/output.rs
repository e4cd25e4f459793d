//! A document that is put together piece by piece, so that no more than a part of it is in the guest's memory.

use crate::{Blob, Content, Context, Error, Writer};
use serde::Serialize;

/// Bytes that need not be a blob, and that are handed to one at a time.
const INLINE: usize = 1 << 20;

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
    buffer: Vec<u8>,
    writer: Option<Writer>,
}

impl<'a> Output<'a> {
    /// An empty one.
    pub fn new(cx: &'a Context) -> Self {
        Self { cx, buffer: Vec::new(), writer: None }
    }

    /// Adds text as it is.
    ///
    /// # Errors
    /// The host's, when the blob cannot be written.
    pub fn push(&mut self, text: &str) -> Result<(), Error> {
        if self.buffer.len() + text.len() > INLINE {
            self.writer.get_or_insert_with(|| self.cx.writer()).write(&self.buffer)?;
            self.buffer.clear();
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
        let writer = self.writer.get_or_insert_with(|| self.cx.writer());
        if !self.buffer.is_empty() {
            writer.write(&self.buffer)?;
            self.buffer.clear();
        }
        writer.append(blob)
    }

    /// All of it.
    ///
    /// # Errors
    /// As [`Output::push`].
    pub fn finish(self) -> Result<Content, Error> {
        match self.writer {
            None => Ok(Content::Inline(self.buffer)),
            Some(mut writer) => {
                writer.write(&self.buffer)?;
                Ok(Content::Blob(writer.finish()?))
            }
        }
    }
}
