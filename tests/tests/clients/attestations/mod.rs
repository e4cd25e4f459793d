//! Signed statements about packages, published as clients do it. The server verifies every form,
//! lists the statements with their verdicts, and serves them unchanged. It deletes and restores
//! them together with their subject. This module also tests bills of materials.

mod clients;
mod demanded;
mod documents;
mod formats;
mod images;
mod npm_audit;
mod proxied;
mod proxied_images;
use crate::release;
use crate::wheel;

use packhouse_tests::server::eventually;
use packhouse_tests::sigstore::{Instance, Key};
use packhouse_tests::{Api, Server};
use serde_json::Value;
use std::path::PathBuf;
use tempfile::TempDir;

/// A server that trusts a Sigstore instance and a key, from files.
struct AttestationServer {
    server: Server,
    api: Api,
    instance: Instance,
    key: Key,
    folder: TempDir,
}

impl AttestationServer {
    fn new() -> Self {
        let key = Key::new();
        let pem = key.public_pem();
        Self { key, ..Self::trusting(&pem) }
    }

    /// A server that trusts this public key instead.
    fn trusting(key_pem: &str) -> Self {
        let (instance, key) = (Instance::new(), Key::new());
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        std::fs::write(file("trusted_root.json"), instance.trusted_root()).unwrap();
        std::fs::write(file("key.pub"), key_pem).unwrap();
        let server = Server::with()
            .env("PACKHOUSE_ATTESTATIONS_TRUSTED_ROOTS", file("trusted_root.json").to_str().unwrap())
            .env("PACKHOUSE_ATTESTATIONS_TRUSTED_KEYS", file("key.pub").to_str().unwrap())
            .env(
                "PACKHOUSE_ATTESTATIONS_IDENTITIES",
                "https://token.actions.githubusercontent.com https://github.com/acme/*",
            )
            .env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*")
            .start();
        let api = Api::sign_in(&server);
        Self { server, api, instance, key, folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Waits until this many statements about a version exist and the server has verified all of
    /// them; returns them.
    #[track_caller]
    fn stated(&self, repository: &str, package: &str, version: &str, number: usize) -> Vec<Value> {
        let package = package.replace('%', "%25").replace('/', "%2F").replace('@', "%40");
        let path = format!("/v1/repositories/{repository}/packages/{package}/versions/{version}");
        eventually(&format!("{number} statements about {package} {version}"), || {
            let details = self.api.call("GET", &path).expect(200).json();
            let all = details["attestations"].as_array().unwrap().clone();
            let done = all.len() == number && all.iter().all(|one| one["verdict"] != "pending");
            done.then_some(all)
        })
    }
}

/// The verdicts, in order.
fn verdicts(all: &[Value]) -> Vec<&str> {
    all.iter().map(|one| one["verdict"].as_str().unwrap()).collect()
}
