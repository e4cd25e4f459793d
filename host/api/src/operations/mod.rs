//! Operations of the server, as functions with typed parameters and results. Each checks the
//! actor's rights, acts, and returns the outcome. They do not depend on HTTP: the management API
//! and the portal call the same operations.
//!
//! Operations take ids as text. A malformed id matches nothing, so it has the same result as an
//! unknown id.

pub mod access_keys;
pub mod activity;
mod actor;
pub mod advisories;
pub mod api_tokens;
pub mod audit;
pub mod backups;
mod caller;
pub mod confirmations;
pub mod connection;
mod credentials;
pub mod explain;
pub mod formats;
pub mod home;
pub mod jobs;
pub mod key_owners;
pub mod loaded;
pub mod logins;
pub mod members;
pub mod organization;
pub mod package_table;
pub mod packages;
mod paging;
mod passwords;
mod pending_sign_in;
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
pub mod scim;
pub mod search;
pub mod second_factor;
pub mod server_health;
mod service;
pub mod service_accounts;
pub mod sessions;
pub mod sso;
pub mod teams;
pub mod tokens;
pub mod upkeep;
pub mod webhooks;

pub use actor::{Actor, Origin};
pub use caller::{Caller, CallerCredential, session_name};
pub use credentials::{NewCredential, Replaced, RotationRequest};
pub use paging::{PageRequest, RowPage};
pub use right::{CheckedRights, Right};
pub use service::in_service;
