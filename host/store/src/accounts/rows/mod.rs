//! The rows that are read in more than one place, each with its columns and how it is read.

pub(crate) mod access_key;
pub(crate) mod member;
pub(crate) mod repository;
pub(crate) mod token;
