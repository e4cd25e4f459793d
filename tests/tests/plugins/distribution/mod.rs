//! Components go to registries and come from them: published and installed by tag and by digest, signed, locked, compiled ahead; and
//! what a registry should not send is refused in words.

mod elsewhere;
mod hostile;

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use packhouse_tests::cli::{packhouse, packhouse_with};
use packhouse_tests::clients::Said;
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
/// Where tests' registries are.
const LOOPBACK: [&str; 2] = ["--upstream-allow-networks", "127.0.0.0/8"];

fn guest(name: &str) -> (PathBuf, Vec<u8>) {
    let file = checkout().join(format!("target/release/guests/{name}.wasm"));
    let bytes =
        std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}; run `just guests`", file.display()));
    (file, bytes)
}

/// A server that has no plugins of its own, and may ask registries on loopback.
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

/// A key pair, as files of PEM.
struct Key {
    pair: EcdsaKeyPair,
    public: PathBuf,
    private: PathBuf,
    fingerprint: String,
}

impl Key {
    fn new(folder: &Path, name: &str) -> Key {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
        let pkcs8 = pair.to_pkcs8v1().unwrap();
        // A public key of ECDSA on P-256 as DER: what says so, and the point.
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
        Key { pair, public, private, fingerprint }
    }

    fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.pair.sign(&SystemRandom::new(), message).unwrap().as_ref())
    }
}

/// Packhouse as a registry, with a repository of images.
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

    /// As docker writes it.
    fn auth_file(&self) -> PathBuf {
        let auth = STANDARD.encode(format!("{OWNER}:{}", self.images.token.secret));
        let file = self.folder.path().join("auth.json");
        let auths = json!({"auths": {self.server.packages().to_string(): {"auth": auth}}});
        std::fs::write(&file, auths.to_string()).unwrap();
        file
    }

    fn publish(&self, words: &[&str]) -> Said {
        publish(words, &[self.login()])
    }
}

fn publish(words: &[&str], environment: &[(&str, String)]) -> Said {
    let mut command = Command::new(packhouse_tests::server::program());
    // Whoever runs the tests may have signed in somewhere.
    command.env("DOCKER_CONFIG", "/nonexistent").env("PACKHOUSE_LOG", "error");
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.args(["plugins", "publish"]).args(words);
    command.output().expect("the program").into()
}

fn last(said: &str) -> String {
    said.trim_end().lines().last().unwrap().to_owned()
}

#[test]
fn what_is_published_is_installed_by_tag_and_by_digest() {
    let home = Home::start();
    let (file, bytes) = guest("raw");
    let tagged = home.at("formats/raw:1.2");
    publish(&[path(&file), &tagged], &[]).refused("asks for credentials");
    let wrong = [("PACKHOUSE_REGISTRY_LOGIN", format!("{OWNER}:wrong"))];
    publish(&[path(&file), &tagged], &wrong).refused("refuses the credentials");
    home.publish(&[path(&file), &home.at("formats/raw")]).refused("neither a tag nor a digest");
    let text = home.folder.path().join("text.wasm");
    std::fs::write(&text, "hello").unwrap();
    home.publish(&[path(&text), &tagged]).refused("is not a WebAssembly component");
    let pinned = last(&home.publish(&[path(&file), &tagged]).well().text);
    assert_eq!(last(&home.publish(&[path(&file), &tagged]).well().text), pinned, "the same again");

    // As wkg and ORAS read it.
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
    refused(&post(&api, &pinned), "asks for credentials");
    // The file is read each time.
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

    // The command line does the same, and knows the artifact again.
    let plugins = folder.path().join("plugins");
    let words = [&["plugins", "install", &tagged][..], &LOOPBACK, &["--plugins", path(&plugins)]];
    let said = packhouse_with(server.data(), &words.concat(), &[home.login()]).well().text;
    assert_eq!(said.trim_end(), format!("{}\tit was there", digest(&bytes)));
    let none = [("DOCKER_CONFIG", "/nonexistent".to_owned())];
    packhouse_with(server.data(), &words.concat(), &none).refused("asks for credentials");
    // Where upstreams may not be, registries may not be either.
    let words = ["plugins", "install", &tagged, "--plugins", path(&plugins)];
    packhouse_with(server.data(), &words, &[home.login()])
        .refused("is not an address that an upstream may have");

    // Whoever is nobody, and whoever does not manage the server.
    let stranger = Request::new("POST", "/v1/plugins").header("Content-Type", "application/json");
    let stranger = Client::new(server.api()).send(stranger.body(json!({"source": pinned}).to_string()));
    assert_eq!(stranger.status, 401);
    let nothing = json!({"organization": ["manage-repositories"], "repositories": []});
    let member = json!({"email": "dev@example.com", "password": "a long password", "permissions": nothing});
    api.post("/v1/members", &member).expect(201);
    let dev = Api::sign_in_as(&server, "dev@example.com", "a long password");
    assert_eq!(post(&dev, &pinned).status, 403);
    assert_eq!(api.post("/v1/plugins", &json!({})).status, 400);
    assert_eq!(api.post("/v1/plugins", &json!({"source": pinned, "else": 1})).status, 400);
}

