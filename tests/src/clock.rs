//! A machine whose clock is wrong: `clock.c` beside this file is compiled and preloaded.

use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// What is preloaded.
#[derive(Debug)]
pub struct WrongClock {
    home: TempDir,
    ahead: i64,
}

impl WrongClock {
    /// A clock that is so many seconds ahead.
    pub fn ahead(seconds: i64) -> Self {
        let home = TempDir::new().expect("a folder");
        let source = crate::checkout().join("tests/src/clock.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-w", "-o"]).arg(home.path().join("clock.so"));
        let output = compiler.arg(source).arg("-ldl").output().expect("a C compiler");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self { home, ahead: seconds }
    }

    /// The environment of a process that has this clock.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        let library: PathBuf = self.home.path().join("clock.so");
        [("LD_PRELOAD", library.to_string_lossy().into_owned()), ("CLOCK_AHEAD", self.ahead.to_string())]
    }
}
