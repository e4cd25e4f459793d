//! Runs commands of the program other than `serve`, on a test's data folder.

use crate::clients::ProgramOutput;
use crate::{Server, server};
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Runs `packhouse` with these arguments on a data folder, with `input` as standard input.
#[track_caller]
pub fn packhouse(data: &Path, words: &[&str], input: &str) -> ProgramOutput {
    let mut command = Command::new(server::program());
    command.args(words).arg("--data").arg(data).env("PACKHOUSE_LOG", "error");
    feed(&mut command, input)
}

/// Runs `packhouse` with these environment variables and without input.
#[track_caller]
pub fn packhouse_with(data: &Path, words: &[&str], environment: &[(&str, String)]) -> ProgramOutput {
    let mut command = Command::new(server::program());
    command.args(words).arg("--data").arg(data).env("PACKHOUSE_LOG", "error");
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).output().expect("the program").into()
}

/// Runs `packhouse` with `--json` and parses the output.
#[track_caller]
pub fn json(data: &Path, words: &[&str]) -> Value {
    let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
    let output = packhouse(data, &words, "").success();
    serde_json::from_str(&output.text).unwrap_or_else(|error| panic!("{error}: {}", output.text))
}

/// The program on another machine: it has no settings, no data folder and a home of its own, and
/// works through the API of a server.
#[derive(Debug)]
pub struct RemoteCli {
    home: TempDir,
    address: String,
    token: String,
}

impl RemoteCli {
    /// Uses this API token for the API of a server; an empty one is absent.
    pub fn new(server: &Server, token: &str) -> Self {
        Self::at(&format!("http://{}", server.api()), token)
    }

    /// Uses this API token for the API at an address; an empty one is absent.
    pub fn at(address: &str, token: &str) -> Self {
        let home = TempDir::new().expect("a folder");
        Self { home, address: address.to_owned(), token: token.to_owned() }
    }

    /// Its home folder, in which it runs.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The address of the API.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A command with these arguments. Nothing names the server.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(server::program());
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PACKHOUSE_"))
        {
            command.env_remove(name);
        }
        command.args(words).current_dir(self.home()).env("HOME", self.home()).env_remove("XDG_CONFIG_HOME");
        if !self.token.is_empty() {
            command.env("PACKHOUSE_API_TOKEN", &self.token);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command on the server.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> ProgramOutput {
        self.command(&[words, &["--server", self.address.as_str()]].concat())
            .output()
            .expect("the program")
            .into()
    }

    /// Runs a command on the server with `input` as standard input.
    #[track_caller]
    pub fn run_with_input(&self, words: &[&str], input: &str) -> ProgramOutput {
        let mut command = self.command(&[words, &["--server", self.address.as_str()]].concat());
        feed(&mut command, input)
    }

    /// Runs a command on the server with `--json` and parses the output.
    #[track_caller]
    pub fn json(&self, words: &[&str]) -> Value {
        let output = self.run(&[words, &["--json"]].concat()).success();
        serde_json::from_str(&output.text).unwrap_or_else(|error| panic!("{error}: {}", output.text))
    }
}

/// Runs a command with `input` as standard input.
#[track_caller]
pub fn feed(command: &mut Command, input: &str) -> ProgramOutput {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program");
    child.stdin.take().expect("its input").write_all(input.as_bytes()).expect("it takes its input");
    child.wait_with_output().expect("it ends").into()
}
