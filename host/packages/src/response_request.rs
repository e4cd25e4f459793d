//! Facts about a request that determine how its response is sent.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, Method};
use packhouse_wire::connection::{ConnectionState, Hold};
use packhouse_wire::spill::Spill;

/// Maximum size of a response that is always sent from memory, in bytes. Reading it in pieces would
/// take as much memory.
pub(crate) const SMALL: usize = 64 * 1024;
/// Default size of the pieces in which the host reads a stored file, in bytes.
const PIECE: usize = 256 * 1024;

/// Facts about a request that determine how its response is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseRequest<'a> {
    pub head: bool,
    /// True for GET and HEAD. The host ignores conditions and ranges of other methods.
    pub reads: bool,
    /// True if the host may redirect the client to S3 for a stored file.
    pub follows_redirects: bool,
    pub headers: &'a HeaderMap,
    pub request_id: &'a str,
    /// Connection that limits the memory of its responses; `None` if memory is not counted.
    pub connection: Option<&'a Arc<ConnectionState>>,
    /// Files for responses that do not fit into memory.
    pub spill: &'a Spill,
}

impl<'a> ResponseRequest<'a> {
    /// Returns the facts about a request whose client must not be redirected to S3.
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

    /// Reserves memory for a response whose bytes are read in pieces.
    pub(crate) fn hold_pieces(&self, length: u64) -> Option<Hold> {
        self.connection.map(|connection| connection.hold_pieces(length, PIECE))
    }

    /// Reserves memory for a response whose content is in memory. Fails with `NoMemory` if the
    /// content must move to a file.
    pub(crate) fn hold(&self, bytes: usize, content: InMemory) -> Result<Option<Hold>, NoMemory> {
        let Some(connection) = self.connection else { return Ok(None) };
        if bytes <= SMALL {
            return Ok(connection.is_http2().then(|| connection.hold(bytes)));
        }
        connection.hold_content(content.address, content.bytes).map(Some).ok_or(NoMemory)
    }
}

/// Content in memory, which several responses may share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InMemory {
    /// Address of the content in memory, which identifies it.
    pub address: usize,
    pub bytes: usize,
}

/// The error if the client's connection must not hold more memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoMemory;

/// Returns the size of the pieces that a response with this hold may read at a time, in bytes.
pub(crate) fn piece(hold: Option<&Hold>) -> usize {
    hold.and_then(Hold::piece).unwrap_or(PIECE)
}
