//! Protocol tests. They send requests as clients do. The plugin runs as native code with an
//! in-memory host.

mod chart;
mod protocol;
mod proxy;
mod table;
