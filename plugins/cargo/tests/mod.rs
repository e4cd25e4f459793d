//! Protocol tests of the plugin as native code. A host in memory takes the place of the server.

mod protocol;
mod table;
