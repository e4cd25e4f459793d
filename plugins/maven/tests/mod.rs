//! The protocol as clients speak it, natively over a host in memory.

mod lenient;
mod protocol;
mod proxy;
mod table;
