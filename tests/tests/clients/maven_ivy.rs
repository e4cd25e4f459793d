//! Tests with Ivy, which sends `HEAD` before `PUT` and relies on the answer. Also tests the
//! additional files that other clients of Maven's layout put.

use packhouse_tests::clients::{ProgramOutput, has, run};
use packhouse_tests::long;
use packhouse_tests::server::OWNER;
use packhouse_tests::{MavenRepository, Request, Server, checkout, digests, payload, skip};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The jar that `bootstrap` installs.
const JAR: &str = ".tools/ivy/ivy-2.5.3.jar";
/// The path of a file in the layout.
const PATTERN: &str = "[organisation]/[module]/[revision]/[artifact]-[revision].[ext]";
/// The files of the published version.
const FOLDER: &str = "org/example/lib/1.0";

/// Ivy with settings, a cache and a workspace of its own.
struct Ivy {
    home: TempDir,
}

impl Ivy {
    /// An Ivy that publishes to this repository; `None`, with a printed reason, if it cannot run.
    fn new(server: &Server, repository: &MavenRepository) -> Option<Self> {
        if !has("java") || !jar().is_file() {
            skip("Ivy", "no java on the path, or no Ivy from Maven Central");
            return None;
        }
        let home = TempDir::new().unwrap();
        let at = format!("{}/{PATTERN}", repository.url(server));
        let secret = &repository.token.secret;
        let settings = format!(
            "<ivysettings><credentials host=\"127.0.0.1\" realm=\"127.0.0.1\" username=\"{OWNER}\" passwd=\"{secret}\"/>\
             <settings defaultResolver=\"packhouse\"/><resolvers><url name=\"packhouse\" m2compatible=\"true\">\
             <ivy pattern=\"{at}\"/><artifact pattern=\"{at}\"/></url></resolvers></ivysettings>"
        );
        let ivy = Self { home };
        ivy.write("ivysettings.xml", settings);
        Some(ivy)
    }