#[test]
fn only_what_a_trusted_key_signed_is_installed() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| Key::new(folder.path(), name);
    let (first, second, stranger) = (at("first"), at("second"), at("stranger"));
    let keys = format!("{},{}", first.public.display(), second.public.display());
    let server = bare(&folder, &[("PACKHOUSE_PLUGINS_TRUSTED_KEYS", &keys)]);
    let api = Api::sign_in(&server);
    let (file, bytes) = guest("raw");

    // Uploads.
    refused(&upload(&api, bytes.clone(), None), "is not signed");
    refused(
        &upload(&api, bytes.clone(), Some(&stranger.sign(&bytes))),
        "by none of the keys that are trusted",
    );
    refused(&upload(&api, bytes.clone(), Some(&first.sign(b"another"))), "not of this component");
    refused(&upload(&api, bytes.clone(), Some("AAAA")), "not an ECDSA signature");
    let installed = upload(&api, bytes.clone(), Some(&second.sign(&bytes))).expect(201).json();
    assert_eq!(
        (&installed["signed_by"], &installed["source"]),
        (&json!(second.fingerprint), &json!("upload"))
    );

    // Artifacts, by what lies beside them.
    let hostile = Hostile::new(&guest("raw-more").1);
    let pinned = hostile.shows(&hostile.manifest);
    let manifest = pinned.split_once('@').unwrap().1.to_owned();
    refused(&post(&api, &pinned), "is not signed");
    let good = payload(&manifest);
    hostile.signs(&manifest, &good, &stranger.sign(&good));
    refused(&post(&api, &pinned), "by none of the keys that are trusted");
    hostile.signs(&manifest, &good, &first.sign(b"something else"));
    refused(&post(&api, &pinned), "by none of the keys that are trusted");
    let other = payload(&digest(b"other"));
    hostile.signs(&manifest, &other, &first.sign(&other));
    refused(&post(&api, &pinned), "The signature is of sha256:");
    hostile.signs(&manifest, b"{}", &first.sign(b"{}"));
    refused(&post(&api, &pinned), "nothing that it names");
    hostile.signs(&manifest, &good, "");
    refused(&post(&api, &pinned), "not an ECDSA signature");
    let given = |signature: &str| api.post("/v1/plugins", &json!({"source": pinned, "signature": signature}));
    refused(&given(&first.sign(&bytes)), "not of this component");
    let installed = given(&first.sign(&hostile.component)).expect(201).json();
    assert_eq!(installed["signed_by"], json!(first.fingerprint));
    hostile.signs(&manifest, &good, &second.sign(&good));
    assert_eq!(post(&api, &hostile.at(":1")).expect(201).json()["signed_by"], json!(second.fingerprint));

    // The command line: publishing signs as cosign does, and the keys of the settings hold there too.
    let home = Home::start();
    let tagged = home.at("raw:1");
    let said = home.publish(&[path(&file), &tagged, "--key", path(&first.private)]).well().text;
    assert!(said.contains(&first.fingerprint), "{said}");
    let published = last(&said);
    let tag = format!("raw/manifests/{}.sig", published.split_once('@').unwrap().1.replace(':', "-"));
    let beside = home.images.get(&tag).expect(200).json();
    assert_eq!(beside["layers"][0]["mediaType"], SIMPLE_SIGNING);
    assert_eq!(beside["config"]["mediaType"], "application/vnd.oci.image.config.v1+json");
    // A second signature stands beside the first, and the same again adds none.
    for key in [&stranger, &first] {
        home.publish(&[path(&file), &tagged, "--key", path(&key.private)]).well();
    }
    assert_eq!(home.images.get(&tag).expect(200).json()["layers"].as_array().unwrap().len(), 2);
    let plugins = folder.path().join("plugins");
    let settings = [&LOOPBACK[..], &["--plugins", path(&plugins)]].concat();
    let environment = [home.login(), ("PACKHOUSE_PLUGINS_TRUSTED_KEYS", keys.clone())];
    let run = |words: &[&str]| packhouse_with(server.data(), &[words, &settings].concat(), &environment);
    run(&["plugins", "install", &tagged]).well();
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
        run(&["plugins", "install", path(&file), "--signature", path(&signature)]).well();
    }
    std::fs::write(&signature, stranger.sign(&bytes)).unwrap();
    run(&["plugins", "install", path(&file), "--signature", path(&signature)]).refused("none of the keys");
    // A key that cannot be read trusts nobody.
    let gone = [("PACKHOUSE_PLUGINS_TRUSTED_KEYS", "/nonexistent/key.pub".to_owned())];
    packhouse_with(server.data(), &[&["plugins", "install", path(&file)], &settings[..]].concat(), &gone)
        .refused("/nonexistent/key.pub cannot be read");

    // What was kept before is judged when it is to run.
    let before = TempDir::new().unwrap();
    let mut open = bare(&before, &[]);
    upload(&Api::sign_in(&open), bytes.clone(), None).expect(201);
    open.kill9();
    let strict = bare(&before, &[("PACKHOUSE_PLUGINS_TRUSTED_KEYS", &keys)]);
    let api = Api::sign_in(&strict);
    let body = json!({"digest": digest(&bytes), "expected_active": null});
    refused(&api.post("/v1/plugins/raw/activate", &body), "was signed by none of the keys");
    upload(&api, bytes.clone(), Some(&first.sign(&bytes))).expect(201);
    api.post("/v1/plugins/raw/activate", &body).expect(200);
}

