//! A home folder for any client program that is on the path.

use crate::clients::{ProgramOutput, has, run};
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A home folder in which one client runs. It contains the workspace and the caches. The client
/// gets an environment without the caller's own settings.
#[derive(Debug)]
pub struct ClientHome(TempDir);

impl ClientHome {
    /// A fresh home; the error says that the program is not on the path.
    pub fn with(program: &str) -> Result<Self, String> {
        if !has(program) {
            return Err(format!("no {program} here: `./bootstrap test` installs it"));
        }
        TempDir::new().map(Self).map_err(|error| error.to_string())
    }

    /// The workspace.
    pub fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file of the workspace.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.folder().join(path);
        fs::create_dir_all(path.parent().expect("a file lies in a folder"))
            .expect("a folder of the workspace");
        fs::write(&path, bytes).expect("a file of the workspace");
    }

    /// Reads a file of the workspace.
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.folder().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Runs these lines of a shell in a folder of the workspace.
    #[track_caller]
    pub fn shell(&self, folder: &str, lines: &str, variables: &[(&str, &str)]) -> ProgramOutput {
        self.run(folder, "bash", &["-e", "-c", lines], variables)
    }

    /// Runs a program with these arguments and variables in a folder of the workspace.
    #[track_caller]
    pub fn run(
        &self,
        folder: &str,
        program: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> ProgramOutput {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.folder()).env("LC_ALL", "C.UTF-8").envs(variables.iter().copied());
        run(command.args(arguments).current_dir(self.folder().join(folder)))
    }
}
