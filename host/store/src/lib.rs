//! Bytes and records: durable, deduplicated, collected. No HTTP, no Wasm.
//!
//! A [`Store`] is one database (SQLite or PostgreSQL) and one storage of blobs (a folder, S3, or memory). Bytes are durable
//! before a record names them; the database alone decides who was first.

mod accounts;
mod blobs;
mod cache;
mod catalog;
mod config;
mod db;
mod digest;
mod error;
mod gc;
mod ids;
mod marker;
mod noted;
mod records;
mod scrub;
mod store;
mod strays;
mod uploads;
mod writer;

pub use accounts::*;
pub use blobs::*;
pub use cache::{CacheEntry, CacheName, CacheTotals, CachedAnswer};
pub use catalog::{CatalogChange, ShownFile, ShownState, Version, VersionFile};
pub use config::{BlobsConfig, StoreConfig};
pub use db::Generation;
pub use digest::{Algorithm, Digest, Sha256};
pub use error::{Part, StoreError};
pub use gc::Collected;
pub use ids::{AccessKeyId, KeyOwnerId, MemberId, OrganizationId, RepositoryId, TokenId, now_ms};
pub use records::{
    Change, Commit, Entry, Expectation, MAX_CHANGES, MAX_COMMIT_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES,
    Matches, Outcome,
};
pub use scrub::{Damaged, ScrubReport};
pub use store::Store;
pub use uploads::{Append, Upload, UploadAppender};
