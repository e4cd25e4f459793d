//! The go command with a repository of modules: what curl has put there is listed, fetched, verified and built with; over TLS with a
//! credential, through a proxy and a group as well.

use crate::wheel;

use packhouse_tests::authority::Authority;
use packhouse_tests::clients::{Said, has, run};
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
    /// One that asks this module proxy and no other; none, and said so, where it is not here.
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

    /// With nothing of the caller's environment but the path.
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
    fn run(&self, folder: &str, arguments: &[&str]) -> Said {
        run(self.command(folder).args(arguments))
    }

    /// A project that uses nothing of the standard library, which would have to be built first.
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

/// The zip of a module with these files besides a package.
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
fn go_lists_fetches_and_builds_with_what_was_published() {
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
    let listed = go.run("project", &["list", "-m", "-versions", "example.com/hello"]).well();
    assert!(listed.text.contains("example.com/hello v1.9.0 v1.10.0 v1.11.0-rc.1"), "{}", listed.text);
    go.run("project", &["get", "example.com/hello"]).well();
    assert!(go.read("project/go.mod").contains("example.com/hello v1.10.0"), "{}", go.read("project/go.mod"));
    go.run("project", &["build", "./..."]).well();
    go.run("project", &["get", "example.com/hello@v1.9.0", "example.com/hello/v2@latest"]).well();
    let sums = go.read("project/go.sum");
    assert!(
        sums.contains("example.com/hello v1.9.0 h1:") && sums.contains("example.com/hello/v2 v2.0.0 h1:"),
        "{sums}"
    );
    go.forget();
    go.run("project", &["mod", "download"]).well();
    go.run("project", &["mod", "verify"]).well();
    go.run("project", &["get", "example.com/none"])
        .refused("not found: example.com/none is not in this repository");
    go.run("project", &["get", "example.com/hello@v1.12.0"]).refused("not found: example.com/hello@v1.12.0");
    go.run("project", &["list", "-m", "example.com/hello@main"]).refused("404");
}

#[test]
fn capitals_commits_and_what_came_before_modules_are_fetched() {
    let server = Server::start();
    let own = FormatRepository::hosted(&server, "go", "own", &json!({"public": true}));
    let Some(go) = Go::new(&own.url) else { return };
    let (commit, old) = ("v0.0.0-20261121050140-abcdefabcdef", "v2.0.0+incompatible");
    let capital = zipped("example.com/Burnt", "v1.0.0", &[("go.mod", "module example.com/Burnt\n")]);
    own.put("example.com/!burnt/@v/v1.0.0.zip", capital).expect(201);
    publish(&own, "example.com/commits", commit);
    own.put(&format!("example.com/old/@v/{old}.zip"), zipped("example.com/old", old, &[])).expect(201);
    go.project("example.com/Burnt");
    let wanted =
        ["get", "example.com/Burnt", "example.com/commits@latest", &format!("example.com/old@{old}")];
    go.run("project", &wanted).well();
    let go_mod = go.read("project/go.mod");
    for needed in [
        "example.com/Burnt v1.0.0",
        &format!("example.com/commits {commit}"),
        &format!("example.com/old {old}"),
    ] {
        assert!(go_mod.contains(needed), "{go_mod}");
    }
    go.run("project", &["build", "./..."]).well();
}

#[test]
fn go_shows_a_credential_over_tls_and_is_told_where_it_does_not_count() {
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
    // The go command knows a machine by its name and port, curl by its name.
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
    curl().well();
    curl().refused("is published already and cannot be replaced");

    go.project("example.com/hello");
    netrc("pkh_wrong");
    go.run("project", &["get", "example.com/hello"]).refused("401");
    netrc(&own.token_for(&server, &["write"]));
    go.run("project", &["get", "example.com/hello"]).refused("403");
    netrc(&own.token.secret);
    go.run("project", &["get", "example.com/hello"]).well();
    go.run("project", &["build", "./..."]).well();
}

#[test]
fn a_proxy_and_a_group_serve_another_module_proxy_and_go_on_without_it() {
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
    go.run("project", &["get", "example.com/far", "example.com/near"]).well();
    go.run("project", &["build", "./..."]).well();
    all.put("example.com/x/@v/v1.0.0.zip", "x").expect(405);
    let shown = mirror.told(&near, "packages/example.com%2Ffar/versions").expect(200).json();
    assert!(shown.to_string().contains("v1.0.0"), "{shown}");

    drop(far);
    go.forget();
    go.run("project", &["mod", "download"]).well();
    go.run("project", &["mod", "verify"]).well();
}

#[test]
fn people_see_what_a_version_is() {
    let server = Server::start();
    let own = FormatRepository::hosted(&server, "go", "own", &json!({}));
    publish(&own, "example.com/hello", "v1.0.0");
    let shown = own.told(&server, "packages/example.com%2Fhello/versions/v1.0.0").expect(200).text();
    assert!(
        shown.contains("# example.com/hello") && shown.contains("go get example.com/hello@v1.0.0"),
        "{shown}"
    );
    let said = own.told(&server, "connection").expect(200).text();
    assert!(said.contains(&format!("go env -w GOPROXY={}/", own.url)), "{said}");
    let refused = own.get("example.com/hello/@v/v9.0.0.info").expect(404);
    assert_eq!(refused.text(), "not found: example.com/hello@v9.0.0 is not in this repository\n");
}

#[test]
fn a_module_that_is_packed_as_its_page_says_is_verified() {
    if !has("zip") || !has("git") {
        return skip("zip", "neither it nor git may be missing");
    }
    let server = Server::start();
    let own = FormatRepository::hosted(&server, "go", "own", &json!({"public": true}));
    let Some(go) = Go::new(&own.url) else { return };
    go.write("tools/go.mod", "module corp.example/tools\n\ngo 1.18\n");
    go.write("tools/inside/a.go", "package inside\n\nconst Answer = 42\n");
    let page = fs::read_to_string(packhouse_tests::checkout().join("docs/formats/go.md")).unwrap();
    let (_, lines) = page.split_once("```sh\nversion=").expect("the page's lines");
    let (lines, _) = lines.split_once("```").unwrap();
    let lines = format!("version={lines}").replace("https://packages.example/repositories/NAME", &own.url);
    go.write(".netrc", &format!("machine 127.0.0.1\nlogin {OWNER}\npassword {}\n", own.token.secret));
    let script = format!(
        "git init -q && git add . && git -c user.name=a -c user.email=a@example.com commit -qm one\n{lines}"
    );
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", &script]).env("HOME", go.home.path());
    run(command.current_dir(go.home.path().join("tools"))).well();
    go.project("corp.example/tools/inside");
    go.run("project", &["get", "corp.example/tools@v1.2.0"]).well();
    go.run("project", &["build", "./..."]).well();
    go.run("project", &["mod", "verify"]).well();
}
