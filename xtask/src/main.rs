//! Builds plugins and guests into components, `cargo run -p xtask --release -- plugins` and `-- guests`.
//!
//! Not a build script, because cargo within cargo waits for itself; into a target folder of its own, because the host's
//! would be locked, and spoilt by another toolchain.

mod selection;
mod tiers;

use anyhow::{Context, Result, bail};
use packhouse_authoring::compile::{self, Crates};
use packhouse_authoring::toolchain::Toolchain;
use packhouse_authoring::{component, renamed};
use std::path::{Path, PathBuf};

const USAGE: &str = "usage: xtask plugins   builds plugins/* into target/release/plugins, and policies/* into its folder policies
       xtask plugins FOLDER    builds the crate in that folder, wherever it lies, into the same
       xtask renamed    prints what stands in compiled code for which folder of this machine, as FOLDER=NAME
       xtask guests    builds tests/guests/* into target/release/guests
       xtask tiers    prints every test with the first tier that runs it
PACKHOUSE_WASM_TOOLCHAIN is `rustup`, `debian` or `auto` (what is there; rustup's first)";

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
        ["renamed"] => {
            for (folder, name) in renamed::folders(&root, "/packhouse")? {
                println!("{}={name}", folder.display());
            }
            Ok(())
        }
        _ => bail!(USAGE),
    }
}

/// Builds modules, and puts a component of each into `folder`.
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

/// The repository's root: the folder above this crate's.
fn root() -> Result<PathBuf> {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").context("start it with `cargo run -p xtask`")?;
    let root = Path::new(&folder).parent().context("xtask lies in the repository's root")?;
    Ok(root.to_owned())
}
