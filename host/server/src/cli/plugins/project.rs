//! `packhouse plugins new` and `packhouse plugins build`: a project, and the component of one, with nothing but this program and the
//! author's own compiler.

use std::path::{Path, PathBuf};

use packhouse_authoring as authoring;

use crate::cli::print;
use crate::serve::as_the_author_has_it;

/// Writes a project. The last line says where, so that a script can go on there.
pub(super) fn new(name: &str, kind: &str, language: &str, into: &Path) -> anyhow::Result<()> {
    as_the_author_has_it();
    if kind == "policy" {
        return policy(name, language, into);
    }
    let folder = authoring::write(name, language.parse()?, into)?;
    let at = folder.display();
    print(&format!(
        "A format that keeps files under any path, with its tests. In that folder:\n    \
         packhouse plugins test     the protocol's table, through the component and a whole server\n    \
         packhouse plugins dev      a server that loads it anew whenever it changes\n    \
         packhouse plugins build    the component that a server's plugin folder gets\n{at}"
    ))
}

fn policy(name: &str, language: &str, into: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(
        language == "rust",
        "there is no template of a policy in {language:?}; there is one in rust"
    );
    let folder = authoring::write_policy(name, into)?;
    print(&format!(
        "A policy that wants files to be small, with its tests. In that folder:\n    \
         cargo test                 its rulings\n    \
         packhouse plugins build    the component that a server installs by POST /v1/policy-components\n{}",
        folder.display()
    ))
}

/// Builds the component. The last line says where it is.
pub(super) async fn build(folder: PathBuf, out: Option<PathBuf>) -> anyhow::Result<()> {
    print(&component(folder, out).await?.display().to_string())
}

/// The component of a project, built as far as it is not fresh.
pub(super) async fn component(folder: PathBuf, out: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    as_the_author_has_it();
    tokio::task::spawn_blocking(move || authoring::build(&folder, out.as_deref())).await?
}
