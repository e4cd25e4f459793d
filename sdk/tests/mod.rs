//! The library as its users call it.

mod router;
mod values;
