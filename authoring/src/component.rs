//! Makes a component of a core module.

use crate::contract_alone;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use wit_component::ComponentEncoder;

/// Writes the component of the core module in `module` to `file`. False when it was the same already, and is left alone.
///
/// # Errors
/// A file that cannot be read or written, and a module that exports no contract.
pub fn encode(module: &Path, file: &Path) -> Result<bool> {
    let encoded = ComponentEncoder::default().validate(true).module(&read(module)?)?.encode();
    write(&encoded.context("it is no plugin: does it end with `packhouse_sdk::export!(…)`?")?, file)
}

/// Puts a component where it belongs. False when it was the same already, and is left alone.
///
/// # Errors
/// What the file system says.
pub fn write(component: &[u8], file: &Path) -> Result<bool> {
    if file.exists() && read(file)? == component {
        return Ok(false);
    }
    let folder = file.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    // Whoever loads plugins meanwhile sees the old one or the new one.
    let part = file.with_extension("part");
    fs::write(&part, component).with_context(|| format!("failed to write {}", part.display()))?;
    fs::rename(&part, file).with_context(|| format!("failed to write {}", file.display()))?;
    Ok(true)
}

/// Puts what an interpreter's tool wrote to `part` where it belongs, and takes `part` away. False when it was the same already, and is left
/// alone. What imports more than the contract, and need not, is reduced to it.
///
/// # Errors
/// What the file system says, and a component that is none.
pub(crate) fn put(part: &Path, file: &Path) -> Result<bool> {
    let made = read(part)?;
    let reduced = contract_alone::reduce(&made)?;
    fs::remove_file(part).with_context(|| format!("failed to remove {}", part.display()))?;
    write(&reduced.unwrap_or(made), file)
}

#[expect(clippy::disallowed_methods, reason = "a plugin's code is some MiB at most")]
fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("failed to read {}", file.display()))
}
