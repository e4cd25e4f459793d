//! HTTP between a socket and a request: listeners, TLS, protection of the byte stream, bodies,
//! request ids, ranges and validators. This crate does not know organizations, repositories or
//! plugins.

pub mod body;
pub mod catalogue;
pub mod client_address;
pub mod conditional;
pub mod connection;
pub mod content_coding;
pub mod descriptors;
pub mod guard;
pub mod heads;
pub mod host;
pub mod incoming_body;
pub mod listen;
pub mod outbox;
pub mod path;
pub mod proxy_protocol;
pub mod range;
pub mod request_id;
pub mod request_meters;
pub mod send_budget;
pub mod site;
pub mod spill;
pub mod tls;
pub mod trace;
