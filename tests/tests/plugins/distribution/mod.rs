//! Components in registries: published, installed by tag and by digest, signed, locked and
//! precompiled. The server refuses invalid responses of registries with a reason.

mod elsewhere;
mod hostile;

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use packhouse_tests::cli::{packhouse, packhouse_with};
use packhouse_tests::clients::ProgramOutput;
use packhouse_tests::go::Go;
use packhouse_tests::images::{ImageRepository, MANIFEST, digest};
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::{OWNER, eventually, free_port};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Client, Request, Response, Server, checkout, skip};
use serde_json::{Value, json};
use tempfile::TempDir;

use elsewhere::Process;
use hostile::{Hostile, payload};

const CONFIG: &str = "application/vnd.wasm.config.v0+json";
const WASM: &str = "application/wasm";
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// Arguments that allow the program to connect to the tests' registries, which listen on loopback.
const LOOPBACK: [&str; 2] = ["--upstream-allow-networks", "127.0.0.0/8"];

fn guest(name: &str) -> (PathBuf, Vec<u8>) {
    let file = checkout().join(format!("target/release/guests/{name}.wasm"));
    let bytes =
        std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}; run `just guests`", file.display()));
    (file, bytes)
}

/// Starts a server without plugins that may connect to registries on loopback.
fn bare(folder: &TempDir, environment: &[(&str, &str)]) -> Server {
    let plugins = folder.path().join("plugins");
    std::fs::create_dir_all(&plugins).unwrap();
    let data = folder.path().join("data");
    let mut builder = Server::with().data(&data).arg("--plugins").arg(plugins.to_str().unwrap());
    for word in LOOPBACK {
        builder = builder.arg(word);
    }
    environment.iter().fold(builder, |builder, (name, value)| builder.env(name, value)).start()
}

fn post(api: &Api, source: &str) -> Response {
    api.post("/v1/plugins", &json!({"source": source}))
}

fn upload(api: &Api, bytes: Vec<u8>, signature: Option<&str>) -> Response {
    let request = Request::new("POST", "/v1/plugins").header("Content-Type", WASM);
    let request = match signature {
        Some(signature) => request.header("X-Plugin-Signature", signature),
        None => request,
    };
    api.request(request.body(bytes))
}

#[track_caller]
fn refused(answer: &Response, words: &str) {
    assert_eq!((answer.status, answer.field("error").as_str()), (422, "plugin_refused"), "{}", answer.text());
    assert!(answer.text().contains(words), "{words:?}: {}", answer.text());
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A key pair in PEM files.
struct SigningKeys {
    pair: EcdsaKeyPair,
    public: PathBuf,
    private: PathBuf,
    fingerprint: String,
}

impl SigningKeys {
    fn new(folder: &Path, name: &str) -> SigningKeys {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
        let pkcs8 = pair.to_pkcs8v1().unwrap();
        // A public ECDSA key on P-256 in DER: the header, then the point.
        let mut der = hex::decode("3059301306072a8648ce3d020106082a8648ce3d030107034200").unwrap();
        der.extend_from_slice(pair.public_key().as_ref());
        let (public, private) = (folder.join(format!("{name}.pub")), folder.join(name));
        let pem = |label: &str, der: &[u8]| {
            let lines: Vec<String> = STANDARD
                .encode(der)
                .as_bytes()
                .chunks(64)
                .map(|line| String::from_utf8(line.to_vec()).unwrap())
                .collect();
            format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
        };
        std::fs::write(&public, pem("PUBLIC KEY", &der)).unwrap();
        std::fs::write(&private, pem("PRIVATE KEY", pkcs8.as_ref())).unwrap();
        let fingerprint = digest(&der).replace("sha256:", "SHA256:");
        SigningKeys { pair, public, private, fingerprint }
    }

    fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.pair.sign(&SystemRandom::new(), message).unwrap().as_ref())
    }
}

