//! The npm package `oidc-provider`, a certified OpenID provider, as the identity provider for
//! sign-in. It accepts any name and reports the address `NAME@example.com`.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use crate::server::{Server, eventually, free_port};
use crate::{checkout, clients};

/// OIDC client secret of the server under test. The server's client id is `packhouse`.
pub const SECRET: &str = "secret-of-the-certified-provider";

/// The running provider.
#[derive(Debug)]
pub struct Certified {
    child: Child,
    /// Its URL.
    pub issuer: String,
}

impl Certified {
    /// Starts the provider for this server; the error says why it did not start.
    pub fn start(server: &Server) -> Result<Self, String> {
        let folder = checkout().join(".tools/oidc-provider");
        if !clients::has("node") {
            return Err("no node on the path".to_owned());
        }
        if !folder.join("node_modules/oidc-provider").is_dir() {
            return Err("./bootstrap test could not install it".to_owned());
        }
        let port = free_port();
        let mut command = Command::new("node");
        command
            .arg(checkout().join("tests/tests/portal/sso/provider.mjs"))
            .arg(&folder)
            .arg(port.to_string());
        command.arg(format!("http://{}/v1/sso/callback", server.api())).arg(SECRET);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let provider = Self {
            child: child.map_err(|error| error.to_string())?,
            issuer: format!("http://127.0.0.1:{port}"),
        };
        eventually("oidc-provider listens", || TcpStream::connect(("127.0.0.1", port)).ok());
        Ok(provider)
    }
}

impl Drop for Certified {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
