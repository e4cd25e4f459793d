//! What the tests share: the program's two commands, and what their reports say.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use packhouse_tests::Server;
use packhouse_tests::clients::Said;
use packhouse_tests::server::{OWNER, PASSWORD, program};
use serde_json::Value;
use tempfile::TempDir;

/// `packhouse` with these words, for the API of this server, with the owner's login.
pub(crate) fn command(server: &Server, words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(words).args(["--api-url", &format!("http://{}", server.api())]);
    command.env("PACKHOUSE_LOGIN", format!("{OWNER}:{PASSWORD}")).stdin(Stdio::null());
    for name in ["PACKHOUSE_SOURCE_LOGIN", "PACKHOUSE_SOURCE_TOKEN", "http_proxy", "HTTP_PROXY"] {
        command.env_remove(name);
    }
    command
}

/// Runs it.
#[track_caller]
pub(crate) fn run(server: &Server, words: &[&str]) -> Said {
    command(server, words).output().expect("the program").into()
}

/// Begins it, to be killed.
pub(crate) fn begin(server: &Server, words: &[&str]) -> Child {
    command(server, words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program")
}

/// A run with its report.
#[derive(Debug)]
pub(crate) struct Moved {
    pub(crate) said: Said,
    pub(crate) lines: Vec<Value>,
}

impl Moved {
    /// How many files came to this end.
    pub(crate) fn count(&self, outcome: &str) -> usize {
        self.lines.iter().filter(|line| line["what"] == "file" && line["outcome"] == outcome).count()
    }

    /// The line about this path.
    #[track_caller]
    pub(crate) fn line(&self, path: &str) -> &Value {
        let found = self.lines.iter().find(|line| line["path"] == path);
        found.unwrap_or_else(|| panic!("nothing is said of {path}: {:#?}", self.lines))
    }

    /// Fails the test unless it ended well.
    #[track_caller]
    pub(crate) fn well(self) -> Self {
        assert!(self.said.success, "{}\n{:#?}", self.said.text, self.lines);
        self
    }

    /// Fails the test unless nothing was added, and something was there.
    #[track_caller]
    pub(crate) fn adds_nothing(self) -> Self {
        let moved = self.well();
        let added: Vec<&Value> = moved.lines.iter().filter(|line| line["outcome"] == "moved").collect();
        assert!(added.is_empty(), "{added:#?}");
        assert!(moved.count("present") > 0, "{:#?}", moved.lines);
        moved
    }
}

/// Runs it with a report.
#[track_caller]
pub(crate) fn moved(server: &Server, words: &[&str]) -> Moved {
    moved_with(server, words, &[])
}

/// The same with these variables.
#[track_caller]
pub(crate) fn moved_with(server: &Server, words: &[&str], environment: &[(&str, &str)]) -> Moved {
    let home = TempDir::new().unwrap();
    let report = home.path().join("report.jsonl");
    let mut words = words.to_vec();
    let path = report.to_string_lossy().into_owned();
    words.extend(["--report", &path]);
    let said =
        command(server, &words).envs(environment.iter().copied()).output().expect("the program").into();
    Moved { said, lines: lines(&report) }
}

/// The lines of a file of JSON lines; none where it is not there.
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
            // What is being written goes by another name before it is there.
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

/// ms since 1970 as RFC 3339 of 2020, for times that tests choose: this many seconds after its beginning.
pub(crate) const BEGIN_2020_MS: u64 = 1_577_836_800_000;

/// What the API says of a version.
#[track_caller]
pub(crate) fn version(server: &Server, repository: &str, package: &str, version: &str) -> Value {
    let api = packhouse_tests::Api::sign_in(server);
    let package = package.replace('@', "%40").replace('/', "%2F");
    let path = format!("/v1/repositories/{repository}/packages/{package}/versions");
    let all = api.call("GET", &path).expect(200).json();
    let found = all["items"].as_array().unwrap().iter().find(|item| item["version"] == version).cloned();
    found.unwrap_or_else(|| panic!("no version {version}: {all:#}"))
}
