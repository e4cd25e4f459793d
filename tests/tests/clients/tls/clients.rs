//! Real client programs that trust only the test's authority: each publishes and installs over TLS.

use std::path::Path;
use std::process::Command;

use packhouse_tests::authority::Authority;
use packhouse_tests::clients::{Maven, consumer, goal, has, run};
use packhouse_tests::images::layout;
use packhouse_tests::python::Home;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Server, checkout, skip};
use serde_json::json;

use super::{LOCAL, authority, packages_with};

/// A repository of this format with a token, on a server whose repository host uses TLS.
struct TlsRepository {
    authority: Authority,
    server: Server,
    secret: String,
    name: String,
}

impl TlsRepository {
    fn new(format: &str) -> Option<TlsRepository> {
        let authority = authority(&format!("a client of {format} over TLS"))?;
        let server = packages_with(&authority.issue("packages", &LOCAL)).start();
        let api = Api::sign_in(&server);
        let body = json!({"name": "over-tls", "format": format, "kind": "hosted"});
        let id = api.post("/v1/repositories", &body).expect(201).field("id");
        let secret = api.create_token(&[&id], &["read", "write"], None).secret;
        Some(TlsRepository { authority, server, secret, name: "over-tls".to_owned() })
    }

    fn host(&self) -> String {
        format!("localhost:{}", self.server.packages().port())
    }

    fn url(&self) -> String {
        format!("https://{}/repositories/{}", self.host(), self.name)
    }

    fn ca(&self) -> String {
        self.authority.ca().to_string_lossy().into_owned()
    }
}

