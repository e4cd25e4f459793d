//! Builds crates into core modules, and says where cargo put them.

use crate::renamed;
use crate::toolchain::{TARGET, Toolchain};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Bytes of memory that a component begins with, of which one MiB is its stack. Memory that it does not touch costs nothing, and a call
/// that needs no more never makes it grow, which costs more than most of what is allocated in it.
const INITIAL_MEMORY: usize = 4 << 20;

/// What cargo is to build.
pub struct Crates {
    /// Where cargo is started.
    pub folder: PathBuf,
    /// What stands for that folder in the compiled code.
    pub name: &'static str,
    /// Which crates, and how, as arguments of `cargo build`.
    pub arguments: Vec<OsString>,
}

/// A built module.
pub struct Module {
    /// The name of its crate's folder, which the component gets.
    pub name: String,
    /// The core module.
    pub path: PathBuf,
}

/// Builds them, as far as they are not fresh. What the compiler says goes where this program's own errors go, as it is.
///
/// # Errors
/// Crates that do not compile, and a cargo that cannot be started.
pub fn run(toolchain: &Toolchain, crates: &Crates) -> Result<Vec<Module>> {
    let mut command = toolchain.cargo_build();
    command.args(["--lib", "--target", TARGET]).args(&crates.arguments);
    let flags = Value::from(flags(crates)?);
    command.arg("--config").arg(format!("target.{TARGET}.rustflags = {flags}"));
    command.arg("--message-format=json-render-diagnostics");
    command.current_dir(&crates.folder).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let output = command.spawn().context("failed to start cargo")?.wait_with_output()?;
    if !output.status.success() {
        bail!("cargo could not build for {TARGET}: what it said stands above");
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    Ok(messages.lines().filter_map(|line| module(&serde_json::from_str(line).ok()?)).collect())
}

/// What the compiler is told besides. A list of JSON's strings is one of TOML's as well.
fn flags(crates: &Crates) -> Result<Vec<String>> {
    let mut flags = vec![format!("-Clink-arg=--initial-memory={INITIAL_MEMORY}")];
    for (folder, name) in renamed::folders(&crates.folder, crates.name)? {
        flags.push(format!("--remap-path-prefix={}={name}", folder.display()));
    }
    Ok(flags)
}

/// The module that one of cargo's messages tells of, fresh or not.
fn module(message: &Value) -> Option<Module> {
    let manifest = Path::new(message.get("manifest_path")?.as_str()?);
    let files = message.get("filenames")?.as_array()?.iter().filter_map(Value::as_str);
    let path = files.map(Path::new).find(|file| file.extension().is_some_and(|end| end == "wasm"))?;
    let name = manifest.parent()?.file_name()?.to_str()?;
    Some(Module { name: name.to_owned(), path: path.to_owned() })
}
