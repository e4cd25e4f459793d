//! The protocol as clients speak it, natively over a host in memory.

mod protocol;
mod table;
#[path = "../../python/tests/wheel.rs"]
mod wheel;