/// Script that writes the smallest wheel that pip installs.
const WHEEL: &str = "
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    wheel.writestr('overtls.py', 'word = 42\\n')
    wheel.writestr('overtls-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: overtls\\nVersion: 1.0\\n')
    wheel.writestr('overtls-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    names = wheel.namelist() + ['overtls-1.0.dist-info/RECORD']
    wheel.writestr(names[-1], ''.join(name + ',,\\n' for name in names))
";

#[test]
fn twine_uploads_and_pip_installs() {
    let home = match Home::with("pip") {
        Ok(home) => home,
        Err(reason) => return skip("pip over TLS", &reason),
    };
    let Some(set) = TlsRepository::new("python") else { return };
    let wheel = home.folder().join("overtls-1.0-py3-none-any.whl");
    run(Command::new(home.python()).args(["-c", WHEEL]).arg(&wheel)).success();
    let ca = set.ca();
    let trust =
        [("TWINE_CERT", ca.as_str()), ("TWINE_USERNAME", "__token__"), ("TWINE_PASSWORD", &set.secret)];
    let url = format!("{}/", set.url());
    home.run(
        "",
        "twine",
        &["upload", "--non-interactive", "--repository-url", &url, &wheel.to_string_lossy()],
        &trust,
    )
    .success();
    let index = format!("https://__token__:{}@{}/repositories/{}/simple/", set.secret, set.host(), set.name);
    let install = ["install", "--target", "here", "--no-cache-dir", "--index-url", &index, "overtls"];
    home.run("", "pip", &[&install[..], &["--cert", &ca]].concat(), &[]).success();
    assert!(home.folder().join("here/overtls.py").is_file());
    // The index links to https URLs, so pip fetches nothing if it does not trust the authority.
    assert!(!home.run("", "pip", &["download", "--no-deps", "--index-url", &index, "overtls"], &[]).success);
}

#[test]
fn npm_publishes_and_installs() {
    let program = checkout().join(".tools/npm/node_modules/npm11/bin/npm-cli.js");
    if !program.is_file() || !has("node") {
        return skip("npm over TLS", "`./bootstrap test` installs it");
    }
    let Some(set) = TlsRepository::new("npm") else { return };
    let home = tempfile::TempDir::new().unwrap();
    let (url, ca) = (set.url(), set.ca());
    let bare = url.strip_prefix("https:").unwrap();
    let rc =
        format!("registry={url}/\n{bare}/:_authToken={}\ncafile={ca}\naudit=false\nfund=false\n", set.secret);
    std::fs::write(home.path().join(".npmrc"), rc).unwrap();
    let npm = |folder: &Path, arguments: &[&str]| {
        let mut command = Command::new("node");
        command.arg(&program).args(arguments).current_dir(folder).env("HOME", home.path());
        run(command.env("npm_config_update_notifier", "false"))
    };
    let (package, consumer) = (home.path().join("package"), home.path().join("consumer"));
    for folder in [&package, &consumer] {
        std::fs::create_dir_all(folder).unwrap();
    }
    std::fs::write(package.join("package.json"), r#"{"name": "over-tls", "version": "1.0.0"}"#).unwrap();
    std::fs::write(package.join("index.js"), "module.exports = 42\n").unwrap();
    std::fs::write(consumer.join("package.json"), r#"{"name": "consumer", "version": "1.0.0"}"#).unwrap();
    npm(&package, &["publish"]).success();
    npm(&consumer, &["install", "over-tls"]).success();
    assert!(consumer.join("node_modules/over-tls/index.js").is_file());
    let lock = std::fs::read_to_string(consumer.join("package-lock.json")).unwrap();
    assert!(lock.contains(&format!("{url}/over-tls/-/over-tls-1.0.0.tgz")), "{lock}");
}

#[test]
fn maven_deploys_and_resolves() {
    if !has("keytool") {
        return skip("Maven over TLS", "no keytool on the path");
    }
    let Some(set) = TlsRepository::new("maven") else { return };
    let maven = match Maven::new(&set.secret) {
        Ok(maven) => maven,
        Err(reason) => return skip("Maven over TLS", &reason),
    };
    let store = maven.folder().join("trust.p12");
    let mut import = Command::new("keytool");
    import.args([
        "-importcert",
        "-noprompt",
        "-alias",
        "ca",
        "-storetype",
        "PKCS12",
        "-storepass",
        "changeit",
        "-file",
    ]);
    run(import.arg(set.authority.ca()).arg("-keystore").arg(&store)).success();
    let trust = format!("-Djavax.net.ssl.trustStore={}", store.display());
    let trust = [trust.as_str(), "-Djavax.net.ssl.trustStorePassword=changeit"];
    let jar = maven.write("over-tls.jar", "a jar of the test's");
    let deploy = [
        &goal("deploy", "deploy-file")[..],
        "-DgroupId=org.example",
        "-DartifactId=over-tls",
        "-Dversion=1.0",
        "-Dpackaging=jar",
        "-DrepositoryId=packhouse",
        &format!("-Dfile={}", jar.display()),
        &format!("-Durl={}", set.url()),
    ];
    maven.run("", &[&deploy[..], &trust].concat()).success();
    let other = Maven::new(&set.secret).unwrap();
    other.write("consumer/pom.xml", &consumer(&set.url(), "over-tls", "1.0"));
    let copy = [&goal("dependency", "copy-dependencies")[..], "-DoutputDirectory=out"];
    other.run("consumer", &[&copy[..], &trust].concat()).success();
    let copied = std::fs::read_to_string(other.folder().join("consumer/out/over-tls-1.0.jar")).unwrap();
    assert_eq!(copied, "a jar of the test's");
}

#[test]
fn skopeo_pushes_and_pulls() {
    if !has("skopeo") {
        return skip("skopeo over TLS", "no skopeo on the path");
    }
    let Some(set) = TlsRepository::new("docker") else { return };
    let home = tempfile::TempDir::new().unwrap();
    std::fs::write(home.path().join("policy.json"), r#"{"default": [{"type": "insecureAcceptAnything"}]}"#)
        .unwrap();
    let trusted = home.path().join("trusted");
    std::fs::create_dir(&trusted).unwrap();
    std::fs::copy(set.authority.ca(), trusted.join("ca.crt")).unwrap();
    let digest = layout(&home.path().join("here"), &["amd64"]);
    let there = format!("docker://{}/repositories/{}/team/app:1.0", set.host(), set.name);
    let skopeo = |arguments: &[&str]| {
        let mut command = Command::new("skopeo");
        run(command
            .args(["--policy", "policy.json"])
            .args(arguments)
            .current_dir(home.path())
            .env("HOME", home.path()))
    };
    let credential = format!("{OWNER}:{}", set.secret);
    let (to, from) = (format!("--dest-creds={credential}"), format!("--src-creds={credential}"));
    let copy = ["copy", "--all", "--preserve-digests"];
    skopeo(&[&copy[..], &[&to, "--dest-cert-dir=trusted", "oci:here", &there]].concat()).success();
    skopeo(&[&copy[..], &[&from, "--src-cert-dir=trusted", &there, "oci:back"]].concat()).success();
    let index = std::fs::read_to_string(home.path().join("back/index.json")).unwrap();
    assert!(index.contains(&digest), "{index}");
    assert!(
        !skopeo(&[&copy[..], &[&from, &there, "oci:nowhere"]].concat()).success,
        "an unknown authority is trusted"
    );
}
