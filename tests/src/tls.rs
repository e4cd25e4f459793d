//! An HTTPS upstream that Python serves. Its certificate is signed by its own authority; the
//! `openssl` program makes both.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

const SERVE: &str = "
import http.server, os, ssl, sys
os.chdir(sys.argv[1])
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
";

/// A running upstream; dropping this value ends it.
#[derive(Debug)]
pub struct TlsUpstream {
    address: SocketAddr,
    child: Child,
    home: TempDir,
}

impl TlsUpstream {
    /// Starts an upstream that serves these files. The error names the missing program.
    pub fn start(files: &[(&str, &[u8])]) -> Result<Self, String> {
        Self::start_as("IP:127.0.0.1", files)
    }

    /// Starts an upstream with a certificate for this name, in openssl's form (`DNS:a.example`).
    pub fn start_as(name: &str, files: &[(&str, &[u8])]) -> Result<Self, String> {
        let home = TempDir::new().expect("a folder");
        authority(home.path())?;
        let make = format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout own.key -out own.csr -subj /CN=own \
             -addext subjectAltName={name}"
        );
        openssl(home.path(), &make)?;
        openssl(
            home.path(),
            "x509 -req -in own.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copy -out own.pem",
        )?;
        let tree = home.path().join("tree");
        for (path, bytes) in files {
            let file = tree.join(path);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("its folders");
            std::fs::write(file, bytes).expect("the file");
        }
        let mut command = Command::new("python3");
        command
            .args(["-c", SERVE])
            .arg(&tree)
            .arg(home.path().join("own.pem"))
            .arg(home.path().join("own.key"));
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = spawned.map_err(|error| format!("python3: {error}"))?;
        let mut line = String::new();
        let read = BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line);
        let port: u16 = read.ok().and_then(|_| line.trim().parse().ok()).expect("its port");
        Ok(Self { address: SocketAddr::from(([127, 0, 0, 1], port)), child, home })
    }

    /// The address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The path of its authority's certificate.
    pub fn ca(&self) -> PathBuf {
        self.home.path().join("ca.pem")
    }

    /// The certificate of its authority, as PEM.
    pub fn ca_pem(&self) -> String {
        std::fs::read_to_string(self.home.path().join("ca.pem")).expect("the certificate")
    }
}

impl Drop for TlsUpstream {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The certificate, as PEM, of an authority that signed nothing.
pub fn another_authority() -> Result<String, String> {
    let home = TempDir::new().expect("a folder");
    authority(home.path())?;
    Ok(std::fs::read_to_string(home.path().join("ca.pem")).expect("the certificate"))
}

pub(crate) fn authority(folder: &Path) -> Result<(), String> {
    openssl(
        folder,
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 \
         -subj /CN=authority -addext basicConstraints=critical,CA:TRUE",
    )
}

pub(crate) fn openssl(folder: &Path, arguments: &str) -> Result<(), String> {
    let output = Command::new("openssl").args(arguments.split_whitespace()).current_dir(folder).output();
    let output = output.map_err(|error| format!("openssl: {error}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {arguments}: {stderr}");
    Ok(())
}
