//! Guarantees of the store, over SQLite and over PostgreSQL: every test runs on both.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    missing_docs,
    reason = "a failure here fails a test; helpers are not marked as tests"
)]

mod accounts;
mod acme;
mod advisories;
mod api_tokens;
mod arriving;
mod attestations;
mod blobs;
mod cache;
mod catalog;
mod commits;
mod conversion;
mod documents;
mod failures;
mod fetches;
mod first_seen;
mod generation;
mod kept_reads;
mod key_owners;
mod keys;
mod lease_model;
mod leases;
mod member_email;
mod people;
mod plugins;
mod publishers;
mod quotas;
mod recordings;
mod removals;
mod required_factor;
mod retention;
mod rules;
mod support;
mod teams;
mod trash;
mod webhooks;