/// A server that is the tests' registry, with a repository of images.
struct Home {
    server: Server,
    images: ImageRepository,
    folder: TempDir,
}

impl Home {
    fn start() -> Home {
        let server = Server::start();
        let images = ImageRepository::create(&server, "tools", &json!({}));
        Home { server, images, folder: TempDir::new().unwrap() }
    }

    fn at(&self, rest: &str) -> String {
        format!("oci://{}/repositories/tools/{rest}", self.server.packages())
    }

    fn login(&self) -> (&'static str, String) {
        ("PACKHOUSE_REGISTRY_LOGIN", format!("{OWNER}:{}", self.images.token.secret))
    }

    /// Writes the credentials file in docker's format and returns its path.
    fn auth_file(&self) -> PathBuf {
        let auth = STANDARD.encode(format!("{OWNER}:{}", self.images.token.secret));
        let file = self.folder.path().join("auth.json");
        let auths = json!({"auths": {self.server.packages().to_string(): {"auth": auth}}});
        std::fs::write(&file, auths.to_string()).unwrap();
        file
    }

    fn publish(&self, words: &[&str]) -> ProgramOutput {
        publish(words, &[self.login()])
    }
}

fn publish(words: &[&str], environment: &[(&str, String)]) -> ProgramOutput {
    let mut command = Command::new(packhouse_tests::server::program());
    // The person who runs the tests may be signed in to a registry, and the command must not use
    // those credentials.
    command.env("DOCKER_CONFIG", "/nonexistent").env("PACKHOUSE_LOG", "error");
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.args(["plugins", "publish"]).args(words);
    command.output().expect("the program").into()
}

fn last(output: &str) -> String {
    output.trim_end().lines().last().unwrap().to_owned()
}

