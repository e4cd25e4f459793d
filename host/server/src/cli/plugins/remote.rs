//! The commands about plugins, through the API of a server. They print the same as on a database.

use crate::cli::json::Members as _;
use anyhow::Context;
use bytes::Bytes;
use packhouse_app::plugins::{Activation, Changes};
use serde_json::{Value, json};

use super::lifecycle::{report_activation, report_install};
use crate::cli::print;
use crate::cli::remote::{ApiClient, RemoteContext, pick, text};

/// Prints a line for each component.
pub(super) async fn list(api: &ApiClient) -> anyhow::Result<()> {
    for plugin in api.list(&["plugins"]).await? {
        let or_none = |field: &str| plugin.at(field).as_str().unwrap_or("-").to_owned();
        let [format, source, state] = ["format", "source", "state"].map(|field| text(&plugin, field));
        let kinds = texts(plugin.at("capabilities").at("kinds")).join(", ");
        let error = plugin.at("error").as_str().map(|error| format!("\t{error}")).unwrap_or_default();
        let (version, digest) = (or_none("version"), or_none("digest"));
        print(&format!("{format}\t{version}\t{kinds}\t{source}\t{state}\t{digest}{error}"))?;
    }
    Ok(())
}

/// Installs a component: its bytes, or the artifact in a registry that `source` names.
pub(super) async fn install(
    api: &ApiClient,
    source: &str,
    bytes: Option<Bytes>,
    signature: Option<&str>,
) -> anyhow::Result<()> {
    let before = api.list(&["plugins"]).await?;
    let installed = match bytes {
        Some(bytes) => api.upload(&["plugins"], bytes, signature).await?,
        None => api.post(&["plugins"], &json!({"source": source, "signature": signature})).await?,
    };
    let new = !before.iter().any(|plugin| plugin.at("digest") == installed.at("digest"));
    let requested = |field: &str| texts(installed.at("changes").at(field));
    let changes = Changes {
        imports: requested("imports"),
        claims: requested("claims"),
        settings: requested("settings"),
        limits: requested("limits"),
        permissions: requested("permissions"),
    };
    report_install(text(&installed, "digest"), new, &changes)
}

/// Activates a component. Without an expected one, the component that runs now is expected.
pub(super) async fn activate(api: &ApiClient, activation: &Activation<'_>) -> anyhow::Result<()> {
    let Activation { format, digest, expected, accept_changes } = *activation;
    let active = active(api, format).await?;
    let expected = expected.or(active.as_deref());
    let body = json!({"digest": digest, "expected_active": expected, "accept_changes": accept_changes});
    let done = api.post(&["plugins", format, "activate"], &body).await;
    let done = done.context("nothing was changed (`--accept-changes` allows additional permissions)")?;
    report_activation(format, active.as_deref(), text(&done, "digest"))
}

pub(super) async fn roll_back(api: &ApiClient, format: &str) -> anyhow::Result<()> {
    let active = active(api, format).await?;
    let done = api.post_empty(&["plugins", format, "rollback"]).await?;
    report_activation(format, active.as_deref(), text(&done, "digest"))
}

/// Returns the digest of the component that a format runs.
async fn active(api: &ApiClient, format: &str) -> anyhow::Result<Option<String>> {
    let listed = api.list(&["plugins"]).await?;
    let runs = listed.iter().find(|one| text(one, "format") == format && text(one, "state") == "active");
    Ok(runs.and_then(|plugin| plugin.at("digest").as_str()).map(str::to_owned))
}

/// Starts recording calls of a repository's plugin.
pub(super) async fn record(
    server: &RemoteContext,
    repository: &str,
    count: u32,
    only_failures: bool,
) -> anyhow::Result<Value> {
    let found = server.repository(repository).await?;
    let body = json!({"repository": found.at("id"), "count": count, "only_failures": only_failures});
    let made = server.api.post(&["plugins", text(&found, "format"), "recordings"], &body).await?;
    Ok(pick(&made, &["id", "format", "repository", "count", "only_failures", "armed_until"]))
}

/// Returns the recordings of a repository.
pub(super) async fn recordings(server: &RemoteContext, repository: &str) -> anyhow::Result<Vec<Value>> {
    let found = server.repository(repository).await?;
    let listed = server.api.list(&["plugins", text(&found, "format"), "recordings"]).await?;
    let own = listed.iter().filter(|recording| recording.at("repository") == found.at("id"));
    let fields = ["id", "set", "recorded_at", "function", "outcome", "component", "cut", "bytes"];
    Ok(own.map(|recording| pick(recording, &fields)).collect())
}

/// Returns the file of a recording.
pub(super) async fn recording(server: &RemoteContext, repository: &str, id: &str) -> anyhow::Result<String> {
    let found = server.repository(repository).await?;
    server.api.get_text(&["plugins", text(&found, "format"), "recordings", id]).await
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
