//! `packhouse plugins install`, `activate`, `rollback`, `pin`: what formats run, on the database itself, beside a running server or
//! without one. Servers follow within a second. Whoever may run them may read the database anyway: no right is asked for.

use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::Args;
use packhouse_app::App;
use packhouse_app::plugins::{Activation, Changes, ListedPlugin, PluginOrigin, PluginStateName};
use packhouse_config::Config;
use packhouse_runtime::MAX_COMPONENT_BYTES;
use packhouse_store::{AuditEvent, OrganizationRow};

use crate::cli::retention::opened;
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
    /// The organization, by its name; needed where there are several
    #[arg(long, value_name = "NAME")]
    org: Option<String>,
    #[command(flatten)]
    settings: Box<SettingFlags>,
}

/// Keeps the component of a file.
pub(super) async fn install(file: PathBuf, flags: SettingFlags) -> anyhow::Result<()> {
    let size = std::fs::metadata(&file).with_context(|| format!("failed to look at {}", file.display()))?;
    ensure!(
        size.len() <= MAX_COMPONENT_BYTES as u64,
        "{} has more than {MAX_COMPONENT_BYTES} bytes",
        file.display()
    );
    #[allow(
        clippy::disallowed_methods,
        reason = "a component is kept as a whole, and its size was looked at"
    )]
    let bytes = std::fs::read(&file).with_context(|| format!("failed to read {}", file.display()))?;
    let app = opened(settings(flags)?).await?;
    let source = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (organization, origin) = (first(&app).await?, PluginOrigin { source, signed_by: None });
    let event = |digest: &str| event(organization.as_ref(), "install_plugin", digest);
    let (digest, new, changes) = app.install_plugin(bytes.into(), origin, event).await?;
    print(&format!("{digest}\t{}", if new { "installed" } else { "it was there" }))?;
    told(&changes)?;
    app.store.close().await;
    Ok(())
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
    let organization = first(&app).await?;
    let event = |format: &str| event(organization.as_ref(), "activate_plugin", format);
    let done = app.activate_plugin(&activation, event).await;
    app.store.close().await;
    let done = done.context("nothing was changed (`--accept-changes` accepts what it asks more)")?;
    print(&format!("{format}\t{}\t{}", done.before.as_deref().unwrap_or("-"), done.digest))
}

/// Lets a format run what it ran before.
pub(super) async fn roll_back(format: &str, flags: SettingFlags) -> anyhow::Result<()> {
    let app = opened(settings(flags)?).await?;
    let organization = first(&app).await?;
    let event = |format: &str| event(organization.as_ref(), "roll_back_plugin", format);
    let done = app.roll_back_plugin(format, event).await;
    app.store.close().await;
    let done = done?;
    print(&format!("{format}\t{}\t{}", done.before.as_deref().unwrap_or("-"), done.digest))
}

/// Lets a component serve a repository.
pub(super) async fn pin(asked: Pin) -> anyhow::Result<()> {
    let Pin { repository, digest, org, settings: flags } = asked;
    let app = opened(settings(*flags)?).await?;
    let mut all = app.store.organizations().await?;
    if let Some(name) = &org {
        all.retain(|row| row.name == *name || row.id.to_string() == *name);
    }
    let [organization] = all.as_slice() else {
        bail!("name the organization with --org: there are {} that it may be", all.len());
    };
    let found = app.store.look_up(organization.id, &repository, None).await?.repository.clone();
    let row =
        found.with_context(|| format!("there is no repository {repository:?} in {}", organization.name))?;
    let event = event(Some(organization), "pin_plugin", &repository);
    let done = app.pin_plugin(organization.id, row.id, digest.as_deref(), event).await;
    app.store.close().await;
    done?;
    print(&format!("{repository}\t{}", digest.as_deref().unwrap_or("-")))
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
    let state = match plugin.state {
        PluginStateName::Active => "active",
        PluginStateName::Candidate => "candidate",
        PluginStateName::Retired => "retired",
        PluginStateName::Refused => "refused",
    };
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

/// The organization in whose audit log a change of the server stands.
async fn first(app: &App) -> anyhow::Result<Option<OrganizationRow>> {
    let first = app.first_organization().await?;
    Ok(app.store.organizations().await?.into_iter().find(|row| Some(row.id) == first))
}

fn event(organization: Option<&OrganizationRow>, action: &str, subject: &str) -> Option<AuditEvent> {
    Some(AuditEvent {
        organization: organization?.id,
        actor: "command line".to_owned(),
        action: action.to_owned(),
        subject: subject.to_owned(),
        ..AuditEvent::default()
    })
}
