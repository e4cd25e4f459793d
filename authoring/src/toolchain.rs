//! Which compiler makes Wasm: rustup's with its target, or Debian's, which builds the standard library from source.

use anyhow::{Context, Result, bail};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What plugins are compiled for.
pub const TARGET: &str = "wasm32-unknown-unknown";

const NEITHER: &str = "nothing here compiles Rust to wasm32-unknown-unknown. Either of these does:
    rustup target add wasm32-unknown-unknown                   (with Rust by rustup)
    apt-get install rustc-web cargo-web rust-web-src lld-22    (Debian; where rustup's servers are out of reach)";

/// A compiler with a standard library for [`TARGET`].
#[derive(Debug)]
pub enum Toolchain {
    /// The toolchain that runs this, with the target installed.
    Rustup,
    /// Debian's packages beside it.
    Debian,
}

impl Toolchain {
    /// What `PACKHOUSE_WASM_TOOLCHAIN` asks for, or what is there; `root` is the folder of the sources, which may name a toolchain.
    ///
    /// # Errors
    /// Where neither is there: what to install.
    pub fn find(root: &Path) -> Result<Self> {
        let wanted = env::var("PACKHOUSE_WASM_TOOLCHAIN").unwrap_or_default();
        match wanted.as_str() {
            "" | "auto" if has_target(root) => Ok(Self::Rustup),
            "" | "auto" if missing_of_debian().is_empty() => Ok(Self::Debian),
            "" | "auto" => bail!(NEITHER),
            "rustup" if has_target(root) => Ok(Self::Rustup),
            "rustup" => bail!("the target is not installed: rustup target add {TARGET}"),
            "debian" => match missing_of_debian().as_slice() {
                [] => Ok(Self::Debian),
                missing => bail!("not installed: apt-get install {}", missing.join(" ")),
            },
            other => bail!("PACKHOUSE_WASM_TOOLCHAIN is `{other}`; it may be `rustup`, `debian` or `auto`"),
        }
    }

    /// `cargo build` for the target, as this toolchain wants it.
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
                // Debian's rustc knows nothing of these; rustup's proxies set them for whatever they start.
                command.env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC_WRAPPER").env_remove("RUSTDOC");
                command
            }
        }
    }
}

/// `cargo test` for the machine itself: the compiler that Rust's users have.
#[must_use]
pub fn cargo_test() -> Command {
    let mut command = Command::new(cargo());
    command.arg("test");
    command
}

/// The cargo that started this, or the one that is there.
fn cargo() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// Whether the compiler here has a standard library for the target.
fn has_target(root: &Path) -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--print", "target-libdir", "--target", TARGET]).current_dir(root).stderr(Stdio::null());
    let Ok(output) = command.output() else { return false };
    output.status.success() && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()
}

/// Where the compiler for sources in `root` has its own files.
///
/// # Errors
/// Where there is none.
pub fn sysroot(root: &Path) -> Result<PathBuf> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    let output = command.args(["--print", "sysroot"]).current_dir(root).stderr(Stdio::inherit()).output();
    let output = output.context("failed to start rustc")?;
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}

/// Debian's packages that are not there.
fn missing_of_debian() -> Vec<&'static str> {
    let files = [
        ("/usr/bin/rustc", "rustc-web"),
        ("/usr/bin/cargo", "cargo-web"),
        ("/usr/lib/rustlib/src/rust/library/std/Cargo.toml", "rust-web-src"),
        ("/usr/bin/wasm-ld-22", "lld-22"),
    ];
    files.into_iter().filter(|(file, _)| !Path::new(file).exists()).map(|(_, package)| package).collect()
}