#[test]
fn published_components_are_installed_by_tag_and_by_digest() {
    let home = Home::start();
    let (file, bytes) = guest("raw");
    let tagged = home.at("formats/raw:1.2");
    publish(&[path(&file), &tagged], &[]).refused("requires credentials");
    let wrong = [("PACKHOUSE_REGISTRY_LOGIN", format!("{OWNER}:wrong"))];
    publish(&[path(&file), &tagged], &wrong).refused("refuses the configured credentials");
    home.publish(&[path(&file), &home.at("formats/raw")]).refused("neither a tag nor a digest");
    let text = home.folder.path().join("text.wasm");
    std::fs::write(&text, "hello").unwrap();
    home.publish(&[path(&text), &tagged]).refused("is not a WebAssembly component");
    let pinned = last(&home.publish(&[path(&file), &tagged]).success().text);
    assert_eq!(
        last(&home.publish(&[path(&file), &tagged]).success().text),
        pinned,
        "the same component again"
    );

    // wkg and ORAS require a manifest of this form.
    let answer = home.images.get("formats/raw/manifests/1.2").expect(200);
    assert_eq!(answer.header("content-type"), Some(MANIFEST));
    assert_eq!(pinned, home.at(&format!("formats/raw@{}", digest(&answer.body))));
    let manifest = answer.json();
    let layer = json!({"mediaType": WASM, "digest": digest(&bytes), "size": bytes.len()});
    assert_eq!((&manifest["schemaVersion"], &manifest["mediaType"]), (&json!(2), &json!(MANIFEST)));
    assert_eq!((&manifest["layers"], &manifest["config"]["mediaType"]), (&json!([layer]), &json!(CONFIG)));
    assert_eq!(manifest["annotations"]["org.opencontainers.image.title"], "raw");
    let config = manifest["config"]["digest"].as_str().unwrap();
    let config = home.images.get(&format!("formats/raw/blobs/{config}")).expect(200).json();
    assert_eq!((&config["architecture"], &config["os"]), (&json!("wasm"), &json!("wasip2")));
    assert_eq!(config["layerDigests"], json!([digest(&bytes)]));
    assert!(config["created"].is_string() && !config["component"]["exports"].as_array().unwrap().is_empty());

    let folder = TempDir::new().unwrap();
    let auth = home.folder.path().join("auth.json");
    std::fs::write(&auth, "{}").unwrap();
    let server = bare(&folder, &[("PACKHOUSE_PLUGINS_REGISTRY_AUTH", path(&auth))]);
    let api = Api::sign_in(&server);
    refused(&post(&api, &pinned), "requires credentials");
    // The server reads the credentials file for each request.
    home.auth_file();
    let installed = post(&api, &pinned).expect(201).json();
    assert_eq!((&installed["state"], &installed["source"]), (&json!("candidate"), &json!(pinned)));
    assert_eq!((&installed["digest"], &installed["signed_by"]), (&json!(digest(&bytes)), &Value::Null));
    assert!(installed["changes"]["claims"].is_array());
    assert_eq!(post(&api, &tagged).expect(201).json()["source"], json!(pinned), "a tag is resolved once");
    let body = json!({"digest": digest(&bytes), "expected_active": null});
    api.post("/v1/plugins/raw/activate", &body).expect(200);
    let repository = FormatRepository::hosted(&server, "raw", "files", &json!({}));
    repository.put("a.txt", "hello").expect(201);

    let events = api.call("GET", "/v1/audit-events?limit=50").expect(200).text();
    assert!(events.contains("install_plugin") && events.contains(&pinned), "{events}");
    let secret = &home.images.token.secret;
    assert!(!events.contains(secret) && !server.log().contains(secret));
    let auth = STANDARD.encode(format!("{OWNER}:{secret}"));
    assert!(!server.log().contains(&auth));

    // The command line installs the same artifact and recognizes that it is already installed.
    let plugins = folder.path().join("plugins");
    let words = [&["plugins", "install", &tagged][..], &LOOPBACK, &["--plugins", path(&plugins)]];
    let output = packhouse_with(server.data(), &words.concat(), &[home.login()]).success().text;
    assert_eq!(output.trim_end(), format!("{}\talready installed", digest(&bytes)));
    let none = [("DOCKER_CONFIG", "/nonexistent".to_owned())];
    packhouse_with(server.data(), &words.concat(), &none).refused("requires credentials");
    // If the settings do not allow a network for upstreams, the program does not connect to
    // registries in that network.
    let words = ["plugins", "install", &tagged, "--plugins", path(&plugins)];
    packhouse_with(server.data(), &words, &[home.login()])
        .refused("is not an address that an upstream may have");

    // The server refuses clients without a credential, and members who do not manage the server.
    let unauthenticated = Request::new("POST", "/v1/plugins").header("Content-Type", "application/json");
    let unauthenticated =
        Client::new(server.api()).send(unauthenticated.body(json!({"source": pinned}).to_string()));
    assert_eq!(unauthenticated.status, 401);
    let nothing = json!({"organization": ["manage-repositories"], "repositories": []});
    let member = json!({"email": "dev@example.com", "password": "a long password", "permissions": nothing});
    api.post("/v1/members", &member).expect(201);
    let dev = Api::sign_in_as(&server, "dev@example.com", "a long password");
    assert_eq!(post(&dev, &pinned).status, 403);
    assert_eq!(api.post("/v1/plugins", &json!({})).status, 400);
    assert_eq!(api.post("/v1/plugins", &json!({"source": pinned, "else": 1})).status, 400);
}

