//! Unsigned components never run while the settings name trusted keys, neither through a pin nor as
//! a policy.

use std::path::{Path, PathBuf};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use packhouse_tests::cli::packhouse_with;
use packhouse_tests::clients::ProgramOutput;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, MavenRepository, Request, Response, Server, checkout};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The error text of the guest `raw` for a missing file, and the text of another edition of the
/// guest. Both texts have the same length.
const EDITIONS: [&str; 2] = ["There is no such file", "No file is there here"];
const KEYS: &str = "PACKHOUSE_PLUGINS_TRUSTED_KEYS";

/// A folder with the shipped plugin `raw`, another edition of it as a file, and a key that the
/// settings may trust.
struct TrustFixture {
    home: TempDir,
    pair: EcdsaKeyPair,
}

impl TrustFixture {
    fn new() -> TrustFixture {
        let home = TempDir::new().unwrap();
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
        // A public ECDSA key on P-256 in DER: the header, then the point.
        let mut der = hex::decode("3059301306072a8648ce3d020106082a8648ce3d030107034200").unwrap();
        der.extend_from_slice(pair.public_key().as_ref());
        let text = STANDARD.encode(der);
        let (first, second) = text.split_at(64);
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{first}\n{second}\n-----END PUBLIC KEY-----\n");
        let scene = TrustFixture { home, pair };
        std::fs::write(scene.at("key.pub"), pem).unwrap();
        std::fs::create_dir(scene.at("plugins")).unwrap();
        let raw = std::fs::read(checkout().join("target/release/guests/raw.wasm")).expect("`just guests`");
        std::fs::write(scene.at("plugins/raw.wasm"), &raw).unwrap();
        std::fs::write(scene.at("other.wasm"), edition(raw)).unwrap();
        scene
    }

    fn at(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.pair.sign(&SystemRandom::new(), message).unwrap().as_ref())
    }

    fn server(&self, trusts: bool) -> Server {
        let server = Server::with().data(&self.at("data"));
        let server = server.arg("--plugins").arg(self.at("plugins").to_str().unwrap());
        if trusts { server.env(KEYS, self.at("key.pub").to_str().unwrap()) } else { server }.start()
    }

    fn run(&self, words: &[&str]) -> ProgramOutput {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let environment =
            [("PACKHOUSE_PLUGINS_DIR", text(&self.at("plugins"))), (KEYS, text(&self.at("key.pub")))];
        packhouse_with(&self.at("data"), words, &environment)
    }

    /// Installs the other edition while the settings trust no key. Returns the edition's digest.
    fn install(&self) -> String {
        let environment = [("PACKHOUSE_PLUGINS_DIR", self.at("plugins").to_str().unwrap().to_owned())];
        let file = self.at("other.wasm");
        let words = ["plugins", "install", file.to_str().unwrap()];
        let output = packhouse_with(&self.at("data"), &words, &environment).success().text;
        output.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap().to_owned()
    }
}

/// Returns the plugin `raw` with another text. The result is another component.
fn edition(mut raw: Vec<u8>) -> Vec<u8> {
    let [old, new] = EDITIONS.map(str::as_bytes);
    let at = raw.windows(old.len()).position(|bytes| bytes == old).unwrap();
    raw[at..at + old.len()].copy_from_slice(new);
    raw
}

fn says(repository: &FormatRepository, edition: usize) -> bool {
    repository.get("nothing").expect(404).text().contains(EDITIONS[edition])
}

#[track_caller]
fn refused(answer: &Response) {
    assert_eq!((answer.status, answer.field("error").as_str()), (422, "plugin_refused"), "{}", answer.text());
    let text = answer.text();
    assert!(text.contains("is not signed"), "{text}");
}

