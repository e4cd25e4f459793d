//! Resources that an unauthenticated client can take: memory, connections and open files. Request
//! bodies before a sign-in take memory, and so do answers that the client does not read. Each test
//! makes such an attack, of limited size and over loopback, and measures the server's cost.

mod bodies;
mod connections;
mod descriptors;
pub(crate) mod h2c;
mod streams;

/// One MiB.
const MIB: u64 = 1024 * 1024;
