//! An answer, built by what it is meant to be.

use crate::{Blob, Error};
use serde::Serialize;

/// An answer. Of a 200 the host makes ETag and length, and answers HEAD, Range and conditional requests by itself.
pub struct Response {
    /// 200 to 399; a refusal is a [`Failure`](crate::Failure).
    pub status: u16,
    /// Header fields; names in lower case.
    pub headers: Vec<(String, String)>,
    /// What it carries.
    pub content: Content,
    /// When what is served was last changed, in ms since 1970: `Last-Modified`.
    pub modified: Option<u64>,
}

/// What an answer carries.
pub enum Content {
    /// Nothing.
    None,
    /// Bytes, at most 1 MiB: what is larger is a blob, made with a [`Writer`](crate::Writer).
    Inline(Vec<u8>),
    /// A blob, whole or a slice.
    Blob(Blob),
}

impl Response {
    /// An answer of this status without content.
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), content: Content::None, modified: None }
    }

    /// 200 without content.
    pub fn ok() -> Self {
        Self::status(200)
    }

    /// 201 without content.
    pub fn created() -> Self {
        Self::status(201)
    }

    /// 202 without content.
    pub fn accepted() -> Self {
        Self::status(202)
    }

    /// 204.
    pub fn no_content() -> Self {
        Self::status(204)
    }

    /// 302 to this location: absolute, or a path as the client is to read it.
    pub fn redirect(location: impl Into<String>) -> Self {
        Self::status(302).header("location", location)
    }

    /// A blob as `application/octet-stream`.
    pub fn blob(blob: Blob) -> Self {
        Self::ok().content_type("application/octet-stream").content(Content::Blob(blob))
    }

    /// Bytes as `application/octet-stream`, at most 1 MiB.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self::ok().content_type("application/octet-stream").content(Content::Inline(bytes.into()))
    }

    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::bytes(text.into()).content_type("text/plain; charset=utf-8")
    }

    /// A page for people.
    pub fn html(page: impl Into<String>) -> Self {
        Self::bytes(page.into()).content_type("text/html; charset=utf-8")
    }

    /// An XML document.
    pub fn xml(document: impl Into<String>) -> Self {
        Self::bytes(document.into()).content_type("application/xml")
    }

    /// A JSON document.
    ///
    /// # Errors
    /// [`Error::Other`] when it cannot be written as JSON.
    pub fn json(value: &impl Serialize) -> Result<Self, Error> {
        Ok(Self::bytes(serde_json::to_vec(value)?).content_type("application/json"))
    }

    /// Another status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Other content.
    pub fn content(mut self, content: Content) -> Self {
        self.content = content;
        self
    }

    /// Its media type, in place of the one it has.
    pub fn content_type(mut self, media_type: impl Into<String>) -> Self {
        self.headers.retain(|(name, _)| name != "content-type");
        self.header("content-type", media_type)
    }

    /// What is served under this address never changes: clients may keep it for a year.
    pub fn immutable(self) -> Self {
        self.header("cache-control", "private, max-age=31536000, immutable")
    }

    /// It may change at any time: clients ask again whenever they use it.
    pub fn revalidate(self) -> Self {
        self.header("cache-control", "no-cache")
    }

    /// When what is served was last changed, in ms since 1970.
    pub fn modified(mut self, at: u64) -> Self {
        self.modified = Some(at);
        self
    }

    /// One more header field; `name` in lower case, the value visible ASCII.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}
