//! Tests of the public API.

mod router;
mod values;
