//! Lists every test with the first tier that runs it. docs/internals/testing.md describes the
//! tiers.

use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::Command;

/// Files whose tests run in another tier than *change*, by the start of their path.
const ELSEWHERE: [(&str, &str); 4] = [
    ("tests/chart/", "nightly"),
    ("tests/tests/dist", "release"),
    ("tests/tests/live.rs", "on demand"),
    ("fuzz/targets/", "nightly"),
];

/// Attributes that make a function a test.
const MARKS: [&str; 3] = ["#[test]", "#[tokio::test", "fuzz_target!"];

/// Prints `TIER PATH NAME`, a line for each test. Fails if git cannot list the files.
pub(crate) fn print(root: &Path) -> Result<()> {
    let listed = Command::new("git").current_dir(root).args(["ls-files", "*.rs"]).output();
    let listed = listed.context("failed to start git")?;
    if !listed.status.success() {
        bail!("git cannot list the files of this checkout");
    }
    let files = String::from_utf8(listed.stdout).context("a file's name is not UTF-8")?;
    for file in files.lines() {
        let text =
            std::fs::read_to_string(root.join(file)).with_context(|| format!("failed to read {file}"))?;
        for test in tests(file, &text) {
            println!("{} {file} {}", test.tier, test.name);
        }
    }
    Ok(())
}

/// A test and the first tier that runs it.
struct Test<'a> {
    name: &'a str,
    tier: &'static str,
}

fn tests<'a>(file: &str, text: &'a str) -> Vec<Test<'a>> {
    let tier = ELSEWHERE.iter().find(|(path, _)| file.starts_with(path)).map_or("change", |(_, tier)| tier);
    let mut found = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !MARKS.iter().any(|mark| line.trim_start().starts_with(mark)) {
            continue;
        }
        let mut name = None;
        while let Some(next) = lines.peek() {
            if let Some((_, rest)) = next.split_once("fn ") {
                name = rest.split(['(', '<']).next();
                lines.next();
                break;
            }
            if !next.trim_start().starts_with("#[") {
                break;
            }
            lines.next();
        }
        // A test that is only for long runs says so in its first line.
        let is_long = lines.peek().is_some_and(|first| first.contains("if !long()"));
        found.push(Test { name: name.unwrap_or("-"), tier: if is_long { "nightly" } else { tier } });
    }
    found
}
