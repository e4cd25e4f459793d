//! Imports and exports of several hundred packages of each format, with measurements. The tests run
//! only with `PACKHOUSE_TEST_LONG`, on both storages.

use std::time::Instant;

use packhouse_tests::database::Postgres;
use packhouse_tests::images::ImageRepository;
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::s3::S3;
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{MavenRepository, Server, ServerBuilder, digests, long, payload};
use serde_json::json;
use tempfile::TempDir;

use super::world::moved_with;
use crate::release::Release;
use crate::wheel;

/// Packages of each format.
const PACKAGES: u64 = 300;

fn fill(server: &Server) {
    let maven = MavenRepository::create(server, "maven");
    let (py, js) = (PythonRepository::create(server, "python"), NpmRepository::create(server, "npm"));
    let images = ImageRepository::create(server, "docker", &json!({}));
    for number in 0..PACKAGES {
        for version in ["1.0", "1.1-SNAPSHOT"] {
            let path = format!("org/example/n{number}/{version}/n{number}-{version}.jar");
            maven.put(&path, payload::bytes(number, 20_000)).expect(201);
        }
        let name = format!("n{number}");
        py.publish(&name, "1.0", &wheel::wheel_name(&name, "1.0"), &wheel::wheel(&name, "1.0", ""))
            .expect(200);
        let name = if number % 2 == 0 { name } else { format!("@acme/{name}") };
        let own = json!({"name": name, "version": "1.0.0"}).to_string();
        let release = Release::new(&name, "1.0.0").package_json(&own);
        js.put(release.path().trim_start_matches('/'), &release.document()).expect(201);
        images.push(&format!("team/n{number}"), "1.0", &[&payload::bytes(number, 20_000)]).unwrap();
    }
}

fn figures(name: &str, new: ServerBuilder) {
    let (old, new, home) = (Server::start(), new.start(), TempDir::new().unwrap());
    fill(&old);
    let api = format!("http://{}", old.api());
    let login = format!("{OWNER}:{PASSWORD}");
    MavenRepository::create(&new, "maven");
    PythonRepository::create(&new, "python");
    NpmRepository::create(&new, "npm");
    ImageRepository::create(&new, "docker", &json!({}));
    for format in ["maven", "python", "npm", "docker"] {
        let words = ["import", format, "--from", "packhouse", &api, "--source-repository", format];
        let timed = |what: &str, words: &[&str]| {
            let begun = Instant::now();
            let done = moved_with(&new, words, &[("PACKHOUSE_SOURCE_LOGIN", &login)]).success();
            eprintln!(
                "{name}: {format}: {what}: {:.1} s: {}",
                begun.elapsed().as_secs_f64(),
                done.output.text.trim()
            );
            done
        };
        assert!(timed("import", &words).count("moved") >= PACKAGES as usize);
        timed("import again", &words).adds_nothing();
        let out = home.path().join(format).to_string_lossy().into_owned();
        assert!(timed("export", &["export", format, &out]).count("moved") >= PACKAGES as usize);
        timed("export again", &["export", format, &out]).adds_nothing();
        for line in &super::world::lines(&home.path().join(format).join("export.jsonl"))[1..] {
            let bytes = std::fs::read(home.path().join(format).join(line["path"].as_str().unwrap())).unwrap();
            assert_eq!(line["sha256"], digests::sha256(&bytes));
        }
    }
}

#[test]
fn figures_of_some_hundred_packages() {
    if !long() {
        return;
    }
    figures("SQLite and a folder", Server::with());
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let s3 = S3::start().expect("seaweedfs, which ./bootstrap test installs");
    figures(
        "PostgreSQL and S3",
        Server::with().env("PACKHOUSE_DATABASE_URL", &postgres.url()).env("PACKHOUSE_BLOBS", &s3.address()),
    );
}

/// Size of the file to move in bytes, and the memory that the move may take in KiB.
const LARGE: u64 = 2 << 30;
const MOST_MEMORY_KIB: u64 = 96 << 10;

/// Runs the program to its end; returns its peak memory in KiB.
fn peak(server: &Server, words: &[&str]) -> u64 {
    let mut child = super::world::begin(server, words);
    let mut most = 0;
    let ended = loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default();
        most = most.max(now);
        match child.try_wait().unwrap() {
            Some(ended) => break ended,
            None => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    };
    assert!(ended.success());
    most
}

#[test]
fn memory_does_not_grow_with_a_file() {
    if !long() {
        return;
    }
    let (server, home) = (Server::start(), TempDir::new().unwrap());
    MavenRepository::create(&server, "maven");
    let path = home.path().join("tree/org/a/1/a-1.jar");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::File::create(&path).unwrap().set_len(LARGE).unwrap();
    let [tree, out] = ["tree", "out"].map(|name| home.path().join(name).to_string_lossy().into_owned());
    for words in [&["import", "maven", "--from", "maven", &tree][..], &["export", "maven", &out]] {
        let most = peak(&server, words);
        eprintln!("{} of {LARGE} bytes: at most {most} KiB", words[0]);
        assert!(most < MOST_MEMORY_KIB, "{most} KiB");
    }
}
