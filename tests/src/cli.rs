//! The program's other commands, on the database of a test.

use crate::clients::Said;
use crate::server;
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `packhouse` with these words on a data folder, with `input` as standard input.
#[track_caller]
pub fn packhouse(data: &Path, words: &[&str], input: &str) -> Said {
    let mut command = Command::new(server::program());
    command.args(words).arg("--data").arg(data).env("PACKHOUSE_LOG", "error");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program");
    child.stdin.take().expect("its input").write_all(input.as_bytes()).expect("it takes its input");
    child.wait_with_output().expect("it ends").into()
}

/// The same with these settings in the environment, and no input.
#[track_caller]
pub fn packhouse_with(data: &Path, words: &[&str], environment: &[(&str, String)]) -> Said {
    let mut command = Command::new(server::program());
    command.args(words).arg("--data").arg(data).env("PACKHOUSE_LOG", "error");
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).output().expect("the program").into()
}

/// The same with `--json`: what it printed.
#[track_caller]
pub fn json(data: &Path, words: &[&str]) -> Value {
    let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
    let said = packhouse(data, &words, "").well();
    serde_json::from_str(&said.text).unwrap_or_else(|error| panic!("{error}: {}", said.text))
}
