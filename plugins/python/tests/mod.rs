//! The protocol as clients speak it, natively over a host in memory.

mod large_pages;
mod pieces;
mod protocol;
mod proxy;
mod table;
mod wheel;
