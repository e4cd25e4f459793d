//! `packhouse plugins install`, `activate`, `rollback`, `pin`: what formats run, on the database itself, beside a running server or
//! without one. Servers follow within a second. Whoever may run them may read the database anyway: no right is asked for.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use clap::Args;
use packhouse_app::App;
use packhouse_app::plugins::registry::SCHEME;
use packhouse_app::plugins::{Activation, Changes, ListedPlugin, PluginStateName};
use packhouse_config::Config;
use serde_json::json;

use super::events::events;
use super::{distribution, locked};
use crate::cli::accounts::{Common, Desk, Shown};
use crate::cli::opened::{opened, over};
use crate::cli::{SettingFlags, print, settings};

/// Bytes of a signature's file at most.
const SIGNATURE_BYTES: u64 = 4 << 10;

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

/// A component to be installed.
#[derive(Debug, Args)]
pub(crate) struct Install {
    /// The .wasm file, or oci://HOST/PATH:TAG or oci://HOST/PATH@sha256:… in a registry, with credentials as for `publish`
    #[arg(value_name = "FILE|REFERENCE", required_unless_present = "locked")]
    source: Option<String>,
    /// A file with a signature of the component's bytes, ECDSA on P-256 over SHA-256: DER, as it is or in base64
    #[arg(long, value_name = "FILE", requires = "source")]
    signature: Option<PathBuf>,
    /// Install and activate exactly what this lock file names, as `plugins lock` writes it
    #[arg(long, value_name = "FILE", conflicts_with = "source")]
    locked: Option<PathBuf>,
    #[command(flatten)]
    settings: Box<SettingFlags>,
}

/// Keeps a component, or does what a lock file says.
pub(super) async fn install(asked: Install) -> anyhow::Result<()> {
    let Install { source, signature, locked: lock, settings: flags } = asked;
    if let Some(lock) = lock {
        return locked::install(&lock, *flags).await;
    }
    let source = source.unwrap_or_default();
    let signature = signature.map(|file| read_signature(&file)).transpose()?;
    let fetched = source.starts_with(SCHEME);
    let bytes = if fetched { None } else { Some(Bytes::from(distribution::component(Path::new(&source))?)) };
    let app = opened(settings(*flags)?).await?;
    let done = keep(&app, &source, bytes, signature.as_deref()).await;
    app.store.close().await;
    let (digest, new, changes) = done?;
    print(&format!("{digest}\t{}", if new { "installed" } else { "it was there" }))?;
    told(&changes)
}

async fn keep(
    app: &App,
    source: &str,
    bytes: Option<Bytes>,
    signature: Option<&str>,
) -> anyhow::Result<(String, bool, Changes)> {
    let (bytes, origin) = match bytes {
        Some(bytes) => {
            let name = Path::new(source).file_name().map(|name| name.to_string_lossy().into_owned());
            let origin = app.vouch(&bytes, &name.unwrap_or_default(), signature)?;
            (bytes, origin)
        }
        None => {
            let login = distribution::login(&source.parse()?, app.config.registry_auth.as_deref())?;
            app.fetch_plugin(source, signature, login).await?
        }
    };
    let event = events(app).await?;
    Ok(app.install_plugin(bytes, origin, |digest| event("install_plugin", digest)).await?)
}

/// A signature in base64, whichever way it was written.
fn read_signature(file: &Path) -> anyhow::Result<String> {
    let failed = || format!("failed to read {}", file.display());
    ensure!(
        std::fs::metadata(file).with_context(failed)?.len() <= SIGNATURE_BYTES,
        "{} is no signature",
        file.display()
    );
    #[allow(clippy::disallowed_methods, reason = "a signature is short, and its size was looked at")]
    let bytes = std::fs::read(file).with_context(failed)?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|der| STANDARD.encode(der.as_bytes())))
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
