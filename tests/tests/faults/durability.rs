//! The order in which a publish reaches the disk: bytes, their name, the folder, the record, and
//! only then the answer.

use packhouse_tests::{MavenRepository, Server, payload, skip, strace};
use std::path::Path;

const CALLS: &str = "trace=fsync,fdatasync,rename,renameat,renameat2,write,writev,sendto,sendmsg";

struct Steps {
    lines: Vec<String>,
}

impl Steps {
    /// The index of the first line from `from` on that has one of these calls and these words. The
    /// lines are in the order in which the calls ended.
    fn find(&self, from: usize, calls: &[&str], words: &[&str], what: &str) -> usize {
        let fits = |line: &String| {
            calls.iter().any(|call| line.contains(&format!("{call}(")))
                && words.iter().all(|word| line.contains(word))
        };
        let found = self.lines.iter().enumerate().skip(from).find(|(_, line)| fits(line)).map(|(at, _)| at);
        found.unwrap_or_else(|| panic!("no {what} after line {from} of:\n{}", self.lines.join("\n")))
    }
}

/// Reads strace's lines. Joins both parts of an interrupted line at the place where the call ended.
fn steps(log: &Path) -> Steps {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let mut open = std::collections::BTreeMap::new();
    let mut lines = Vec::new();
    for line in text.lines() {
        let (pid, rest) = line.split_once(' ').unwrap_or((line, ""));
        if let Some(begun) = rest.strip_suffix("<unfinished ...>") {
            open.insert(pid.to_owned(), begun.to_owned());
        } else if let Some(at) = rest.find("resumed>") {
            let begun = open.remove(pid).unwrap_or_default();
            lines.push(format!("{begun}{}", &rest[at + "resumed>".len()..]));
        } else {
            lines.push(rest.to_owned());
        }
    }
    Steps { lines }
}

#[test]
fn a_publish_is_durable_before_it_is_acknowledged() {
    if let Some(reason) = strace::unavailable() {
        return skip("order of system calls", &reason);
    }
    let home = tempfile::TempDir::new().unwrap();
    let log = home.path().join("strace.log");
    let log_name = log.to_string_lossy().into_owned();
    let server = Server::with().wrapped_in(&strace::command(CALLS, &log_name)).start();
    let repository = MavenRepository::create(&server, "order");

    let before = steps(&log).lines.len();
    repository.put("org/example/a/1.0/a-1.0.jar", payload::bytes(1, 1 << 20)).expect(201);
    let steps = packhouse_tests::server::eventually("strace has written it all", || {
        let steps = steps(&log);
        let answered = |line: &String| line.contains("HTTP/1.1 201");
        steps.lines.iter().skip(before).any(answered).then_some(steps)
    });

    let sync: &[&str] = &["fsync", "fdatasync"];
    let blob = steps.find(before, sync, &["/staging/"], "fsync of the staged bytes");
    let renamed = steps.find(blob, &["rename", "renameat", "renameat2"], &["/staging/", "/blobs/"], "rename");
    let folder = steps.find(renamed, sync, &["/blobs/"], "fsync of the folder");
    let record = steps.find(folder, sync, &["-wal"], "fsync of the database's log");
    let answer = steps.find(record, &["write", "writev", "sendto", "sendmsg"], &["HTTP/1.1 201"], "answer");
    let early = steps.lines[before..answer].iter().any(|line| line.contains("HTTP/1.1 201"));
    assert!(!early, "it was acknowledged too early:\n{}", steps.lines[before..].join("\n"));

    let before = steps.lines.len();
    repository.put("org/example/a/1.0/a-1.0.pom", "small").expect(201);
    let steps = packhouse_tests::server::eventually("strace has written it all", || {
        let steps = self::steps(&log);
        steps.lines.iter().skip(before).any(|line| line.contains("HTTP/1.1 201")).then_some(steps)
    });
    let record = steps.find(before, sync, &["-wal"], "fsync of the database's log");
    steps.find(record, &["write", "writev", "sendto", "sendmsg"], &["HTTP/1.1 201"], "answer");
}
