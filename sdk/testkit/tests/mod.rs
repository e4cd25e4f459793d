//! The library as its users call it.

mod raw;
mod update;
