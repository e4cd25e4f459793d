//! Tests with the go command and a repository of modules: go lists, fetches, verifies and builds
//! with modules that curl published. It also uses TLS with a credential, a proxy and a group.

use crate::wheel;

use packhouse_tests::authority::Authority;
use packhouse_tests::clients::{ProgramOutput, has, run};
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Server, skip};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// The go command in a home of its own.
struct Go {
    home: TempDir,
    program: PathBuf,
    environment: Vec<(String, String)>,
}

impl Go {
    /// A go command that uses only this module proxy; `None`, with a printed reason, if go is not
    /// installed.
    fn new(proxy: &str) -> Option<Self> {
        let own = PathBuf::from("/usr/local/go/bin/go");
        let program = if has("go") { PathBuf::from("go") } else { own };
        if program.is_absolute() && !program.is_file() {
            skip("go", "it is neither on the path nor in /usr/local/go");
            return None;
        }
        let home = TempDir::new().unwrap();
        let environment =
            vec![("GOPROXY".to_owned(), proxy.to_owned()), ("GONOSUMDB".to_owned(), "*".to_owned())];
        Some(Self { home, program, environment })
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.home.path().join(path)).unwrap()
    }

    /// A command without the caller's environment, except the path.
    fn command(&self, folder: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path());
        command.env("GOPATH", self.home.path().join("go")).env("GOCACHE", self.home.path().join("cache"));
        command.env("GOTOOLCHAIN", "local").env("GOFLAGS", "-modcacherw").env("CGO_ENABLED", "0");
        command.envs(self.environment.iter().cloned()).current_dir(self.home.path().join(folder));
        command
    }

    #[track_caller]
    fn run(&self, folder: &str, arguments: &[&str]) -> ProgramOutput {
        run(self.command(folder).args(arguments))
    }

    /// A project that does not use the standard library, which go would have to build first.
    fn project(&self, imported: &str) {
        self.write("project/go.mod", "module example.org/project\n\ngo 1.18\n");
        self.write(
            "project/a.go",
            &format!("package project\n\nimport a \"{imported}\"\n\nconst Answer = a.Answer\n"),
        );
    }

    fn forget(&self) {
        fs::remove_dir_all(self.home.path().join("go/pkg/mod")).unwrap();
    }
}

/// The zip of a module with a package and these files.
fn zipped(path: &str, version: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let all = [&[("a.go", "package a\n\nconst Answer = 42\n")], files].concat();
    let named: Vec<(String, Vec<u8>)> = all
        .iter()
        .map(|(name, text)| (format!("{path}@{version}/{name}"), text.as_bytes().to_vec()))
        .collect();
    wheel::zip(&wheel::borrowed(&named))
}

fn publish(repository: &FormatRepository, path: &str, version: &str) {
    let (go_mod, readme) = (format!("module {path}\n\ngo 1.18\n"), format!("# {path}\n"));
    let zip = zipped(path, version, &[("go.mod", &go_mod), ("README.md", &readme)]);
    repository.put(&format!("{path}/@v/{version}.zip"), zip).expect(201);
}

fn near() -> Server {
    Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start()
}

#[test]
fn go_lists_fetches_and_builds_with_published_modules() {
    let server = Server::start();
    let own = FormatRepository::hosted(&server, "go", "own", &json!({"public": true}));
    let Some(go) = Go::new(&own.url) else { return };
    for (path, version) in [
        ("example.com/hello", "v1.9.0"),
        ("example.com/hello", "v1.10.0"),
        ("example.com/hello", "v1.11.0-rc.1"),
        ("example.com/hello/v2", "v2.0.0"),
    ] {
        publish(&own, path, version);
    }
    go.project("example.com/hello");
    let listed = go.run("project", &["list", "-m", "-versions", "example.com/hello"]).success();
    assert!(listed.text.contains("example.com/hello v1.9.0 v1.10.0 v1.11.0-rc.1"), "{}", listed.text);
    go.run("project", &["get", "example.com/hello"]).success();
    assert!(go.read("project/go.mod").contains("example.com/hello v1.10.0"), "{}", go.read("project/go.mod"));
    go.run("project", &["build", "./..."]).success();
    go.run("project", &["get", "example.com/hello@v1.9.0", "example.com/hello/v2@latest"]).success();
    let sums = go.read("project/go.sum");
    assert!(
        sums.contains("example.com/hello v1.9.0 h1:") && sums.contains("example.com/hello/v2 v2.0.0 h1:"),
        "{sums}"
    );
    go.forget();
    go.run("project", &["mod", "download"]).success();
    go.run("project", &["mod", "verify"]).success();
    go.run("project", &["get", "example.com/none"])
        .refused("not found: example.com/none is not in this repository");
    go.run("project", &["get", "example.com/hello@v1.12.0"]).refused("not found: example.com/hello@v1.12.0");
    go.run("project", &["list", "-m", "example.com/hello@main"]).refused("404");
}

