//! Builds of components from Python or JavaScript. Such a component consists of an interpreter and
//! the author's sources, and the project's own tool builds it.

use anyhow::{Context, Result, bail, ensure};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The command that builds `app.py` with componentize-py.
pub(crate) fn python(folder: &Path, file: &Path) -> Result<Command> {
    let world = fs::read_to_string(folder.join("packhouse/world"));
    let world = world.context("failed to read packhouse/world, which must name a world of the contract")?;
    let mut command = Command::new(componentize_py(folder));
    command.args(["--wit-path", "packhouse/wit/v0.1", "--world", world.trim(), "componentize", "app"]);
    command.arg("--output").arg(file).current_dir(folder);
    Ok(command)
}

/// Finds componentize-py in the project's virtual environment, in the active one, or on the PATH.
fn componentize_py(folder: &Path) -> PathBuf {
    let active = env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let environments = [Some(folder.join(".venv")), active];
    let found = environments.into_iter().flatten().map(|environment| environment.join("bin/componentize-py"));
    found.into_iter().find(|program| program.is_file()).unwrap_or_else(|| "componentize-py".into())
}

/// The command that runs the project's `build.mjs`, which calls componentize-qjs or
/// componentize-js.
pub(crate) fn javascript(folder: &Path, file: &Path) -> Result<Command> {
    let tool = javascript_tool(folder)?;
    ensure!(
        folder.join("node_modules").join(tool).is_dir(),
        "{} is not installed: run `npm {}` in {} (npm comes with Node.js, version 20 or newer is required)",
        tool.rsplit('/').next().unwrap_or(tool),
        if folder.join("package-lock.json").is_file() { "ci" } else { "install" },
        folder.display()
    );
    let mut command = Command::new("node");
    command.arg("build.mjs").arg(file).current_dir(folder);
    Ok(command)
}

/// The tool that builds the project's component.
fn javascript_tool(folder: &Path) -> Result<&'static str> {
    let manifest = fs::read_to_string(folder.join("package.json"));
    let manifest =
        manifest.with_context(|| format!("failed to read package.json in {}", folder.display()))?;
    Ok(if manifest.contains("\"componentize-qjs\"") {
        "componentize-qjs"
    } else {
        "@bytecodealliance/componentize-js"
    })
}

/// Runs the command that builds a component.
pub(crate) fn run(mut command: Command) -> Result<()> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => bail!("the component could not be built: see the tool's messages above"),
        Err(error) if error.kind() == ErrorKind::NotFound => bail!("{}", missing(command.get_program())),
        Err(error) => Err(error).context("failed to start the tool that builds the component"),
    }
}

/// The message for a missing tool: how to install it.
fn missing(tool: &OsStr) -> &'static str {
    if tool == "node" {
        "node is not installed: install Node.js 20 or newer, and npm"
    } else {
        "componentize-py is not installed: python3 -m venv .venv && .venv/bin/pip install --requirement requirements.txt"
    }
}
