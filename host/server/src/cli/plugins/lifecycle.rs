//! `packhouse plugins install`, `activate`, `rollback`, `pin`: what formats run, on the database itself, beside a running server or
//! without one. Servers follow within a second. Whoever may run them may read the database anyway: no right is asked for.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use packhouse_app::App;
use packhouse_app::plugins::{Activation, Changes, ListedPlugin, PluginOrigin, PluginStateName};
use packhouse_config::Config;
use packhouse_runtime::read_component;
use packhouse_store::AuditEvent;
use serde_json::json;

use crate::cli::accounts::{Common, Desk, Shown, event};
use crate::cli::opened::{opened, over};
use crate::cli::{SettingFlags, print, settings};

/// A component to be activated.
#[derive(Debug, Args)]
pub(crate) struct Activate {
    /// The format
    format: String,
    /// The component, as `plugins list` prints it
    digest: String,
    /// Refuse unless the format runs this one until now
    #[arg(long, value_name = "DIGEST")]
    expected: Option<String>,
    /// It may ask more than the one that runs until now
    #[arg(long)]
    accept_changes: bool,
    #[command(flatten)]
    settings: Box<SettingFlags>,
}

/// A repository to be pinned.
#[derive(Debug, Args)]
pub(crate) struct Pin {
    /// The repository, by its name
    repository: String,
    /// The component, as `plugins list` prints it; without one the repository is served by what its format runs
    digest: Option<String>,
    #[command(flatten)]
    common: Box<Common>,
}

/// Keeps the component of a file.
pub(super) async fn install(file: PathBuf, flags: SettingFlags) -> anyhow::Result<()> {
    let bytes = read_component(&file).with_context(|| format!("failed to read {}", file.display()))?;
    let app = opened(settings(flags)?).await?;
    let source = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (event, origin) = (events(&app).await?, PluginOrigin { source, signed_by: None });
    let done = app.install_plugin(bytes.into(), origin, |digest| event("install_plugin", digest)).await;
    app.store.close().await;
    let (digest, new, changes) = done?;
    print(&format!("{digest}\t{}", if new { "installed" } else { "it was there" }))?;
    told(&changes)
}

/// Lets a format run a component.
pub(super) async fn activate(asked: Activate) -> anyhow::Result<()> {
    let Activate { format, digest, expected, accept_changes, settings: flags } = asked;
    let app = opened(settings(*flags)?).await?;
    let runs = app
        .list_plugins()
        .await?
        .into_iter()
        .find(|plugin| plugin.format == format && plugin.state == PluginStateName::Active);
    let runs = runs.and_then(|plugin| plugin.digest);
    let expected = expected.or(runs);
    let (format, digest) = (format.as_str(), digest.as_str());
    let activation = Activation { format, digest, expected: expected.as_deref(), accept_changes };
    let event = events(&app).await?;
    let done = app.activate_plugin(&activation, |format| event("activate_plugin", format)).await;
    app.store.close().await;
    let done = done.context("nothing was changed (`--accept-changes` accepts what it asks more)")?;
    print(&format!("{format}\t{}\t{}", done.before.as_deref().unwrap_or("-"), done.digest))
}

/// Lets a format run what it ran before.
pub(super) async fn roll_back(format: &str, flags: SettingFlags) -> anyhow::Result<()> {
    let app = opened(settings(flags)?).await?;
    let event = events(&app).await?;
    let done = app.roll_back_plugin(format, |format| event("roll_back_plugin", format)).await;
    app.store.close().await;
    let done = done?;
    print(&format!("{format}\t{}\t{}", done.before.as_deref().unwrap_or("-"), done.digest))
}

/// Lets a component serve a repository.
pub(super) async fn pin(asked: Pin) -> anyhow::Result<()> {
    let Pin { repository, digest, common } = asked;
    let desk = Desk::open(*common).await?;
    let organization = desk.organization().await?;
    let row = desk.repository(&organization, &repository).await?;
    let app = over(desk.config.clone(), desk.store.clone()).await?;
    let event = desk.event(&organization, "pin_plugin", &repository);
    app.pin_plugin(organization.id, row.id, digest.as_deref(), event).await?;
    let pinned = json!({"repository": repository, "digest": digest});
    desk.done(&["repository", "digest"], Shown::One(pinned)).await
}

/// A line for each component.
pub(super) async fn list(config: Config) -> anyhow::Result<()> {
    let app = opened(config).await?;
    let listed = app.list_plugins().await?;
    app.store.close().await;
    for plugin in &listed {
        print(&line(plugin))?;
    }
    Ok(())
}

fn line(plugin: &ListedPlugin) -> String {
    let state = plugin.state.word();
    let told = plugin.told.as_ref();
    let version = told.map_or("-", |told| told.version.as_str());
    let kinds = told.map(|told| told.capabilities.kinds.join(", ")).unwrap_or_default();
    let digest = plugin.digest.as_deref().unwrap_or("-");
    let error = plugin.error.as_ref().map(|error| format!("\t{error}")).unwrap_or_default();
    format!("{}\t{version}\t{kinds}\t{}\t{state}\t{digest}{error}", plugin.format, plugin.source)
}

fn told(changes: &Changes) -> anyhow::Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    print(&format!("it asks more than the component that runs: {}", changes.in_words()))
}

/// Of a change of the server, which stands in the audit log of the first organization; none before there is one.
async fn events(app: &App) -> anyhow::Result<impl Fn(&str, &str) -> Option<AuditEvent>> {
    let first = app.first_organization().await?;
    Ok(move |action: &str, subject: &str| Some(event(first?, action, subject)))
}
