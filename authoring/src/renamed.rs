//! What stands in compiled code for folders of the machine that compiled it, so that the same sources make the same bytes anywhere, and
//! nobody reads in them who built them, and where.

use crate::toolchain;
use anyhow::{Context, Result};
use std::env;
use std::path::{Path, PathBuf};

/// Pairs of a folder and its name; `root` is that of the sources, and `name` is its. Of several that fit a path, compilers take the one
/// that stands last.
///
/// # Errors
/// A machine without a home, and a compiler that cannot be started.
pub fn folders(root: &Path, name: &'static str) -> Result<Vec<(PathBuf, &'static str)>> {
    let home = env::home_dir().context("nobody's home: set HOME")?;
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
