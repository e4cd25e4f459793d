//! Builds crates into core modules with cargo.

use crate::renamed;
use crate::toolchain::{TARGET, Toolchain};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Initial memory of a component in bytes, including one MiB of stack. Untouched memory costs
/// nothing. Growing the memory is expensive, and most calls need no more than this.
const INITIAL_MEMORY: usize = 4 << 20;

/// The crates that cargo builds.
pub struct Crates {
    /// Folder in which cargo runs.
    pub folder: PathBuf,
    /// Name that replaces this folder in the compiled code.
    pub name: &'static str,
    /// Arguments of `cargo build` that select the crates and the profile.
    pub arguments: Vec<OsString>,
}

/// A core module that was built.
pub struct Module {
    /// Name of the crate's folder, which becomes the component's name.
    pub name: String,
    /// File of the core module.
    pub path: PathBuf,
}

/// Builds the crates that are out of date and returns all modules. The compiler's messages go to
/// standard error.
///
/// # Errors
/// Fails if a crate does not compile or if cargo cannot be started.
pub fn run(toolchain: &Toolchain, crates: &Crates) -> Result<Vec<Module>> {
    let mut command = toolchain.cargo_build();
    command.args(["--lib", "--target", TARGET]).args(&crates.arguments);
    let flags = Value::from(flags(crates)?);
    command.arg("--config").arg(format!("target.{TARGET}.rustflags = {flags}"));
    command.arg("--message-format=json-render-diagnostics");
    command.current_dir(&crates.folder).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let output = command.spawn().context("failed to start cargo")?.wait_with_output()?;
    if !output.status.success() {
        bail!("cargo could not build for {TARGET}: see its messages above");
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    Ok(messages.lines().filter_map(|line| module(&serde_json::from_str(line).ok()?)).collect())
}

/// Additional flags for the compiler. The caller passes them as a JSON list of strings, which is
/// valid TOML too.
fn flags(crates: &Crates) -> Result<Vec<String>> {
    let mut flags = vec![format!("-Clink-arg=--initial-memory={INITIAL_MEMORY}")];
    for (folder, name) in renamed::folders(&crates.folder, crates.name)? {
        flags.push(format!("--remap-path-prefix={}={name}", folder.display()));
    }
    Ok(flags)
}

/// The core module that one of cargo's messages names, rebuilt or up to date. `None` for other
/// messages.
fn module(message: &Value) -> Option<Module> {
    let manifest = Path::new(message.get("manifest_path")?.as_str()?);
    let files = message.get("filenames")?.as_array()?.iter().filter_map(Value::as_str);
    let path = files.map(Path::new).find(|file| file.extension().is_some_and(|end| end == "wasm"))?;
    let name = manifest.parent()?.file_name()?.to_str()?;
    Some(Module { name: name.to_owned(), path: path.to_owned() })
}
