//! Limits on the resources that a few requests can take from a server. READMEs, advisory queries
//! and unread answers can take memory; archives can take disk space. Each test compares such
//! requests with harmless requests in the same run.

#[path = "../protocol/advisories/records.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod records;
use super::strangers::h2c;
use crate::release;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use h2c::{Http2, block_on, within};
use packhouse_tests::cli::packhouse;
use packhouse_tests::http::basic;
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::person::Person;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::race::{SetOnDrop, at_once};
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::{Api, Connection, Request, Server, payload};
use records::Record;
use release::Release;
use serde_json::{Value, json};

const MIB: u64 = 1024 * 1024;

/// Publishes a version with this README, cut to 64 KiB.
fn publish_readme(repository: &NpmRepository, version: &str, readme: &str) {
    let readme = &readme[..readme.len().min(64 * 1024)];
    let release =
        Release::new("lib", version).file("README.md", readme).manifest_members(&json!({"readme": readme}));
    repository.put("lib", &release.document()).expect(201);
}

#[test]
fn a_readme_takes_no_more_memory_than_its_page() {
    let server = Server::start();
    let repository = NpmRepository::create(&server, "js");
    let attributes =
        |count: usize| -> String { (0..count).map(|number| format!("<b a{number}></x>")).collect() };
    let bombs = [
        format!("<p>{}{}", attributes(2600), "</p><p>x".repeat(4050)),
        format!("<p>{}{}", attributes(20), "</p><p>x".repeat(7000)),
        "<http-x><p-x>".repeat(5000) + "x",
        "|a".repeat(4000) + "\n" + &"|-".repeat(4000) + "\n" + &"a\n".repeat(20_000),
        "*a ".repeat(20_000),
        "[a](b ".repeat(10_000),
        "> ".repeat(30_000),
    ];
    for (number, bomb) in bombs.iter().enumerate() {
        publish_readme(&repository, &format!("1.0.{number}"), bomb);
    }
    // Harmless READMEs of the same length. The test views each README once, because the server
    // caches the result.
    for number in 0..6 {
        let harmless = format!("The {number}.\n\n{}", "A *short* paragraph.\n\n".repeat(3000));
        publish_readme(&repository, &format!("2.0.{number}"), &harmless);
    }
    let owner = Person::owner(&server);
    let view = |version: String| {
        let page =
            owner.clone().get(&format!("/repositories/js/packages/lib/versions/{version}")).expect(200);
        assert!(
            page.text().contains("README") && page.body.len() < 64 * 1024,
            "{version}: {}",
            page.body.len()
        );
    };
    let (_, usual) = server.watched(|| {
        for from in [0, 3] {
            at_once(3, |number| view(format!("2.0.{}", from + number)));
        }
    });
    for number in 0..bombs.len() {
        let (_, most) = server.watched(|| at_once(3, |_| view(format!("1.0.{number}"))));
        let grown = most.saturating_sub(usual);
        println!("README {number}: {} KiB more for three views at once", grown / 1024);
        assert!(grown < 60 * MIB, "README {number}: {} MiB more", grown / MIB);
    }
}

/// A server with this many advisories about `lib`.
fn advised(count: usize) -> (Server, Api) {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let folder = tempfile::tempdir().unwrap();
    for number in 0..count {
        let record = Record::new(&format!("GHSA-{number:04}"), "npm", "lib").below("2.0.0");
        let mut record = record.high("It leaks");
        record.0["details"] = json!("Much is to be told of it. ".repeat(100));
        std::fs::write(folder.path().join(format!("{number}.json")), record.0.to_string()).unwrap();
    }
    packhouse(server.data(), &["advisories", "import", folder.path().to_str().unwrap()], "").success();
    let question = question("1.0.0", None);
    eventually("the server follows", || {
        let found = api.post("/v1/query", &question).expect(200).json();
        found["vulns"].is_array().then_some(())
    });
    (server, api)
}

fn question(version: &str, token: Option<&str>) -> Value {
    let mut question = json!({"package": {"ecosystem": "npm", "name": "lib"}, "version": version});
    if let Some(token) = token {
        question["page_token"] = json!(token);
    }
    question
}

/// Returns all advisory ids for each of these versions. Makes calls until no answer has a page
/// token.
fn found(api: &Api, versions: &[String]) -> Vec<BTreeSet<String>> {
    let mut all = vec![BTreeSet::new(); versions.len()];
    let mut left: Vec<(usize, Option<String>)> = (0..versions.len()).map(|at| (at, None)).collect();
    for _ in 0..200 {
        let to_query = |(at, token): &(usize, Option<String>)| question(&versions[*at], token.as_deref());
        let queries: Vec<Value> = left.iter().map(to_query).collect();
        let answer = api.post("/v1/querybatch", &json!({"queries": queries})).expect(200).json();
        let results = answer["results"].as_array().unwrap();
        assert_eq!(results.len(), left.len());
        let named: usize = results.iter().map(|result| result["vulns"].as_array().map_or(0, Vec::len)).sum();
        assert!((1..=20_000).contains(&named), "{named} records in one answer");
        let mut next = Vec::new();
        for ((at, _), result) in left.iter().zip(results) {
            let ids = result["vulns"].as_array().into_iter().flatten().map(|one| one["id"].as_str().unwrap());
            for id in ids {
                assert!(all[*at].insert(id.to_owned()), "{id} is listed twice");
            }
            next.extend(result["next_page_token"].as_str().map(|token| (*at, Some(token.to_owned()))));
        }
        if next.is_empty() {
            return all;
        }
        left = next;
    }
    panic!("{} questions are never answered", left.len());
}

