//! Shared code of the tests of `packhouse import` and `packhouse export`: runs of the commands and
//! their reports.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use packhouse_tests::Server;
use packhouse_tests::clients::ProgramOutput;
use packhouse_tests::server::{OWNER, PASSWORD, program};
use serde_json::Value;
use tempfile::TempDir;

/// `packhouse` with these arguments, for the API of this server, with the owner's login.
pub(crate) fn command(server: &Server, words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(words).args(["--api-url", &format!("http://{}", server.api())]);
    command.env("PACKHOUSE_LOGIN", format!("{OWNER}:{PASSWORD}")).stdin(Stdio::null());
    for name in ["PACKHOUSE_SOURCE_LOGIN", "PACKHOUSE_SOURCE_TOKEN", "http_proxy", "HTTP_PROXY"] {
        command.env_remove(name);
    }
    command
}

/// Runs `packhouse` with these arguments.
#[track_caller]
pub(crate) fn run(server: &Server, words: &[&str]) -> ProgramOutput {
    command(server, words).output().expect("the program").into()
}

/// Starts `packhouse` with these arguments, so that the test can kill it later.
pub(crate) fn begin(server: &Server, words: &[&str]) -> Child {
    command(server, words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program")
}

/// The output and the report of a run.
#[derive(Debug)]
pub(crate) struct Moved {
    pub(crate) output: ProgramOutput,
    pub(crate) lines: Vec<Value>,
}

impl Moved {
    /// Number of files with this outcome.
    pub(crate) fn count(&self, outcome: &str) -> usize {
        self.lines.iter().filter(|line| line["what"] == "file" && line["outcome"] == outcome).count()
    }

    /// The line about this path.
    #[track_caller]
    pub(crate) fn line(&self, path: &str) -> &Value {
        let found = self.lines.iter().find(|line| line["path"] == path);
        found.unwrap_or_else(|| panic!("no line about {path}: {:#?}", self.lines))
    }

    /// Fails the test unless the run succeeded.
    #[track_caller]
    pub(crate) fn success(self) -> Self {
        assert!(self.output.success, "{}\n{:#?}", self.output.text, self.lines);
        self
    }

    /// Fails the test unless the run added nothing and found some files that existed already.
    #[track_caller]
    pub(crate) fn adds_nothing(self) -> Self {
        let moved = self.success();
        let added: Vec<&Value> = moved.lines.iter().filter(|line| line["outcome"] == "moved").collect();
        assert!(added.is_empty(), "{added:#?}");
        assert!(moved.count("present") > 0, "{:#?}", moved.lines);
        moved
    }
}

/// Runs `packhouse` with these arguments and a report.
#[track_caller]
pub(crate) fn moved(server: &Server, words: &[&str]) -> Moved {
    moved_with(server, words, &[])
}

/// Runs `packhouse` with a report and these environment variables.
#[track_caller]
pub(crate) fn moved_with(server: &Server, words: &[&str], environment: &[(&str, &str)]) -> Moved {
    let home = TempDir::new().unwrap();
    let report = home.path().join("report.jsonl");
    let mut words = words.to_vec();
    let path = report.to_string_lossy().into_owned();
    words.extend(["--report", &path]);
    let output =
        command(server, &words).envs(environment.iter().copied()).output().expect("the program").into();
    Moved { output, lines: lines(&report) }
}

/// The lines of a file of JSON lines; empty if the file does not exist.
pub(crate) fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// The files of a folder with their bytes, by their paths.
pub(crate) fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    gather(folder, "", &mut found);
    found.sort();
    found
}

fn gather(folder: &Path, prefix: &str, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            gather(&entry.path(), &format!("{path}/"), found);
        } else if let Ok(bytes) = std::fs::read(entry.path()) {
            // A file has a temporary name while it is written.
            found.push((path, bytes));
        }
    }
}

/// Writes a file below a folder.
pub(crate) fn write(folder: &Path, path: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// The beginning of 2020 in ms since 1970. Tests add seconds to it for the times that they choose.
pub(crate) const BEGIN_2020_MS: u64 = 1_577_836_800_000;

/// A version in the API.
#[track_caller]
pub(crate) fn version(server: &Server, repository: &str, package: &str, version: &str) -> Value {
    let api = packhouse_tests::Api::sign_in(server);
    let package = package.replace('@', "%40").replace('/', "%2F");
    let path = format!("/v1/repositories/{repository}/packages/{package}/versions");
    let all = api.call("GET", &path).expect(200).json();
    let found = all["items"].as_array().unwrap().iter().find(|item| item["version"] == version).cloned();
    found.unwrap_or_else(|| panic!("no version {version}: {all:#}"))
}