#[test]
fn a_pin_of_a_component_without_a_trusted_signature_is_refused() {
    let scene = TrustFixture::new();
    let server = scene.server(false);
    let digest = scene.install();
    drop(server);
    let server = scene.server(true);
    let api = Api::sign_in(&server);
    let files = FormatRepository::hosted(&server, "raw", "files", &json!({}));
    let pin = format!("/v1/repositories/{}/plugin", files.id);
    refused(&api.send("PUT", &pin, &json!({"digest": digest})));
    scene.run(&["plugins", "pin", "files", &digest]).refused("is not signed by a trusted key");
    assert!(says(&files, 0));

    // An operator may pin the component once it is signed.
    let signature = scene.at("signature");
    std::fs::write(&signature, scene.sign(&std::fs::read(scene.at("other.wasm")).unwrap())).unwrap();
    let file = scene.at("other.wasm");
    let words = ["plugins", "install", file.to_str().unwrap(), "--signature", signature.to_str().unwrap()];
    scene.run(&words).success();
    api.send("PUT", &pin, &json!({"digest": digest})).expect(200);
    assert!(says(&files, 1));
}

#[test]
fn a_component_pinned_before_keys_were_trusted_no_longer_runs() {
    let scene = TrustFixture::new();
    let server = scene.server(false);
    let digest = scene.install();
    let api = Api::sign_in(&server);
    let pinned = FormatRepository::hosted(&server, "raw", "pinned", &json!({}));
    let pin = format!("/v1/repositories/{}/plugin", pinned.id);
    api.send("PUT", &pin, &json!({"digest": digest})).expect(200);
    assert!(says(&pinned, 1));
    drop(server);

    let server = scene.server(true);
    let api = Api::sign_in(&server);
    assert!(says(&pinned.on(&server), 0));
    let listed = api.call("GET", "/v1/plugins").expect(200).json();
    let item = listed["items"].as_array().unwrap().iter().find(|item| item["digest"] == digest.as_str());
    let error = item.unwrap()["error"].as_str().unwrap().to_owned();
    assert!(error.contains("is not signed by a trusted key"), "{error}");
}

fn install_policy(api: &Api, bytes: &[u8], signature: Option<&str>) -> Response {
    let request = Request::new("POST", "/v1/policy-components").header("Content-Type", "application/wasm");
    let request = match signature {
        Some(signature) => request.header("X-Plugin-Signature", signature),
        None => request,
    };
    api.client().send(request.body(bytes.to_vec()))
}

#[test]
fn a_policy_without_a_trusted_signature_does_not_run() {
    let scene = TrustFixture::new();
    // The server has the shipped formats, because the rule covers packages of one of them.
    let start = |trusts: bool| {
        let server = Server::with().data(&scene.at("data"));
        if trusts { server.env(KEYS, scene.at("key.pub").to_str().unwrap()) } else { server }.start()
    };
    let policy = checkout().join("target/release/plugins/policies/names.wasm");
    let mut policy = std::fs::read(policy).expect("`xtask plugins` made it");
    // An additional section, which nothing reads, makes this another component than the shipped
    // one.
    policy.extend([0, 3, 1, b'x', 1]);
    let server = start(false);
    let api = Api::sign_in(&server);
    let installed = install_policy(&api, &policy, None).expect(201).json();
    assert_eq!(installed["signed_by"], Value::Null);
    let component = installed["digest"].as_str().unwrap();
    let jars = MavenRepository::create(&server, "jars");
    let settings = json!({"claimed": ["*lib*"], "publish": ["org.example:*"]});
    let rule = json!({"name": "ours", "component": component, "settings": settings, "repositories": "*"});
    let id = api.post("/v1/policies", &rule).expect(201).field("id");
    api.call("POST", &format!("/v1/policies/{id}/preview")).expect(200);
    api.patch(&format!("/v1/policies/{id}"), &json!({"mode": "enforced"})).expect(200);
    jars.put("org/example/a/1/a-1.jar", "a").expect(201);
    drop(server);

    let server = start(true);
    let api = Api::sign_in(&server);
    refused(&install_policy(&api, &policy, None));
    refused(&install_policy(&api, &[&policy[..], &[0, 3, 1, b'x', 2]].concat(), None));
    let put = |version: u8| {
        let path = format!("/repositories/jars/org/example/a/{version}/a-{version}.jar");
        server.anonymous().basic(OWNER, &jars.token.secret).put(&path, "a")
    };
    let denied = put(2);
    assert_eq!(denied.status, 403, "{}", denied.text());
    let signed = install_policy(&api, &policy, Some(&scene.sign(&policy))).expect(201).json();
    assert!(signed["signed_by"].as_str().unwrap().starts_with("SHA256:"), "{signed}");
    put(2).expect(201);
}
