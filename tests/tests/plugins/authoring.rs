//! Runs the commands of docs/plugins/project.md in a folder outside of the checkout. An author can
//! write a format with only the program and a compiler.
//!
//! `target/authoring` holds cargo's output for the crates that every project needs, so that later
//! runs need not build them again.

use packhouse_tests::clients::{self, ProgramOutput};
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::{self, eventually};
use packhouse_tests::{Api, Request, Server, checkout, long, skip};
use serde_json::json;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use tempfile::{TempDir, TempPath};

/// Time limit of a build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A plugin author with a separate folder.
struct Author {
    home: TempDir,
}

impl Author {
    fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// The command `packhouse plugins` with these arguments in `folder`.
    fn command(&self, folder: &str, words: &[&str]) -> Command {
        let mut command = Command::new(server::program());
        command.arg("plugins").args(words).current_dir(self.folder(folder)).stdin(Stdio::null());
        // The author's environment lacks the variables that cargo sets for this test.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("CARGO_PKG_")
                || name.starts_with("CARGO_PROFILE_")
                || name == "CARGO_MANIFEST_DIR"
            {
                command.env_remove(&*name);
            }
        }
        command.env("CARGO_TARGET_DIR", checkout().join("target/authoring"));
        command
            .env("CARGO_NET_OFFLINE", "true")
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            // The component's speed does not matter here. This setting cuts the compile time to a
            // third.
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            .env("RUST_BACKTRACE", "1");
        command
    }

    fn plugins(&self, folder: &str, words: &[&str]) -> ProgramOutput {
        clients::run(&mut self.command(folder, words))
    }

    fn edit(&self, file: &str, from: &str, to: &str) {
        let file = self.folder(file);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{} has no {from:?}", file.display());
        fs::write(&file, text.replace(from, to)).unwrap();
    }
}

/// Returns the last line of the command's output, which is a path.
fn last_line(mut command: Command) -> PathBuf {
    let output = command.output().unwrap();
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    ProgramOutput::from(output).success();
    PathBuf::from(printed.trim_end().lines().last().unwrap_or_default())
}

/// A server whose only plugin is this component, with a repository of its format.
struct Served {
    _plugins: TempDir,
    format: String,
    server: Server,
    repository: FormatRepository,
}

impl Served {
    fn start(component: &Path, format: &str, wasi: bool) -> Self {
        let plugins = tempfile::tempdir().unwrap();
        fs::copy(component, plugins.path().join(format).with_extension("wasm")).unwrap();
        let settings = plugins.path().join("packhouse.toml");
        fs::write(&settings, format!("[plugins.{format}]\nwasi = {wasi}\n")).unwrap();
        let [folder, settings] = [plugins.path(), &settings].map(|path| path.to_str().unwrap());
        let server = Server::with().arg("--plugins").arg(folder).arg("--config").arg(settings).start();
        let repository = FormatRepository::hosted(&server, format, "mine", &json!({}));
        Self { _plugins: plugins, format: format.to_owned(), server, repository }
    }

    /// Uploads a file with `curl` to the server's repository and downloads it again.
    fn is_used(&self) {
        let user = format!("{}:{}", server::OWNER, self.repository.token.secret);
        let address = format!("{}/a/b.txt", self.repository.url);
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "hello").unwrap();
        let curl = |more: &[&str]| {
            let mut command = Command::new("curl");
            let arguments = ["--silent", "--show-error", "--fail", "--user", &user];
            clients::run(command.args(arguments).args(more).arg(&address))
        };
        curl(&["--upload-file", file.path().to_str().unwrap()]).success();
        assert_eq!(curl(&[]).success().text, "hello");
        curl(&["--request", "DELETE"]).success();
        curl(&[]).refused("404");
    }

    /// Writes the newest failing call of the repository to a file.
    fn failing_call(&self) -> TempPath {
        let api = Api::sign_in(&self.server);
        let recordings = format!("/v1/plugins/{}/recordings", self.format);
        let body = json!({"repository": self.repository.id, "count": 1, "only_failures": true});
        api.post(&recordings, &body).expect(201);
        self.repository.get("a.txt").expect(500);
        let id = eventually("the call is recorded", || {
            let items = api.call("GET", &recordings).expect(200).json()["items"].clone();
            Some(items.as_array()?.first()?["id"].as_str()?.to_owned())
        });
        let text = api.call("GET", &format!("{recordings}/{id}")).expect(200).text();
        assert!(!text.contains(&self.repository.token.secret), "the recording contains no credential");
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        fs::write(&file, text).unwrap();
        file
    }
}