#[test]
fn a_batch_of_queries_has_one_budget_and_is_answered_completely() {
    let (server, api) = advised(430);
    let single = json!({"queries": [question("1.0.0", None)]});
    let (_, usual) = server.watched(|| at_once(4, |_| api.post("/v1/querybatch", &single).expect(200)));
    let equal = json!({"queries": vec![question("1.0.0", None); 1000]});
    let (answers, most) = server.watched(|| at_once(4, |_| api.post("/v1/querybatch", &equal)));
    let grown = most.saturating_sub(usual);
    println!("four batches of a thousand equal questions: {} KiB more", grown / 1024);
    assert!(grown < 200 * MIB, "{} MiB more for four batches", grown / MIB);
    for answer in answers {
        assert!(answer.status == 200 || answer.field("error") == "server_busy", "{}", answer.status);
        assert!(answer.body.len() < 4_000_000, "{} bytes", answer.body.len());
    }
    let versions: Vec<String> = (0..120).map(|number| format!("1.{}.0", number % 60)).collect();
    for (version, ids) in versions.iter().zip(found(&api, &versions)) {
        assert_eq!(ids.len(), 430, "{version}");
    }
    let fixed = api.post("/v1/querybatch", &json!({"queries": [question("2.0.0", None)]})).expect(200).json();
    assert_eq!(fixed, json!({"results": [{}]}));
}

/// A package whose packument has about 3.6 MB.
fn large_packument(server: &Server) -> (NpmRepository, String) {
    let repository = NpmRepository::create(server, "js");
    for number in 0..40 {
        let text: String = (0..9000).map(|at| format!("{:010}", at * 7919 + number)).collect();
        let release = Release::new("lib", &format!("1.0.{number}"))
            .manifest_members(&json!({"config": {"text": text}}));
        repository.put("lib", &release.document()).expect(201);
    }
    let length = repository.get("lib").expect(200).body.len() as u64;
    assert!(length > 3 * MIB, "the packument has {length} bytes");
    let credential = basic(OWNER, &repository.token.secret);
    (repository, credential)
}

/// The server's peak memory while many clients fetch and read the packument.
fn usual(server: &Server, repository: &NpmRepository) -> u64 {
    let ((), most) = server.watched(|| {
        // The status does not matter, because the server may refuse some of so many concurrent
        // requests.
        at_once(60, |_| drop(repository.get("lib")));
    });
    most
}

/// Reads nothing until the stream ends; returns true if the server ended the stream early.
async fn is_given_up(mut body: h2::RecvStream) -> bool {
    loop {
        match within("the stream ends", body.data()).await {
            Some(Ok(_)) => (),
            Some(Err(error)) => return error.is_reset(),
            None => return false,
        }
    }
}

#[test]
fn unread_documents_hold_little_memory_and_their_streams_end() {
    let server = Server::with().env("PACKHOUSE_LIMITS_SEND_IDLE_MS", "3000").start();
    let (repository, credential) = large_packument(&server);
    let usual = usual(&server, &repository);
    let fields = [("authorization", credential.as_str())];
    let (given_up, most) = server.watched(|| {
        block_on(async {
            let (mut connections, mut answers) = (Vec::new(), Vec::new());
            for _ in 0..3 {
                let mut connection = Http2::open(server.packages(), 64 * 1024).await;
                for _ in 0..80 {
                    answers.push(connection.begin("GET", &repository.path("lib"), &fields, false).await.0);
                }
                connections.push(connection);
            }
            let mut given_up = 0;
            for answer in answers {
                let answer = within("an answer", answer).await.unwrap();
                assert!([200, 503].contains(&answer.status().as_u16()), "{}", answer.status());
                let is_ok = answer.status() == 200;
                let is_given_up = is_given_up(answer.into_body()).await;
                assert_eq!(is_ok, is_given_up, "an unread answer does not end as if it was complete");
                given_up += u64::from(is_given_up);
            }
            assert!(connections.iter().all(Http2::is_open));
            given_up
        })
    });
    let grown = most.saturating_sub(usual);
    println!("{given_up} unread packuments: {} KiB more", grown / 1024);
    assert!(given_up > 50, "{given_up} streams were begun"); // Plugins answer this many requests at one time.
    assert!(grown < 64 * MIB, "{} MiB more for {given_up} answers", grown / MIB);
    // The server still serves the complete packument.
    assert_eq!(repository.get("lib").expect(200).json()["versions"].as_object().unwrap().len(), 40);
}