#[test]
fn a_lock_brings_exactly_what_runs_to_another_server() {
    let home = Home::start();
    let (file, bytes) = guest("raw");
    let pinned = last(&home.publish(&[path(&file), &home.at("raw:1")]).well().text);
    let (one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let login = [home.login()];
    let run = |folder: &TempDir, words: &[&str]| {
        let plugins = folder.path().join("plugins");
        let words = [words, &LOOPBACK, &["--plugins", path(&plugins)]].concat();
        packhouse_with(&folder.path().join("data"), &words, &login)
    };
    let first = bare(&one, &[]);
    run(&one, &["plugins", "install", &pinned]).well();
    run(&one, &["plugins", "activate", "raw", &digest(&bytes)]).well();
    let lock = one.path().join("packhouse-plugins.lock");
    run(&one, &["plugins", "lock", "--out", path(&lock)]).well();
    let text = std::fs::read_to_string(&lock).unwrap();
    assert!(text.contains(&pinned) && text.contains(&digest(&bytes)), "{text}");
    assert_eq!(run(&one, &["plugins", "lock"]).well().text.trim_end(), text.trim_end());
    drop(first);

    let second = bare(&two, &[]);
    let said = run(&two, &["plugins", "install", "--locked", path(&lock)]).well().text;
    assert!(said.contains(&digest(&bytes)), "{said}");
    let api = Api::sign_in(&second);
    eventually("the server follows", || {
        api.call("GET", "/v1/formats").expect(200).text().contains(&digest(&bytes)).then_some(())
    });
    assert_eq!(run(&two, &["plugins", "lock"]).well().text.trim_end(), text.trim_end());
    run(&two, &["plugins", "install", "--locked", path(&lock)]).well();

    // What is not as it says changes nothing.
    let refused = |text: &str, words: &str| {
        let changed = two.path().join("changed.lock");
        std::fs::write(&changed, text).unwrap();
        run(&two, &["plugins", "install", "--locked", path(&changed)]).refused(words);
    };
    refused("version = 1\n", "runs the format raw, which");
    refused(&text.replace("version = 1\n", "version = 9\n"), "of version 9");
    refused(&text.replace(&digest(&bytes), &digest(b"other")), "is now the component");
    refused(&text.replace(&digest(&bytes), &digest(b"other")).replace(&pinned, "raw.wasm"), "in no registry");
    refused(
        &text.replace(&digest(&bytes), &digest(b"other")).replace(&pinned, &home.at("raw:1")),
        "not pinned by a digest",
    );
    refused("hello", "no lock file");
}

#[test]
fn what_was_compiled_ahead_is_not_compiled_by_a_start() {
    let folder = TempDir::new().unwrap();
    let (plugins, data) = (folder.path().join("plugins"), folder.path().join("data"));
    // A cache of its own: other tests share theirs.
    for new in [&plugins, &data, &data.join("cache")] {
        std::fs::create_dir_all(new).unwrap();
    }
    std::fs::write(plugins.join("raw.wasm"), guest("raw").1).unwrap();
    let compile = || packhouse(&data, &["plugins", "compile", "--plugins", path(&plugins)], "").well().text;
    let said = compile();
    assert!(said.starts_with("raw\t") && said.contains("\tcompiled\t"), "{said}");
    assert!(compile().contains("\tkept\t"), "the second time nothing is left to do");
    let server = bare(&folder, &[]);
    assert!(!server.log().contains("compiling"), "{}", server.log());
    let more = upload(&Api::sign_in(&server), guest("raw-more").1, None).expect(201).field("digest");
    assert!(server.log().contains("compiling"), "{}", server.log());
    let both = compile();
    assert!(both.lines().count() == 2 && both.contains(&more), "{both}");
}

#[test]
fn a_server_says_that_it_starts_while_it_compiles() {
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
    assert!(ready.text().contains("being compiled"), "{}", ready.text());
    let names_one = |answer: &Response| answer.text().contains(" is being compiled.");
    let named = eventually("it names what is compiled", || ask(&api, "/readyz").filter(names_one));
    assert_eq!(named.json()["degraded"][0]["what"], "plugin", "{}", named.text());
    assert_eq!(ask(&api, "/livez").unwrap().status, 200);
    let answer = ask(&packages, "/v2/").unwrap();
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")), "{}", answer.text());
    eventually("it is ready", || ask(&api, "/readyz").filter(|answer| answer.status == 200));
    assert_eq!(ask(&packages, "/repositories/libs/a").unwrap().status, 401);
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("compiling npm") && log.contains("compiled maven"), "{log}");
}
