//! What of a request decides how a response is sent.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, Method};
use packhouse_wire::connection::{ConnectionState, Hold};
use packhouse_wire::spill::Spill;

/// Bytes of a response that is held in memory in any case: to read it in pieces would hold as much.
pub(crate) const SMALL: usize = 64 * 1024;
/// Bytes of the pieces in which a stored file is read where nothing else is said.
const PIECE: usize = 256 * 1024;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseRequest<'a> {
    /// Whether it is a HEAD.
    pub head: bool,
    /// Whether it is a GET or a HEAD: others have neither conditions nor ranges here.
    pub reads: bool,
    /// Whether the client may be sent to S3 for a stored file.
    pub follows_redirects: bool,
    /// Its headers.
    pub headers: &'a HeaderMap,
    /// Its id.
    pub request_id: &'a str,
    /// The connection, whose responses together may hold so much memory; none where that is not counted.
    pub connection: Option<&'a Arc<ConnectionState>>,
    /// Where responses wait for which memory has no room.
    pub spill: &'a Spill,
}

impl<'a> ResponseRequest<'a> {
    /// Of a request and its id, whose client is not sent to S3.
    pub(crate) fn of(parts: &'a Parts, request_id: &'a str, spill: &'a Spill) -> Self {
        Self {
            follows_redirects: false,
            head: parts.method == Method::HEAD,
            reads: parts.method == Method::HEAD || parts.method == Method::GET,
            headers: &parts.headers,
            request_id,
            connection: parts.extensions.get::<Arc<ConnectionState>>(),
            spill,
        }
    }

    /// What a response of so many bytes that are read in pieces may hold.
    pub(crate) fn hold_pieces(&self, length: u64) -> Option<Hold> {
        self.connection.map(|connection| connection.hold_pieces(length, PIECE))
    }

    /// What a response of so many bytes of a content in memory holds. `NoMemory` where it is to wait elsewhere.
    pub(crate) fn hold(&self, bytes: usize, content: InMemory) -> Result<Option<Hold>, NoMemory> {
        let Some(connection) = self.connection else { return Ok(None) };
        if bytes <= SMALL {
            return Ok(connection.is_http2().then(|| connection.hold(bytes)));
        }
        connection.hold_content(content.address, content.bytes).map(Some).ok_or(NoMemory)
    }
}

/// A content in memory, of which several responses may have a part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InMemory {
    /// Where it lies.
    pub address: usize,
    /// How long it is.
    pub bytes: usize,
}

/// There is no room in memory for what waits for this client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoMemory;

/// Bytes of a piece that a response with this hold may read at a time.
pub(crate) fn piece(hold: Option<&Hold>) -> usize {
    hold.and_then(Hold::piece).unwrap_or(PIECE)
}
