//! Responses to requests.

use crate::{Blob, Error};
use serde::Serialize;

/// Response to a request. For a 200, the host adds ETag and length, and answers HEAD, Range and
/// conditional requests itself.
pub struct Response {
    /// Status, 200 to 399; a refusal is a [`Failure`](crate::Failure).
    pub status: u16,
    /// Header fields; names in lower case.
    pub headers: Vec<(String, String)>,
    /// Content of the response.
    pub content: Content,
    /// Time of the last change, as Unix time in ms, for `Last-Modified`.
    pub modified: Option<u64>,
}

/// Content of a response.
pub enum Content {
    /// No content.
    None,
    /// Bytes, at most 1 MiB. Write larger content to a blob with a [`Writer`](crate::Writer).
    Inline(Vec<u8>),
    /// A whole blob or a slice of one.
    Blob(Blob),
}

impl Response {
    /// Creates a response of this status without content.
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

    /// 302 to this location: an absolute address, or a path relative to the client's request.
    pub fn redirect(location: impl Into<String>) -> Self {
        Self::status(302).header("location", location)
    }

    /// 200 with a blob as `application/octet-stream`.
    pub fn blob(blob: Blob) -> Self {
        Self::ok().content_type("application/octet-stream").content(Content::Blob(blob))
    }

    /// 200 with bytes as `application/octet-stream`, at most 1 MiB.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self::ok().content_type("application/octet-stream").content(Content::Inline(bytes.into()))
    }

    /// 200 with plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::bytes(text.into()).content_type("text/plain; charset=utf-8")
    }

    /// 200 with an HTML page.
    pub fn html(page: impl Into<String>) -> Self {
        Self::bytes(page.into()).content_type("text/html; charset=utf-8")
    }

    /// 200 with an XML document.
    pub fn xml(document: impl Into<String>) -> Self {
        Self::bytes(document.into()).content_type("application/xml")
    }

    /// 200 with a JSON document.
    ///
    /// # Errors
    /// [`Error::Other`] if the value cannot be written as JSON.
    pub fn json(value: &impl Serialize) -> Result<Self, Error> {
        Ok(Self::bytes(serde_json::to_vec(value)?).content_type("application/json"))
    }

    /// Replaces the status.
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Replaces the content.
    pub fn content(mut self, content: Content) -> Self {
        self.content = content;
        self
    }

    /// Replaces the media type.
    pub fn content_type(mut self, media_type: impl Into<String>) -> Self {
        self.headers.retain(|(name, _)| name != "content-type");
        self.header("content-type", media_type)
    }

    /// Lets clients cache the response for a year. Use this if the content at this address never
    /// changes.
    pub fn immutable(self) -> Self {
        self.header("cache-control", "private, max-age=31536000, immutable")
    }

    /// Makes clients revalidate the response each time. Use this if the content may change at any
    /// time.
    pub fn revalidate(self) -> Self {
        self.header("cache-control", "no-cache")
    }

    /// Sets the time of the last change, as Unix time in ms.
    pub fn modified(mut self, at: u64) -> Self {
        self.modified = Some(at);
        self
    }

    /// Adds a header field; `name` is in lower case, and the value is visible ASCII.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}
