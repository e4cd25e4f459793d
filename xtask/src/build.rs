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

/// Which crates, as arguments of `cargo build`.
pub(crate) struct Selection(Vec<OsString>);

/// A built module.
pub(crate) struct Module {
    /// The name of its crate's folder, which the component gets.
    pub(crate) name: String,
    /// The core module.
    pub(crate) path: PathBuf,
}

/// Every crate of `plugins/`.
pub(crate) fn plugins(root: &Path) -> Result<Selection> {
    let mut arguments = Vec::new();
    for entry in root.join("plugins").read_dir().context("failed to list plugins/")? {
        let folder = entry?.path();
        if let Ok(manifest) = std::fs::read_to_string(folder.join("Cargo.toml")) {
            let name = package_name(&manifest).with_context(|| format!("no name in {}", folder.display()))?;
            arguments.push("--package".into());
            arguments.push(format!("path+file://{}#{name}", folder.display()).into());
        }
    }
    Ok(Selection(arguments))
}

/// The first `name = "…"` of a manifest. Cargo takes a path alone for a package that is called like its folder.
fn package_name(manifest: &str) -> Option<&str> {
    manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
}

/// Every crate of the workspace in `tests/guests`.
pub(crate) fn guests(root: &Path) -> Selection {
    let manifest = root.join("tests/guests/Cargo.toml");
    Selection(vec!["--workspace".into(), "--manifest-path".into(), manifest.into()])
}

/// The crate in a folder of somebody else's.
pub(crate) fn elsewhere(folder: &Path) -> Result<Selection> {
    let manifest = folder.join("Cargo.toml").canonicalize();
    let manifest = manifest.with_context(|| format!("failed to find a crate in {}", folder.display()))?;
    Ok(Selection(vec!["--manifest-path".into(), manifest.into()]))
}

/// Builds them, as far as they are not fresh.
pub(crate) fn run(root: &Path, toolchain: &Toolchain, selection: &Selection) -> Result<Vec<Module>> {
    let mut command = toolchain.cargo_build();
    command.args(["--lib", "--locked", "--profile", "plugin", "--target", TARGET]).args(&selection.0);
    let flags = Value::from(flags(root)?);
    command.arg("--config").arg(format!("target.{TARGET}.rustflags = {flags}"));
    command.arg("--target-dir").arg(root.join("target/wasm"));
    command.arg("--message-format=json-render-diagnostics");
    command.current_dir(root).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let output = command.spawn().context("failed to start cargo")?.wait_with_output()?;
    if !output.status.success() {
        bail!("cargo could not build for {TARGET} ({toolchain:?})");
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    Ok(messages.lines().filter_map(|line| module(&serde_json::from_str(line).ok()?)).collect())
}

/// What the compiler is told besides. A list of JSON's strings is one of TOML's as well.
fn flags(root: &Path) -> Result<Vec<String>> {
    let mut flags = vec![format!("-Clink-arg=--initial-memory={INITIAL_MEMORY}")];
    for (folder, name) in renamed::folders(root)? {
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
