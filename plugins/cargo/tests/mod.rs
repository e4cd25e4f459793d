//! Protocol tests. They send client requests to the plugin, which runs as native code on an
//! in-memory host.

mod protocol;
mod table;
