//! A JSON document that is put together piece by piece: inline while it is small, else through a blob.

use packhouse_sdk::{Content, Context, Error, Writer};
use serde::Serialize;

/// Bytes of an answer that need not be a blob.
const INLINE: usize = 1 << 20;

/// A document on its way.
pub(crate) struct Output<'a> {
    cx: &'a Context,
    buffer: Vec<u8>,
    writer: Option<Writer>,
}

impl<'a> Output<'a> {
    /// An empty one.
    pub(crate) fn new(cx: &'a Context) -> Self {
        Self { cx, buffer: Vec::new(), writer: None }
    }

    /// Adds text as it is.
    pub(crate) fn push(&mut self, text: &str) -> Result<(), Error> {
        if self.buffer.len() + text.len() > INLINE {
            self.writer.get_or_insert_with(|| self.cx.writer()).write(&self.buffer)?;
            self.buffer.clear();
        }
        self.buffer.extend_from_slice(text.as_bytes());
        Ok(())
    }

    /// Adds a value as JSON.
    pub(crate) fn json(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), Error> {
        let text = serde_json::to_string(value)?;
        self.push(&text)
    }

    /// All of it.
    pub(crate) fn finish(self) -> Result<Content, Error> {
        match self.writer {
            None => Ok(Content::Inline(self.buffer)),
            Some(mut writer) => {
                writer.write(&self.buffer)?;
                Ok(Content::Blob(writer.finish()?))
            }
        }
    }
}
