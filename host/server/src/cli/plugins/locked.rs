//! `packhouse plugins lock` and `plugins install --locked`: write the active components of a server
//! to a lock file, and install exactly these components on another server. If one of them cannot be
//! fetched or fails a check, none is installed.

use crate::cli::json::Members as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use packhouse_app::App;
use packhouse_app::plugins::registry::{Reference, SCHEME};
use packhouse_app::plugins::{Activation, ListedPlugin, PluginOrigin, PluginStateName};
use packhouse_store::Sha256;
use serde::{Deserialize, Serialize};

use super::distribution;
use super::events::events;
use crate::cli::opened::open_app;
use crate::cli::remote::{ApiClient, text};
use crate::cli::{SettingFlags, print, settings};

/// Version of the lock file format.
const VERSION: u32 = 1;
/// Maximum size of a lock file, in bytes.
const BYTES: u64 = 1 << 20;
const HEAD: &str = "# The active component of each format, written by `packhouse plugins lock`. `packhouse plugins install --locked` applies it to another server.\n";

/// Contents of a lock file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Lock {
    version: u32,
    #[serde(default, rename = "plugin")]
    plugins: Vec<Locked>,
}

/// The active component of a format.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Locked {
    format: String,
    version: String,
    digest: String,
    source: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signed_by: Option<String>,
}

/// Writes the active component of every format, sorted by format.
pub(super) async fn lock(out: Option<PathBuf>, flags: SettingFlags) -> anyhow::Result<()> {
    let app = open_app(settings(flags)?).await?;
    let listed = app.list_plugins().await;
    app.store.close().await;
    write(out, active(listed?).filter_map(locked).collect())
}

/// Writes the active component of every format of a server, through its API.
pub(super) async fn lock_of_server(out: Option<PathBuf>, api: &ApiClient) -> anyhow::Result<()> {
    let listed = api.list(&["plugins"]).await?;
    let active = listed.iter().filter(|plugin| text(plugin, "state") == "active");
    let locked = active.map(|plugin| Locked {
        format: text(plugin, "format").to_owned(),
        version: text(plugin, "version").to_owned(),
        digest: text(plugin, "digest").to_owned(),
        source: text(plugin, "source").to_owned(),
        signed_by: plugin.at("signed_by").as_str().map(str::to_owned),
    });
    write(out, locked.collect())
}

fn write(out: Option<PathBuf>, mut plugins: Vec<Locked>) -> anyhow::Result<()> {
    plugins.sort_by(|one, other| one.format.cmp(&other.format));
    let text = format!("{HEAD}{}", toml::to_string(&Lock { version: VERSION, plugins })?);
    match out {
        Some(file) => {
            std::fs::write(&file, text).with_context(|| format!("failed to write {}", file.display()))
        }
        None => print(text.trim_end()),
    }
}

fn active(listed: Vec<ListedPlugin>) -> impl Iterator<Item = ListedPlugin> {
    listed.into_iter().filter(|plugin| plugin.state == PluginStateName::Active)
}

fn locked(plugin: ListedPlugin) -> Option<Locked> {
    let ListedPlugin { format, digest, facts, source, signed_by, .. } = plugin;
    Some(Locked { format, version: facts?.version, digest: digest?, source, signed_by })
}

/// A component that must be installed.
struct Fetched {
    bytes: Bytes,
    origin: PluginOrigin,
}

/// Installs and activates the components of a lock file. All components are fetched and checked
/// before the first is installed, and installed before the first is activated. The command accepts
/// additional permissions that the components request.
pub(super) async fn install(file: &Path, flags: SettingFlags) -> anyhow::Result<()> {
    let lock = read(file)?;
    let app = open_app(settings(flags)?).await?;
    let done = bring(&app, file, &lock).await;
    app.store.close().await;
    done
}

fn read(file: &Path) -> anyhow::Result<Lock> {
    let failed = || format!("failed to read {}", file.display());
    ensure!(
        std::fs::metadata(file).with_context(failed)?.len() <= BYTES,
        "{} is too large for a lock file",
        file.display()
    );
    let text = std::fs::read_to_string(file).with_context(failed)?;
    let lock: Lock =
        toml::from_str(&text).with_context(|| format!("{} is not a lock file", file.display()))?;
    ensure!(
        lock.version == VERSION,
        "{} has version {}, but this program reads version {VERSION}",
        file.display(),
        lock.version
    );
    let mut formats: Vec<&str> = lock.plugins.iter().map(|plugin| plugin.format.as_str()).collect();
    formats.sort_unstable();
    if let Some(twice) = formats.windows(2).find(|pair| pair.first() == pair.last()) {
        bail!("{} names the format {} twice", file.display(), twice.first().copied().unwrap_or_default());
    }
    Ok(lock)
}

