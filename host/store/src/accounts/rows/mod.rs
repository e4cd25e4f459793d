//! Row types that several modules read, each with its columns and its reader.

pub(crate) mod access_key;
pub(crate) mod member;
pub(crate) mod repository;
pub(crate) mod token;
