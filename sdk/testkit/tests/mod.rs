//! Tests of the public API.

mod moved;
mod readme_guest;
mod update;
mod upstream_answers;
