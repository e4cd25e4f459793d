//! Makes a component of a core module.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Writes the component of `module` to `file`. False when it was the same already, and is left alone.
pub(crate) fn encode(module: &Path, file: &Path) -> Result<bool> {
    let mut encoder = wit_component::ComponentEncoder::default();
    let component = encoder.validate(true).module(&read(module)?)?.encode()?;
    if file.exists() && read(file)? == component {
        return Ok(false);
    }
    let folder = file.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder)?;
    // Whoever loads plugins meanwhile sees the old one or the new one.
    let part = file.with_extension("part");
    fs::write(&part, component)?;
    fs::rename(&part, file)?;
    Ok(true)
}

#[expect(clippy::disallowed_methods, reason = "a plugin's code is some hundred KiB")]
fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("failed to read {}", file.display()))
}
