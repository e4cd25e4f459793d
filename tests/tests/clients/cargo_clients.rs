//! Tests with cargo: it publishes, builds with published crates, yanks, searches, and prints
//! understandable refusals.

use packhouse_tests::clients::{ProgramOutput, has, run};
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Server, skip};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// cargo in a home of its own.
struct Cargo {
    home: TempDir,
    program: PathBuf,
}

impl Cargo {
    /// A cargo with the repository's Connection Settings and this token; `None`, with a printed
    /// reason, if cargo is not installed.
    fn new(server: &Server, repository: &FormatRepository, secret: &str) -> Option<Self> {
        let cargo = Self::fresh()?;
        cargo.write(".cargo/config.toml", &connection_file(server, repository, "~/.cargo/config.toml"));
        cargo.credential(server, repository, secret);
        Some(cargo)
    }

    fn fresh() -> Option<Self> {
        let program = std::env::var_os("CARGO").map(PathBuf::from);
        if program.is_none() && !has("cargo") {
            skip("cargo", "it is not on the path");
            return None;
        }
        Some(Self { home: TempDir::new().unwrap(), program: program.unwrap_or_else(|| "cargo".into()) })
    }

    fn credential(&self, server: &Server, repository: &FormatRepository, secret: &str) {
        let text = connection_file(server, repository, "~/.cargo/credentials.toml")
            .replace("<REPOSITORY_TOKEN>", secret);
        self.write(".cargo/credentials.toml", &text);
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.home.path().join(path)).unwrap()
    }

    /// Writes a library with these dependencies to a folder of the workspace.
    fn library(&self, folder: &str, name: &str, version: &str, dependencies: &str) {
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"{version}\"\nedition = \"2021\"\ndescription = \"About {name}\"\n\
             license = \"MIT\"\nreadme = \"README.md\"\nkeywords = [\"greeting\"]\n[dependencies]\n{dependencies}\n"
        );
        self.write(&format!("{folder}/Cargo.toml"), &manifest);
        self.write(&format!("{folder}/README.md"), &format!("# {name}\n"));
        self.write(&format!("{folder}/src/lib.rs"), "pub fn answer() -> u32 { 42 }\n");
    }

    /// Runs cargo without the caller's environment; only the programs that cargo needs are on the
    /// path.
    #[track_caller]
    fn run(&self, folder: &str, arguments: &[&str]) -> ProgramOutput {
        let mut command = Command::new(&self.program);
        let own = self.program.parent().map(PathBuf::from).unwrap_or_default();
        let path = std::env::var("PATH").unwrap_or_default();
        let rustup = std::env::var_os("RUSTUP_HOME").map(PathBuf::from);
        let rustup = rustup.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".rustup")));
        command.env_clear().env("HOME", self.home.path()).env("CARGO_HOME", self.home.path().join(".cargo"));
        command
            .env("PATH", format!("{}:{path}", own.display()))
            .env("RUSTUP_HOME", rustup.unwrap_or_default());
        run(command.current_dir(self.home.path().join(folder)).args(arguments))
    }

    #[track_caller]
    fn publish(&self, folder: &str, registry: &str) -> ProgramOutput {
        self.run(folder, &["publish", "--registry", registry, "--allow-dirty", "--no-verify"])
    }
}

/// The text for this file from a repository's Connection Settings.
fn connection_file(server: &Server, repository: &FormatRepository, file: &str) -> String {
    let settings = repository.api_get(server, "connection").expect(200).json();
    let selected = |one: &&Value| one["client"] == "cargo" && one["purpose"] == "read" && one["file"] == file;
    let found = settings["clients"]
        .as_array()
        .unwrap()
        .iter()
        .find(selected)
        .unwrap_or_else(|| panic!("{file}: {settings}"));
    found["text"].as_str().unwrap().to_owned()
}

fn near() -> Server {
    Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start()
}

#[test]
fn cargo_publishes_builds_yanks_and_searches() {
    let server = Server::start();
    let own = FormatRepository::hosted(&server, "cargo", "own", &json!({}));
    let Some(cargo) = Cargo::new(&server, &own, &own.token.secret) else { return };
    cargo.library("one", "hello_world", "1.0.0", "");
    cargo.run("one", &["publish", "--registry", "own", "--allow-dirty"]).success();
    cargo.publish("one", "own").refused("already");

    cargo.library("two", "second", "0.1.0", "hello_world = { version = \"1\", registry = \"own\" }");
    cargo.publish("two", "own").success();
    cargo.library("project", "project", "0.0.0", "");
    cargo.run("project", &["add", "--registry", "own", "second@0.1.0"]).success();
    cargo.write("project/src/lib.rs", "pub fn answer() -> u32 { second::answer() }\n");
    cargo.run("project", &["check"]).success();
    let lock = cargo.read("project/Cargo.lock");
    assert!(lock.contains("hello_world") && lock.contains("sparse+http://"), "{lock}");
    fs::remove_dir_all(cargo.home.path().join(".cargo/registry")).unwrap();
    cargo.run("project", &["check", "--locked"]).success();

    let found = cargo.run("project", &["search", "--registry", "own", "hello"]).success();
    assert!(
        found.text.contains("hello_world = \"1.0.0\"") && found.text.contains("About hello_world"),
        "{}",
        found.text
    );
    cargo.run("project", &["info", "--registry", "own", "hello_world"]).success();
    let owners = cargo.run("project", &["owner", "--registry", "own", "--list", "hello_world"]);
    owners.success();
    cargo
        .run("project", &["owner", "--registry", "own", "--add", "bob", "hello_world"])
        .refused("members and their permissions");

    cargo.run("one", &["yank", "--registry", "own", "hello_world@1.0.0"]).success();
    cargo.run("project", &["check", "--locked"]).success();
    fs::remove_file(cargo.home.path().join("project/Cargo.lock")).unwrap();
    cargo.run("project", &["check"]).refused("yanked");
    cargo.run("one", &["yank", "--undo", "--registry", "own", "hello_world@1.0.0"]).success();
    cargo.run("project", &["check"]).success();
}

