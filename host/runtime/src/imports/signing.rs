//! `signing`: signatures of a repository's contents, with keys that never leave the host.

use std::sync::Arc;

use wasmtime::component::Resource;

use crate::bindings::packhouse::format::signing::{Host, PublicKey, Signature};
use crate::host_error::HostError;
use crate::request::Action;
use crate::services;
use crate::state::records::RepositoryRep;
use crate::state::{Access, HostState};

impl Host for HostState {
    async fn keys(&mut self, target: Resource<RepositoryRep>) -> Result<Vec<PublicKey>, HostError> {
        // A key can be replaced without a change of any record.
        self.uncacheable = true;
        let view = self.held(&target)?.view.clone();
        let keys = Arc::clone(&self.services.signing).keys(&view).await?;
        Ok(keys.into_iter().map(public_key).collect())
    }

    async fn sign(
        &mut self,
        target: Resource<RepositoryRep>,
        message: Vec<u8>,
    ) -> Result<Signature, HostError> {
        let repository = self.held(&target)?;
        if !repository.target || self.access != Access::Intent(Action::Publish) {
            return Err(HostError::denied());
        }
        let view = repository.view.clone();
        let signature = Arc::clone(&self.services.signing).sign(&view, &message).await?;
        Ok(Signature { key_id: signature.key_id, value: signature.value })
    }
}

fn public_key(key: services::PublicKey) -> PublicKey {
    PublicKey { id: key.id, kind: key.kind, key: key.key, expires: key.expires }
}
