//! Advisories that the operator brings in, since the server asks nobody on the internet for them.
//!
//! [`record`] reads OSV records, [`archive`] finds them in what the operator has, [`import`] writes them to the store. [`Advisories`] says
//! which of them are about a version: by the order of versions that the format's plugin tells, and where nobody tells one by
//! what can be judged without.

mod archive;
mod import;
mod known;
pub mod purl;
mod record;
mod severity;

// Compiles the body of an `async fn` here, and not in each crate that awaits it.
use async_recursion::async_recursion as boxed;

pub use import::{ImportError, ImportOptions, Imported, import};
pub use known::{Advisories, OfPackage};
pub use record::{Advisory, Cvss, MAX_RECORD_BYTES, OsvRecord, RecordError, time};
pub use severity::Severity;
