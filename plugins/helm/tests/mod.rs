//! Protocol tests: requests as clients send them, against the native code and a host in memory.

mod chart;
mod protocol;
mod proxy;
mod table;