#[test]
fn capitals_commits_and_packages_older_than_modules_are_fetched() {
    let server = Server::start();
    let own = FormatRepository::hosted(&server, "go", "own", &json!({"public": true}));
    let Some(go) = Go::new(&own.url) else { return };
    let (commit, old) = ("v0.0.0-20261121050140-abcdefabcdef", "v2.0.0+incompatible");
    let capital = zipped("example.com/Burnt", "v1.0.0", &[("go.mod", "module example.com/Burnt\n")]);
    own.put("example.com/!burnt/@v/v1.0.0.zip", capital).expect(201);
    publish(&own, "example.com/commits", commit);
    own.put(&format!("example.com/old/@v/{old}.zip"), zipped("example.com/old", old, &[])).expect(201);
    go.project("example.com/Burnt");
    let download =
        ["get", "example.com/Burnt", "example.com/commits@latest", &format!("example.com/old@{old}")];
    go.run("project", &download).success();
    let go_mod = go.read("project/go.mod");
    for needed in [
        "example.com/Burnt v1.0.0",
        &format!("example.com/commits {commit}"),
        &format!("example.com/old {old}"),
    ] {
        assert!(go_mod.contains(needed), "{go_mod}");
    }
    go.run("project", &["build", "./..."]).success();
}

#[test]
fn go_sends_a_credential_over_tls_and_reads_why_it_is_refused() {
    let authority = match Authority::new() {
        Ok(authority) => authority,
        Err(reason) => return skip("go over TLS", &reason),
    };
    let [cert, key] = authority.issue("packages", &["DNS:localhost", "IP:127.0.0.1"]);
    let [cert, key] = [cert, key].map(|path| path.to_string_lossy().into_owned());
    let tls =
        Server::with().env("PACKHOUSE_TLS_PACKAGES_CERT", &cert).env("PACKHOUSE_TLS_PACKAGES_KEY", &key);
    let server = tls.start();
    let own = FormatRepository::hosted(&server, "go", "own", &json!({}));
    let url = format!("https://localhost:{}/repositories/own", server.packages().port());
    let Some(go) = Go::new(&url) else { return };
    let go = go.with("SSL_CERT_FILE", &authority.ca().to_string_lossy());
    // The go command finds a credential by host name and port; curl finds it by host name alone.
    let (port, home) = (server.packages().port(), &go);
    let netrc = |secret: &str| {
        let machine = |name: &str| format!("machine {name}\nlogin {OWNER}\npassword {secret}\n");
        home.write(".netrc", &(machine(&format!("localhost:{port}")) + &machine("localhost")));
    };
    let zip = zipped("example.com/hello", "v1.0.0", &[("go.mod", "module example.com/hello\n\ngo 1.18\n")]);
    fs::write(go.home.path().join("module.zip"), zip).unwrap();
    let curl = || {
        let mut command = Command::new("curl");
        command.env("HOME", go.home.path()).current_dir(go.home.path());
        let at = format!("{url}/example.com/hello/@v/v1.0.0.zip");
        command.args([
            "--netrc",
            "--fail-with-body",
            "--silent",
            "--show-error",
            "--upload-file",
            "module.zip",
            "--cacert",
        ]);
        run(command.arg(authority.ca()).arg(at))
    };
    netrc("pkh_wrong");
    curl().refused("401");
    netrc(&own.token_for(&server, &["read"]));
    curl().refused("403");
    netrc(&own.token.secret);
    curl().success();
    curl().refused("is published already and cannot be replaced");

    go.project("example.com/hello");
    netrc("pkh_wrong");
    go.run("project", &["get", "example.com/hello"]).refused("401");
    netrc(&own.token_for(&server, &["write"]));
    go.run("project", &["get", "example.com/hello"]).refused("403");
    netrc(&own.token.secret);
    go.run("project", &["get", "example.com/hello"]).success();
    go.run("project", &["build", "./..."]).success();
}

