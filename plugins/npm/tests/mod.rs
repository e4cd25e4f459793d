//! The protocol as clients speak it, natively over a host in memory.

mod pieces;
mod protocol;
mod table;
mod upstream;
