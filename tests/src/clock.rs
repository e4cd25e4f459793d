//! Wrong clocks for a process. This module compiles `clock.c` beside this file; the process
//! preloads the library.

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The library to preload for a wrong clock.
#[derive(Debug)]
pub struct WrongClock {
    home: TempDir,
    ahead: i64,
}

impl WrongClock {
    /// A clock that is this many seconds ahead.
    pub fn ahead(seconds: i64) -> Self {
        Self { home: compiled(), ahead: seconds }
    }

    /// The environment of a process that has this clock.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        let library: PathBuf = self.home.path().join("clock.so");
        [("LD_PRELOAD", library.to_string_lossy().into_owned()), ("CLOCK_AHEAD", self.ahead.to_string())]
    }
}

/// A clock that a test can change while the process runs. The clock starts with the right time.
#[derive(Debug)]
pub struct JumpingClock {
    home: TempDir,
}

impl JumpingClock {
    /// A clock for a process that the test starts afterwards.
    pub fn new() -> Self {
        let clock = Self { home: compiled() };
        std::fs::write(clock.control(), 0_i64.to_ne_bytes()).expect("the control file");
        clock
    }

    /// The environment of a process that has this clock.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        [("LD_PRELOAD", text(&self.home.path().join("clock.so"))), ("CLOCK_CONTROL", text(&self.control()))]
    }

    /// Sets how many seconds the clock is ahead; a negative number means behind.
    pub fn set(&self, seconds: i64) {
        use std::os::unix::fs::FileExt as _;
        let file = std::fs::File::options().write(true).open(self.control()).expect("the control file");
        file.write_all_at(&seconds.to_ne_bytes(), 0).expect("the control file");
    }

    fn control(&self) -> PathBuf {
        self.home.path().join("control")
    }
}

impl Default for JumpingClock {
    fn default() -> Self {
        Self::new()
    }
}

/// A folder with the compiled library.
fn compiled() -> TempDir {
    let home = TempDir::new().expect("a folder");
    let source = crate::checkout().join("tests/src/clock.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-w", "-o"]).arg(home.path().join("clock.so"));
    let output = compiler.arg(source).arg("-ldl").output().expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    home
}
