//! Tests that cover several steps of the request path at once.

mod closed;
mod matrix;
mod package_matrix;
