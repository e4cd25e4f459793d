//! Other servers that this one asks, and where they may be.

pub(crate) mod address;
