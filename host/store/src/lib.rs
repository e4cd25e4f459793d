//! Bytes and records: durable, deduplicated, collected. No HTTP, no Wasm.
//!
//! A [`Store`] is one database (SQLite or PostgreSQL) and one storage of blobs (a folder, S3, or memory). Bytes are durable
//! before a record names them; the database alone decides who was first.

mod accounts;
mod blobs;
mod catalog;
mod config;
mod db;
mod digest;
mod error;
mod ids;
mod records;
mod store;
mod writer;

pub use accounts::*;
pub use blobs::*;
pub use catalog::{CatalogChange, Version, VersionFile};
pub use config::{BlobsConfig, StoreConfig};
pub use db::Generation;
pub use digest::{Algorithm, Digest, Sha256};
pub use error::StoreError;
pub use ids::{MemberId, OrganizationId, RepositoryId, TokenId, now_ms};
pub use records::{
    Change, Commit, Entry, Expectation, MAX_CHANGES, MAX_COMMIT_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES,
    Matches, Outcome,
};
pub use store::Store;