    fn folder(&self) -> &Path {
        self.home.path()
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.folder().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn run(&self, module: &str, more: &[&str]) -> ProgramOutput {
        let mut command = Command::new("java");
        let home = format!("-Duser.home={}", self.folder().display());
        command.current_dir(self.folder()).env("HOME", self.folder()).args([&home, "-jar"]).arg(jar());
        command.args(["-settings", "ivysettings.xml", "-cache", "cache", "-ivy", module]).args(more);
        run(&mut command)
    }

    /// Publishes a jar with these bytes as version 1.0 of `lib`.
    fn publish(&self, content: &[u8], more: &[&str]) -> ProgramOutput {
        self.write("dist/lib-1.0.jar", content);
        self.write(
            "lib.xml",
            "<ivy-module version=\"2.0\"><info organisation=\"org.example\" module=\"lib\"/>\
             <publications><artifact name=\"lib\" type=\"jar\" ext=\"jar\"/></publications></ivy-module>",
        );
        let arguments = ["-publish", "packhouse", "-revision", "1.0", "-status", "release"];
        let places =
            ["-deliverto", "dist/ivy-[revision].xml", "-publishpattern", "dist/[artifact]-[revision].[ext]"];
        self.run("lib.xml", &[&arguments[..], &places, more].concat())
    }

    /// Resolves version 1.0 of `lib` into an empty cache; returns the jar.
    fn resolve(&self) -> Vec<u8> {
        let _ = fs::remove_dir_all(self.folder().join("cache"));
        self.write(
            "app.xml",
            "<ivy-module version=\"2.0\"><info organisation=\"org.example\" module=\"app\"/>\
             <dependencies><dependency org=\"org.example\" name=\"lib\" rev=\"1.0\"/></dependencies></ivy-module>",
        );
        self.run("app.xml", &["-retrieve", "got/[artifact]-[revision].[ext]"]).success();
        fs::read(self.folder().join("got/lib-1.0.jar")).unwrap()
    }
}

fn jar() -> PathBuf {
    checkout().join(JAR)
}

fn status(repository: &MavenRepository, method: &str, file: &str) -> u16 {
    repository.client.send(Request::new(method, &repository.path(&format!("{FOLDER}/{file}")))).status
}

#[test]
fn ivy_publishes_with_its_defaults_and_resolves() {
    if !long() {
        return;
    }
    let server = Server::start();
    let repository = MavenRepository::create(&server, "ivy");
    let Some(ivy) = Ivy::new(&server, &repository) else { return };
    let content = payload::bytes(1, 50_000);
    ivy.publish(&content, &[]).success();
    for file in ["lib-1.0.jar", "ivy-1.0.xml"] {
        for sum in ["", ".sha1", ".md5"] {
            assert_eq!(status(&repository, "HEAD", &format!("{file}{sum}")), 200, "{file}{sum}");
        }
    }
    assert_eq!(ivy.resolve(), content);
    // An existing file stays unchanged, whether or not Ivy sends `HEAD` first.
    ivy.publish(&payload::bytes(2, 50_000), &[]).refused("destination file exists and overwrite == false");
    ivy.publish(&payload::bytes(2, 50_000), &["-overwrite"]).refused("409");
    assert_eq!(ivy.resolve(), content);
}

#[test]
fn a_version_that_ivy_published_partly_is_completed() {
    if !long() {
        return;
    }
    let server = Server::start();
    for (name, redeploy) in [("strict", "deny"), ("lenient", "identical")] {
        let repository = MavenRepository::create_with(&server, name, &json!({"redeploy": redeploy}));
        let Some(ivy) = Ivy::new(&server, &repository) else { return };
        let content = payload::bytes(1, 50_000);
        // The test simulates a publish that was interrupted after the jar and its first checksum.
        repository.put(&format!("{FOLDER}/lib-1.0.jar"), content.clone()).expect(201);
        repository.put(&format!("{FOLDER}/lib-1.0.jar.sha1"), digests::sha1(&content)).expect(201);
        ivy.publish(&content, &[]).refused("destination file exists and overwrite == false");
        match redeploy {
            "deny" => {
                ivy.publish(&content, &["-overwrite"]).refused("409");
            }
            _ => {
                ivy.publish(&content, &["-overwrite"]).success();
                assert_eq!(ivy.resolve(), content);
                ivy.publish(&payload::bytes(2, 50_000), &["-overwrite"]).refused("409");
            }
        }
    }
}

/// Sends the requests of Ivy without Ivy, and checks that the server serves checksum files exactly
/// as clients put them.
#[test]
fn a_checksum_exists_after_its_put_and_is_unchanged() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "sums");
    let content = payload::bytes(1, 50_000);
    let [jar, sum] = ["lib-1.0.jar", "lib-1.0.jar.sha1"].map(|file| format!("{FOLDER}/{file}"));
    let hex = digests::sha1(&content);
    // A client may put a checksum before its file. The server serves such a checksum unchanged,
    // even after a restart.
    let early = format!("{hex}  lib-1.0.jar\n");
    assert_eq!(status(&repository, "HEAD", "lib-1.0.jar.sha1"), 404);
    repository.put(&sum, early.clone()).expect(201);
    assert_eq!(repository.get(&sum).expect(200).text(), early);
    assert_eq!(status(&repository, "HEAD", "lib-1.0.jar.sha1"), 200);
    repository.put(&jar, b"other bytes".to_vec()).expect(400);
    repository.put(&jar, content.clone()).expect(201);
    assert_eq!(repository.get(&sum).expect(200).text(), early);
    // No client put the `.md5` file: `GET` computes it, and `HEAD` answers 404.
    assert_eq!(status(&repository, "HEAD", "lib-1.0.jar.md5"), 404);
    assert_eq!(repository.get(&format!("{jar}.md5")).expect(200).text(), digests::md5(&content));
    for text in [format!("{}\n", digests::md5(&content)), digests::md5(&content)] {
        repository.put(&format!("{jar}.md5"), text.clone()).expect(201);
        assert_eq!(repository.get(&format!("{jar}.md5")).expect(200).text(), text);
        assert_eq!(status(&repository, "HEAD", "lib-1.0.jar.md5"), 200);
    }
    repository.put(&format!("{jar}.md5"), format!("{}\n", "0".repeat(32))).expect(400);
    assert_eq!(repository.get(&format!("{jar}.md5")).expect(200).text(), digests::md5(&content));
    // A new file of the same name has its own checksum; the old checksum is gone.
    repository.client.send(Request::new("DELETE", &repository.path(&jar))).expect(204);
    assert_eq!(status(&repository, "GET", "lib-1.0.jar.sha1"), 404);
    repository.put(&jar, b"other bytes".to_vec()).expect(201);
    assert_eq!(repository.get(&sum).expect(200).text(), digests::sha1(b"other bytes"));
    assert_eq!(status(&repository, "HEAD", "lib-1.0.jar.sha1"), 404);
}
