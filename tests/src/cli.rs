//! Runs commands of the program other than `serve`, on a test's data folder.

use crate::clients::ProgramOutput;
use crate::server;
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `packhouse` with these arguments on a data folder, with `input` as standard input.
#[track_caller]
pub fn packhouse(data: &Path, words: &[&str], input: &str) -> ProgramOutput {
    let mut command = Command::new(server::program());
    command.args(words).arg("--data").arg(data).env("PACKHOUSE_LOG", "error");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program");
    child.stdin.take().expect("its input").write_all(input.as_bytes()).expect("it takes its input");
    child.wait_with_output().expect("it ends").into()
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
