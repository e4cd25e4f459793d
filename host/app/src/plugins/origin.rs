//! Origin and signature of components. The server checks an uploaded or fetched component against
//! the trusted keys before it stores the component. It does not check components in the plugin
//! folder, because the operator put them there.

use std::time::Duration;

use bytes::Bytes;
use packhouse_runtime::Plugin;
use packhouse_store::{PluginState, StoreError};
use tokio::sync::Semaphore;

use super::PluginError;
use super::registry::{PATIENCE, Pulled, Reference, Registry, RegistryError, RegistryLogin};
use super::signatures::{SignatureError, TrustedKeys};
use crate::App;
use crate::boxed;

/// Allows one fetch at a time, because a fetched component is held in memory completely.
static TURNS: Semaphore = Semaphore::const_new(1);
/// Maximum time that a fetch waits for an earlier one.
const QUEUE: Duration = Duration::from_secs(30);

/// Source and signer of a component.
#[derive(Clone, Debug)]
pub struct PluginOrigin {
    /// Source as text: `upload`, a file name, or a reference that is pinned by a digest.
    pub source: String,
    /// Fingerprint of the trusted key that signed the component.
    pub signed_by: Option<String>,
}

impl From<SignatureError> for PluginError {
    fn from(error: SignatureError) -> PluginError {
        PluginError::Refused(error.to_string())
    }
}

impl From<RegistryError> for PluginError {
    fn from(error: RegistryError) -> PluginError {
        PluginError::Refused(error.to_string())
    }
}

impl App {
    /// Reads the trusted keys from their files. The error names the file that does not contain a
    /// key.
    pub fn trusted_keys(&self) -> Result<TrustedKeys, SignatureError> {
        TrustedKeys::read(&self.config.trusted_keys)
    }

    /// Returns the origin of an uploaded component. `signature` covers the component's bytes and is
    /// DER in base64. Fails with `Refused` if trusted keys are configured and none of them made the
    /// signature.
    pub fn vouch(
        &self,
        bytes: &[u8],
        source: &str,
        signature: Option<&str>,
    ) -> Result<PluginOrigin, PluginError> {
        let keys = self.trusted_keys()?;
        let signed_by = match signature {
            _ if keys.is_empty() => None,
            Some(signature) => Some(signer(&keys, bytes, signature)?),
            None => return Err(PluginError::Refused(UNSIGNED.to_owned())),
        };
        Ok(PluginOrigin { source: source.to_owned(), signed_by })
    }

    /// Fetches a component from a registry, under the network rules for upstreams. Resolves a tag
    /// once, and the returned source contains the digest.
    ///
    /// If trusted keys are configured, one of them must have signed the component. `signature`
    /// covers the component's bytes. Without it, the registry must contain a signature beside the
    /// artifact. `Refused` contains the reason of a failure.
    #[boxed]
    pub async fn fetch_plugin(
        &self,
        source: &str,
        signature: Option<&str>,
        login: Option<RegistryLogin>,
    ) -> Result<(Bytes, PluginOrigin), PluginError> {
        let reference: Reference = source.parse()?;
        let keys = self.trusted_keys()?;
        let registry = self.registry(&reference, login)?;
        let turn = tokio::time::timeout(QUEUE, TURNS.acquire()).await;
        let busy = || PluginError::Refused("the server is fetching another component: try again".to_owned());
        let _turn = turn.ok().and_then(Result::ok).ok_or_else(busy)?;
        let late = |_| {
            PluginError::Refused(format!("fetching the component took longer than {} s", PATIENCE.as_secs()))
        };
        tokio::time::timeout(PATIENCE, fetched(&registry, &keys, signature)).await.map_err(late)?
    }

    fn registry(&self, reference: &Reference, login: Option<RegistryLogin>) -> Result<Registry, PluginError> {
        let login = match (login, &self.config.registry_auth) {
            (None, Some(file)) => RegistryLogin::of_file(file, reference.host())?,
            (login, _) => login,
        };
        let address = reference.registry()?;
        let remote = self.upstreams.remote(&address, login.map(RegistryLogin::credentials), PATIENCE);
        let remote = remote.map_err(|error| {
            PluginError::Refused(format!("the registry {} cannot be reached: {error}", reference.host()))
        })?;
        Ok(Registry::new(reference, remote)?)
    }

    /// Decides whether a stored component, of a format or of a policy, may run on this server. If
    /// trusted keys are configured, one of them must have signed the component. The error is the
    /// reason. Every function that builds a set of running components must call this one.
    pub(crate) fn may_run(&self, digest: &str, signed_by: Option<&str>) -> Result<(), String> {
        let keys = self.trusted_keys().map_err(|error| error.to_string())?;
        if keys.is_empty() || signed_by.is_some_and(|signer| keys.holds(signer)) {
            return Ok(());
        }
        Err(format!(
            "the component {digest} is not signed by a trusted key: install it again with a signature"
        ))
    }

    /// Decides whether a plugin of a format may run on this server. Accepts every component that
    /// [`App::may_run`] accepts. Also accepts a component that is in the plugin folder, or that is
    /// or was active for its format. A key that an operator adds later therefore does not stop
    /// components that were activated before.
    pub(super) async fn plugin_may_run(
        &self,
        state: &PluginState,
        digest: &str,
    ) -> Result<Result<(), String>, StoreError> {
        let ran = state.formats.iter().any(|row| {
            row.active.as_deref() == Some(digest) || row.history.iter().any(|before| before == digest)
        });
        let is_of_folder = |plugin: &std::sync::Arc<Plugin>| plugin.digest().to_string() == digest;
        if ran || self.runtime.folder().iter().any(is_of_folder) {
            return Ok(Ok(()));
        }
        let row = self.store.find_component(digest).await?;
        Ok(self.may_run(digest, row.and_then(|row| row.signed_by).as_deref()))
    }

    /// Refuses a component that is not allowed to run on this server.
    pub(super) async fn judge_signature(&self, state: &PluginState, digest: &str) -> Result<(), PluginError> {
        self.plugin_may_run(state, digest).await?.map_err(PluginError::Refused)
    }
}

/// Message for a component without a signature.
const UNSIGNED: &str = "the component is not signed, and this server installs only signed ones \
    (plugins.trusted_keys): send a signature with it";

async fn fetched(
    registry: &Registry,
    keys: &TrustedKeys,
    signature: Option<&str>,
) -> Result<(Bytes, PluginOrigin), PluginError> {
    let Pulled { reference, bytes } = registry.pull().await?;
    let signed_by = match (signature, reference.digest()) {
        _ if keys.is_empty() => None,
        (Some(signature), _) => Some(signer(keys, &bytes, signature)?),
        (None, manifest) => Some(registry.signer(manifest.unwrap_or_default(), keys).await?),
    };
    Ok((bytes, PluginOrigin { source: reference.to_string(), signed_by }))
}

fn signer(keys: &TrustedKeys, bytes: &[u8], signature: &str) -> Result<String, PluginError> {
    let signer = keys.signer(bytes, signature)?.map(ToOwned::to_owned);
    signer.ok_or_else(|| {
        let sentence = "the signature does not belong to this component, or its key is not trusted";
        PluginError::Refused(sentence.to_owned())
    })
}
