//! Promises of an upgrade. The program opens and serves data of an earlier version. A migration
//! that is killed at any moment reaches the same result the next time. The program refuses the
//! database of a newer version with a clear error.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use packhouse_tests::database::{Postgres, sqlite_file};
use packhouse_tests::digests::sha256;
use packhouse_tests::{Request, Server, checkout, cli, server, skip, strace};
use serde_json::Value;

/// Unpacks a data folder that a program with schema step 9 wrote
/// (`tests/fixtures/upgrade/make.py`). Returns the recorded content of that folder.
fn unpack_data_folder(data: &Path) -> Value {
    let fixture = checkout().join("tests/fixtures/upgrade/schema-9");
    let text = |name: &str| std::fs::read_to_string(fixture.join(name)).unwrap();
    std::fs::create_dir_all(data).unwrap();
    let files: Value = serde_json::from_str(&text("files.json")).unwrap();
    for (path, bytes) in files.as_object().unwrap() {
        let file = data.join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, STANDARD.decode(bytes.as_str().unwrap()).unwrap()).unwrap();
    }
    let mut sqlite = Command::new("sqlite3");
    let mut sqlite = sqlite.arg(data.join("packhouse.db")).stdin(Stdio::piped()).spawn().expect("sqlite3");
    sqlite.stdin.take().unwrap().write_all(text("database.sql").as_bytes()).unwrap();
    assert!(sqlite.wait().unwrap().success());
    serde_json::from_str(&text("expected.json")).unwrap()
}

#[test]
fn every_package_of_an_earlier_version_is_served() {
    let home = tempfile::TempDir::new().unwrap();
    let data = home.path().join("data");
    let held = unpack_data_folder(&data);
    // `--check` reports pending migrations and changes nothing.
    for _ in 0..2 {
        cli::packhouse(&data, &["migrate", "--check"], "").refused("step 9 of");
    }
    let server = Server::with().data(&data).start();
    cli::packhouse(&data, &["migrate", "--check"], "").success();
    let client = server.anonymous().with("Authorization", held["credential"].as_str().unwrap());
    let expected = held["expected"].as_object().unwrap();
    assert!(expected.len() >= 10);
    for (path, digest) in expected {
        let answer = client.get(path).expect(200);
        assert_eq!(sha256(&answer.body), digest.as_str().unwrap(), "{path}");
    }
    // The server generates the documents again, with all former content.
    assert_eq!(
        client.get("/repositories/npm/lib").expect(200).json()["versions"].as_object().unwrap().len(),
        2
    );
    let metadata = client.get("/repositories/maven/org/example/lib/maven-metadata.xml").expect(200).text();
    assert!(
        metadata.contains("<version>1.0</version>") && metadata.contains("<version>1.1</version>"),
        "{metadata}"
    );
    // Existing versions are still immutable, and new ones can be published.
    client.put("/repositories/maven/org/example/lib/1.0/lib-1.0.jar", "another").expect(409);
    client.put("/repositories/maven/org/example/lib/2.0/lib-2.0.jar", "new").expect(201);
    client.send(Request::new("DELETE", "/repositories/maven/org/example/lib/1.1/lib-1.1.jar"));
    cli::packhouse(&data, &["scrub"], "").success();
}

#[test]
fn a_database_of_a_newer_version_is_refused_with_a_reason() {
    let home = tempfile::TempDir::new().unwrap();
    let data = home.path().join("data");
    unpack_data_folder(&data);
    let sql = "INSERT INTO migrations VALUES (999, 0)";
    assert!(Command::new("sqlite3").arg(sqlite_file(&data)).arg(sql).status().unwrap().success());
    let (status, output) = Server::with().data(&data).start_refused();
    assert!(!status.success() && output.contains("newer version"), "{output}");
    cli::packhouse(&data, &["migrate", "--check"], "").refused("step 999");
    cli::packhouse(&data, &["migrate"], "").refused("newer version");
    cli::packhouse(&data, &["doctor"], "").refused("newer version of this program");
}

/// Runs `packhouse migrate` and kills it at the `at`-th of these system calls. Returns `true` if
/// the migration finished before that call.
fn migrate_killed(data: &Path, database: Option<&str>, call: &str, at: u32) -> bool {
    let inject = format!("inject={call}:signal=SIGKILL:when={at}");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject]);
    command.arg(server::program()).args(["migrate", "--data"]).arg(data);
    command.envs(database.map(|url| ("PACKHOUSE_DATABASE_URL", url)));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("strace")
        .success()
}

const SCHEMA: &str = "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_master ORDER BY 1; SELECT step FROM migrations";

fn sqlite_schema(data: &Path) -> String {
    let output = Command::new("sqlite3").arg(sqlite_file(data)).arg(SCHEMA).output().expect("sqlite3");
    assert!(output.status.success());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Kills the migration at a later write each time, until it finishes. Starts with an empty database
/// and with one of an earlier version.
#[test]
fn a_killed_migration_of_sqlite_reaches_the_same_result() {
    if let Some(reason) = strace::unavailable() {
        return skip("killed migrations", &reason);
    }
    let home = tempfile::TempDir::new().unwrap();
    for earlier in [false, true] {
        let prepare = |name: &str| {
            let data = home.path().join(format!("{earlier}-{name}"));
            if earlier {
                unpack_data_folder(&data);
            }
            data
        };
        let whole = prepare("whole");
        cli::packhouse(&whole, &["migrate"], "").success();
        let (mut killed, mut ended) = (0, false);
        let step = if packhouse_tests::long() { 1 } else { 11 };
        for at in (1..2000).step_by(step) {
            let data = prepare(&at.to_string());
            if migrate_killed(&data, None, "pwrite64", at) {
                ended = true;
                break;
            }
            killed += 1;
            cli::packhouse(&data, &["migrate"], "").success();
            assert_eq!(sqlite_schema(&data), sqlite_schema(&whole), "killed at write {at}");
            std::fs::remove_dir_all(&data).unwrap();
        }
        assert!(ended && killed >= 3, "the migration was killed {killed} times");
    }
}

#[test]
fn a_killed_migration_of_postgresql_reaches_the_same_result() {
    if let Some(reason) = strace::unavailable() {
        return skip("killed migrations", &reason);
    }
    let database = match Postgres::start() {
        Ok(database) => database,
        Err(reason) => return skip("killed migrations of PostgreSQL", &reason),
    };
    let home = tempfile::TempDir::new().unwrap();
    let url = database.url();
    let schema = || {
        let sql = "SELECT table_name || ' ' || column_name || ' ' || data_type || ' ' || is_nullable FROM information_schema.columns \
                   WHERE table_schema = 'public' UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' \
                   UNION ALL SELECT 'step ' || step FROM migrations ORDER BY 1";
        database.query(sql)
    };
    let migrate = |data: &Path| {
        cli::packhouse_with(data, &["migrate"], &[("PACKHOUSE_DATABASE_URL", url.clone())]).success();
    };
    let data = |name: &str| home.path().join(name);
    migrate(&data("whole"));
    let whole = schema();
    let step = if packhouse_tests::long() { 1 } else { 29 };
    let (mut killed, mut ended) = (0, false);
    for at in (1..2000).step_by(step) {
        database.sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
        let data = data(&at.to_string());
        if migrate_killed(&data, Some(&url), "sendto", at) {
            ended = true;
            break;
        }
        killed += 1;
        migrate(&data);
        assert_eq!(schema(), whole, "killed at message {at}");
    }
    assert!(ended && killed >= 3, "the migration was killed {killed} times");
}
