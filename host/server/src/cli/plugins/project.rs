//! `packhouse plugins new` and `packhouse plugins build`: create a project and build its component.
//! They need only this program and the author's compiler.

use std::path::{Path, PathBuf};

use packhouse_authoring as authoring;

use crate::cli::print;
use crate::serve::restore_umask;

/// Creates a project. The last line of the output is its path, for scripts.
pub(super) fn new(name: &str, kind: &str, language: &str, into: &Path) -> anyhow::Result<()> {
    restore_umask();
    if kind == "policy" {
        return policy(name, language, into);
    }
    let folder = authoring::write(name, language.parse()?, into)?;
    let at = folder.display();
    print(&format!(
        "A format that stores files under any path, with tests. In that folder:\n    \
         packhouse plugins test     run the protocol table against the component in a server\n    \
         packhouse plugins dev      run a server that reloads it whenever it changes\n    \
         packhouse plugins build    build the component for a server's plugin folder\n{at}"
    ))
}

fn policy(name: &str, language: &str, into: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(language == "rust", "there is no policy template for {language:?}; use rust");
    let folder = authoring::write_policy(name, into)?;
    print(&format!(
        "A policy that limits the size of files, with tests. In that folder:\n    \
         cargo test                 run the tests\n    \
         packhouse plugins build    build the component, to be installed with POST /v1/policy-components\n{}",
        folder.display()
    ))
}

/// Builds the component. The last line of the output is its path.
pub(super) async fn build(folder: PathBuf, out: Option<PathBuf>) -> anyhow::Result<()> {
    print(&component(folder, out).await?.display().to_string())
}

/// Builds the component of a project if it is out of date, and returns its path.
pub(super) async fn component(folder: PathBuf, out: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    restore_umask();
    tokio::task::spawn_blocking(move || authoring::build(&folder, out.as_deref())).await?
}
