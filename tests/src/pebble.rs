//! Pebble, the ACME test server by Let's Encrypt, with a name server that resolves every name to
//! this machine.

use crate::authority::Authority;
use crate::checkout;
use crate::clients::run;
use crate::server::{eventually, free_port};
use serde_json::json;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Options of the ACME directory.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// Port on which Pebble probes TLS challenges.
    pub tls_port: u16,
    /// Port on which Pebble probes HTTP challenges.
    pub http_port: u16,
    /// Lifetime of the certificates that Pebble issues, in seconds.
    pub validity_s: u64,
    /// A name for which Pebble refuses to issue certificates.
    pub refused: &'a str,
}

/// A running Pebble; dropping this value ends it.
#[derive(Debug)]
pub struct Pebble {
    children: Vec<Child>,
    port: u16,
    management: u16,
}

/// The paths of the programs; the error says that they are not installed here.
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
    /// Starts Pebble on this port, over TLS with a certificate of the authority.
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

    /// The URL of its directory.
    pub fn directory(&self) -> String {
        format!("https://localhost:{}/dir", self.port)
    }

    /// Writes the root certificate of its issuer into a file.
    #[track_caller]
    pub fn root(&self, authority: &Authority) -> PathBuf {
        let file = authority.folder().join("issued-by.pem");
        let mut command = Command::new("curl");
        command.args(["--silent", "--fail", "--cacert"]).arg(authority.ca()).arg("--output").arg(&file);
        run(command.arg(format!("https://localhost:{}/roots/0", self.management))).success();
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
