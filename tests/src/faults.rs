//! A disk that fails on demand: the Nth write, fsync or rename in the data folder fails, counted
//! over all threads.
//!
//! This module compiles `faults.c` beside this file, and the server preloads the library. The
//! program strace can inject faults too, but it counts each thread separately. It also cannot tell
//! a file of the data folder from the pipe that wakes an event loop.

use crate::server::ServerBuilder;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The call that fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Call {
    /// `write`, `writev`, `pwrite`.
    Write = 1,
    /// `fsync`, `fdatasync`.
    Sync = 2,
    /// `rename`, `renameat`, `renameat2`.
    Rename = 3,
}

/// The error, by its errno on Linux.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The disk failed.
    Eio = 5,
    /// No space is left.
    Enospc = 28,
}

/// Controls the faults of one server's disk.
#[derive(Debug)]
pub struct Faults {
    home: TempDir,
    control: File,
}

impl Faults {
    /// Compiles the library to preload; the error says why it cannot.
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

    /// A folder on the failing disk.
    pub fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// A server that preloads the library and has its data on the failing disk.
    pub fn server(&self) -> ServerBuilder {
        let path = |path: &Path| path.to_string_lossy().into_owned();
        crate::Server::with()
            .data(&self.data())
            .env("LD_PRELOAD", &path(&self.home.path().join("faults.so")))
            .env("FAULTS_CONTROL", &path(&self.home.path().join("control")))
            .env("FAULTS_FOLDER", &path(&self.data()))
    }

    /// Makes the `when`th call of this kind from now on fail, once. `when` counts from 1.
    pub fn arm(&self, call: Call, fault: Fault, when: u32) {
        self.set(0, 0);
        self.set(4, when);
        self.set(8, fault as u32);
        self.set(12, 0);
        self.set(0, call as u32);
    }

    /// Ends the faults; returns true if a call failed.
    pub fn disarm(&self) -> bool {
        let [when, made] = [4, 12].map(|at| self.number(at));
        self.set(0, 0);
        when != 0 && made >= when
    }

    /// Number of calls of the armed kind since it was armed.
    pub fn calls(&self) -> u32 {
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
