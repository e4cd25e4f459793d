//! `packhouse plugins install`, `activate`, `rollback` and `pin`: change which components formats
//! run, directly on the database, with or without a running server. Running servers apply a change
//! within a second. The commands check no permissions, because the caller can read the database
//! anyway. With `--server`, they call the API instead.

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
use super::{distribution, locked, remote};
use crate::cli::accounts::{CommandOutput, CommandTarget, Common};
use crate::cli::opened::{open_app, open_app_with_store};
use crate::cli::remote::{ServerFlags, text};
use crate::cli::{SettingFlags, print, settings};

/// Maximum size of a signature file, in bytes.
const SIGNATURE_BYTES: u64 = 4 << 10;
const PINNED: &[&str] = &["repository", "digest"];

/// Arguments of `packhouse plugins activate`.
#[derive(Debug, Args)]
pub(crate) struct Activate {
    /// Name of the format
    format: String,
    /// Digest of the component, as `plugins list` prints it
    digest: String,
    /// Fail unless this version is currently active
    #[arg(long, value_name = "DIGEST")]
    expected: Option<String>,
    /// Allow it to request more permissions than the active version
    #[arg(long)]
    accept_changes: bool,
    #[command(flatten)]
    server: Box<ServerFlags>,
    #[command(flatten)]
    settings: Box<SettingFlags>,
}

/// Arguments of `packhouse plugins pin`.
#[derive(Debug, Args)]
pub(crate) struct Pin {
    /// Name of the repository
    repository: String,
    /// Digest of the component, as `plugins list` prints it; without it, the pin is removed and the
    /// repository follows its format
    digest: Option<String>,
    #[command(flatten)]
    common: Box<Common>,
}

/// Arguments of `packhouse plugins install`.
#[derive(Debug, Args)]
pub(crate) struct Install {
    /// Component file (.wasm), or oci://HOST/PATH:TAG or oci://HOST/PATH@sha256:… in a registry,
    /// with credentials as for `publish`
    #[arg(value_name = "FILE|REFERENCE", required_unless_present = "locked")]
    source: Option<String>,
    /// File with a signature of the component: ECDSA on P-256 over SHA-256, as DER or base64
    #[arg(long, value_name = "FILE", requires = "source")]
    signature: Option<PathBuf>,
    /// Install and activate exactly the components in this lock file, which `plugins lock` writes
    #[arg(long, value_name = "FILE", conflicts_with = "source")]
    locked: Option<PathBuf>,
    #[command(flatten)]
    server: Box<ServerFlags>,
    #[command(flatten)]
    settings: Box<SettingFlags>,
}

/// Installs a component, or the components of a lock file.
pub(super) async fn install(arguments: Install) -> anyhow::Result<()> {
    let Install { source, signature, locked: lock, server, settings: flags } = arguments;
    if let Some(lock) = lock {
        server.refuse()?;
        return locked::install(&lock, *flags).await;
    }
    let source = source.unwrap_or_default();
    let signature = signature.map(|file| read_signature(&file)).transpose()?;
    let fetched = source.starts_with(SCHEME);
    let bytes = if fetched { None } else { Some(Bytes::from(distribution::component(Path::new(&source))?)) };
    if let Some(api) = server.connect(&flags)? {
        return remote::install(&api, &source, bytes, signature.as_deref()).await;
    }
    let app = open_app(settings(*flags)?).await?;
    let done = keep(&app, &source, bytes, signature.as_deref()).await;
    app.store.close().await;
    let (digest, new, changes) = done?;
    report_install(&digest, new, &changes)
}

