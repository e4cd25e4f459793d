//! What can be done, each as a function with typed parameters and results: it judges the right of who asks, acts, and says what came
//! of it. Nothing here knows of HTTP: the management API and pages for people call the same operations.
//!
//! An id is taken as it was written: one that cannot be an id names nothing, which is told only where an unknown id is told.

pub mod access_keys;
pub mod activity;
mod actor;
pub mod advisories;
pub mod audit;
pub mod backups;
pub mod confirmations;
pub mod connection;
mod credentials;
pub mod formats;
pub mod key_owners;
pub mod loaded;
pub mod logins;
pub mod members;
pub mod organization;
pub mod packages;
mod paging;
mod passwords;
pub mod plugins;
pub mod policies;
pub mod proxy_cache;
pub mod publishers;
pub mod recordings;
pub mod reload;
pub mod repositories;
pub mod retention;
mod right;
pub mod sbom;
pub mod search;
mod service;
pub mod sessions;
pub mod sso;
pub mod tokens;
pub mod trials;
pub mod upkeep;
pub mod webhooks;

pub use actor::{Actor, Caller, Origin, session_name};
pub use credentials::{NewCredential, Replaced, RotationRequest};
pub use paging::{Listed, PageRequest};
pub use right::{Judged, Right};
pub use service::in_service;
