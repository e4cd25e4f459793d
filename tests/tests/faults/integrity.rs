//! Stored bytes that something other than the server changes: a download breaks off, and scrub
//! names the damaged blob.

use packhouse_tests::clients::{ProgramOutput, run};
use packhouse_tests::{MavenRepository, Request, Server, database, digests, payload, server};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Command;

const FILE: &str = "org/example/a/1.0/a-1.0.jar";

/// The only file below `blobs`.
fn blob_file(server: &Server) -> PathBuf {
    let mut files = Vec::new();
    database::list(&server.data().join("blobs"), &mut files);
    let large: Vec<_> = files.iter().filter_map(|line| line.strip_suffix(" 1000000")).collect();
    assert_eq!(large.len(), 1, "{files:?}");
    PathBuf::from(large[0])
}

fn scrub(server: &Server) -> ProgramOutput {
    run(Command::new(server::program()).args(["scrub", "--data"]).arg(server.data()))
}

#[test]
fn a_damaged_blob_is_never_served_whole_and_scrub_names_it() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "damaged");
    let bytes = payload::bytes(1, 1_000_000);
    repository.put(FILE, bytes.clone()).expect(201);
    repository.put("org/example/a/1.0/a-1.0.pom", "small").expect(201);
    scrub(&server).success();

    let blob = blob_file(&server);
    let get = || repository.client.try_send(Request::new("GET", &repository.path(FILE)));
    let whole = |answer: &std::io::Result<packhouse_tests::Response>| {
        answer.as_ref().is_ok_and(|answer| answer.status == 200)
    };
    assert!(whole(&get()));

    let file = File::options().write(true).open(&blob).unwrap();
    file.write_all_at(&[bytes[500_000] ^ 1], 500_000).unwrap();
    assert!(!whole(&get()), "the server served a blob with one flipped bit");
    scrub(&server).refused(&digests::sha256(&bytes));

    file.set_len(700_000).unwrap();
    assert!(!whole(&get()), "the end is missing");
    scrub(&server).refused(&digests::sha256(&bytes));

    fs::remove_file(&blob).unwrap();
    assert!(!whole(&get()), "the file is missing");
    scrub(&server).refused(FILE);
    assert_eq!(repository.get("org/example/a/1.0/a-1.0.pom").expect(200).text(), "small");
}

#[test]
fn unreferenced_blobs_are_collected() {
    let server = Server::with().env("PACKHOUSE_GC_GRACE_MS", "0").start();
    let repository = MavenRepository::create(&server, "deleted");
    repository.put(FILE, payload::bytes(1, 1_000_000)).expect(201);
    let blob = blob_file(&server);
    repository.client.send(Request::new("DELETE", &repository.path(FILE))).expect(204);

    let gc = || {
        run(Command::new(server::program())
            .args(["gc", "--data"])
            .arg(server.data())
            .env("PACKHOUSE_GC_GRACE_MS", "0"))
    };
    // One collection marks the blob, and a later collection deletes it.
    server::eventually("the blob is collected", || {
        gc().success();
        (!blob.exists()).then_some(())
    });
    repository.put(FILE, payload::bytes(1, 1_000_000)).expect(201);
    assert_eq!(
        digests::sha256(&repository.get(FILE).expect(200).body),
        digests::sha256(&payload::bytes(1, 1_000_000))
    );
}

#[test]
fn files_are_never_served_as_active_content() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "scripts");
    for end in ["html", "svg", "xhtml", "js"] {
        let file = format!("org/example/a/1.0/a-1.0.{end}");
        let request = Request::new("PUT", &repository.path(&file)).header("Content-Type", "text/html");
        repository.client.send(request.body("<script>alert(1)</script>")).expect(201);
        let answer = repository.get(&file).expect(200);
        assert_eq!(answer.header("content-type"), Some("application/octet-stream"), "{file}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert!(answer.header("content-security-policy").is_some());
        assert!(answer.header("set-cookie").is_none());
    }
    let listing = Request::new("GET", &repository.path("org/")).header("Accept", "text/html");
    let name = "org/%3Cscript%3Ealert(1)%3C/a";
    let _ = repository.put(name, "x");
    assert!(!repository.client.send(listing).expect(200).text().contains("<script>"));
}