/// Prints the digest of an installed component, and what it requests beyond the active one.
pub(super) fn report_install(digest: &str, new: bool, changes: &Changes) -> anyhow::Result<()> {
    print(&format!("{digest}\t{}", if new { "installed" } else { "already installed" }))?;
    print_changes(changes)
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

/// Reads a signature and returns it in base64.
fn read_signature(file: &Path) -> anyhow::Result<String> {
    let failed = || format!("failed to read {}", file.display());
    ensure!(
        std::fs::metadata(file).with_context(failed)?.len() <= SIGNATURE_BYTES,
        "{} is too large for a signature",
        file.display()
    );
    #[allow(clippy::disallowed_methods, reason = "a signature is short, and its size has been checked")]
    let bytes = std::fs::read(file).with_context(failed)?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|der| STANDARD.encode(der.as_bytes())))
}

/// Makes a component the active one of its format.
pub(super) async fn activate(arguments: Activate) -> anyhow::Result<()> {
    let Activate { format, digest, expected, accept_changes, server, settings: flags } = arguments;
    if let Some(api) = server.connect(&flags)? {
        let activation =
            Activation { format: &format, digest: &digest, expected: expected.as_deref(), accept_changes };
        return remote::activate(&api, &activation).await;
    }
    let app = open_app(settings(*flags)?).await?;
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
    let done = done.context("nothing was changed (`--accept-changes` allows additional permissions)")?;
    report_activation(format, done.before.as_deref(), &done.digest)
}

/// Prints the previous and the new component of a format.
pub(super) fn report_activation(format: &str, before: Option<&str>, digest: &str) -> anyhow::Result<()> {
    print(&format!("{format}\t{}\t{digest}", before.unwrap_or("-")))
}

/// Makes the previous component of a format active again.
pub(super) async fn roll_back(format: &str, flags: SettingFlags) -> anyhow::Result<()> {
    let app = open_app(settings(flags)?).await?;
    let event = events(&app).await?;
    let done = app.roll_back_plugin(format, |format| event("roll_back_plugin", format)).await;
    app.store.close().await;
    let done = done?;
    report_activation(format, done.before.as_deref(), &done.digest)
}

/// Pins a repository to a component, or removes the pin.
pub(super) async fn pin(arguments: Pin) -> anyhow::Result<()> {
    let Pin { repository, digest, common } = arguments;
    let pinned = json!({"repository": repository, "digest": digest});
    let context = match CommandTarget::open(*common).await? {
        CommandTarget::Database(context) => *context,
        CommandTarget::Server(server) => {
            let found = server.repository(&repository).await?;
            let segments = ["repositories", text(&found, "id"), "plugin"];
            server.api.put(&segments, &json!({"digest": digest})).await?;
            return server.finish(PINNED, CommandOutput::One(pinned));
        }
    };
    let organization = context.organization().await?;
    let row = context.repository(&organization, &repository).await?;
    let app = open_app_with_store(context.config.clone(), context.store.clone()).await?;
    let event = context.event(&organization, "pin_plugin", &repository);
    app.pin_plugin(organization.id, row.id, digest.as_deref(), event).await?;
    context.finish(PINNED, CommandOutput::One(pinned)).await
}

/// Prints a line for each component.
pub(super) async fn list(config: Config) -> anyhow::Result<()> {
    let app = open_app(config).await?;
    let listed = app.list_plugins().await?;
    app.store.close().await;
    for plugin in &listed {
        print(&line(plugin))?;
    }
    Ok(())
}

fn line(plugin: &ListedPlugin) -> String {
    let state = plugin.state.word();
    let known = plugin.facts.as_ref();
    let version = known.map_or("-", |known| known.version.as_str());
    let kinds = known.map(|known| known.capabilities.kinds.join(", ")).unwrap_or_default();
    let digest = plugin.digest.as_deref().unwrap_or("-");
    let error = plugin.error.as_ref().map(|error| format!("\t{error}")).unwrap_or_default();
    format!("{}\t{version}\t{kinds}\t{}\t{state}\t{digest}{error}", plugin.format, plugin.source)
}

fn print_changes(changes: &Changes) -> anyhow::Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    print(&format!("the component requests more than the active one: {}", changes.in_words()))
}