#[test]
fn a_refused_cargo_user_reads_the_reason() {
    let server = Server::start();
    let own = FormatRepository::hosted(&server, "cargo", "own", &json!({}));
    let Some(cargo) = Cargo::new(&server, &own, "pkh_wrong") else { return };
    cargo.library("one", "hello", "1.0.0", "");
    cargo.publish("one", "own").refused("401");
    cargo.write(".cargo/credentials.toml", "");
    cargo.publish("one", "own").refused("no token found for `own`");
    cargo.credential(&server, &own, &own.token_for(&server, &["read"]));
    cargo.publish("one", "own").refused("403 Forbidden");
    // A write-only token allows a publish and nothing else.
    cargo.credential(&server, &own, &own.token_for(&server, &["write"]));
    cargo.publish("one", "own").success();
    cargo.library("project", "project", "0.0.0", "hello = { version = \"1\", registry = \"own\" }");
    cargo.run("project", &["fetch"]).refused("403");
    cargo.run("one", &["search", "--registry", "own", "hello"]).refused("403");
    cargo.credential(&server, &own, &own.token.secret);
    cargo.run("project", &["fetch"]).success();
}

#[test]
fn cargo_logs_in_with_a_token() {
    let server = Server::start();
    let own = FormatRepository::hosted(&server, "cargo", "own", &json!({}));
    let Some(cargo) = Cargo::fresh() else { return };
    cargo.write(".cargo/config.toml", &connection_file(&server, &own, "~/.cargo/config.toml"));
    cargo.library("one", "hello", "1.0.0", "");
    let mut command = Command::new("bash");
    let rustup = std::env::var("RUSTUP_HOME")
        .unwrap_or_else(|_| format!("{}/.rustup", std::env::var("HOME").unwrap()));
    command
        .env("HOME", cargo.home.path())
        .env("CARGO_HOME", cargo.home.path().join(".cargo"))
        .env("RUSTUP_HOME", rustup);
    let script = format!("echo '{}' | '{}' login --registry own", own.token.secret, cargo.program.display());
    run(command.current_dir(cargo.home.path()).args(["-c", &script])).success();
    cargo.publish("one", "own").success();
}

#[test]
fn a_public_registry_needs_no_token() {
    let server = Server::start();
    let open = FormatRepository::hosted(&server, "cargo", "open", &json!({"public": true}));
    let Some(cargo) = Cargo::new(&server, &open, &open.token.secret) else { return };
    cargo.library("one", "hello", "1.0.0", "");
    cargo.publish("one", "open").success();
    cargo.write(".cargo/credentials.toml", "");
    cargo.library("project", "project", "0.0.0", "hello = { version = \"1\", registry = \"open\" }");
    cargo.run("project", &["fetch"]).success();
}

#[test]
fn a_proxy_and_a_group_serve_another_registry_and_work_without_it() {
    let (far, near) = (Server::start(), near());
    let released = FormatRepository::hosted(&far, "cargo", "released", &json!({}));
    let own = FormatRepository::hosted(&near, "cargo", "own", &json!({}));
    let mirror = FormatRepository::proxy_of(&near, "cargo", "mirror", &released, &json!({}));
    let all = FormatRepository::group(&near, "cargo", "all", &[&own, &mirror]);
    let Some(there) = Cargo::new(&far, &released, &released.token.secret) else { return };
    there.library("far", "far_away", "1.0.0", "");
    there.publish("far", "released").success();
    let here = Cargo::new(&near, &own, &own.token.secret).unwrap();
    here.library("near", "nearby", "1.0.0", "");
    here.publish("near", "own").success();

    let cargo = Cargo::new(&near, &all, &all.token.secret).unwrap();
    let dependencies = "far_away = { version = \"1\", registry = \"all\" }\nnearby = { version = \"1\", registry = \"all\" }";
    cargo.library("project", "project", "0.0.0", dependencies);
    cargo.run("project", &["check"]).success();
    let found = cargo.run("project", &["search", "--registry", "all", "a"]).success();
    assert!(found.text.contains("far_away") && found.text.contains("nearby"), "{}", found.text);
    cargo.library("one", "one", "1.0.0", "");
    cargo.publish("one", "all").refused("no storage of its own");

    drop(far);
    fs::remove_dir_all(cargo.home.path().join(".cargo/registry")).unwrap();
    cargo.run("project", &["check", "--locked"]).success();
    let listing = mirror.api_get(&near, "packages/far-away/versions").expect(200).json();
    assert!(listing.to_string().contains("1.0.0"), "{listing}");
}

#[test]
fn the_page_of_a_version_describes_it() {
    let server = Server::start();
    let own = FormatRepository::hosted(&server, "cargo", "own", &json!({}));
    let Some(cargo) = Cargo::new(&server, &own, &own.token.secret) else { return };
    cargo.library("one", "hello_world", "1.0.0", "");
    cargo.publish("one", "own").success();
    let listing = own.api_get(&server, "packages/hello-world/versions/1.0.0").expect(200).text();
    assert!(listing.contains("# hello_world") && listing.contains("About hello_world"), "{listing}");
    assert!(listing.contains("cargo add --registry own hello_world@1.0.0"), "{listing}");
    let config = own.client.get(&own.path("config.json")).expect(200).json();
    assert_eq!(config["dl"], format!("{}/api/v1/crates", own.url));
    assert_eq!(server.anonymous().basic(OWNER, "pkh_wrong").get(&own.path("config.json")).status, 401);
}
