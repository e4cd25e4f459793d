//! Tests over several steps of the data path at once.

mod closed;
mod matrix;
