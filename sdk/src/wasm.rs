//! TODO
pub mod export {}
