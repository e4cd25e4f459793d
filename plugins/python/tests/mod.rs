//! Protocol tests. They send requests as clients do. The plugin runs as native code with an
//! in-memory host.

mod large_pages;
mod pieces;
mod protocol;
mod proxy;
mod table;
mod wheel;
