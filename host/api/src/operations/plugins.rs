//! The life cycle of formats' components. All of it needs manage-server, and changes go to the audit log; 503 `server_starting` for a
//! change until the start has compiled everything.

use bytes::Bytes;
use packhouse_app::plugins::{Activated, Activation, Changes, ListedPlugin, PluginError};
use packhouse_identity::permissions::Permission::ManageServer;
use packhouse_store::RepositoryId;
use packhouse_wire::catalogue;

use super::confirmations::{Action, Confirmation};
use super::{Actor, loaded};
use crate::error::ApiError;

/// A component that was installed.
#[derive(Debug)]
pub struct Installed {
    /// The component.
    pub plugin: ListedPlugin,
    /// What it asks beyond the one that its format runs.
    pub changes: Changes,
}

/// A component as it is offered.
#[derive(Debug)]
pub enum Offered {
    /// The component itself.
    Component {
        /// All of it.
        bytes: Bytes,
        /// Of the bytes: base64 of DER.
        signature: Option<String>,
    },
    /// An artifact in a registry.
    Artifact {
        /// `oci://…`.
        source: String,
        /// Of the component's bytes: base64 of DER.
        signature: Option<String>,
    },
}

/// What is to run, as somebody asked for it.
#[derive(Debug)]
pub struct ActivationRequest {
    /// The component, as `sha256:` and hex.
    pub digest: String,
    /// What runs until now.
    pub expected: Option<String>,
    /// Whether it may ask more than that.
    pub accept_changes: bool,
}

/// Every component that there is.
pub async fn list(actor: &Actor) -> Result<Vec<ListedPlugin>, ApiError> {
    actor.needs(ManageServer)?;
    Ok(actor.app.list_plugins().await?)
}

/// Keeps a component as a candidate. 422 `plugin_refused` for one that cannot be fetched, that no trusted key signed, or that cannot
/// be run here.
pub async fn install(
    actor: &Actor,
    confirmation: &Confirmation,
    offered: Offered,
) -> Result<Installed, ApiError> {
    confirmation.judge(actor, Action::ManagePlugins).await?;
    actor.needs(ManageServer)?;
    loaded::all(&actor.app)?;
    let (bytes, origin) = match offered {
        Offered::Component { bytes, signature } => {
            let origin = actor.app.vouch(&bytes, "upload", signature.as_deref()).map_err(refusal)?;
            (bytes, origin)
        }
        Offered::Artifact { source, signature } => {
            actor.app.fetch_plugin(&source, signature.as_deref(), None).await.map_err(refusal)?
        }
    };
    let event = |digest: &str| Some(actor.event("install_plugin", digest));
    let (digest, _, changes) = actor.app.install_plugin(bytes, origin, event).await.map_err(refusal)?;
    Ok(Installed { plugin: find(actor, &digest).await?, changes })
}

/// Lets a format run a component. 404 where there is no such component, 409 `conflict` where the format runs another than was
/// expected, 409 `capabilities_changed` where it asks more and that was not accepted, 422 `plugin_refused` where it is of another
/// format or cannot be run here.
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

/// Lets a format run what it ran before. 409 `conflict` where it ran nothing.
pub async fn roll_back(actor: &Actor, format: &str) -> Result<ListedPlugin, ApiError> {
    actor.needs(ManageServer)?;
    loaded::all(&actor.app)?;
    let event = |format: &str| Some(actor.event("roll_back_plugin", format));
    let Activated { digest, .. } = actor.app.roll_back_plugin(format, event).await.map_err(refusal)?;
    find(actor, &digest).await
}

/// Lets a component serve a repository of the actor's organization, whatever its format runs; with none, takes that back.
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
        PluginError::Refused(sentence) => ApiError::with(&catalogue::PLUGIN_REFUSED, &sentence),
        PluginError::Missing(_) => ApiError::from(&catalogue::NOT_FOUND),
        PluginError::Conflict(sentence) => ApiError::with(&catalogue::PLUGIN_ACTIVE_CHANGED, &sentence),
        error @ PluginError::AsksMore(_) => {
            ApiError::with(&catalogue::CAPABILITIES_CHANGED, &error.to_string())
        }
        PluginError::Store(error) => error.into(),
    }
}
