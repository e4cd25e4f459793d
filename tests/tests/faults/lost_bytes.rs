//! Lost or damaged blobs: a client repairs a blob when it sends the same bytes again, by any kind
//! of upload. After the acknowledgement, clients can fetch the bytes.

use packhouse_tests::clients::{ProgramOutput, run};
use packhouse_tests::fault_proxy::{FaultProxy, Mode};
use packhouse_tests::images::{ImageRepository, MANIFEST, digest, manifest};
use packhouse_tests::person::Person;
use packhouse_tests::proxy::JAR;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::s3::{self, S3};
use packhouse_tests::server::{self, OWNER, eventually};
use packhouse_tests::upstream::Answer;
use packhouse_tests::{
    Api, Client, MavenRepository, Request, Response, Server, database, payload, proxy, skip,
};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// File size in bytes: too large for the database, and for a single piece.
const SIZE: usize = 700_000;
/// The position of the flipped byte.
const FLIPPED: usize = 600_000;

/// The damage to every stored file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Damage {
    Missing,
    Flipped,
}

const HARMS: [Damage; 2] = [Damage::Missing, Damage::Flipped];

/// The storage of larger blobs.
enum Storage {
    Folder,
    S3(S3),
}

impl Storage {
    /// All storages to test: a folder, and S3 if it is installed.
    fn all() -> Vec<Storage> {
        let s3 = S3::start();
        if s3.is_none() {
            skip("lost bytes on S3", "no weed");
        }
        [Storage::Folder].into_iter().chain(s3.map(Storage::S3)).collect()
    }

    /// The variables of a server over this storage.
    fn environment(&self) -> Vec<(&'static str, String)> {
        match self {
            Storage::Folder => Vec::new(),
            Storage::S3(s3) => vec![("PACKHOUSE_BLOBS", s3.address())],
        }
    }

    fn server(&self) -> Server {
        let start = |server: server::ServerBuilder, (name, value): (&str, String)| server.env(name, &value);
        self.environment().into_iter().fold(Server::with(), start).start()
    }

    /// Damages every blob outside the database while the server is down.
    fn harm(&self, server: &mut Server, harm: Damage) {
        server.kill9();
        match self {
            Storage::Folder => files(server).iter().for_each(|file| harm_file(file, harm)),
            Storage::S3(s3) => {
                let keys = s3.keys();
                let blobs = keys.iter().filter(|key| key.contains("blobs/") && !key.contains("canary"));
                blobs.for_each(|key| harm_object(s3, key, harm));
            }
        }
        server.restart();
    }

    fn scrub(&self, server: &Server) -> ProgramOutput {
        let mut command = Command::new(server::program());
        command.args(["scrub", "--data"]).arg(server.data()).envs(self.environment());
        run(&mut command)
    }
}

/// Every file below `blobs`.
fn files(server: &Server) -> Vec<PathBuf> {
    let mut files = Vec::new();
    database::list(&server.data().join("blobs"), &mut files);
    files.iter().map(|line| PathBuf::from(line.rsplit_once(' ').unwrap().0)).collect()
}

fn harm_file(path: &PathBuf, harm: Damage) {
    if harm == Damage::Missing {
        return fs::remove_file(path).unwrap();
    }
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, FLIPPED as u64).unwrap();
    file.write_all_at(&[byte[0] ^ 1], FLIPPED as u64).unwrap();
}

fn harm_object(s3: &S3, key: &str, harm: Damage) {
    if harm == Damage::Missing {
        return s3.remove(key);
    }
    let (client, target) = (Client::new(s3.endpoint()), format!("/bucket/{key}"));
    let mut bytes = client.get(&target).expect(200).body;
    bytes[FLIPPED] ^= 1;
    client.put(&target, bytes).expect(200);
}