#[test]
fn only_components_signed_by_a_trusted_key_are_installed() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| SigningKeys::new(folder.path(), name);
    let (first, second, untrusted) = (at("first"), at("second"), at("untrusted"));
    let keys = format!("{},{}", first.public.display(), second.public.display());
    let server = bare(&folder, &[("PACKHOUSE_PLUGINS_TRUSTED_KEYS", &keys)]);
    let api = Api::sign_in(&server);
    let (file, bytes) = guest("raw");

    // The server checks the signatures of uploads.
    refused(&upload(&api, bytes.clone(), None), "is not signed");
    refused(&upload(&api, bytes.clone(), Some(&untrusted.sign(&bytes))), "its key is not trusted");
    refused(&upload(&api, bytes.clone(), Some(&first.sign(b"another"))), "does not belong to this component");
    refused(&upload(&api, bytes.clone(), Some("AAAA")), "not an ECDSA signature");
    let installed = upload(&api, bytes.clone(), Some(&second.sign(&bytes))).expect(201).json();
    assert_eq!(
        (&installed["signed_by"], &installed["source"]),
        (&json!(second.fingerprint), &json!("upload"))
    );

    // The server finds the signatures of an artifact beside it in the registry.
    let hostile = Hostile::new(&guest("raw-more").1);
    let pinned = hostile.shows(&hostile.manifest);
    let manifest = pinned.split_once('@').unwrap().1.to_owned();
    refused(&post(&api, &pinned), "is not signed");
    let good = payload(&manifest);
    hostile.signs(&manifest, &good, &untrusted.sign(&good));
    refused(&post(&api, &pinned), "not by a trusted key");
    hostile.signs(&manifest, &good, &first.sign(b"something else"));
    refused(&post(&api, &pinned), "not by a trusted key");
    let other = payload(&digest(b"other"));
    hostile.signs(&manifest, &other, &first.sign(&other));
    refused(&post(&api, &pinned), "The signature is for sha256:");
    hostile.signs(&manifest, b"{}", &first.sign(b"{}"));
    refused(&post(&api, &pinned), "an unnamed manifest");
    hostile.signs(&manifest, &good, "");
    refused(&post(&api, &pinned), "not an ECDSA signature");
    let given = |signature: &str| api.post("/v1/plugins", &json!({"source": pinned, "signature": signature}));
    refused(&given(&first.sign(&bytes)), "does not belong to this component");
    let installed = given(&first.sign(&hostile.component)).expect(201).json();
    assert_eq!(installed["signed_by"], json!(first.fingerprint));
    hostile.signs(&manifest, &good, &second.sign(&good));
    assert_eq!(post(&api, &hostile.at(":1")).expect(201).json()["signed_by"], json!(second.fingerprint));

    // The command line publishes a signature in the same form as cosign. It also checks signatures
    // with the keys of the settings.
    let home = Home::start();
    let tagged = home.at("raw:1");
    let output = home.publish(&[path(&file), &tagged, "--key", path(&first.private)]).success().text;
    assert!(output.contains(&first.fingerprint), "{output}");
    let published = last(&output);
    let tag = format!("raw/manifests/{}.sig", published.split_once('@').unwrap().1.replace(':', "-"));
    let beside = home.images.get(&tag).expect(200).json();
    assert_eq!(beside["layers"][0]["mediaType"], SIMPLE_SIGNING);
    assert_eq!(beside["config"]["mediaType"], "application/vnd.oci.image.config.v1+json");
    // A second signature is added beside the first one. Signing again with the same key adds none.
    for key in [&untrusted, &first] {
        home.publish(&[path(&file), &tagged, "--key", path(&key.private)]).success();
    }
    assert_eq!(home.images.get(&tag).expect(200).json()["layers"].as_array().unwrap().len(), 2);
    let plugins = folder.path().join("plugins");
    let settings = [&LOOPBACK[..], &["--plugins", path(&plugins)]].concat();
    let environment = [home.login(), ("PACKHOUSE_PLUGINS_TRUSTED_KEYS", keys.clone())];
    let run = |words: &[&str]| packhouse_with(server.data(), &[words, &settings].concat(), &environment);
    run(&["plugins", "install", &tagged]).success();
    let listed = |digest: &str| {
        let all = api.call("GET", "/v1/plugins").expect(200).json()["items"].as_array().unwrap().clone();
        all.into_iter().find(|item| item["digest"] == digest).unwrap()
    };
    let now = listed(&digest(&bytes));
    assert_eq!((&now["signed_by"], &now["source"]), (&json!(first.fingerprint), &json!(published)));
    run(&["plugins", "install", path(&file)]).refused("is not signed");
    let signature = folder.path().join("signature");
    for written in [first.sign(&bytes).into_bytes(), STANDARD.decode(first.sign(&bytes)).unwrap()] {
        std::fs::write(&signature, written).unwrap();
        run(&["plugins", "install", path(&file), "--signature", path(&signature)]).success();
    }
    std::fs::write(&signature, untrusted.sign(&bytes)).unwrap();
    run(&["plugins", "install", path(&file), "--signature", path(&signature)])
        .refused("its key is not trusted");
    // An unreadable key file is an error. The program does not treat it as an empty list of keys.
    let gone = [("PACKHOUSE_PLUGINS_TRUSTED_KEYS", "/nonexistent/key.pub".to_owned())];
    packhouse_with(server.data(), &[&["plugins", "install", path(&file)], &settings[..]].concat(), &gone)
        .refused("/nonexistent/key.pub cannot be read");

    // The server also checks the signature when an operator activates a component that was stored
    // earlier.
    let before = TempDir::new().unwrap();
    let mut open = bare(&before, &[]);
    upload(&Api::sign_in(&open), bytes.clone(), None).expect(201);
    open.kill9();
    let strict = bare(&before, &[("PACKHOUSE_PLUGINS_TRUSTED_KEYS", &keys)]);
    let api = Api::sign_in(&strict);
    let body = json!({"digest": digest(&bytes), "expected_active": null});
    refused(&api.post("/v1/plugins/raw/activate", &body), "is not signed by a trusted key");
    upload(&api, bytes.clone(), Some(&first.sign(&bytes))).expect(201);
    api.post("/v1/plugins/raw/activate", &body).expect(200);
}