async fn bring(app: &App, file: &Path, lock: &Lock) -> anyhow::Result<()> {
    let runs: Vec<ListedPlugin> = active(app.list_plugins().await?).collect();
    let named = |plugin: &&ListedPlugin| lock.plugins.iter().any(|locked| locked.format == plugin.format);
    if let Some(other) = runs.iter().find(|plugin| !named(plugin)) {
        bail!(
            "nothing was changed: this server runs the format {}, which is missing from {}",
            other.format,
            file.display()
        );
    }
    let mut fetched = Vec::new();
    for locked in &lock.plugins {
        let found = fetch(app, file, locked).await;
        fetched.extend(found.with_context(|| format!("nothing was changed: the format {}", locked.format))?);
    }
    let event = events(app).await?;
    for Fetched { bytes, origin } in fetched {
        app.install_plugin(bytes, origin, |digest| event("install_plugin", digest)).await?;
    }
    for Locked { format, digest, version, .. } in &lock.plugins {
        let before = runs.iter().find(|plugin| plugin.format == *format);
        let expected = before.and_then(|plugin| plugin.digest.as_deref());
        let activation = Activation { format, digest, expected, accept_changes: true };
        let done = app.activate_plugin(&activation, |format| event("activate_plugin", format)).await;
        done.with_context(|| format!("the format {format} was not activated"))?;
        print(&format!("{format}\t{version}\t{digest}"))?;
    }
    Ok(())
}

/// Fetches the component of an entry. None if this server already has it.
async fn fetch(app: &App, file: &Path, locked: &Locked) -> anyhow::Result<Option<Fetched>> {
    let Locked { digest, source, signed_by, .. } = locked;
    if let Some(there) = app.find_plugin(digest).await? {
        let own = there.facts.map(|facts| facts.version).unwrap_or_default();
        ensure!(
            there.format == locked.format && own == locked.version,
            "the component {digest} is {} {own}",
            there.format
        );
        return Ok(None);
    }
    let (bytes, origin) = if source.starts_with(SCHEME) {
        let reference: Reference = source.parse()?;
        ensure!(reference.digest().is_some(), "{source} is not pinned by a digest");
        let login = distribution::login(&reference, app.config.registry_auth.as_deref())?;
        app.fetch_plugin(source, None, login).await?
    } else {
        let beside = Path::new(source).file_name().map(|name| file.with_file_name(name));
        let Some(beside) = beside.filter(|beside| beside.is_file()) else {
            bail!(
                "its component {digest} was installed from {source:?}, which is not in a registry: put that file into the plugin folder \
                 or beside {}, or publish it",
                file.display()
            );
        };
        let bytes = Bytes::from(distribution::component(&beside)?);
        let origin = app.vouch(&bytes, source, None)?;
        (bytes, origin)
    };
    let found = Sha256::of(&bytes).digest().to_string();
    ensure!(found == *digest, "{source} is now the component {found}, but the lock file requires {digest}");
    if !app.trusted_keys()?.is_empty() {
        let was = signed_by.as_deref().unwrap_or("nobody");
        let is = origin.signed_by.as_deref().unwrap_or("nobody");
        ensure!(
            signed_by.is_none() || was == is,
            "{source} is signed by {is}, but the lock file names {was}"
        );
    }
    Ok(Some(Fetched { bytes, origin }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_read_as_it_was_written() {
        let plugin = |format: &str| Locked {
            format: format.to_owned(),
            version: "1.0".to_owned(),
            digest: "sha256:00".to_owned(),
            source: "oci://h.test/a@sha256:00".to_owned(),
            signed_by: None,
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lock");
        let write = |lock: &Lock| std::fs::write(&file, toml::to_string(lock).unwrap()).unwrap();
        write(&Lock { version: VERSION, plugins: vec![plugin("a"), plugin("b")] });
        assert_eq!(read(&file).unwrap().plugins.len(), 2);
        write(&Lock { version: VERSION, plugins: vec![plugin("a"), plugin("a")] });
        assert!(read(&file).unwrap_err().to_string().contains("twice"));
        write(&Lock { version: 2, plugins: Vec::new() });
        assert!(read(&file).unwrap_err().to_string().contains("version 2"));
        std::fs::write(&file, "version = 1\nelse = 2\n").unwrap();
        assert!(read(&file).is_err());
    }
}
