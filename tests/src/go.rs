//! Clients of container registries that are written in Go. `bootstrap` builds the clients; each
//! runs in a home folder of its own.

use crate::checkout;
use crate::clients::{ProgramOutput, run};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A client with a home and a workspace of its own.
#[derive(Debug)]
pub struct Go {
    program: std::path::PathBuf,
    home: TempDir,
}

impl Go {
    /// A fresh client; the error says that it is not installed here.
    pub fn client(name: &str) -> Result<Self, String> {
        let program = checkout().join(".tools/go/bin").join(name);
        if !program.is_file() {
            return Err(format!(
                "no {name} in .tools/go/bin: `./bootstrap test-all` builds it where there is Go"
            ));
        }
        Ok(Self { program, home: TempDir::new().map_err(|error| error.to_string())? })
    }

    /// The workspace.
    pub fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Writes a file of the workspace.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.folder().join(path);
        fs::create_dir_all(path.parent().expect("a file lies in a folder"))
            .expect("a folder of the workspace");
        fs::write(&path, bytes).expect("a file of the workspace");
    }

    /// Reads a file of the workspace.
    pub fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.folder().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Runs the client with these arguments in the workspace. The client gets only `PATH` from the
    /// caller's environment.
    #[track_caller]
    pub fn run(&self, arguments: &[&str]) -> ProgramOutput {
        self.run_with(&[], arguments)
    }

    /// Runs the client with these environment variables too.
    #[track_caller]
    pub fn run_with(&self, variables: &[(&str, &str)], arguments: &[&str]) -> ProgramOutput {
        let mut command = Command::new(&self.program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder()).env("DOCKER_CONFIG", self.folder().join("docker"));
        command.envs(variables.iter().copied());
        run(command.args(arguments).current_dir(self.folder()))
    }
}