#[test]
fn a_lock_file_installs_exactly_the_running_components_on_another_server() {
    let home = Home::start();
    let (file, bytes) = guest("raw");
    let pinned = last(&home.publish(&[path(&file), &home.at("raw:1")]).success().text);
    let (one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let login = [home.login()];
    let run = |folder: &TempDir, words: &[&str]| {
        let plugins = folder.path().join("plugins");
        let words = [words, &LOOPBACK, &["--plugins", path(&plugins)]].concat();
        packhouse_with(&folder.path().join("data"), &words, &login)
    };
    let first = bare(&one, &[]);
    run(&one, &["plugins", "install", &pinned]).success();
    run(&one, &["plugins", "activate", "raw", &digest(&bytes)]).success();
    let lock = one.path().join("packhouse-plugins.lock");
    run(&one, &["plugins", "lock", "--out", path(&lock)]).success();
    let text = std::fs::read_to_string(&lock).unwrap();
    assert!(text.contains(&pinned) && text.contains(&digest(&bytes)), "{text}");
    assert_eq!(run(&one, &["plugins", "lock"]).success().text.trim_end(), text.trim_end());
    drop(first);

    let second = bare(&two, &[]);
    let output = run(&two, &["plugins", "install", "--locked", path(&lock)]).success().text;
    assert!(output.contains(&digest(&bytes)), "{output}");
    let api = Api::sign_in(&second);
    eventually("the server follows", || {
        api.call("GET", "/v1/formats").expect(200).text().contains(&digest(&bytes)).then_some(())
    });
    assert_eq!(run(&two, &["plugins", "lock"]).success().text.trim_end(), text.trim_end());
    run(&two, &["plugins", "install", "--locked", path(&lock)]).success();

    // If the lock file does not match the content of the registry, the command changes nothing.
    let refused = |text: &str, words: &str| {
        let changed = two.path().join("changed.lock");
        std::fs::write(&changed, text).unwrap();
        run(&two, &["plugins", "install", "--locked", path(&changed)]).refused(words);
    };
    refused("version = 1\n", "runs the format raw, which");
    refused(&text.replace("version = 1\n", "version = 9\n"), "has version 9");
    refused(&text.replace(&digest(&bytes), &digest(b"other")), "is now the component");
    refused(
        &text.replace(&digest(&bytes), &digest(b"other")).replace(&pinned, "raw.wasm"),
        "not in a registry",
    );
    refused(
        &text.replace(&digest(&bytes), &digest(b"other")).replace(&pinned, &home.at("raw:1")),
        "not pinned by a digest",
    );
    refused("hello", "is not a lock file");
}

#[test]
fn precompiled_components_are_not_compiled_at_the_start() {
    let folder = TempDir::new().unwrap();
    let (plugins, data) = (folder.path().join("plugins"), folder.path().join("data"));
    // The test uses a cache of its own, because other tests share one.
    for new in [&plugins, &data, &data.join("cache")] {
        std::fs::create_dir_all(new).unwrap();
    }
    std::fs::write(plugins.join("raw.wasm"), guest("raw").1).unwrap();
    let compile =
        || packhouse(&data, &["plugins", "compile", "--plugins", path(&plugins)], "").success().text;
    let output = compile();
    assert!(output.starts_with("raw\t") && output.contains("\tcompiled\t"), "{output}");
    assert!(compile().contains("\tkept\t"), "the second time nothing is compiled");
    let server = bare(&folder, &[]);
    assert!(!server.log().contains("compiling"), "{}", server.log());
    let more = upload(&Api::sign_in(&server), guest("raw-more").1, None).expect(201).field("digest");
    assert!(server.log().contains("compiling"), "{}", server.log());
    let both = compile();
    assert!(both.lines().count() == 2 && both.contains(&more), "{both}");
}

#[test]
fn a_server_reports_starting_while_it_compiles() {
    let folder = TempDir::new().unwrap();
    let (plugins, data, log) =
        (folder.path().join("plugins"), folder.path().join("data"), folder.path().join("log"));
    std::fs::create_dir_all(&plugins).unwrap();
    std::fs::create_dir_all(data.join("cache")).unwrap();
    for name in ["npm.wasm", "maven.wasm"] {
        let beside = packhouse_tests::server::program().with_file_name("plugins").join(name);
        std::fs::copy(beside, plugins.join(name)).unwrap();
    }
    let ports = [free_port(), free_port()];
    let [packages, api] = ports.map(|port| format!("127.0.0.1:{port}"));
    let output = std::fs::File::create(&log).unwrap();
    let mut command = Command::new(packhouse_tests::server::program());
    command.args(["serve", "--data", path(&data), "--plugins", path(&plugins)]);
    command.args(["--packages-listen", &packages, "--api-listen", &api]);
    command.stdout(output.try_clone().unwrap()).stderr(output);
    let _server = Process(command.spawn().unwrap());
    let [packages, api] = [&packages, &api].map(|address| Client::new(address.parse().unwrap()));
    let ask = |client: &Client, path: &str| client.try_send(Request::new("GET", path)).ok();
    let ready = eventually("it listens", || ask(&api, "/readyz"));
    assert_eq!((ready.status, ready.field("error").as_str()), (503, "server_starting"), "{}", ready.text());
    assert!(ready.text().contains("still compiling"), "{}", ready.text());
    let names_one = |answer: &Response| answer.text().contains(" is being compiled.");
    let named = eventually("the response names the plugin", || ask(&api, "/readyz").filter(names_one));
    assert_eq!(named.json()["degraded"][0]["what"], "plugin", "{}", named.text());
    assert_eq!(ask(&api, "/livez").unwrap().status, 200);
    let answer = ask(&packages, "/v2/").unwrap();
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")), "{}", answer.text());
    eventually("the server is ready", || ask(&api, "/readyz").filter(|answer| answer.status == 200));
    assert_eq!(ask(&packages, "/repositories/libs/a").unwrap().status, 401);
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("compiling npm") && log.contains("compiled maven"), "{log}");
}