#[test]
fn a_proxy_and_a_group_serve_another_module_proxy_and_work_without_it() {
    let (far, near) = (Server::start(), near());
    let released = FormatRepository::hosted(&far, "go", "released", &json!({}));
    let own = FormatRepository::hosted(&near, "go", "own", &json!({}));
    let mirror = FormatRepository::proxy_of(&near, "go", "mirror", &released, &json!({}));
    let members = json!({"kind": "group", "members": [own.id, mirror.id], "settings": {"public": true}});
    let all = FormatRepository::create(&near, "go", "all", &members, &[]);
    for repository in [&own, &mirror] {
        let path = format!("/v1/repositories/{}", repository.id);
        packhouse_tests::Api::sign_in(&near).patch(&path, &json!({"settings": {"public": true}})).expect(200);
    }
    publish(&released, "example.com/far", "v1.0.0");
    publish(&own, "example.com/near", "v1.0.0");
    let Some(go) = Go::new(&all.url) else { return };
    go.project("example.com/far");
    go.run("project", &["get", "example.com/far", "example.com/near"]).success();
    go.run("project", &["build", "./..."]).success();
    all.put("example.com/x/@v/v1.0.0.zip", "x").expect(405);
    let listed = mirror.api_get(&near, "packages/example.com%2Ffar/versions").expect(200).json();
    assert!(listed.to_string().contains("v1.0.0"), "{listed}");

    drop(far);
    go.forget();
    go.run("project", &["mod", "download"]).success();
    go.run("project", &["mod", "verify"]).success();
}

#[test]
fn the_page_of_a_version_describes_it() {
    let server = Server::start();
    let own = FormatRepository::hosted(&server, "go", "own", &json!({}));
    publish(&own, "example.com/hello", "v1.0.0");
    let details = own.api_get(&server, "packages/example.com%2Fhello/versions/v1.0.0").expect(200).text();
    assert!(
        details.contains("# example.com/hello") && details.contains("go get example.com/hello@v1.0.0"),
        "{details}"
    );
    let settings = own.api_get(&server, "connection").expect(200).text();
    assert!(settings.contains(&format!("go env -w GOPROXY={}/", own.url)), "{settings}");
    let refused = own.get("example.com/hello/@v/v9.0.0.info").expect(404);
    assert_eq!(refused.text(), "not found: example.com/hello@v9.0.0 is not in this repository\n");
}

#[test]
fn a_module_packed_by_the_documented_commands_is_verified() {
    if !has("zip") || !has("git") {
        return skip("zip", "zip and git are both needed");
    }
    let server = Server::start();
    let own = FormatRepository::hosted(&server, "go", "own", &json!({"public": true}));
    let Some(go) = Go::new(&own.url) else { return };
    go.write("tools/go.mod", "module corp.example/tools\n\ngo 1.18\n");
    go.write("tools/inside/a.go", "package inside\n\nconst Answer = 42\n");
    let page = fs::read_to_string(packhouse_tests::checkout().join("docs/clients/go.md")).unwrap();
    let (_, lines) = page.split_once("```sh\nversion=").expect("the page's lines");
    let (lines, _) = lines.split_once("```").unwrap();
    let lines = format!("version={lines}").replace("https://packages.example/repositories/NAME", &own.url);
    go.write(".netrc", &format!("machine 127.0.0.1\nlogin {OWNER}\npassword {}\n", own.token.secret));
    let script = format!(
        "git init -q && git add . && git -c user.name=a -c user.email=a@example.com commit -qm one\n{lines}"
    );
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", &script]).env("HOME", go.home.path());
    run(command.current_dir(go.home.path().join("tools"))).success();
    go.project("corp.example/tools/inside");
    go.run("project", &["get", "corp.example/tools@v1.2.0"]).success();
    go.run("project", &["build", "./..."]).success();
    go.run("project", &["mod", "verify"]).success();
}
