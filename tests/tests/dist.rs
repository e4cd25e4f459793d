//! The packages of `just dist`. Each is installed on a clean machine and used up to a first
//! `pip install`, by the commands of README.md and docs/guides. Only `just test-dist` runs this.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests may panic"
)]

#[path = "../../plugins/python/tests/wheel.rs"]
mod wheel;

#[path = "dist/deb.rs"]
mod deb;
#[path = "dist/image.rs"]
mod image;
#[path = "dist/python.rs"]
mod python;
#[path = "dist/tarball.rs"]
mod tarball;
#[path = "dist/used.rs"]
mod used;

use packhouse_tests::checkout;
use std::path::PathBuf;

/// Folder of the packages.
fn packages() -> PathBuf {
    checkout().join("target/packages")
}

/// The one package whose name begins and ends so.
fn package(begin: &str, end: &str) -> PathBuf {
    let folder = packages();
    let entries = std::fs::read_dir(&folder)
        .unwrap_or_else(|_| panic!("nothing in {}: run `just dist`", folder.display()));
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(begin) && name.ends_with(end)
    };
    let found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(fits).collect();
    assert_eq!(found.len(), 1, "{begin}…{end} in {}: {found:?}", folder.display());
    found.into_iter().next().unwrap()
}

/// The lines of the first fenced block of `bash` below this heading of a page.
fn lines(page: &str, heading: &str) -> String {
    let text = std::fs::read_to_string(checkout().join(page)).unwrap();
    let (_, below) =
        text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{page}: no {heading}"));
    let (_, block) =
        below.split_once("```bash\n").unwrap_or_else(|| panic!("{page}: no lines below {heading}"));
    block.split_once("```").unwrap().0.to_owned()
}
