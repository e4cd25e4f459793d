//! What stands between a socket and a request: the guard around the bytes, bodies, ids, ranges and validators. Nothing here
//! knows of organizations, repositories or plugins.

pub(crate) mod body;
pub(crate) mod client_network;
pub(crate) mod conditional;
pub(crate) mod connection;
pub(crate) mod guard;
pub(crate) mod heads;
pub(crate) mod host;
pub(crate) mod outbox;
pub(crate) mod range;
pub(crate) mod request_id;
