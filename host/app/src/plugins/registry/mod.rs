//! Components in registries. They are OCI artifacts in the Wasm layout: a config
//! `application/vnd.wasm.config.v0+json` and one layer `application/wasm`. `wkg` reads and writes
//! this layout. Signatures are stored beside the artifact, in the same way as cosign stores them.

mod artifact;
mod credentials;
mod protocol;
mod pull;
mod push;
mod reference;

use std::time::Duration;

use packhouse_upstream::remote::RemoteError;

pub use artifact::ArtifactFacts;
pub use credentials::RegistryLogin;
pub use protocol::SCHEME;
pub use pull::{Pulled, Registry};
pub use push::{Publication, Published, anywhere};
pub use reference::Reference;

/// Time limit for one complete response of a registry, and for all requests that fetch one
/// component.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Reason why an artifact cannot be fetched or published. It is a sentence without a full stop and
/// without credentials.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct RegistryError(pub String);

impl RegistryError {
    fn new(sentence: impl Into<String>) -> RegistryError {
        RegistryError(sentence.into())
    }

    /// Creates the error for a failed request to a registry.
    fn asking(what: &str, error: RemoteError) -> RegistryError {
        RegistryError(format!("{what} cannot be fetched: {error}"))
    }
}
