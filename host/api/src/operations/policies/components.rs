//! Components of policies: those beside the program, and those that operators installed, which are
//! identified by digest. A rule names one component. So a new version judges nothing until a rule
//! names it, and the rule can return to the previous version.

use bytes::Bytes;
use packhouse_identity::permissions::Permission::{ManageRepositories, ManageServer};
use packhouse_runtime::PolicyComponent;
use packhouse_store::{MAX_POLICY_COMPONENTS, NewPolicyComponent, PolicyComponentRow};
use packhouse_wire::catalogue;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::operations::Actor;
use crate::operations::plugins::refusal;

#[derive(Clone, Debug)]
pub struct ListedComponent {
    /// Reference used in rules: the name of a component beside the program, otherwise the digest.
    /// Empty for a file that is not a component.
    pub component: String,
    /// Name of the component; for a file that is not a component, the file name.
    pub name: String,
    pub version: String,
    /// Digest as `sha256:` and hex.
    pub digest: String,
    pub summary: String,
    /// JSON Schema of its settings.
    pub settings: Value,
    /// Fingerprint of the trusted key that signed it.
    pub signed_by: Option<String>,
    /// E-mail address of the member who installed it and the time in ms since 1970; `None` for a
    /// component beside the program.
    pub installed: Option<(String, i64)>,
    /// Calls on this server since it started, and failed calls among them; `None` if it is not
    /// loaded.
    pub calls: Option<(u64, u64)>,
    /// Reason why it cannot run.
    pub error: Option<String>,
}

pub async fn list(actor: &Actor) -> Result<Vec<ListedComponent>, ApiError> {
    actor.needs(ManageRepositories)?;
    let loaded = actor.app.runtime.policies();
    let mut all: Vec<ListedComponent> = loaded.folder().iter().map(|one| beside(one)).collect();
    all.extend(loaded.refused().iter().map(|refused| ListedComponent {
        component: String::new(),
        name: refused.file.clone(),
        version: String::new(),
        digest: String::new(),
        summary: String::new(),
        settings: Value::Null,
        signed_by: None,
        installed: None,
        calls: None,
        error: Some(refused.error.clone()),
    }));
    for row in actor.app.store.policy_components().await? {
        let calls = loaded.find(&row.digest).map(|policy| policy.calls());
        all.push(installed(row, calls));
    }
    Ok(all)
}

/// Installs a component on every server; rules may name it from now on. 422 `plugin_refused` if it
/// cannot run on this server, 409 `too_many_policy_components` at the maximum number. If there are
/// trusted keys for plugins, one of them must have signed the component's bytes.
pub async fn install(
    actor: &Actor,
    bytes: Bytes,
    signature: Option<&str>,
) -> Result<ListedComponent, ApiError> {
    actor.needs(ManageServer)?;
    let policy = actor.app.runtime.policies().load("upload", bytes.clone()).await;
    let policy = policy.map_err(|error| ApiError::sentence(&catalogue::PLUGIN_REFUSED, &error.reason()))?;
    let origin = actor.app.vouch(&bytes, "upload", signature).map_err(refusal)?;
    let described = policy.description();
    let event = actor.event("install_policy", policy.digest());
    let description = json!({"summary": described.summary, "settings": described.settings}).to_string();
    let new = NewPolicyComponent {
        digest: policy.digest().to_owned(),
        name: described.name.clone(),
        version: described.version.clone(),
        description,
        signed_by: origin.signed_by,
        installed_by: actor.name().to_owned(),
        bytes,
    };
    if !actor.app.store.keep_policy_component(new, Some(event)).await? {
        let most = MAX_POLICY_COMPONENTS.to_string();
        return Err(ApiError::with(&catalogue::TOO_MANY_POLICY_COMPONENTS, &most));
    }
    let row = actor.app.store.find_policy_component(policy.digest()).await?;
    Ok(installed(row.ok_or(&catalogue::NOT_FOUND)?, Some(policy.calls())))
}

/// Removes a component. 409 `policy_in_use` while a rule names it.
pub async fn remove(actor: &Actor, digest: &str) -> Result<(), ApiError> {
    actor.needs(ManageServer)?;
    if actor.app.store.find_policy_component(digest).await?.is_none() {
        return Err(ApiError::from(&catalogue::NOT_FOUND));
    }
    let event = actor.event("remove_policy", digest);
    if actor.app.store.remove_policy_component(digest, Some(event)).await? {
        Ok(())
    } else {
        Err(ApiError::from(&catalogue::POLICY_IN_USE))
    }
}

fn beside(policy: &PolicyComponent) -> ListedComponent {
    let described = policy.description();
    ListedComponent {
        component: described.name.clone(),
        name: described.name.clone(),
        version: described.version.clone(),
        digest: policy.digest().to_owned(),
        summary: described.summary.clone(),
        settings: described.settings.clone(),
        signed_by: None,
        installed: None,
        calls: Some(policy.calls()),
        error: None,
    }
}

fn installed(row: PolicyComponentRow, calls: Option<(u64, u64)>) -> ListedComponent {
    let description: Value = serde_json::from_str(&row.description).unwrap_or_default();
    ListedComponent {
        component: row.digest.clone(),
        name: row.name,
        version: row.version,
        digest: row.digest,
        summary: description.get("summary").and_then(Value::as_str).unwrap_or_default().to_owned(),
        settings: description.get("settings").cloned().unwrap_or_default(),
        signed_by: row.signed_by,
        installed: Some((row.installed_by, row.installed_at)),
        calls,
        error: None,
    }
}
