//! Names that replace folders of the build machine in compiled code. The names make builds
//! reproducible on any machine, and hide the user and the folders of that machine.

use crate::toolchain;
use anyhow::{Context, Result};
use std::env;
use std::path::{Path, PathBuf};

/// Pairs of a folder and the name that replaces it. `name` replaces the folder of the sources,
/// `root`. If several folders match a path, compilers use the last one.
///
/// # Errors
/// Fails if there is no home folder or if the compiler cannot be started.
pub fn folders(root: &Path, name: &'static str) -> Result<Vec<(PathBuf, &'static str)>> {
    let home = env::home_dir().context("the home folder is unknown: set HOME")?;
    let cargo = env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let registries = cargo.join("registry/src");
    let mut renamed = vec![
        (home, "/home"),
        (cargo, "/cargo"),
        (toolchain::sysroot(root)?, "/rust"),
        (root.to_owned(), name),
    ];
    let mut sources: Vec<PathBuf> = Vec::new();
    if registries.is_dir() {
        for entry in registries.read_dir().context("failed to list cargo's registries")? {
            sources.push(entry?.path());
        }
    }
    sources.sort();
    renamed.extend(sources.into_iter().map(|source| (source, "/crates")));
    Ok(renamed)
}
