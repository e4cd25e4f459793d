//! Row types that several modules read, each with its columns and its reader.

pub(crate) mod access_key;
pub(crate) mod api_token;
pub(crate) mod member;
pub(crate) mod repository;
pub(crate) mod team;
pub(crate) mod texts;
pub(crate) mod token;
