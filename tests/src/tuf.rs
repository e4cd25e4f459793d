//! A repository of The Update Framework, from which Sigstore's clients fetch their trust root. The
//! tests sign the repository with their own keys and serve it under the host name of the public
//! instance. A proxy leads clients to it, and nothing reaches the Internet.

use crate::digests::sha256;
use crate::egress::Egress;
use crate::sigstore::Key;
use crate::tls::TlsUpstream;
use serde_json::{Value, json};

/// The host that clients of the public instance use.
pub const HOST: &str = "tuf-repo-cdn.sigstore.dev";

const VERSION: &str = "1.0.31";
const EXPIRES: &str = "2049-01-01T00:00:00Z";

/// A running repository.
pub struct Tuf {
    /// The initial trust of a client: `root.json`.
    pub root: String,
    served: TlsUpstream,
    egress: Egress,
}

impl Tuf {
    /// Starts a repository with this `trusted_root.json`; the error names the missing program.
    pub fn start(trusted_root: &str) -> Result<Self, String> {
        let key = Key::new();
        let sign = |signed: &Value| {
            let signature = hex::encode(key.sign(canonical(signed).as_bytes()));
            json!({"signed": signed, "signatures": [{"keyid": "k", "sig": signature}]}).to_string()
        };
        let role = json!({"keyids": ["k"], "threshold": 1});
        let root = sign(&json!({
            "_type": "root", "spec_version": VERSION, "version": 1, "expires": EXPIRES, "consistent_snapshot": true,
            "keys": {"k": {"keytype": "ecdsa", "scheme": "ecdsa-sha2-nistp256", "keyval": {"public": key.public_pem()}}},
            "roles": {"root": role, "timestamp": role, "snapshot": role, "targets": role},
        }));
        let listed = |kind: &str, of: &str| {
            let mut signed =
                json!({"_type": kind, "spec_version": VERSION, "version": 1, "expires": EXPIRES});
            signed["meta"] = json!({of: {"version": 1}});
            sign(&signed)
        };
        let hex = sha256(trusted_root.as_bytes());
        let target = json!({"length": trusted_root.len(), "hashes": {"sha256": hex}});
        let targets = sign(&json!({
            "_type": "targets", "spec_version": VERSION, "version": 1, "expires": EXPIRES,
            "targets": {"trusted_root.json": target},
        }));
        let (timestamp, snapshot) =
            (listed("timestamp", "snapshot.json"), listed("snapshot", "targets.json"));
        let path = format!("targets/{hex}.trusted_root.json");
        let files: [(&str, &[u8]); 4] = [
            ("timestamp.json", timestamp.as_bytes()),
            ("1.snapshot.json", snapshot.as_bytes()),
            ("1.targets.json", targets.as_bytes()),
            (&path, trusted_root.as_bytes()),
        ];
        let served = TlsUpstream::start_as(&format!("DNS:{HOST}"), &files)?;
        let egress = Egress::start(served.address());
        Ok(Self { root, served, egress })
    }

    /// The environment variables that lead a Node program to this repository.
    pub fn variables(&self) -> [(&'static str, String); 3] {
        let ca = self.served.ca().to_str().expect("a path").to_owned();
        [
            ("https_proxy", self.egress.url()),
            ("no_proxy", "127.0.0.1".to_owned()),
            ("NODE_EXTRA_CA_CERTS", ca),
        ]
    }

    /// The hosts that clients requested from the proxy.
    pub fn requested_hosts(&self) -> Vec<String> {
        self.egress.lines()
    }
}

/// Returns the JSON text that signatures cover: sorted members, no spaces, and only the quote and
/// the backslash escaped.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}:{}", quoted(name), canonical(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
