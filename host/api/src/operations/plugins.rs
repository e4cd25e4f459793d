//! Life cycle of plugin components. All operations need manage-server, and changes are audited.
//! Changes answer 503 `server_starting` until the starting server has compiled all components.

use bytes::Bytes;
use packhouse_app::plugins::{Activated, Activation, Changes, ListedPlugin, PluginError};
use packhouse_identity::permissions::Permission::ManageServer;
use packhouse_store::RepositoryId;
use packhouse_wire::catalogue;

use super::confirmations::{Action, Confirmation};
use super::{Actor, loaded};
use crate::error::ApiError;

#[derive(Debug)]
pub struct Installed {
    pub plugin: ListedPlugin,
    /// Capabilities that it requests beyond those of the active component.
    pub changes: Changes,
}

#[derive(Debug)]
pub enum PluginToInstall {
    Component {
        bytes: Bytes,
        /// Signature of the bytes: base64 of DER.
        signature: Option<String>,
    },
    Artifact {
        /// Address of the artifact, `oci://…`.
        source: String,
        /// Signature of the component's bytes: base64 of DER.
        signature: Option<String>,
    },
}

#[derive(Debug)]
pub struct ActivationRequest {
    /// Component, as `sha256:` and hex.
    pub digest: String,
    /// Component that the client expects to be active.
    pub expected: Option<String>,
    /// True if it may request more capabilities than the active component.
    pub accept_changes: bool,
}

pub async fn list(actor: &Actor) -> Result<Vec<ListedPlugin>, ApiError> {
    actor.needs(ManageServer)?;
    Ok(actor.app.list_plugins().await?)
}

/// Installs a component as a candidate. 422 `plugin_refused` if it cannot be fetched, is not signed
/// by a trusted key, or cannot run on this server.
pub async fn install(
    actor: &Actor,
    confirmation: &Confirmation,
    offered: PluginToInstall,
) -> Result<Installed, ApiError> {
    confirmation.judge(actor, Action::ManagePlugins).await?;
    actor.needs(ManageServer)?;
    loaded::all(&actor.app)?;
    let (bytes, origin) = match offered {
        PluginToInstall::Component { bytes, signature } => {
            let origin = actor.app.vouch(&bytes, "upload", signature.as_deref()).map_err(refusal)?;
            (bytes, origin)
        }
        PluginToInstall::Artifact { source, signature } => {
            actor.app.fetch_plugin(&source, signature.as_deref(), None).await.map_err(refusal)?
        }
    };
    let event = |digest: &str| Some(actor.event("install_plugin", digest));
    let (digest, _, changes) = actor.app.install_plugin(bytes, origin, event).await.map_err(refusal)?;
    Ok(Installed { plugin: find(actor, &digest).await?, changes })
}

/// Activates a component for a format. 404 if it does not exist; 409 `conflict` if the active
/// component is not the expected one; 409 `capabilities_changed` if it requests more and that was
/// not accepted; 422 `plugin_refused` if it belongs to another format or cannot run on this server.
pub async fn activate(
    actor: &Actor,
    confirmation: &Confirmation,
    format: &str,
    request: &ActivationRequest,
) -> Result<ListedPlugin, ApiError> {
    confirmation.judge(actor, Action::ManagePlugins).await?;
    actor.needs(ManageServer)?;
    loaded::all(&actor.app)?;
    let ActivationRequest { digest, expected, accept_changes } = request;
    let activation =
        Activation { format, digest, expected: expected.as_deref(), accept_changes: *accept_changes };
    let event = |format: &str| Some(actor.event("activate_plugin", format));
    let Activated { digest, .. } = actor.app.activate_plugin(&activation, event).await.map_err(refusal)?;
    find(actor, &digest).await
}

/// Activates the component that the format ran before. 409 `conflict` if there is no such
/// component.
pub async fn roll_back(actor: &Actor, format: &str) -> Result<ListedPlugin, ApiError> {
    actor.needs(ManageServer)?;
    loaded::all(&actor.app)?;
    let event = |format: &str| Some(actor.event("roll_back_plugin", format));
    let Activated { digest, .. } = actor.app.roll_back_plugin(format, event).await.map_err(refusal)?;
    find(actor, &digest).await
}

/// Pins a component for a repository of the actor's organization, whatever component its format
/// runs. `None` removes the pin.
pub async fn pin(actor: &Actor, repository: &str, digest: Option<&str>) -> Result<(), ApiError> {
    actor.needs(ManageServer)?;
    loaded::all(&actor.app)?;
    let id: RepositoryId = repository.parse().map_err(|_| ApiError::from(&catalogue::NOT_FOUND))?;
    let event = actor.event("pin_plugin", repository);
    let pinned = actor.app.pin_plugin(actor.organization(), id, digest, Some(event));
    pinned.await.map_err(refusal)
}

async fn find(actor: &Actor, digest: &str) -> Result<ListedPlugin, ApiError> {
    let found = actor.app.find_plugin(digest).await?;
    found.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

pub(super) fn refusal(error: PluginError) -> ApiError {
    match error {
        PluginError::Refused(words) => ApiError::sentence(&catalogue::PLUGIN_REFUSED, &words),
        PluginError::Missing(_) => ApiError::from(&catalogue::NOT_FOUND),
        PluginError::Conflict(words) => ApiError::sentence(&catalogue::PLUGIN_ACTIVE_CHANGED, &words),
        error @ PluginError::AsksMore(_) => {
            ApiError::with(&catalogue::CAPABILITIES_CHANGED, &error.to_string())
        }
        PluginError::Store(error) => error.into(),
    }
}
