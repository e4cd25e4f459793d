//! Servers with either kind of storage, content in every format, and the program's commands on both
//! kinds.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use packhouse_tests::clients::ProgramOutput;
use packhouse_tests::database::Postgres;
use packhouse_tests::images::{ImageRepository, digest};
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::s3::S3;
use packhouse_tests::server::{self, OWNER};
use packhouse_tests::{Api, Client, MavenRepository, Server, ServerBuilder, digests, payload};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::release::Release;
use crate::wheel::{wheel, wheel_name};

/// The database and the blob storage of a server.
pub(crate) struct Stand {
    home: TempDir,
    _postgres: Option<Postgres>,
    pub(crate) s3: Option<S3>,
    environment: Vec<(String, String)>,
}

impl Stand {
    /// SQLite and a folder.
    pub(crate) fn folder() -> Stand {
        Stand { home: TempDir::new().unwrap(), _postgres: None, s3: None, environment: Vec::new() }
    }

    /// PostgreSQL and S3.
    pub(crate) fn shared() -> Stand {
        let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
        let s3 = S3::start().expect("seaweedfs, which ./bootstrap test installs");
        // The server uses only a prefix of the bucket, so that the test can store backups under
        // another prefix.
        let blobs = part(&s3, "server");
        let environment = vec![
            ("PACKHOUSE_DATABASE_URL".to_owned(), postgres.url()),
            ("PACKHOUSE_BLOBS".to_owned(), blobs),
        ];
        Stand { home: TempDir::new().unwrap(), _postgres: Some(postgres), s3: Some(s3), environment }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// A server on this storage, not yet started.
    pub(crate) fn server(&self) -> ServerBuilder {
        let server = Server::with().data(&self.data());
        self.environment.iter().fold(server, |server, (name, value)| server.env(name, value))
    }

    /// The program with these arguments and the settings of this storage.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = program(words);
        command.arg("--data").arg(self.data());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> ProgramOutput {
        self.command(words).output().expect("the program").into()
    }

    /// Starts the program without waiting for it, so that a test can kill it.
    pub(crate) fn spawn(&self, words: &[&str]) -> Child {
        let mut command = self.command(words);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program")
    }

    /// Returns `true` if nothing was written to this storage.
    pub(crate) fn is_untouched(&self) -> bool {
        !self.data().join("packhouse.db").exists() && !self.data().join("sealing.key").exists()
    }
}

/// A prefix of a bucket, written as the setting `blobs` and a backup location expect it.
pub(crate) fn part(s3: &S3, name: &str) -> String {
    s3.address().replace("s3://bucket?", &format!("s3://bucket/{name}?"))
}

fn program(words: &[&str]) -> Command {
    let mut command = Command::new(server::program());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("PACKHOUSE_"))
    {
        command.env_remove(name);
    }
    command.args(words).env("PACKHOUSE_LOG", "error").env("PACKHOUSE_STAGING_KEEP_FREE_BYTES", "16 MiB");
    command.stdin(Stdio::null());
    command
}

/// Runs commands that need no settings: `backup verify`, `list`, `prune`.
pub(crate) fn run(words: &[&str]) -> ProgramOutput {
    program(words).output().expect("the program").into()
}

/// The backups at a location.
pub(crate) fn listed(place: &str) -> Vec<Value> {
    let output = run(&["backup", "list", place, "--json"]).success();
    serde_json::from_str(&output.text).unwrap_or_else(|error| panic!("{error}: {}", output.text))
}

/// The id of the newest complete backup.
pub(crate) fn newest(place: &str) -> String {
    let whole = listed(place).into_iter().rfind(|backup| backup["state"] == "whole").expect("a whole backup");
    whole["id"].as_str().unwrap().to_owned()
}

/// Content that clients published and the server acknowledged, and a token that may read all of it.
#[derive(Clone)]
pub(crate) struct Published {
    pub(crate) secret: String,
    /// Paths below the repository host, each with the SHA-256 of its content.
    pub(crate) files: Vec<(String, String)>,
}

impl Published {
    /// Publishes some versions of each format, small and large.
    pub(crate) fn some(server: &Server) -> Published {
        let maven = MavenRepository::create(server, "maven");
        let python = PythonRepository::create(server, "python");
        let npm = NpmRepository::create(server, "npm");
        let images = ImageRepository::create(server, "images", &json!({}));
        let mut files = Vec::new();
        for version in 1..=3 {
            for size in [60_u32, 200_000] {
                let path = maven.path(&format!("org/example/a{size}/{version}/a{size}-{version}.jar"));
                let bytes = payload::bytes(u64::from(size + version), size as usize);
                maven.client.put(&path, bytes.clone()).expect(201);
                files.push((path, digests::sha256(&bytes)));
            }
            let number = format!("{version}.0.0");
            let release = Release::new("lib", &number).file("readme.txt", &"words ".repeat(20_000));
            npm.put("lib", &release.document()).expect(201);
            files.push((npm.path(&format!("lib/-/lib-{number}.tgz")), String::new()));
            let (name, bytes) = (wheel_name("lib", &number), wheel("lib", &number, ""));
            python.publish("lib", &number, &name, &bytes).expect(200);
            files.push((python.path(&format!("packages/lib/{number}/{name}")), digests::sha256(&bytes)));
            let layer = payload::bytes(u64::from(version), 150_000);
            let manifest = images.push("app", &number, &[&layer]).unwrap();
            files.push((
                images.path(&format!("app/manifests/{number}")),
                digests::sha256(manifest.as_bytes()),
            ));
            files.push((images.path(&format!("app/blobs/{}", digest(&layer))), digests::sha256(&layer)));
        }
        // The server acknowledges this blob too, but no manifest names it yet.
        let alone = payload::bytes(77, 120_000);
        images.push_blob("app", &alone).expect(201);
        files.push((images.path(&format!("app/blobs/{}", digest(&alone))), digests::sha256(&alone)));
        let ids = [&maven.id, &python.id, &npm.id, &images.id].map(String::as_str);
        let secret = Api::sign_in(server).create_token(&ids, &["read", "write"], None).secret;
        let mut published = Published { secret, files };
        // The bytes of an npm archive depend on the test's own compressor, so the test downloads
        // the archive to learn its digest.
        let client = published.client(server);
        for (path, sha256) in published.files.iter_mut().filter(|(_, sha256)| sha256.is_empty()) {
            *sha256 = digests::sha256(&client.get(path).expect(200).body);
        }
        published
    }

    pub(crate) fn client(&self, server: &Server) -> Client {
        Client::new(server.packages()).basic(OWNER, &self.secret)
    }

    /// Checks that the server serves each published file with its acknowledged content.
    #[track_caller]
    pub(crate) fn expect(&self, server: &Server) {
        let client = self.client(server);
        for (path, sha256) in &self.files {
            let answer = client.get(path).expect(200);
            assert_eq!(digests::sha256(&answer.body), *sha256, "{path}");
        }
    }

    /// Publishes one more file.
    pub(crate) fn more(&mut self, server: &Server, seed: u64, size: usize) {
        let path = format!("/repositories/maven/org/example/more/{seed}/more-{seed}.jar");
        let bytes = payload::bytes(seed, size);
        self.client(server).put(&path, bytes.clone()).expect(201);
        self.files.push((path, digests::sha256(&bytes)));
    }
}

/// All files below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Path of a backup folder that does not exist yet.
pub(crate) fn place(home: &TempDir) -> String {
    home.path().join("backups").to_str().unwrap().to_owned()
}

/// Writes a file with this text and returns its path.
pub(crate) fn file(home: &TempDir, name: &str, text: &str) -> String {
    let path = home.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}
