//! Pebble, the ACME server for tests of Let's Encrypt, with a name server that says of every name that it is this machine.

use crate::authority::Authority;
use crate::checkout;
use crate::clients::run;
use crate::server::{eventually, free_port};
use serde_json::json;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// How a directory differs from an ordinary one.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// Where it looks for proofs in handshakes.
    pub tls_port: u16,
    /// Where it looks for proofs over plain HTTP.
    pub http_port: u16,
    /// For how many seconds its certificates hold.
    pub validity_s: u64,
    /// A name that it orders nothing for.
    pub refused: &'a str,
}

/// A running one; it ends when this is dropped.
#[derive(Debug)]
pub struct Pebble {
    children: Vec<Child>,
    port: u16,
    management: u16,
}

/// Where the programs are; the reason when they are not here.
pub fn programs() -> Result<[PathBuf; 2], String> {
    let folder = checkout().join(".tools/go/bin");
    let programs = ["pebble", "pebble-challtestsrv"].map(|name| folder.join(name));
    match programs.iter().all(|program| program.is_file()) {
        true => Ok(programs),
        false => {
            Err("no pebble in .tools/go/bin: `./bootstrap test-all` builds it where there is Go".to_owned())
        }
    }
}

impl Pebble {
    /// Starts one at this port, over TLS with a certificate of the authority.
    #[track_caller]
    pub fn start(authority: &Authority, port: u16, terms: Terms<'_>) -> Result<Self, String> {
        let [pebble, names] = programs()?;
        let (management, dns) = (free_port(), free_port());
        let [cert, key] = authority.issue("pebble", &["DNS:localhost", "IP:127.0.0.1"]);
        let config = json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{port}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": cert, "privateKey": key,
            "httpPort": terms.http_port, "tlsPort": terms.tls_port,
            "ocspResponderURL": "", "externalAccountBindingRequired": false,
            "domainBlocklist": [terms.refused],
            "retryAfter": {"authz": 1, "order": 1},
            "profiles": {"default": {"description": "a test's", "validityPeriod": terms.validity_s}},
        }});
        let file = authority.folder().join("pebble.json");
        std::fs::write(&file, config.to_string()).expect("its configuration");
        let log = |name: &str| File::create(authority.folder().join(name)).expect("a log");
        let spawn = |command: &mut Command, name: &str| {
            let output = log(name);
            command.stdin(Stdio::null()).stderr(output.try_clone().expect("the log")).stdout(output);
            command.spawn().map_err(|error| format!("{name}: {error}"))
        };
        let mut servers = Command::new(names);
        servers.args(["-defaultIPv6", "", "-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""]);
        servers.args([
            "-dnsserver",
            &format!("127.0.0.1:{dns}"),
            "-management",
            &format!("127.0.0.1:{}", free_port()),
        ]);
        let mut ca = Command::new(pebble);
        ca.arg("-config").arg(&file).args(["-strict", "-dnsserver", &format!("127.0.0.1:{dns}")]);
        ca.env("PEBBLE_VA_NOSLEEP", "1").env("PEBBLE_WFE_NONCEREJECT", "5").env("PEBBLE_AUTHZREUSE", "0");
        let children = vec![spawn(&mut servers, "names.log")?, spawn(&mut ca, "pebble.log")?];
        let pebble = Self { children, port, management };
        let trusted = authority.ca();
        eventually("pebble answers", || {
            let mut command = Command::new("curl");
            command.args(["--silent", "--fail", "--cacert"]).arg(&trusted).arg(pebble.directory());
            run(&mut command).success.then_some(())
        });
        Ok(pebble)
    }

    /// The address of its directory.
    pub fn directory(&self) -> String {
        format!("https://localhost:{}/dir", self.port)
    }

    /// Writes the certificate of the authority that signs what it issues into a file.
    #[track_caller]
    pub fn root(&self, authority: &Authority) -> PathBuf {
        let file = authority.folder().join("issued-by.pem");
        let mut command = Command::new("curl");
        command.args(["--silent", "--fail", "--cacert"]).arg(authority.ca()).arg("--output").arg(&file);
        run(command.arg(format!("https://localhost:{}/roots/0", self.management))).well();
        file
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