#[test]
fn a_document_that_waited_in_a_file_is_complete() {
    let server = Server::start();
    let (repository, credential) = large_packument(&server);
    let whole = repository.get("lib").expect(200).body;
    let fields = [("authorization", credential.as_str())];
    block_on(async {
        let mut connection = Http2::open(server.packages(), 64 * 1024).await;
        let mut answers = Vec::new();
        for _ in 0..8 {
            answers.push(connection.get(&repository.path("lib"), &fields).await.into_body());
        }
        for mut body in answers {
            let mut bytes = Vec::new();
            while let Some(piece) = within("more of an answer", body.data()).await {
                let piece = piece.unwrap();
                body.flow_control().release_capacity(piece.len()).unwrap();
                bytes.extend_from_slice(&piece);
            }
            assert!(bytes == whole, "{} bytes instead of {}", bytes.len(), whole.len());
        }
    });
}

fn descriptors(server: &Server) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().count()
}

#[test]
fn connections_that_read_nothing_hold_little_memory_and_are_closed() {
    let server = Server::with().env("PACKHOUSE_LIMITS_SEND_IDLE_MS", "5000").start();
    let (repository, _) = large_packument(&server);
    // The test counts first, because connections of `usual` may still be open afterwards.
    let before = descriptors(&server);
    let usual = usual(&server, &repository);
    let request = repository.client.head_bytes(Request::new("GET", &repository.path("lib")));
    let ((), most) = server.watched(|| {
        let open = |_| {
            let mut connection = Connection::open(server.packages()).unwrap();
            connection.send(&request).unwrap();
            connection
        };
        let connections: Vec<Connection> = (0..120).map(open).collect();
        // Plugins answer this many requests at one time. The server answers the other requests with
        // 503 and closes their connections.
        eventually("answers wait", || (descriptors(&server) >= before + 50).then_some(()));
        // The clients read nothing meanwhile.
        eventually("all are closed", || (descriptors(&server) <= before + 20).then_some(()));
        drop(connections);
    });
    let grown = most.saturating_sub(usual);
    println!("120 connections that read nothing: {} KiB more", grown / 1024);
    assert!(grown < 128 * MIB, "{} MiB more for 120 connections", grown / MIB);
}

#[test]
fn a_large_file_sent_again_takes_no_more_disk() {
    let server = Server::start();
    let files = FormatRepository::hosted(&server, "generic", "files", &json!({}));
    // The server reads smaller files again to check that they are intact. This file is too large
    // for that.
    let bytes = payload::bytes(1, 65 << 20);
    for number in 0..4 {
        files.put(&format!("tool/1.{number}/tool.bin"), bytes.clone()).expect(201);
    }
    let disk = taken(server.data());
    assert!(disk < 2 * bytes.len() as u64, "{disk} bytes for four files of the same {} bytes", bytes.len());
}

/// 2 MB of gzip that unpack to 2 GB: many gzip members, each full of zeros.
fn bomb() -> Vec<u8> {
    let member = release::gzip(&vec![0; 64 << 20]);
    member.repeat(2_000_000 / member.len())
}

/// Size of all files below a folder.
fn taken(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => taken(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}

/// Runs `work` and samples the size of the staged bytes meanwhile; returns the result and the
/// largest size.
fn staged_while<T>(server: &Server, work: impl FnOnce() -> T) -> (T, u64) {
    let (done, staging) = (AtomicBool::new(false), server.data().join("staging"));
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut most = 0;
            while !done.load(Ordering::Relaxed) {
                most = most.max(taken(&staging));
                std::thread::yield_now();
            }
            most
        });
        let ended = SetOnDrop(&done);
        let result = work();
        drop(ended);
        (result, watcher.join().unwrap())
    })
}

#[test]
fn archives_that_unpack_out_of_proportion_take_the_disk_of_one() {
    let server = Server::start();
    let (npm, python) = (NpmRepository::create(&server, "js"), PythonRepository::create(&server, "python"));
    let bomb = bomb();
    let document = |number: usize| Release::new("lib", &format!("1.0.{number}")).raw(&bomb).document();
    let documents: Vec<Value> = (0..4).map(document).collect();
    let (statuses, most) =
        staged_while(&server, || at_once(4, |number| npm.put("lib", &documents[number]).status));
    println!("four bombs: at most {} MB staged", most / 1_000_000);
    assert_eq!(statuses, [400; 4]);
    assert!(most < 4 * 64 * MIB, "{most} bytes were staged");
    let upload = |number: usize| {
        let version = format!("1.{number}");
        python.publish("lib", &version, &format!("lib-{version}.tar.gz"), &bomb).status
    };
    let (statuses, most) = staged_while(&server, || at_once(4, upload));
    assert_eq!(statuses, [400; 4]);
    assert!(most < 4 * 64 * MIB, "{most} bytes were staged");
    // A file of zeros, as tests use it, compresses well but is small enough. The server must accept
    // it.
    let zeros = "\0".repeat(40 << 20);
    let dense = Release::new("dense", "1.0.0").file("zeros.bin", &zeros).document();
    npm.put("dense", &dense).expect(201);
}
