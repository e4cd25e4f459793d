//! Resources that an unauthenticated client can take: memory by bodies before a session and by
//! unread answers, idle connections, and open files. Each test makes such an attack, of limited
//! size and over loopback, and measures the server's cost.

mod bodies;
mod connections;
mod descriptors;
pub(crate) mod h2c;
mod streams;

/// One MiB.
const MIB: u64 = 1024 * 1024;
