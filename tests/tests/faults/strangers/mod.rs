//! What a stranger can make grow: memory by bodies before a session and by answers that nobody takes, connections that do nothing, and
//! open files. Each test is such an attack, bounded and over loopback, and looks at what it cost.

mod bodies;
mod connections;
mod descriptors;
pub(crate) mod h2c;
mod streams;

/// A MiB.
const MIB: u64 = 1024 * 1024;
