//! Protocol tests: requests as clients send them, against the native code and a host in memory.

mod large_pages;
mod pieces;
mod protocol;
mod proxy;
mod table;
mod wheel;
