//! Access to the data folder. The folder and its files are open to their owner only, whatever the
//! umask is and whichever command created them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use packhouse_tests::images::ImageRepository;
use packhouse_tests::server::program;
use packhouse_tests::{MavenRepository, Server};
use serde_json::json;

/// Runs a program with umask 000.
const OPEN: [&str; 3] = ["sh", "-c", "umask 000; exec \"$0\" \"$@\""];
const FILE: &str = "org/example/a/1.0/a-1.0.jar";

/// Collects the paths that other accounts may access, with their modes. Does not follow links,
/// because the mode of a link has no effect.
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
fn created_files_belong_to_their_owner_alone_with_any_umask() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("deep/data");
    // Another command runs first and creates the folder and the database.
    let mut command = Command::new(OPEN[0]);
    command.args(&OPEN[1..]).arg(program()).args(["org", "list", "--data"]).arg(&data);
    assert!(command.output().unwrap().status.success());
    assert!(data.join("packhouse.db").is_file());
    is_closed(&data);

    let server = Server::with().data(&data).wrapped_in(&OPEN).start();
    let repository = MavenRepository::create(&server, "files");
    // This file is too large for the database, so the server stores it in the folder.
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
fn open_files_are_closed_at_the_start_and_the_log_says_so() {
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
        let is_logged = log
            .lines()
            .any(|line| line.contains("removed the access of other accounts") && line.contains(path));
        assert!(is_logged, "{path}: {log}");
    }
    // The server does not change the modes of files of other programs, because the folder itself is
    // closed.
    assert_eq!(fs::metadata(&other).unwrap().mode() & 0o777, 0o644);
    fs::remove_file(&other).unwrap();
    is_closed(&data);
    repository.get(FILE).expect(200);
}

#[test]
fn a_shared_folder_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let shared = home.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    fs::write(shared.join("somebody-elses"), "x").unwrap();
    let (status, log) = Server::with().data(&shared).start_refused();
    assert!(!status.success() && log.contains("is shared with other programs"), "{log}");
    assert_eq!(fs::metadata(&shared).unwrap().mode() & 0o7777, 0o1777, "the folder's mode is unchanged");
}
