//! Components of what is written in JavaScript, each by the tool that its project pins.

use anyhow::{Context, Result, ensure};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Builds these projects, and puts a component of each into `folder`.
pub(crate) fn make(root: &Path, projects: &[PathBuf], folder: &str) -> Result<()> {
    if projects.is_empty() {
        return Ok(());
    }
    let still = still(root)?;
    for project in projects {
        let project =
            project.canonicalize().with_context(|| format!("failed to find {}", project.display()))?;
        let name = project.file_name().context("the root folder is no project")?;
        let file = root.join(folder).join(name).with_added_extension("wasm");
        let before = modified(&file);
        packhouse_authoring::build_with(&project, Some(&file), &still)
            .with_context(|| format!("failed to build {}", project.display()))?;
        if modified(&file) != before {
            println!("{}", file.display());
        }
    }
    Ok(())
}

/// The environment in which the same sources make the same bytes: one with a library before all others that stops the clock. Elsewhere than
/// on Linux there is none.
fn still(root: &Path) -> Result<Vec<(&'static str, PathBuf)>> {
    if !cfg!(target_os = "linux") {
        return Ok(Vec::new());
    }
    let library = root.join("target/still.so");
    let source = root.join("xtask/src/still.c");
    if modified(&library) < modified(&source) {
        std::fs::create_dir_all(root.join("target")).context("failed to make target/")?;
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
        match compiler.status() {
            Ok(status) => ensure!(status.success(), "cc could not build {}", source.display()),
            Err(error) if error.kind() == ErrorKind::NotFound => anyhow::bail!("cc is not here: install gcc"),
            Err(error) => return Err(error).context("failed to start cc"),
        }
    }
    Ok(vec![("LD_PRELOAD", library)])
}

/// When a file was written; none where it is not there.
fn modified(file: &Path) -> Option<SystemTime> {
    file.metadata().and_then(|metadata| metadata.modified()).ok()
}
