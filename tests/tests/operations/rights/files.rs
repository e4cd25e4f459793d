//! The data folder and what lies in it are their owner's alone, whatever the umask was and however they were made.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use packhouse_tests::images::ImageRepository;
use packhouse_tests::server::program;
use packhouse_tests::{MavenRepository, Server};
use serde_json::json;

/// Runs a program with no umask at all.
const OPEN: [&str; 3] = ["sh", "-c", "umask 000; exec \"$0\" \"$@\""];
const FILE: &str = "org/example/a/1.0/a-1.0.jar";

/// What others may do anything with: paths with their modes. Links are not followed, and have no mode of their own.
fn open_to_others(path: &Path, found: &mut Vec<(PathBuf, u32)>) {
    let metadata = fs::symlink_metadata(path).unwrap();
    if metadata.is_symlink() {
        return;
    }
    if metadata.mode() & 0o077 != 0 {
        found.push((path.to_owned(), metadata.mode() & 0o7777));
    }
    if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            open_to_others(&entry.unwrap().path(), found);
        }
    }
}

#[track_caller]
fn is_closed(data: &Path) {
    let mut found = Vec::new();
    open_to_others(data, &mut found);
    assert!(found.is_empty(), "open to other accounts: {found:?}");
}

#[test]
fn what_is_made_is_its_owners_alone_whatever_the_umask() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("deep/data");
    // By another command first, so that it makes the folder and the database.
    let mut command = Command::new(OPEN[0]);
    command.args(&OPEN[1..]).arg(program()).args(["org", "list", "--data"]).arg(&data);
    assert!(command.output().unwrap().status.success());
    assert!(data.join("packhouse.db").is_file());
    is_closed(&data);

    let server = Server::with().data(&data).wrapped_in(&OPEN).start();
    let repository = MavenRepository::create(&server, "files");
    // Larger than what lies in the database.
    repository.put(FILE, vec![7; 200_000]).expect(201);
    let images = ImageRepository::create(&server, "images", &json!({}));
    images.client.get("/v2/token?service=x&scope=repository:repositories/images/app:pull").expect(200);
    let (mut files, mut names) = (Vec::new(), Vec::new());
    packhouse_tests::database::list(&data.join("blobs"), &mut files);
    for entry in fs::read_dir(&data).unwrap() {
        names.push(entry.unwrap().file_name().into_string().unwrap());
    }
    for name in ["packhouse.db", "packhouse.db-wal", "packhouse.db-shm", "sealing.key", "serve.lock"] {
        assert!(names.iter().any(|known| known == name), "{name} is not in {names:?}");
    }
    assert!(!files.is_empty(), "there is no blob");
    is_closed(&data);
}

#[test]
fn what_was_open_is_closed_at_the_start_and_the_log_says_so() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let mut server = Server::with().data(&data).start();
    let repository = MavenRepository::create(&server, "files");
    repository.put(FILE, "hello").expect(201);
    server.kill9();
    let open = |name: &str, mode: u32| {
        fs::set_permissions(data.join(name), Permissions::from_mode(mode)).unwrap();
    };
    open("", 0o755);
    for name in ["packhouse.db", "packhouse.db-wal", "packhouse.db-shm", "serve.lock"] {
        open(name, 0o644);
    }
    open("blobs", 0o777);
    let other = data.join("somebody-elses");
    fs::write(&other, "x").unwrap();
    fs::set_permissions(&other, Permissions::from_mode(0o644)).unwrap();
    let before = server.log().len();
    server.restart();
    let log = server.log()[before..].to_owned();
    for name in ["", "packhouse.db", "blobs"] {
        let path = data.join(name);
        let path = path.to_str().unwrap().trim_end_matches('/');
        let told = log.lines().any(|line| line.contains("was open to other accounts") && line.contains(path));
        assert!(told, "{path}: {log}");
    }
    // What is not this program's is left as it is, behind the closed folder.
    assert_eq!(fs::metadata(&other).unwrap().mode() & 0o777, 0o644);
    fs::remove_file(&other).unwrap();
    is_closed(&data);
    repository.get(FILE).expect(200);
}

#[test]
fn a_folder_that_everybody_uses_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let shared = home.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    fs::write(shared.join("somebody-elses"), "x").unwrap();
    let (status, log) = Server::with().data(&shared).start_refused();
    assert!(!status.success() && log.contains("one that everybody uses"), "{log}");
    assert_eq!(fs::metadata(&shared).unwrap().mode() & 0o7777, 0o1777, "it is left as it was");
}
