//! Creates a component from a core module.

use crate::contract_only;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use wit_component::ComponentEncoder;

/// Writes the component of the core module in `module` to `file`. Returns false if the file already
/// has the same content and was not written.
///
/// # Errors
/// Fails if a file cannot be read or written, or if the module does not export the contract.
pub fn encode(module: &Path, file: &Path) -> Result<bool> {
    let encoded = ComponentEncoder::default().validate(true).module(&read(module)?)?.encode();
    write(
        &encoded
            .context("the module is not a plugin: its crate must end with `packhouse_sdk::export!(…)`")?,
        file,
    )
}

/// Writes a component to a file. Returns false if the file already has the same content and was not
/// written.
///
/// # Errors
/// Returns errors of the file system.
pub fn write(component: &[u8], file: &Path) -> Result<bool> {
    if file.exists() && read(file)? == component {
        return Ok(false);
    }
    let folder = file.parent().context("the output file has no parent folder")?;
    fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    // The file is written under another name and renamed. A server that loads plugins meanwhile
    // therefore sees either the old component or the new one.
    let part = file.with_extension("part");
    fs::write(&part, component).with_context(|| format!("failed to write {}", part.display()))?;
    fs::rename(&part, file).with_context(|| format!("failed to write {}", file.display()))?;
    Ok(true)
}

/// Moves the component that an interpreter's tool wrote to `part` to `file`. If componentize-qjs
/// built the component, removes all imports that are not part of the contract. Returns false if the
/// file already has the same content and was not written.
///
/// # Errors
/// Returns errors of the file system, and fails if `part` is not a component.
pub(crate) fn put(part: &Path, file: &Path) -> Result<bool> {
    let made = read(part)?;
    let reduced = contract_only::reduce(&made)?;
    fs::remove_file(part).with_context(|| format!("failed to remove {}", part.display()))?;
    write(&reduced.unwrap_or(made), file)
}

#[expect(clippy::disallowed_methods, reason = "a plugin's code is some MiB at most")]
fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("failed to read {}", file.display()))
}
