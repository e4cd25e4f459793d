//! What of a request decides how a response is sent.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, Method};
use packhouse_wire::connection::{ConnectionState, Hold};

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
    /// The connection that it shares with others, whose responses together may hold so much memory; none for one that has it for
    /// itself.
    pub connection: Option<&'a Arc<ConnectionState>>,
}

impl<'a> ResponseRequest<'a> {
    /// Of a request, its id, and whether its client may be sent to S3.
    pub(crate) fn of(parts: &'a Parts, request_id: &'a str, follows_redirects: bool) -> Self {
        Self {
            follows_redirects,
            head: parts.method == Method::HEAD,
            reads: parts.method == Method::HEAD || parts.method == Method::GET,
            headers: &parts.headers,
            request_id,
            connection: parts.extensions.get::<Arc<ConnectionState>>(),
        }
    }

    /// What a response of so many bytes that are read in pieces may hold.
    pub(crate) fn hold_pieces(&self, length: u64) -> Option<Hold> {
        self.connection.map(|connection| connection.hold_pieces(length, PIECE))
    }

    /// What a response of so many bytes that are in memory holds.
    pub(crate) fn hold(&self, bytes: usize) -> Option<Hold> {
        self.connection.map(|connection| connection.hold(bytes))
    }
}

/// Bytes of a piece that a response with this hold may read at a time.
pub(crate) fn piece(hold: Option<&Hold>) -> usize {
    hold.and_then(Hold::piece).unwrap_or(PIECE)
}
