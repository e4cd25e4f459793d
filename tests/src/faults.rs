//! A disk that fails on demand: the Nth write, fsync or rename in the data folder, counted over all threads.
//!
//! `faults.c` beside this file is compiled and preloaded into the server. strace can inject too, but counts each thread for
//! itself and cannot tell a file of the data folder from the pipe that wakes an event loop.

use crate::server::ServerBuilder;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// What fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Call {
    /// `write`, `writev`, `pwrite`.
    Write = 1,
    /// `fsync`, `fdatasync`.
    Sync = 2,
    /// `rename`, `renameat`, `renameat2`.
    Rename = 3,
}

/// How it fails, by its errno on Linux.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The disk could not do it.
    Eio = 5,
    /// There is no space left.
    Enospc = 28,
}

/// The control over one server's disk.
#[derive(Debug)]
pub struct Faults {
    home: TempDir,
    control: File,
}

impl Faults {
    /// Compiles what is preloaded; the reason when that cannot be done here.
    pub fn new() -> Result<Self, String> {
        let home = TempDir::new().map_err(|error| error.to_string())?;
        let source = crate::checkout().join("tests/src/faults.c");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-shared", "-fPIC", "-O1", "-w", "-o"])
            .arg(home.path().join("faults.so"))
            .arg(source)
            .arg("-ldl");
        let output = compiler.output().map_err(|error| format!("no C compiler: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let path = home.path().join("control");
        fs::write(&path, [0; 16]).map_err(|error| error.to_string())?;
        let control =
            File::options().write(true).read(true).open(&path).map_err(|error| error.to_string())?;
        Ok(Self { home, control })
    }

    /// A folder that is on the failing disk.
    pub fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// A server whose data lie there, with the faults preloaded.
    pub fn server(&self) -> ServerBuilder {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        crate::Server::with()
            .data(&self.data())
            .env("LD_PRELOAD", &path(&self.home.path().join("faults.so")))
            .env("FAULTS_CONTROL", &path(&self.home.path().join("control")))
            .env("FAULTS_FOLDER", &path(&self.data()))
    }

    /// The `when`th call of this kind from now on fails, once. `when` counts from 1.
    pub fn arm(&self, call: Call, fault: Fault, when: u32) {
        self.set(0, 0);
        self.set(4, when);
        self.set(8, fault as u32);
        self.set(12, 0);
        self.set(0, call as u32);
    }

    /// Nothing fails any more. Answers whether anything did.
    pub fn disarm(&self) -> bool {
        let [when, seen] = [4, 12].map(|at| self.number(at));
        self.set(0, 0);
        when != 0 && seen >= when
    }

    /// How many calls of the armed kind were made since then.
    pub fn seen(&self) -> u32 {
        self.number(12)
    }

    fn set(&self, at: u64, value: u32) {
        self.control.write_all_at(&value.to_le_bytes(), at).expect("the control file");
    }

    fn number(&self, at: u64) -> u32 {
        let mut bytes = [0; 4];
        self.control.read_exact_at(&mut bytes, at).expect("the control file");
        u32::from_le_bytes(bytes)
    }
}