/// Asserts that a file's bytes are lost. The server finds damage only while it sends the file, and
/// then breaks off the answer. To later requests it answers with an error.
#[track_caller]
fn is_lost(client: &Client, path: &str, harm: Damage) {
    if harm == Damage::Flipped {
        let answer = client.try_send(Request::new("GET", path));
        assert!(answer.is_err(), "the answer was complete: {:?}", answer.map(|answer| answer.status));
    }
    damaged(&client.get(path));
    client.send(Request::new("HEAD", path)).expect(404);
}

#[track_caller]
fn damaged(answer: &Response) {
    assert_eq!(answer.status, 500, "{:?}\n{}", answer.headers, answer.text());
    assert_eq!(answer.header("retry-after"), None);
    assert!(answer.text().contains("stored_data_damaged"), "{}", answer.text());
    assert!(answer.text().contains("Publishing the same file again repairs it"), "{}", answer.text());
}

#[track_caller]
fn is_whole(client: &Client, path: &str, bytes: &[u8]) {
    let answer = client.get(path).expect(200);
    assert!(answer.body == bytes, "{path} came back with other bytes");
    client.send(Request::new("HEAD", path)).expect(200);
}

/// The value of a counter without labels.
fn counter(server: &Server, name: &str) -> u64 {
    let text = Client::new(server.api()).get("/metrics").expect(200).text();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

/// Runs a test on a server over each storage with a repository of files, for each kind of damage.
fn with_files(settings: &Value, test: impl Fn(&Storage, &mut Server, &FormatRepository, Damage)) {
    for storage in Storage::all() {
        for harm in HARMS {
            let mut server = storage.server();
            let repository = FormatRepository::hosted(&server, "generic", "files", settings);
            test(&storage, &mut server, &repository, harm);
            if let Storage::S3(s3) = &storage {
                drop(server);
                // The next server has another database and needs an empty bucket.
                s3.keys().iter().for_each(|key| s3.remove(key));
                s3.remove("packhouse-database");
            }
        }
    }
}

#[test]
fn a_publish_under_another_name_repairs_lost_bytes() {
    with_files(&json!({}), |storage, server, files, harm| {
        let bytes = payload::bytes(1, SIZE);
        files.put("a/one.bin", bytes.clone()).expect(201);
        storage.harm(server, harm);
        is_lost(&files.client, &files.path("a/one.bin"), harm);
        assert!(counter(server, "packhouse_blobs_corrupt_total") > 0);
        let doctor = run(Command::new(server::program())
            .args(["doctor", "--data"])
            .arg(server.data())
            .envs(storage.environment()));
        doctor.refused("reads found 1 of them missing or damaged");
        storage.scrub(server).refused(&packhouse_tests::digests::sha256(&bytes));

        files.put("b/two.bin", bytes.clone()).expect(201);
        for path in ["a/one.bin", "b/two.bin"] {
            is_whole(&files.client, &files.path(path), &bytes);
        }
        assert!(counter(server, "packhouse_blobs_repaired_total") > 0);
        storage.scrub(server).success();
        server.restart();
        is_whole(&files.client, &files.path("a/one.bin"), &bytes);
    });
}

/// A client sends the bytes again before any read, so the server does not yet know that they are
/// lost.
#[test]
fn the_same_file_sent_again_repairs_unread_bytes() {
    with_files(&json!({"redeploy": "identical"}), |storage, server, files, harm| {
        let bytes = payload::bytes(1, SIZE);
        files.put("a/one.bin", bytes.clone()).expect(201);
        storage.harm(server, harm);
        files.put("a/one.bin", bytes.clone()).expect(201);
        is_whole(&files.client, &files.path("a/one.bin"), &bytes);
        storage.scrub(server).success();
    });
}

#[test]
fn a_file_that_is_deleted_and_put_again_is_whole() {
    with_files(&json!({"republish_deleted": true}), |storage, server, files, harm| {
        let bytes = payload::bytes(1, SIZE);
        files.put("a/one.bin", bytes.clone()).expect(201);
        storage.harm(server, harm);
        files.client.send(Request::new("DELETE", &files.path("a/one.bin"))).expect(204);
        files.put("a/one.bin", bytes.clone()).expect(201);
        is_whole(&files.client, &files.path("a/one.bin"), &bytes);
        storage.scrub(server).success();
    });
}

/// Small blobs are stored in rows of the database.
#[test]
fn small_bytes_that_are_damaged_in_the_database_are_repaired() {
    let mut server = Server::start();
    let settings = json!({"redeploy": "identical"});
    let files = FormatRepository::hosted(&server, "generic", "files", &settings);
    let bytes = payload::bytes(1, 1_000);
    let mut harmed = || {
        server.kill9();
        database::sqlite(&server, "UPDATE blobs SET data = zeroblob(length(data)) WHERE size = 1000");
        server.restart();
    };
    files.put("a/one.bin", bytes.clone()).expect(201);
    harmed();
    damaged(&files.get("a/one.bin"));
    files.client.send(Request::new("HEAD", &files.path("a/one.bin"))).expect(404);
    files.put("a/two.bin", bytes.clone()).expect(201);
    for path in ["a/one.bin", "a/two.bin"] {
        is_whole(&files.client, &files.path(path), &bytes);
    }
    harmed();
    files.put("a/one.bin", bytes.clone()).expect(201);
    is_whole(&files.client, &files.path("a/one.bin"), &bytes);
}

#[test]
fn a_lost_layer_does_not_exist_until_it_is_pushed_again() {
    for storage in Storage::all() {
        let mut server = storage.server();
        let images = ImageRepository::create(&server, "images", &json!({}));
        let others = ImageRepository::create(&server, "others", &json!({}));
        let both = Api::sign_in(&server).create_token(&[&images.id, &others.id], &["read", "write"], None);
        let both = server.anonymous().basic(OWNER, &both.secret);
        let layer = payload::bytes(1, SIZE);
        let whole = images.push("app", "v1", &[&layer]).unwrap();
        let blob = format!("app/blobs/{}", digest(&layer));
        let mount = format!("app/blobs/uploads/?mount={}&from=repositories/images/app", digest(&layer));
        let mounts = || both.send(Request::new("POST", &others.path(&mount)));
        let session = || {
            let begun = images.ask("POST", "app/blobs/uploads/").expect(202);
            let target = format!("{}?digest={}", begun.header("location").unwrap(), digest(&layer));
            images.client.send(Request::new("PUT", &target).body(layer.clone())).expect(201);
        };
        let post = || drop(images.push_blob("app", &layer).expect(201));
        let ways: [&dyn Fn(); 2] = [&session, &post];
        for push in ways {
            for harm in HARMS {
                storage.harm(&mut server, harm);
                if harm == Damage::Flipped {
                    // The server notices the damage at the first read.
                    let answer = images.client.try_send(Request::new("GET", &images.path(&blob)));
                    assert!(answer.is_err());
                }
                images.ask("HEAD", &blob).expect(404);
                damaged(&images.get(&blob));
                let refused = images.push_manifest("app", "v2", MANIFEST, &whole).expect(400);
                assert_eq!(refused.json()["errors"][0]["code"], "MANIFEST_BLOB_UNKNOWN");
                mounts().expect(202);
                push();
                is_whole(&images.client, &images.path(&blob), &layer);
                images.push_manifest("app", "v2", MANIFEST, &whole).expect(201);
                mounts().expect(201);
                is_whole(&both, &others.path(&blob), &layer);
            }
        }
        // A client skips layers that exist in the repository. For the server a lost layer does not
        // exist, so the client sends it.
        storage.harm(&mut server, Damage::Missing);
        assert_eq!(images.push("app", "v3", &[&layer]).unwrap(), manifest(&[&layer]));
        is_whole(&images.client, &images.path(&blob), &layer);
        storage.scrub(&server).success();
    }
}

#[test]
fn a_proxy_fetches_lost_bytes_again_and_caches_them() {
    for storage in Storage::all() {
        let environment = storage.environment();
        let environment: Vec<(&str, &str)> =
            environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut world = proxy::World::with(&environment, &json!({}));
        let bytes = payload::bytes(1, SIZE);
        world.offer(JAR, Answer::ok(bytes.clone()), &bytes);
        assert!(world.get(JAR).expect(200).body == bytes);
        let requests = || world.upstream.count(&format!("/{JAR}"));
        eventually("it is cached", || (requests() == 1 && !world.cached_paths().is_empty()).then_some(()));
        for (round, harm) in HARMS.into_iter().enumerate() {
            storage.harm(&mut world.server, harm);
            if harm == Damage::Flipped {
                world.broken(JAR);
            }
            for _ in 0..3 {
                assert!(world.get(JAR).expect(200).body == bytes, "{harm:?}");
            }
            let requests = world.upstream.count(&format!("/{JAR}"));
            assert_eq!(requests, round + 2, "it is fetched once and cached");
        }
        storage.scrub(&world.server).success();
    }
}

#[test]
fn a_version_restored_from_the_trash_can_be_fetched() {
    for storage in Storage::all() {
        let mut server = storage.server();
        let maven = MavenRepository::create(&server, "jars");
        let (bytes, jar) = (payload::bytes(1, SIZE), "org/example/a/1.0/a-1.0.jar");
        maven.put(jar, bytes.clone()).expect(201);
        let version = format!("/v1/repositories/{}/packages/org.example%3Aa/versions/1.0", maven.id);
        Api::sign_in(&server).call("DELETE", &version).expect(204);
        storage.harm(&mut server, Damage::Missing);

        let api = Api::sign_in(&server);
        let trash = format!("/v1/repositories/{}/trash", maven.id);
        let entries = || api.call("GET", &trash).expect(200).json()["items"].clone();
        let entry = entries()[0]["id"].as_str().unwrap().to_owned();
        let restore = || api.call("POST", &format!("{trash}/{entry}/restore"));
        damaged(&restore());
        maven.get(jar).expect(404);
        assert_eq!(entries().as_array().unwrap().len(), 1, "it can be restored later");

        maven.put("org/example/b/1.0/b-1.0.jar", bytes.clone()).expect(201);
        restore().expect(200);
        is_whole(&maven.client, &maven.path(jar), &bytes);
    }
}

#[test]
fn the_page_of_a_version_says_which_files_are_damaged_until_they_are_sent_again() {
    let mut server = Server::start();
    let maven = MavenRepository::create(&server, "jars");
    let (bytes, jar) = (payload::bytes(1, SIZE), "org/example/a/1.0/a-1.0.jar");
    maven.put(jar, bytes.clone()).expect(201);
    Storage::Folder.harm(&mut server, Damage::Missing);
    damaged(&maven.get(jar));

    let (api, mut owner) = (Api::sign_in(&server), Person::owner(&server));
    let mut is_damaged = || {
        let version = format!("/v1/repositories/{}/packages/org.example%3Aa/versions/1.0", maven.id);
        let details = api.call("GET", &version).expect(200).json();
        let page = owner.get("/repositories/jars/packages/org.example%3Aa/versions/1.0").expect(200).text();
        let says_what_to_do = page.contains("Publish the same files again to repair them.");
        (details["files"][0]["damaged"].as_bool(), says_what_to_do)
    };
    assert_eq!(is_damaged(), (Some(true), true));
    maven.put("org/example/b/1.0/b-1.0.jar", bytes).expect(201);
    assert_eq!(is_damaged(), (Some(false), false));
}

/// A client publishes lost files again under other names, and the server is killed meanwhile. After
/// the restart all acknowledged files are intact.
#[test]
fn repairs_acknowledged_before_kill_9_survive() {
    const BLOBS: usize = 8;
    const COPIES: usize = 5;
    for harm in HARMS {
        let mut server = Server::start();
        let files = FormatRepository::hosted(&server, "generic", "files", &json!({}));
        let bytes = |number: usize| payload::bytes((number % BLOBS) as u64, SIZE);
        let path = |number: usize| files.path(&format!("again/{number}.bin"));
        for number in 0..BLOBS {
            files.put(&format!("first/{number}.bin"), bytes(number)).expect(201);
        }
        Storage::Folder.harm(&mut server, harm);

        let (next, acknowledged) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let body = bytes(number);
                        let length = body.len() as u64;
                        if number >= BLOBS * COPIES {
                            return;
                        }
                        match files.client.put_from(&path(number), &mut body.as_slice(), length) {
                            Ok(answer) if answer.status == 201 => acknowledged.lock().unwrap().push(number),
                            Ok(answer) => panic!("{number}: {} {}", answer.status, answer.text()),
                            Err(_) => return,
                        }
                    }
                });
            }
            eventually("some are acknowledged", || (acknowledged.lock().unwrap().len() >= 5).then_some(()));
            server.kill9();
        });
        server.restart();
        let acknowledged = acknowledged.into_inner().unwrap();
        for number in &acknowledged {
            is_whole(&files.client, &path(*number), &bytes(*number));
        }
        for number in 0..BLOBS {
            files.put(&format!("last/{number}.bin"), bytes(number)).expect(201);
        }
        for number in 0..BLOBS {
            is_whole(&files.client, &files.path(&format!("first/{number}.bin")), &bytes(number));
        }
        Storage::Folder.scrub(&server).success();
    }
}

