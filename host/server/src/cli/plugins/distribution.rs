//! `packhouse plugins publish`: publishes a component to a registry, signed if the author has a
//! key. It needs no server.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use packhouse_app::plugins::registry::{
    ArtifactFacts, Publication, Reference, Registry, RegistryLogin, anywhere,
};
use packhouse_app::plugins::signatures::SigningPem;
use packhouse_config::Secret;
use packhouse_runtime::{inspect, read_component};

use crate::cli::print;

/// Environment variable with USER:PASSWORD for the registry.
const LOGIN: &str = "PACKHOUSE_REGISTRY_LOGIN";

/// Arguments of `packhouse plugins publish`.
#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// Component file (.wasm)
    file: PathBuf,
    /// Destination: oci://HOST/PATH:TAG. Credentials come from PACKHOUSE_REGISTRY_LOGIN
    /// (USER:PASSWORD), or from docker's config.json in the folder DOCKER_CONFIG or ~/.docker
    reference: Reference,
    /// Sign the component with the private key (ECDSA, P-256) in this PEM file
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

/// Publishes a component and prints its reference by digest as the last line.
pub(super) async fn publish(arguments: Publish) -> anyhow::Result<()> {
    let Publish { file, reference, key } = arguments;
    let key = key.map(|key| SigningPem::read(&key)).transpose()?;
    let bytes = component(&file)?;
    let looked_at = file.clone();
    let found = tokio::task::spawn_blocking(move || inspect(&looked_at)).await??;
    let facts = ArtifactFacts {
        format: found.description.format,
        version: found.description.version,
        imports: found.imports,
        exports: found.exports,
    };
    let remote = anywhere(&reference, login(&reference, None)?)?;
    let registry = Registry::new(&reference, remote)?;
    let published = registry.publish(Publication { bytes: bytes.into(), facts, key: key.as_ref() }).await;
    let published = published.with_context(|| format!("{} was not published", file.display()))?;
    if let Some((signature, key)) = published.signature.zip(key) {
        print(&format!("signed by {}: {signature}", key.fingerprint()))?;
    }
    print(&published.reference.to_string())
}

pub(super) fn component(file: &Path) -> anyhow::Result<Vec<u8>> {
    read_component(file).with_context(|| format!("failed to read {}", file.display()))
}

/// Returns the registry credentials: from the environment, else from the configured file, else from
/// docker's file.
pub(super) fn login(
    reference: &Reference,
    of_settings: Option<&Path>,
) -> anyhow::Result<Option<RegistryLogin>> {
    if let Some(pair) = std::env::var_os(LOGIN) {
        let pair = pair.into_string().ok().map(Secret::new);
        let login = pair.as_ref().and_then(RegistryLogin::of_pair);
        return Ok(Some(login.ok_or_else(|| anyhow!("{LOGIN} must have the form USER:PASSWORD"))?));
    }
    if let Some(file) = of_settings {
        return Ok(RegistryLogin::of_file(file, reference.host())?);
    }
    let folder = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let folder = folder.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".docker")));
    match folder.map(|folder| folder.join("config.json")).filter(|file| file.exists()) {
        Some(file) => Ok(RegistryLogin::of_file(&file, reference.host())?),
        None => Ok(None),
    }
}
