//! Imports and exports that kill -9 interrupts again and again. After repeated runs, the result is
//! the same as without a kill, without duplicates.

use std::path::Path;

use packhouse_tests::digests::sha1;
use packhouse_tests::images::ImageRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::server::eventually;
use packhouse_tests::upstream::{Answer, Gate, Upstream};
use packhouse_tests::{Api, MavenRepository, Server};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::world::{begin, files, lines, moved, write};
use crate::wheel;

const FILES: usize = 60;

fn tree(root: &Path) {
    for number in 0..FILES {
        let bytes = packhouse_tests::payload::bytes(number as u64, 20_000 + number);
        let path = format!("org/example/lib/{number}/lib-{number}.jar");
        write(root, &path, &bytes);
        write(root, &format!("{path}.sha1"), sha1(&bytes));
    }
}

/// The files of the only package in the API.
fn listed(server: &Server, id: &str, package: &str) -> Vec<Value> {
    let api = Api::sign_in(server);
    let path = format!("/v1/repositories/{id}/packages/{package}/versions?limit=200");
    match api.call("GET", &path) {
        answer if answer.status == 200 => answer.json()["items"].as_array().unwrap().clone(),
        _ => Vec::new(),
    }
}

#[test]
fn a_killed_import_continues() {
    let (server, home) = (Server::start(), TempDir::new().unwrap());
    let repository = MavenRepository::create(&server, "maven");
    tree(home.path());
    let at = home.path().to_string_lossy().into_owned();
    let words = ["import", "maven", "--from", "maven", &at, "--jobs", "2"];
    let package = "org.example%3Alib";
    for more in [1, 10, 25] {
        let before = listed(&server, &repository.id, package).len();
        let mut child = begin(&server, &words);
        eventually("a part has arrived", || {
            let there = listed(&server, &repository.id, package).len();
            (there >= (before + more).min(FILES) || child.try_wait().unwrap().is_some()).then_some(())
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let last = moved(&server, &words).success();
    assert_eq!(last.count("moved") + last.count("present"), FILES);
    moved(&server, &words).adds_nothing();
    let versions = listed(&server, &repository.id, package);
    assert_eq!(versions.len(), FILES);
    assert!(versions.iter().all(|version| version["files"].as_array().unwrap().len() == 1));
    for (path, bytes) in files(home.path()).into_iter().filter(|(path, _)| path.ends_with(".jar")) {
        assert_eq!(repository.get(&path).expect(200).body, bytes);
    }
}

#[test]
fn a_file_in_transit_is_never_stored_partly() {
    let (server, upstream, gate) = (Server::start(), Upstream::start(), Gate::new());
    let repository = PythonRepository::create(&server, "py");
    let bytes = wheel::wheel("demo", "1.0", "");
    let file = wheel::wheel_name("demo", "1.0");
    let page = format!("<a href='/f/{file}#sha256={}'>{file}</a>", packhouse_tests::digests::sha256(&bytes));
    upstream.on("/simple/demo/", Answer::ok(page));
    let address = format!("/f/{file}");
    upstream.on(&address, Answer::ok(bytes.clone()).gated(100, &gate));
    let url = upstream.url();
    let words = ["import", "py", "--from", "pypi", &url, "--package", "demo"];
    let mut child = begin(&server, &words);
    eventually("it reads the file", || (upstream.count(&address) > 0).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    gate.open();
    repository.ask("demo").expect(404);
    assert_eq!(moved(&server, &words).success().count("moved"), 1);
    assert_eq!(repository.file("demo", "1.0", &file).expect(200).body, bytes);
    moved(&server, &words).adds_nothing();
}

#[test]
fn a_killed_export_continues() {
    let (server, home) = (Server::start(), TempDir::new().unwrap());
    let repository = ImageRepository::create(&server, "images", &json!({}));
    let layers: Vec<Vec<u8>> =
        (0..40).map(|number| packhouse_tests::payload::bytes(number, 30_000)).collect();
    for (number, layer) in layers.iter().enumerate() {
        repository.push("app", &format!("v{number}"), &[layer]).unwrap();
    }
    let (out, whole) = (home.path().join("out"), home.path().join("whole"));
    let (to, whole_at) = (out.to_string_lossy().into_owned(), whole.to_string_lossy().into_owned());
    for more in [5, 30, 60] {
        let count = || if out.is_dir() { files(&out).len() } else { 0 };
        let before = count();
        let mut child = begin(&server, &["export", "images", &to, "--jobs", "1"]);
        eventually("a part has arrived", || {
            (count() >= (before + more).min(80) || child.try_wait().unwrap().is_some()).then_some(())
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
    moved(&server, &["export", "images", &to]).success();
    moved(&server, &["export", "images", &whole_at]).success();
    // The last run also removes the file that the killed run was writing.
    assert_eq!(files(&out), files(&whole));
    assert!(lines(&out.join("export.jsonl")).len() > 80);
    moved(&server, &["export", "images", &to]).adds_nothing();
}

#[test]
fn an_import_survives_a_killed_server() {
    let (mut server, upstream, gate) = (Server::start(), Upstream::start(), Gate::new());
    let repository = MavenRepository::create(&server, "maven");
    let bytes = packhouse_tests::payload::bytes(1, 2_000_000);
    let page = |links: &str| Answer::ok(links.to_owned()).header("Content-Type", "text/html");
    upstream.on("/", page("<a href='org/'>o</a>"));
    upstream.on("/org/", page("<a href='a/'>a</a>"));
    upstream.on("/org/a/", page("<a href='1/'>1</a>"));
    upstream.on("/org/a/1/", page("<a href='a-1.pom'>p</a><a href='a-1.jar'>j</a>"));
    let jar = "/org/a/1/a-1.jar";
    upstream.on(jar, Answer::ok(bytes.clone()).gated(1_500_000, &gate));
    upstream.on(&format!("{jar}.sha1"), Answer::ok(sha1(&bytes)));
    upstream.on("/org/a/1/a-1.pom", Answer::ok("<project/>"));
    let url = upstream.url();
    let words = ["import", "maven", "--from", "maven", &url];
    let mut child = begin(&server, &words);
    eventually("the jar is under way", || (upstream.count(jar) > 0).then_some(()));
    server.kill9();
    gate.open();
    server.restart();
    // The program retries by itself while the server restarts. The result is the same even if the
    // program gave up before that.
    child.wait().unwrap();
    let last = moved(&server, &words).success();
    assert_eq!(last.count("moved") + last.count("present"), 2, "{:#?}", last.lines);
    moved(&server, &words).adds_nothing();
    assert_eq!(repository.get("org/a/1/a-1.jar").expect(200).body, bytes);
    assert_eq!(listed(&server, &repository.id, "org%3Aa").len(), 1);
}
