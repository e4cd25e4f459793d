//! All tests of the workspace, several programs at one time: cargo runs one after the other, and most of them wait for a client or a
//! server for most of their time.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// A line of what cargo says of a build.
#[derive(Deserialize)]
struct Message {
    manifest_path: Option<PathBuf>,
    executable: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    src_path: PathBuf,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// A program of tests.
struct Program {
    executable: PathBuf,
    /// The folder of its crate, in which it runs.
    folder: PathBuf,
    /// Its source, from the root.
    name: String,
}

/// Builds all tests and runs them, one program more at one time than there are cores, then those in documentation. An error where one
/// failed.
pub(crate) fn run(root: &Path) -> Result<()> {
    let programs = build(root)?;
    let jobs = std::thread::available_parallelism().map_or(1, usize::from) + 1;
    println!("{} programs of tests, {jobs} at one time", programs.len());
    let began = Instant::now();
    let mut failed = run_all(programs, jobs);
    println!("all programs: {} s", began.elapsed().as_secs());
    let documented = cargo(root).args(["test", "--doc", "--no-fail-fast"]).args(WHAT).status();
    if !documented.context("failed to start cargo")?.success() {
        failed.push("tests in documentation".to_owned());
    }
    if !failed.is_empty() {
        failed.sort();
        bail!("failed:\n  {}", failed.join("\n  "));
    }
    Ok(())
}

const WHAT: [&str; 3] = ["--workspace", "--release", "--locked"];

/// Cargo as a shell starts it. What the cargo that runs this program says of it stands in the environment, and a build script that looks
/// at such a variable (ring's does) would run again: everything above it would be built a second time.
fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root);
    for (name, _) in std::env::vars_os() {
        let is_of_package = ["CARGO_PKG_", "CARGO_MANIFEST_"]
            .iter()
            .any(|prefix| name.to_str().is_some_and(|name| name.starts_with(prefix)));
        if is_of_package {
            cargo.env_remove(name);
        }
    }
    cargo
}

fn build(root: &Path) -> Result<VecDeque<Program>> {
    let mut build = cargo(root);
    build.args(["test", "--no-run", "--message-format=json-render-diagnostics"]).args(WHAT);
    let built = build.stderr(Stdio::inherit()).output().context("failed to start cargo")?;
    if !built.status.success() {
        bail!("the tests cannot be built");
    }
    let text = String::from_utf8(built.stdout).context("what cargo says is no text")?;
    let messages = text.lines().map(serde_json::from_str::<Message>);
    let programs = messages.filter_map(|message| message.map(|message| program(root, message)).transpose());
    programs.collect::<Result<_, _>>().context("what cargo says is not understood")
}

fn program(root: &Path, message: Message) -> Option<Program> {
    let (executable, manifest) = (message.executable?, message.manifest_path?);
    let source = message.target?.src_path;
    let name = source.strip_prefix(root).unwrap_or(&source).display().to_string();
    let folder = manifest.parent()?.to_owned();
    message.profile?.test.then_some(Program { executable, folder, name })
}

/// The names of those that failed.
fn run_all(programs: VecDeque<Program>, jobs: usize) -> Vec<String> {
    let (waiting, failed) = (Mutex::new(programs), Mutex::new(Vec::new()));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = || {
        while let Some(program) = next() {
            if !run_one(&program) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).push(program.name);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(work);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs it and tells all that it said at once; false where it failed.
fn run_one(program: &Program) -> bool {
    let began = Instant::now();
    let mut command = Command::new(&program.executable);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder).stdin(Stdio::null());
    match command.output() {
        Ok(output) => {
            tell(program, &output, began.elapsed());
            output.status.success()
        }
        Err(error) => {
            println!("{}: cannot be started: {error}", program.name);
            false
        }
    }
}

fn tell(program: &Program, output: &Output, took: Duration) {
    let Output { status, stdout, stderr } = output;
    let said = [stdout, stderr].map(|said| String::from_utf8_lossy(said).into_owned()).concat();
    // One call, so that programs that end at one time do not mix.
    println!("     Running {} ({} s, {status})\n{said}", program.name, took.as_secs());
}
