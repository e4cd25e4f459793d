//! Protocol tests: requests as clients send them, to the plugin as native code. A host in memory
//! takes the place of the server.

mod protocol;
mod proxy;
mod table;
mod zip;
