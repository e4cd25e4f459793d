//! Real sources: devpi, verdaccio and the distribution registry, each as `bootstrap` installs it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use packhouse_tests::clients::{has, run};
use packhouse_tests::images::{ImageRepository, layout};
use packhouse_tests::long;
use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::python::{Home, PythonRepository};
use packhouse_tests::server::{OWNER, eventually, free_port};
use packhouse_tests::{Client, Request, Server, checkout, skip};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::world::{moved, moved_with};
use crate::release::Release;
use crate::wheel;

/// A running program that serves packages; dropping this value ends it.
struct Peer {
    child: Child,
    address: String,
    home: TempDir,
}

impl Peer {
    /// Starts the command that `make` returns for a home folder and an address. Waits until the
    /// program answers at the path `ready`.
    fn start(make: impl FnOnce(&Path, &str) -> Command, ready: &str) -> Peer {
        let home = TempDir::new().unwrap();
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = make(home.path(), &address);
        let log = std::fs::File::create(home.path().join("log")).unwrap();
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).env("HOME", home.path());
        let mut peer = Peer { child: command.spawn().unwrap(), address, home };
        eventually("it serves", || {
            assert!(peer.child.try_wait().unwrap().is_none(), "it ended: {}", peer.log());
            let answer = peer.client().try_send(Request::new("GET", ready));
            answer.is_ok_and(|answer| answer.status < 500).then_some(())
        });
        peer
    }

    fn client(&self) -> Client {
        Client::new(self.address.parse().unwrap())
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A tool that `bootstrap` installs; `None`, with a printed reason, if it is missing.
fn tool(name: &str, path: &str) -> Option<PathBuf> {
    let path = checkout().join(".tools").join(path);
    if path.is_file() {
        return Some(path);
    }
    skip(name, "`./bootstrap test` installs it");
    None
}

#[test]
fn devpi() {
    if !long() {
        return;
    }
    let Some(server) = tool("devpi", "devpi/bin/devpi-server") else { return };
    let bin = server.parent().unwrap().to_owned();
    // An installed script begins with the path that its Python had at installation, which may be
    // wrong now.
    let python = |script: &str| {
        let mut command = Command::new(bin.join("python"));
        command.arg(bin.join(script));
        command
    };
    let peer = Peer::start(
        |home, address| {
            let folder = home.join("devpi");
            run(python("devpi-init").arg("--no-root-pypi").arg("--serverdir").arg(&folder).env("HOME", home))
                .success();
            let (host, port) = address.split_once(':').unwrap();
            let mut command = python("devpi-server");
            command.args(["--host", host, "--port", port, "--serverdir"]).arg(folder);
            command
        },
        "/+api",
    );
    let home = peer.home.path();
    let devpi =
        |words: &[&str]| run(python("devpi").args(words).env("HOME", home).current_dir(home)).success();
    devpi(&["use", &peer.url()]);
    devpi(&["login", "root", "--password", ""]);
    devpi(&["index", "-c", "root/dev", "bases=", "volatile=False"]);
    devpi(&["use", "root/dev"]);
    let mut all = Vec::new();
    for (project, number) in [("old-name", "1.0"), ("old-name", "1.1"), ("other", "2.0")] {
        let name = wheel::wheel_name(project, number);
        let bytes = wheel::wheel(project, number, "");
        std::fs::write(home.join(&name), &bytes).unwrap();
        devpi(&["upload", "--no-vcs", &name]);
        all.push((project, number, name, bytes));
    }
    let ours = Server::start();
    let repository = PythonRepository::create(&ours, "py");
    let index = format!("{}/root/dev", peer.url());
    let words = ["import", "py", "--from", "devpi", &index];
    let done = moved(&ours, &words).success();
    assert_eq!(done.count("moved"), all.len(), "{:#?}", done.lines);
    moved(&ours, &words).adds_nothing();
    // An import of kind `pypi` from the URL of the index also works, and finds all files present.
    moved(&ours, &["import", "py", "--from", "pypi", &format!("{index}/+simple/")]).adds_nothing();
    for (project, number, name, bytes) in &all {
        assert_eq!(repository.file(project, number, name).expect(200).body, *bytes);
    }
    let pip = match Home::with("pip") {
        Ok(pip) => pip,
        Err(reason) => return skip("pip", &reason),
    };
    let mut installed = Vec::new();
    for (site, index) in
        [("old", format!("{index}/+simple/")), ("new", repository.index_of(&repository.token.secret))]
    {
        let words =
            ["install", "--no-cache-dir", "--target", site, "--index-url", &index, "old-name", "other"];
        pip.run("", "pip", &words, &[]).success();
        installed.push(["old_name", "other"].map(|project| {
            std::fs::read_to_string(pip.folder().join(site).join(project).join("__init__.py")).unwrap()
        }));
    }
    assert_eq!(installed[0], installed[1]);
}

#[test]
fn verdaccio() {
    if !long() {
        return;
    }
    let Some(program) = tool("verdaccio", "verdaccio/node_modules/verdaccio/bin/verdaccio") else { return };
    let peer = Peer::start(
        |home, address| {
            let config = home.join("config.yaml");
            let text = format!(
                "storage: {}\nuplinks: {{}}\npackages:\n  '**':\n    access: $all\n    publish: $all\n\
                 auth:\n  htpasswd:\n    file: {}\nlog: {{type: stdout, format: pretty, level: warn}}\n",
                home.join("storage").display(),
                home.join("htpasswd").display()
            );
            std::fs::write(&config, text).unwrap();
            let mut command = Command::new("node");
            command.arg(&program).arg("--config").arg(config).args(["--listen", address]);
            command
        },
        "/-/ping",
    );
    let put = |path: &str, document: &Value| {
        let request = Request::new("PUT", path).header("Content-Type", "application/json");
        peer.client().send(request.body(document.to_string())).expect(201)
    };
    let all =
        [("left", "1.0.0", "latest"), ("left", "2.0.0-rc.1", "next"), ("@acme/right", "1.2.3", "latest")];
    for (name, number, tag) in all {
        let own = json!({"name": name, "version": number, "description": "from verdaccio"});
        let release = Release::new(name, number).package_json(&own.to_string()).tag(tag);
        put(&release.path(), &release.document());
    }
    let mut packument = peer.client().get("/left").expect(200).json();
    packument["versions"]["1.0.0"]["deprecated"] = json!("too old");
    let revision = packument["_rev"].as_str().unwrap_or("1").to_owned();
    put(&format!("/left/-rev/{revision}"), &packument);

    let ours = Server::start();
    let repository = NpmRepository::create(&ours, "js");
    let url = peer.url();
    let words = ["import", "js", "--from", "verdaccio", &url];
    let done = moved(&ours, &words).success();
    assert_eq!(done.count("moved"), all.len(), "{:#?}", done.lines);
    moved(&ours, &words).adds_nothing();
    for (name, path) in [("left", "left"), ("@acme/right", "@acme%2fright")] {
        let [there, here] = [peer.client().get(&format!("/{path}")), repository.get(path)]
            .map(|answer| answer.expect(200).json());
        assert_eq!(there["dist-tags"], here["dist-tags"], "{name}");
        for (number, manifest) in there["versions"].as_object().unwrap() {
            let moved = &here["versions"][number];
            assert_eq!(manifest["dist"]["integrity"], moved["dist"]["integrity"], "{name}@{number}");
            assert_eq!(manifest["deprecated"], moved["deprecated"]);
            assert_eq!(there["time"][number], here["time"][number]);
        }
    }
    let mut locks = Vec::new();
    for (url, token) in
        [(peer.url(), "none".to_owned()), (repository.url(&ours), repository.token.secret.clone())]
    {
        let js = match Js::new(Tool::Npm11, &url, &token) {
            Ok(js) => js,
            Err(reason) => return skip("npm11", &reason),
        };
        if token == "none" {
            js.write(".npmrc", &format!("registry={url}/\n"));
        }
        js.package(
            "app",
            &json!({"name": "app", "version": "1.0.0", "dependencies": {"left": "next", "@acme/right": "1"}}),
        );
        js.install("app").success();
        let lock: Value =
            serde_json::from_slice(&std::fs::read(js.folder().join("app/package-lock.json")).unwrap())
                .unwrap();
        locks.push(
            ["node_modules/left", "node_modules/@acme/right"]
                .map(|path| lock["packages"][path]["integrity"].clone()),
        );
    }
    assert!(locks[0] == locks[1] && locks[0][0].is_string(), "{locks:?}");
}

#[test]
fn distribution() {
    let Some(program) = tool("registry", "go/bin/registry") else { return };
    if !has("skopeo") {
        return skip("skopeo", "no skopeo on the path");
    }
    let peer = Peer::start(
        |home, address| {
            let config = home.join("config.yml");
            let text = format!(
                "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {}\nhttp:\n  addr: {address}\nlog: {{level: error}}\n",
                home.join("storage").display()
            );
            std::fs::write(&config, text).unwrap();
            let mut command = Command::new(program);
            command.arg("serve").arg(config).env("OTEL_TRACES_EXPORTER", "none");
            command
        },
        "/v2/",
    );
    let home = peer.home.path();
    std::fs::write(home.join("policy.json"), r#"{"default":[{"type":"insecureAcceptAnything"}]}"#).unwrap();
    let skopeo = |words: &[&str]| {
        let mut command = Command::new("skopeo");
        command.arg("--policy").arg(home.join("policy.json")).args(words).current_dir(home).env("HOME", home);
        run(&mut command).success()
    };
    let digest = layout(&home.join("app"), &["amd64", "arm64"]);
    layout(&home.join("signature"), &["none"]);
    let copy = |from: &str, to: &str| {
        let to = format!("docker://{}/{to}", peer.address);
        skopeo(&["copy", "--all", "--preserve-digests", "--dest-tls-verify=false", from, &to]);
    };
    copy("oci:app", "team/app:1.0");
    copy("oci:app", "team/app:latest");
    copy("oci:signature", &format!("team/app:{}.sig", digest.replace(':', "-")));
    copy("oci:signature", "single:1");
    let ours = Server::start();
    let repository = ImageRepository::create(&ours, "images", &json!({}));
    let url = peer.url();
    let words = ["import", "images", "--from", "oci", &url];
    let done = moved(&ours, &words).success();
    assert!(done.count("moved") >= 8, "{:#?}", done.lines);
    moved(&ours, &words).adds_nothing();
    let creds = format!("--src-creds={OWNER}:{}", repository.token.secret);
    for (image, tag) in [("team/app", "1.0"), ("team/app", "latest"), ("single", "1")] {
        let there = peer.client().send(
            Request::new("GET", &format!("/v2/{image}/manifests/{tag}"))
                .header("Accept", "*/*, application/vnd.oci.image.index.v1+json"),
        );
        let here = repository.get(&format!("{image}/manifests/{tag}")).expect(200);
        assert_eq!(there.expect(200).body, here.body, "{image}:{tag}");
        let from = format!("docker://{}/repositories/images/{image}:{tag}", ours.packages());
        let to = format!("oci:back-{}-{tag}", image.replace('/', "-"));
        skopeo(&["copy", "--all", "--preserve-digests", "--src-tls-verify=false", &creds, &from, &to]);
    }
    assert!(repository.get(&format!("team/app/manifests/{}.sig", digest.replace(':', "-"))).status == 200);
    // A registry that requires a password.
    let wrong = moved_with(
        &ours,
        &[
            "import",
            "images",
            "--from",
            "oci",
            &ours.base_url(),
            "--source-repository",
            "repositories/images",
            "--package",
            "single",
        ],
        &[("PACKHOUSE_SOURCE_LOGIN", "me:wrong")],
    );
    wrong.output.refused("401");
}