/// A running `packhouse plugins dev` and its output.
struct Dev {
    child: Child,
    lines: Receiver<String>,
}

impl Dev {
    fn start(author: &Author, folder: &str) -> Self {
        let mut command = author.command(folder, &["dev"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// The next line that contains this text.
    fn line(&self, expected: &str) -> String {
        let mut before = String::new();
        loop {
            let line =
                self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {expected:?} in:\n{before}"));
            if line.contains(expected) {
                return line;
            }
            before += &format!("{line}\n");
        }
    }
}

impl Dev {
    /// Sends SIGKILL, so that the program cannot clean up.
    fn kill9(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // The program stops its server when it ends.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = Command::new("kill").arg(self.child.id().to_string()).status();
            let _ = self.child.wait();
        }
    }
}

fn has_toolchain() -> bool {
    let mut rustc = Command::new("rustc");
    let folder = rustc.args(["--print", "target-libdir", "--target", "wasm32-unknown-unknown"]).output();
    let by_rustup =
        folder.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir());
    by_rustup || Path::new("/usr/bin/wasm-ld-22").exists()
}

#[test]
fn a_format_in_rust_is_written_with_the_program_alone() {
    if !has_toolchain() {
        return skip("plugins new in Rust", "nothing here compiles to wasm32-unknown-unknown");
    }
    let author = Author::new();
    let made = last_line(author.command(".", &["new", "depot-2"]));
    assert_eq!(made, author.folder("depot-2").canonicalize().unwrap());

    let component = last_line(author.command("depot-2", &["build"]));
    assert_eq!(component, author.folder("depot-2").canonicalize().unwrap().join("target/depot-2.wasm"));
    let elsewhere = author.folder("out/x.wasm");
    let words = ["build", "depot-2", "--out", elsewhere.to_str().unwrap()];
    assert_eq!(last_line(author.command(".", &words)), elsewhere);
    assert_eq!(fs::read(&component).unwrap(), fs::read(&elsewhere).unwrap());
    // The component contains no path of the machine on which it was built.
    let home = author.home.path().to_str().unwrap();
    assert!(!fs::read(&component).unwrap().windows(home.len()).any(|piece| piece == home.as_bytes()));

    let check = author.plugins(".", &["check", component.to_str().unwrap()]).success().text;
    for line in [
        "format               depot-2",
        "optional interfaces  none",
        "memory               4.0 MiB at start",
        "server settings      none",
        "clients              curl (publish, read)",
    ] {
        assert!(check.contains(line), "no {line:?} in:\n{check}");
    }
    Served::start(&component, "depot-2", false).is_used();

    let tested = author.plugins("depot-2", &["test"]).success().text;
    assert!(tested.contains("the_table_holds: 9 rows through the component\nall 9 rows passed"), "{tested}");
    a_difference_is_found(&author);
    compile_errors_are_reported(&author);
    it_is_served_while_it_changes(&author);
}

#[test]
fn a_policy_in_rust_is_written_with_the_program_alone() {
    if !long() {
        return;
    }
    if !has_toolchain() {
        return skip("plugins new of a policy", "nothing here compiles to wasm32-unknown-unknown");
    }
    let author = Author::new();
    author.plugins(".", &["new", "no-python", "--kind", "policy", "--language", "python"]).refused("rust");
    let made = last_line(author.command(".", &["new", "small-files", "--kind", "policy"]));
    assert_eq!(made, author.folder("small-files").canonicalize().unwrap());
    let component = last_line(author.command("small-files", &["build"]));
    let server = Server::start();
    let api = Api::sign_in(&server);
    let install = Request::new("POST", "/v1/policy-components").header("Content-Type", "application/wasm");
    let installed = api.request(install.body(fs::read(&component).unwrap())).expect(201);
    assert_eq!(installed.field("name"), "small-files");
    let files = FormatRepository::hosted(&server, "generic", "files", &json!({}));
    let policy = json!({
        "name": "ours", "component": installed.field("component"), "settings": {"most_bytes": 4}, "repositories": "*",
    });
    let path = format!("/v1/policies/{}", api.post("/v1/policies", &policy).expect(201).field("id"));
    api.call("POST", &format!("{path}/preview")).expect(200);
    api.patch(&path, &json!({"mode": "enforced"})).expect(200);
    files.put("a/b.txt", "four").expect(201);
    let refused = files.put("a/c.txt", "more than four").expect(403);
    assert!(refused.text().contains("has a file of 14 bytes (policy ours)"), "{}", refused.text());
}

/// Plants a bug that only the component has, because a native build leaves it out. The test command
/// reports the failing row and the plugin's output.
fn a_difference_is_found(author: &Author) {
    let right = "let blob = repository.recorded_blob(&record.value.digest)?;";
    let wrong =
        format!("{right}\n    if cfg!(target_arch = \"wasm32\") {{ panic!(\"the shelf is empty\") }}");
    author.edit("depot-2/src/lib.rs", right, &wrong);
    let output = author.plugins("depot-2", &["test"]).refused("3 of 9 rows failed").text;
    for words in ["a stored file is fetched: GET /a/b.txt\n  status 500, not 200", "the shelf is empty"] {
        assert!(output.contains(words), "no {words:?} in:\n{output}");
    }
    author.edit("depot-2/src/lib.rs", &wrong, right);
}

fn compile_errors_are_reported(author: &Author) {
    author.edit("depot-2/src/lib.rs", "Failure::not_found(", "Failure::not_fond(");
    let output =
        author.plugins("depot-2", &["build"]).refused("no function or associated item named `not_fond`").text;
    assert!(output.contains("packhouse: cargo could not build"), "{output}");
    assert!(!output.contains("backtrace"), "{output}");
    author.edit("depot-2/src/lib.rs", "Failure::not_fond(", "Failure::not_found(");
}

fn it_is_served_while_it_changes(author: &Author) {
    let mut dev = Dev::start(author, "depot-2");
    dev.line("serving depot-2 0.1.0 at http://");
    let curl = dev.line("curl --user");
    let words: Vec<&str> = curl.split_whitespace().collect();
    let (user, address) = (words[2], words[5].replace("/FILE", "/a.txt"));
    assert!(address.starts_with("http://127.0.0.1:"), "{curl}");
    let curl = |more: &[&str]| {
        let mut command = Command::new("curl");
        clients::run(command.args(["--silent", "--user", user]).args(more).arg(&address))
    };
    let file = tempfile::NamedTempFile::new().unwrap();
    curl(&["--upload-file", file.path().to_str().unwrap()]).success();
    dev.line("PUT /repositories/depot-2/a.txt 201 (publish)");
    dev.line("    wrote ");
    curl(&["--request", "POST"]).success();
    dev.line("POST /repositories/depot-2/a.txt 405");
    dev.line("  method_not_allowed");

    let answer = "    Ok(Response::blob(blob)";
    author.edit("depot-2/src/lib.rs", answer, &format!("    cx.log().warn(\"here it is\", &[]);\n{answer}"));
    author.edit("depot-2/Cargo.toml", "version = \"0.1.0\"", "version = \"0.1.1\"");
    dev.line("serving depot-2 0.1.1");
    // The server still has the files that clients stored before.
    eventually("the file", || curl(&["--fail"]).success.then_some(()));
    dev.line("here it is");
    dev.line("GET /repositories/depot-2/a.txt 200 (read");
    dev.line("    read ");

    // The server ends with the program, even after a SIGKILL.
    let listens = address.trim_start_matches("http://").split('/').next().unwrap();
    dev.kill9();
    eventually("the server has ended", || TcpStream::connect(listens).is_err().then_some(()));
}

#[test]
fn errors_of_authoring_commands_name_the_remedy() {
    let author = Author::new();
    author.plugins(".", &["new", "mine", "--into", "below/it"]).success();
    assert!(author.folder("below/it/mine/Cargo.toml").is_file());
    author.plugins(".", &["new", "mine", "--into", "below/it"]).refused("already exists");
    author.plugins(".", &["new", "Not_a_name"]).refused("1 to 32 lower-case letters, digits and `-`");
    author.plugins(".", &["new", "mine", "--language", "cobol"]).refused("rust, python, javascript");
    assert!(!author.folder("mine").exists());
    author.plugins(".", &["build"]).refused("`packhouse plugins new NAME` writes one");
    author.plugins(".", &["test", "nowhere"]).refused("nowhere is not a plugin project");

    let mut without_rust = author.command("below/it/mine", &["build"]);
    without_rust.env("PATH", "/nonexistent").env("PACKHOUSE_WASM_TOOLCHAIN", "rustup").env_remove("RUSTC");
    clients::run(&mut without_rust).refused("rustup target add wasm32-unknown-unknown");
    for (language, remedy) in
        [("python", "pip install --requirement requirements.txt"), ("javascript", "npm install")]
    {
        author.plugins(".", &["new", "other", "--language", language, "--into", language]).success();
        let mut without = author.command(&format!("{language}/other"), &["build"]);
        without.env("PATH", "/nonexistent").env_remove("VIRTUAL_ENV");
        clients::run(&mut without).refused(remedy);
    }
}

/// Compiling an interpreter takes 15 seconds, and each language needs it three times. So the test
/// runs only if long tests are enabled.
#[test]
fn formats_in_python_and_javascript_are_written_with_the_program_and_their_own_tools() {
    if !long() {
        return;
    }
    let author = Author::new();
    let python = checkout().join(".tools/componentize-py");
    let javascript = checkout().join(".tools/componentize-qjs/node_modules");
    let languages = [
        ("python", python, ".venv", "wasi = true under [plugins.in-python]"),
        ("javascript", javascript, "node_modules", "server settings      none"),
    ];
    for (language, tool, link, needs) in languages {
        if !tool.is_dir() {
            skip(&format!("plugins new in {language}"), &format!("{} is not here", tool.display()));
            continue;
        }
        let format = format!("in-{language}");
        author.plugins(".", &["new", &format, "--language", language]).success();
        std::os::unix::fs::symlink(&tool, author.folder(&format).join(link)).unwrap();
        let tested = author.plugins(&format, &["test"]).success().text;
        assert!(tested.contains("protocol: 9 rows through the component\nall 9 rows passed"), "{tested}");
        let component = author.folder(&format).join("target").join(&format).with_extension("wasm");
        let check = author.plugins(".", &["check", component.to_str().unwrap()]).success().text;
        assert!(check.contains(needs), "{check}");
        Served::start(&component, &format, true).is_used();
        a_planted_bug_replays(&author, &format, &component);
    }
}

/// Replays the recording of a failed call. The component with the bug fails again in the same way,
/// and a component without the bug gives the right answer.
fn a_planted_bug_replays(author: &Author, format: &str, mended: &Path) {
    // The changed line does its work and then fails.
    let (source, line, bug) = match format {
        "in-python" => {
            ("app.py", "(stored[\"digest\"])), options)", "(stored[\"digest\"])), options.no_such)")
        }
        _ => ("app.js", "(stored.digest) }, options }", "(stored.digest) }, options: options.no.such }"),
    };
    author.edit(&format!("{format}/{source}"), line, bug);
    let buggy = author.folder("buggy.wasm");
    author.plugins(format, &["build", "--out", buggy.to_str().unwrap()]).success();
    let served = Served::start(&buggy, format, true);
    served.repository.put("a.txt", "hello").expect(201);
    let call = served.failing_call();
    let replay = |component: &Path| {
        let [call, component] = [&*call, component].map(|path| path.to_str().unwrap());
        clients::run(&mut author.command(".", &["replay", call, "--component", component]))
    };
    let again = replay(&buggy).success().text;
    assert!(again.contains("behaved as recorded"), "{again}");
    replay(mended).refused("200");
}
