//! Groups of crates that are built together.

use anyhow::{Context, Result};
use packhouse_authoring::compile::Crates;
use std::ffi::OsString;
use std::path::Path;

/// Every crate of `plugins/`.
pub(crate) fn plugins(root: &Path) -> Result<Crates> {
    all_in(root, "plugins")
}

/// Every crate of `policies/`.
pub(crate) fn policies(root: &Path) -> Result<Crates> {
    all_in(root, "policies")
}

fn all_in(root: &Path, folder: &str) -> Result<Crates> {
    let mut arguments = Vec::new();
    let entries = root.join(folder).read_dir().with_context(|| format!("failed to list {folder}/"))?;
    for entry in entries {
        let folder = entry?.path();
        if let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) {
            let name = package_name(&manifest).with_context(|| format!("no name in {}", folder.display()))?;
            arguments.push("--package".into());
            arguments.push(format!("path+file://{}#{name}", folder.display()).into());
        }
    }
    Ok(crates(root, arguments))
}

/// Every crate of the workspace in `tests/guests`.
pub(crate) fn guests(root: &Path) -> Crates {
    let manifest = root.join("tests/guests/Cargo.toml");
    crates(root, vec!["--workspace".into(), "--manifest-path".into(), manifest.into()])
}

/// The crate in a folder outside of the workspace.
pub(crate) fn elsewhere(root: &Path, folder: &Path) -> Result<Crates> {
    let manifest = folder.join("Cargo.toml").canonicalize();
    let manifest = manifest.with_context(|| format!("failed to find a crate in {}", folder.display()))?;
    Ok(crates(root, vec!["--manifest-path".into(), manifest.into()]))
}

/// Crates with the profile of plugins and a target folder of their own.
fn crates(root: &Path, mut arguments: Vec<OsString>) -> Crates {
    arguments.extend(["--locked", "--profile", "plugin", "--target-dir"].map(OsString::from));
    arguments.push(root.join("target/wasm").into());
    Crates { folder: root.to_owned(), name: "/packhouse", arguments }
}

/// The first `name = "…"` of a manifest. A package id needs this name, unless the package has the
/// name of its folder.
fn package_name(manifest: &str) -> Option<&str> {
    manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
}
