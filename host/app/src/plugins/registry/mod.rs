//! Components in registries: as OCI artifacts of the Wasm layout (a config `application/vnd.wasm.config.v0+json` and one layer
//! `application/wasm`), which `wkg` reads and writes, with signatures as cosign lays them beside.

mod artifact;
mod credentials;
mod pull;
mod push;
mod reference;
mod words;

use std::time::Duration;

use packhouse_upstream::remote::RemoteError;

pub use artifact::Facts;
pub use credentials::RegistryLogin;
pub use pull::{Pulled, Registry};
pub use push::{Publication, Published, anywhere};
pub use reference::Reference;
pub use words::SCHEME;

/// The time for one answer of a registry, whole, and for all that is fetched of a component.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Why an artifact cannot be had or given: a sentence without its end, that holds no credential.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct RegistryError(pub String);

impl RegistryError {
    fn new(sentence: impl Into<String>) -> RegistryError {
        RegistryError(sentence.into())
    }

    /// What went wrong as a registry was asked for something.
    fn asking(what: &str, error: RemoteError) -> RegistryError {
        RegistryError(format!("{what} cannot be fetched: {error}"))
    }
}
