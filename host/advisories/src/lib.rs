//! Advisories that the operator imports. The server does not fetch advisories from the internet.
//!
//! [`record`] parses OSV records, [`archive`] finds them in files, and [`import()`] writes them to
//! the store. [`Advisories`] finds the advisories that affect a version. The format's plugin
//! defines the order of versions. Without an order, only advisories that match without one are
//! found.

mod archive;
mod import;
mod known;
pub mod purl;
mod record;
mod severity;

// Boxes the future, so that its body is compiled here and not in each crate that awaits it.
use async_recursion::async_recursion as boxed;

pub use import::{ImportError, ImportOptions, Imported, import};
pub use known::{Advisories, OfPackage};
pub use record::{Advisory, Cvss, MAX_RECORD_BYTES, OsvRecord, RecordError, time};
pub use severity::Severity;
