//! Finds a compiler for Wasm: rustup's with the target installed, or Debian's. Debian's builds the
//! standard library from source.

use anyhow::{Context, Result, bail};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Target for which plugins are compiled.
pub const TARGET: &str = "wasm32-unknown-unknown";

const NEITHER: &str = "no installed compiler can build Rust for wasm32-unknown-unknown. Install one of these:
    rustup target add wasm32-unknown-unknown                   (with Rust by rustup)
    apt-get install rustc-web cargo-web rust-web-src lld-22    (Debian; where rustup's servers are out of reach)";

/// A compiler with a standard library for [`TARGET`].
#[derive(Debug)]
pub enum Toolchain {
    /// The current rustup toolchain, with the target installed.
    Rustup,
    /// Debian's packages.
    Debian,
}

impl Toolchain {
    /// Finds the toolchain that `PACKHOUSE_WASM_TOOLCHAIN` names, or an installed one. `root` is
    /// the folder of the sources, which may select a rustup toolchain.
    ///
    /// # Errors
    /// Fails if no toolchain is installed. The error says what to install.
    pub fn find(root: &Path) -> Result<Self> {
        let choice = env::var("PACKHOUSE_WASM_TOOLCHAIN").unwrap_or_default();
        match choice.as_str() {
            "" | "auto" if has_target(root) => Ok(Self::Rustup),
            "" | "auto" if missing_of_debian().is_empty() => Ok(Self::Debian),
            "" | "auto" => bail!(NEITHER),
            "rustup" if has_target(root) => Ok(Self::Rustup),
            "rustup" => bail!("the target is not installed: run `rustup target add {TARGET}`"),
            "debian" => match missing_of_debian().as_slice() {
                [] => Ok(Self::Debian),
                missing => bail!("packages are missing: run `apt-get install {}`", missing.join(" ")),
            },
            other => bail!("PACKHOUSE_WASM_TOOLCHAIN is `{other}`; it must be `rustup`, `debian` or `auto`"),
        }
    }

    /// The command `cargo build` with the arguments and the environment that this toolchain needs.
    #[must_use]
    pub fn cargo_build(&self) -> Command {
        match self {
            Self::Rustup => {
                let mut command = Command::new(cargo());
                command.arg("build");
                command
            }
            Self::Debian => {
                let mut command = Command::new("/usr/bin/cargo");
                command.args(["build", "-Zbuild-std=std,panic_abort"]);
                command.env("RUSTC_BOOTSTRAP", "1").env("RUSTC", "/usr/bin/rustc");
                command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-ld-22");
                // Rustup's proxies set these variables for their child processes. Debian's rustc
                // must not see the values.
                command.env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC_WRAPPER").env_remove("RUSTDOC");
                command
            }
        }
    }
}

/// The command `cargo test` for the native target.
#[must_use]
pub fn cargo_test() -> Command {
    let mut command = Command::new(cargo());
    command.arg("test");
    command
}

/// The cargo that started this process, or the one on the PATH.
fn cargo() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// Reports whether the compiler for `root` has a standard library for the target.
fn has_target(root: &Path) -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--print", "target-libdir", "--target", TARGET]).current_dir(root).stderr(Stdio::null());
    let Ok(output) = command.output() else { return false };
    output.status.success() && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()
}

/// Folder with the files of the compiler for sources in `root`.
///
/// # Errors
/// Fails if rustc cannot be started.
pub fn sysroot(root: &Path) -> Result<PathBuf> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    let output = command.args(["--print", "sysroot"]).current_dir(root).stderr(Stdio::inherit()).output();
    let output = output.context("failed to start rustc")?;
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// Debian packages that are missing.
fn missing_of_debian() -> Vec<&'static str> {
    let files = [
        ("/usr/bin/rustc", "rustc-web"),
        ("/usr/bin/cargo", "cargo-web"),
        ("/usr/lib/rustlib/src/rust/library/std/Cargo.toml", "rust-web-src"),
        ("/usr/bin/wasm-ld-22", "lld-22"),
    ];
    files.into_iter().filter(|(file, _)| !Path::new(file).exists()).map(|(_, package)| package).collect()
}