/// A multipart upload begins only after an answer of S3. S3 does not answer, so the server must
/// refuse the publish.
#[test]
fn a_large_publish_is_refused_while_s3_hangs() {
    let Some(s3) = S3::start() else { return skip("S3 that hangs", "no weed") };
    let proxy = FaultProxy::start(s3.endpoint());
    let server = Server::with()
        .env("PACKHOUSE_BLOBS", &s3::address(proxy.address(), "any", "any"))
        .env("PACKHOUSE_BLOBS_IDLE_MS", "1000")
        .start();
    let files = FormatRepository::hosted(&server, "generic", "files", &json!({}));
    let bytes = payload::bytes(1, 12_000_000);
    proxy.set(Mode::Hang);
    let refused = files.put("a/large.bin", bytes.clone()).expect(503);
    assert_eq!(refused.field("error"), "ddb_unavailable");
    assert_eq!(refused.header("retry-after"), Some("5"));
    proxy.set(Mode::Pass);
    eventually("S3 is there again", || (files.put("a/large.bin", bytes.clone()).status == 201).then_some(()));
    is_whole(&files.client, &files.path("a/large.bin"), &bytes);
}

/// The server does not redirect a client to S3 for a lost object.
#[test]
fn a_client_is_not_redirected_to_a_lost_layer_in_s3() {
    let Some(s3) = S3::start() else { return skip("lost layers that S3 serves itself", "no weed") };
    let server = Server::with()
        .env("PACKHOUSE_BLOBS", &s3.address())
        .env("PACKHOUSE_BLOBS_REDIRECT_MIN_BYTES", "100000")
        .start();
    let images = ImageRepository::create(&server, "images", &json!({}));
    let layer = payload::bytes(1, SIZE);
    let blob = format!("app/blobs/{}", digest(&layer));
    images.push_blob("app", &layer).expect(201);
    images.get(&blob).expect(307);
    let keys = s3.keys();
    keys.iter().filter(|key| !key.contains("canary")).for_each(|key| s3.remove(key));
    damaged(&images.get(&blob));
    images.push_blob("app", &layer).expect(201);
    images.get(&blob).expect(307);
}
