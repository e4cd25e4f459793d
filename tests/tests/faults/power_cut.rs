//! A simulated power cut: the disk as it is at the moment of the acknowledgement, without data that
//! is only in memory.
//!
//! The data folder is on an ext4 file system within a file. A copy of this file lacks the dirty
//! pages of the file system inside it. The copy therefore has the state after a power cut.

use packhouse_tests::{MavenRepository, Server, database, long, payload, skip};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A mounted image. Dropping it unmounts the image.
struct Mount {
    folder: PathBuf,
}

impl Mount {
    fn new(image: &Path, folder: &Path) -> Result<Self, String> {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        quietly(Command::new("mount").args(["-o", "loop"]).arg(image).arg(folder))?;
        Ok(Self { folder: folder.to_owned() })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = quietly(Command::new("umount").arg(&self.folder));
    }
}

fn quietly(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}

fn image(home: &Path) -> Result<Mount, String> {
    if !database::is_root() {
        return Err("mounting needs root".to_owned());
    }
    let image = home.join("disk.img");
    let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
    file.set_len(128 << 20).map_err(|error| error.to_string())?;
    quietly(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image))?;
    Mount::new(&image, &home.join("disk"))
}

#[test]
fn acknowledged_files_survive_a_power_cut() {
    let home = tempfile::TempDir::new().unwrap();
    let disk = match image(home.path()) {
        Ok(disk) => disk,
        Err(reason) => return skip("power cut", &reason),
    };
    // The test's disk is small, so the server must not keep space free.
    let builder = Server::with().env("PACKHOUSE_STAGING_KEEP_FREE_BYTES", "0");
    let server = builder.data(&disk.folder.join("data")).start();
    let repository = MavenRepository::create(&server, "power");
    let mut there: Vec<(String, Vec<u8>)> = Vec::new();
    for round in 0..if long() { 20 } else { 4 } {
        // Every other file is large, so that the last acknowledged file is of either kind.
        let length = if round % 2 == 0 { 300_000 } else { 2_000 };
        let file = format!("org/example/power/{round}/power-{round}.jar");
        let body = payload::bytes(round, length);
        repository.put(&file, body.clone()).expect(201);
        let copy = home.path().join("copy.img");
        quietly(Command::new("cp").arg("--sparse=always").arg(home.path().join("disk.img")).arg(&copy))
            .unwrap();
        there.push((file, body));
        check(&copy, &home.path().join("copy"), &repository, &there);
    }
    drop(server);
    drop(disk);
}

/// Starts a server over the copy and reads every file that the server had acknowledged before the
/// copy was made.
fn check(copy: &Path, folder: &Path, repository: &MavenRepository, there: &[(String, Vec<u8>)]) {
    let mount = Mount::new(copy, folder).unwrap();
    let server = Server::with().data(&mount.folder.join("data")).start();
    let client = server.anonymous().basic(packhouse_tests::server::OWNER, &repository.token.secret);
    for (file, body) in there {
        let answer = client.get(&repository.path(file));
        assert_eq!(answer.status, 200, "{file} was acknowledged");
        assert!(answer.body == *body, "{file} came back with other bytes");
    }
    let metadata = client.get(&repository.path("org/example/power/maven-metadata.xml")).expect(200).text();
    assert_eq!(metadata.matches("<version>").count(), there.len(), "{metadata}");
    drop(server);
    drop(mount);
}
