//! Tasks of this repository: builds plugins and guests into components
//! (`cargo run -p xtask --release -- plugins`), lists the tests, and checks how readable code and
//! documentation are.
//!
//! This is not a build script, because the tasks start cargo, and that cargo would wait for the
//! build that runs the script. Plugins have their own target folder. The host's folder is locked
//! during a build, and another toolchain would invalidate its contents.

mod lint;
mod selection;
mod tiers;

use anyhow::{Context, Result, bail};
use packhouse_authoring::compile::{self, Crates};
use packhouse_authoring::toolchain::Toolchain;
use packhouse_authoring::{component, renamed};
use std::path::{Path, PathBuf};

const USAGE: &str = "usage: xtask plugins   builds plugins/* into target/release/plugins, and policies/* into its folder policies
       xtask plugins FOLDER    builds the crate in that folder, inside or outside the checkout, into the same folder
       xtask renamed    prints the names that stand for folders of this machine in compiled code, as FOLDER=NAME
       xtask guests    builds tests/guests/* into target/release/guests
       xtask tiers    prints every test with the first tier that runs it
       xtask lint    checks that code and documentation do not become harder to read (xtask/plain-english.json)
       xtask lint --write    writes the current counts as bounds
       xtask lint --show MEASURE [PATH]    prints the places that a measure counts, of a crate or below a path
PACKHOUSE_WASM_TOOLCHAIN is `rustup`, `debian` or `auto` (the installed one, rustup's first)";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = root()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["plugins"] => {
            make(&root, &selection::plugins(&root)?, "target/release/plugins")?;
            make(&root, &selection::policies(&root)?, "target/release/plugins/policies")
        }
        ["plugins", folder] => {
            make(&root, &selection::elsewhere(&root, Path::new(folder))?, "target/release/plugins")
        }
        ["guests"] => make(&root, &selection::guests(&root), "target/release/guests"),
        ["tiers"] => tiers::print(&root),
        ["lint"] => lint::check(&root),
        ["lint", "--write"] => lint::write(&root),
        ["lint", "--show", measure] => lint::show(&root, measure, ""),
        ["lint", "--show", measure, path] => lint::show(&root, measure, path),
        ["renamed"] => {
            for (folder, name) in renamed::folders(&root, "/packhouse")? {
                println!("{}={name}", folder.display());
            }
            Ok(())
        }
        _ => bail!(USAGE),
    }
}

/// Builds modules and puts the component of each into `folder`.
fn make(root: &Path, crates: &Crates, folder: &str) -> Result<()> {
    let folder = root.join(folder);
    let toolchain = Toolchain::find(root)?;
    for module in compile::run(&toolchain, crates)? {
        let file = folder.join(&module.name).with_extension("wasm");
        let changed = component::encode(&module.path, &file)
            .with_context(|| format!("failed to make a component of {}", module.path.display()))?;
        if changed {
            println!("{}", file.display());
        }
    }
    Ok(())
}

/// The root of the repository: the folder above this crate.
fn root() -> Result<PathBuf> {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").context("start it with `cargo run -p xtask`")?;
    let root = Path::new(&folder).parent().context("xtask lies in the repository's root")?;
    Ok(root.to_owned())
}
