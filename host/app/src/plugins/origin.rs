//! Where a component comes from and who vouches for it: what is uploaded, or fetched from a registry, is judged by the keys that are
//! trusted before it is kept. Components beside the program are the operator's own and are not judged.

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

/// Turns to fetch a component: each is held in memory as a whole.
static TURNS: Semaphore = Semaphore::const_new(1);
/// How long one waits for its turn.
const QUEUE: Duration = Duration::from_secs(30);

/// Where a component came from, and who vouches for it.
#[derive(Clone, Debug)]
pub struct PluginOrigin {
    /// As people read it: `upload`, a file's name, or a reference that is pinned by a digest.
    pub source: String,
    /// The fingerprint of the trusted key that signed it.
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
    /// The keys that are trusted, as their files are now. The error names the file that holds none.
    pub fn trusted_keys(&self) -> Result<TrustedKeys, SignatureError> {
        TrustedKeys::read(&self.config.trusted_keys)
    }

    /// The origin of a component that was handed over. `Refused` where keys are trusted and none of them made the signature, which is
    /// of the component's bytes: base64 of DER.
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

    /// Fetches a component from a registry, which is asked as upstreams are. A tag is resolved once: the origin's source names the
    /// digest. Where keys are trusted, one of them must have made `signature`, of the component's bytes, or without it one that
    /// lies beside the artifact. `Refused` says what is wrong.
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
        let busy = || PluginError::Refused("another component is being fetched: try again".to_owned());
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
            PluginError::Refused(format!("the registry {} cannot be asked: {error}", reference.host()))
        })?;
        Ok(Registry::new(reference, remote)?)
    }

    /// Decides whether a component of the database may run here, of a format or of a policy: where keys are trusted, one of them must have
    /// signed it. The error says why it may not. Whatever makes a set of running components asks this of each.
    pub(crate) fn may_run(&self, digest: &str, signed_by: Option<&str>) -> Result<(), String> {
        let keys = self.trusted_keys().map_err(|error| error.to_string())?;
        if keys.is_empty() || signed_by.is_some_and(|signer| keys.holds(signer)) {
            return Ok(());
        }
        Err(format!(
            "the component {digest} was signed by none of the keys that are trusted here: install it again with a signature"
        ))
    }

    /// The same of a plugin. It may run, too, if it lies beside the program, or is or was what its format runs: keys that are trusted later
    /// stop nothing that was activated.
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

    /// Refuses a component that may not run here.
    pub(super) async fn judge_signature(&self, state: &PluginState, digest: &str) -> Result<(), PluginError> {
        self.plugin_may_run(state, digest).await?.map_err(PluginError::Refused)
    }
}

/// What is said of a component that comes without a signature.
const UNSIGNED: &str = "the component is not signed, and only signed ones are installed here (plugins.trusted_keys): send its signature with it";

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
        let sentence = "the signature is not of this component, or by none of the keys that are trusted here";
        PluginError::Refused(sentence.to_owned())
    })
}
