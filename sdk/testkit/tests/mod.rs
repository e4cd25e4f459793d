//! The library as its users call it.

mod moved;
mod readme_guest;
mod update;
mod upstream_answers;
