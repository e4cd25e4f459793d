//! Tests with Python's clients through a proxy of another Packhouse. The clients install the
//! upstream's packages. They do so again after the upstream has ended.

use crate::wheel;

use packhouse_tests::long;
use packhouse_tests::python::{Home, PythonRepository};
use packhouse_tests::server::OWNER;
use packhouse_tests::upstream::Upstream;
use packhouse_tests::{Api, Server, digests, skip};
use serde_json::json;

/// Two servers; the second has a proxy of a public repository of the first.
struct World {
    far: Option<Server>,
    near: Server,
    origin: PythonRepository,
    proxy: PythonRepository,
}

impl World {
    /// Creates two versions of `app`, and `lib`, on which `app` depends. The newer version of `app`
    /// requires another Python.
    fn new() -> Self {
        let far = Server::start();
        let near = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
        let origin = PythonRepository::create_as(
            &far,
            "origin",
            &json!({"kind": "hosted", "settings": {"public": true}}),
        );
        for (project, version, more) in [
            ("app", "1.0", "Requires-Dist: lib>=1\n"),
            ("app", "2.0", "Requires-Dist: lib>=1\nRequires-Python: >=99\n"),
            ("lib", "1.0", ""),
            ("lib", "1.1", ""),
        ] {
            let (name, bytes) = (wheel::wheel_name(project, version), wheel::wheel(project, version, more));
            origin.publish(project, version, &name, &bytes).expect(200);
        }
        let proxy = PythonRepository::proxy(&near, "proxy", &origin.url, &json!({}));
        Self { far: Some(far), near, origin, proxy }
    }

    /// Ends the upstream server; a scripted upstream at its address records later requests.
    fn switch_off(&mut self) -> Upstream {
        let address = self.far.take().unwrap().packages();
        Upstream::start_at(address)
    }

    /// The ends of the URLs of the proxy's cached resources.
    fn cached_paths(&self) -> Vec<String> {
        let path = format!("/v1/repositories/{}/cache", self.proxy.id);
        let view = Api::sign_in(&self.near).call("GET", &path).expect(200).json();
        let paths = view["items"].as_array().unwrap().iter().map(|item| item["path"].as_str().unwrap());
        paths.map(|path| path.rsplit('/').find(|part| !part.is_empty()).unwrap().to_owned()).collect()
    }
}

/// A home with this client; `None`, with a printed reason, if it is not installed.
fn home(client: &str) -> Option<Home> {
    Home::with(client).map_err(|reason| skip(client, &reason)).ok()
}

fn pip(home: &Home, index: &str, more: &[&str]) -> String {
    let arguments = [&["install", "--no-cache-dir", "--index-url", index], more].concat();
    home.run("", "pip", &arguments, &[]).success().text
}

fn installed(home: &Home, module: &str) -> String {
    std::fs::read_to_string(home.folder().join("site").join(module).join("__init__.py")).unwrap()
}

const APP: &str = "app-1.0-py3-none-any.whl";
const LIB: &str = "lib-1.1-py3-none-any.whl";

#[test]
fn pip_installs_by_metadata_and_hashes_and_again_without_the_upstream() {
    let Some(first) = home("pip") else { return };
    let mut world = World::new();
    let index = world.proxy.index_of(&world.proxy.token.secret);
    let planned = pip(&first, &index, &["--dry-run", "--target", "site", "app"]);
    assert!(planned.contains("Would install app-1.0 lib-1.1"), "{planned}");
    let mut cached = world.cached_paths();
    cached.sort();
    let metadata = [format!("{APP}.metadata"), format!("{LIB}.metadata")];
    assert_eq!(cached, ["app", &metadata[0], "lib", &metadata[1]], "no wheel was fetched to plan");

    pip(&first, &index, &["--target", "site", "app"]);
    assert_eq!((installed(&first, "app"), installed(&first, "lib")), version("1.0", "1.1"));
    let hash = |name: &str, version: &str, more: &str| {
        format!("{name}=={version} --hash=sha256:{}\n", digests::sha256(&wheel::wheel(name, version, more)))
    };
    let locked = hash("app", "1.0", "Requires-Dist: lib>=1\n") + &hash("lib", "1.1", "");

    let gone = world.switch_off();
    let second = home("pip").unwrap();
    second.write("locked.txt", locked);
    pip(&second, &index, &["--target", "site", "--require-hashes", "-r", "locked.txt"]);
    assert_eq!((installed(&second, "app"), installed(&second, "lib")), version("1.0", "1.1"));
    assert!(gone.requests().is_empty(), "{:?}", gone.requests());
}

fn version(app: &str, lib: &str) -> (String, String) {
    (format!("VERSION = \"{app}\"\n"), format!("VERSION = \"{lib}\"\n"))
}

#[test]
fn pip_installs_hosted_names_first_through_a_group() {
    let Some(first) = home("pip") else { return };
    let mut world = World::new();
    let name = |version: &str| wheel::wheel_name("own", version);
    let own = |version: &str| wheel::wheel("own", version, "Requires-Dist: lib==1.1\n");
    world.origin.publish("own", "9.0", &name("9.0"), &own("9.0")).expect(200);
    let hosted = PythonRepository::create(&world.near, "hosted");
    hosted.publish("own", "1.0", &name("1.0"), &own("1.0")).expect(200);
    let group = PythonRepository::group(&world.near, "group", &[&world.proxy, &hosted], &json!({}));
    let index = group.index_of(&group.token.secret);
    pip(&first, &index, &["--target", "site", "own"]);
    assert_eq!((installed(&first, "own"), installed(&first, "lib")), version("1.0", "1.1"));
    let gone = world.switch_off();
    let second = home("pip").unwrap();
    pip(&second, &index, &["--target", "site", "own"]);
    assert_eq!((installed(&second, "own"), installed(&second, "lib")), version("1.0", "1.1"));
    assert!(gone.requests().is_empty(), "{:?}", gone.requests());
}

const PROJECT: &str =
    "[project]\nname = \"user\"\nversion = \"0\"\nrequires-python = \">=3.9\"\ndependencies = [\"app<2\"]\n";

#[test]
fn uv_locks_and_syncs_and_again_without_the_upstream() {
    let Some(first) = home("uv") else { return };
    let mut world = World::new();
    let secret = world.proxy.token.secret.clone();
    let index = format!(
        "[[tool.uv.index]]\nname = \"packhouse\"\nurl = \"{}\"\ndefault = true\n",
        world.proxy.index()
    );
    let credential =
        [("UV_INDEX_PACKHOUSE_USERNAME", OWNER), ("UV_INDEX_PACKHOUSE_PASSWORD", secret.as_str())];
    first.write("user/pyproject.toml", format!("{PROJECT}\n{index}"));
    first.run("user", "uv", &["lock"], &credential).success();
    let cached = world.cached_paths();
    assert!(cached.contains(&format!("{LIB}.metadata")), "{cached:?}");
    assert!(!cached.contains(&LIB.to_owned()), "no wheel was fetched to lock: {cached:?}");
    let lock = std::fs::read_to_string(first.folder().join("user/uv.lock")).unwrap();
    assert!(lock.contains(&digests::sha256(&wheel::wheel("lib", "1.1", ""))), "{lock}");
    let address = format!("{}/packages/lib/1.1/{LIB}", world.proxy.url);
    assert!(lock.contains(&address), "it contains the proxy's own URLs: {lock}");
    first.run("user", "uv", &["sync", "--frozen"], &credential).success();

    let gone = world.switch_off();
    let second = home("uv").unwrap();
    second.write("user/pyproject.toml", format!("{PROJECT}\n{index}"));
    second.run("user", "uv", &["lock", "--no-cache"], &credential).success();
    let again = std::fs::read_to_string(second.folder().join("user/uv.lock")).unwrap();
    assert_eq!(again, lock);
    second.run("user", "uv", &["sync", "--frozen", "--no-cache"], &credential).success();
    assert!(second.folder().join("user/.venv").is_dir());
    assert!(gone.requests().is_empty(), "{:?}", gone.requests());
}

#[test]
fn poetry_locks_and_syncs_and_again_without_the_upstream() {
    if !long() {
        return;
    }
    let Some(first) = home("poetry") else { return };
    let mut world = World::new();
    let secret = world.proxy.token.secret.clone();
    let credential = [
        ("POETRY_HTTP_BASIC_PACKHOUSE_USERNAME", OWNER),
        ("POETRY_HTTP_BASIC_PACKHOUSE_PASSWORD", secret.as_str()),
    ];
    let source = format!("[[tool.poetry.source]]\nname = \"packhouse\"\nurl = \"{}\"\n", world.proxy.index());
    let project = format!("{PROJECT}[tool.poetry]\npackage-mode = false\n{source}");
    first.write("user/pyproject.toml", &project);
    first.run("user", "poetry", &["lock", "--no-interaction"], &credential).success();
    first.run("user", "poetry", &["sync", "--no-interaction"], &credential).success();
    let lock = std::fs::read_to_string(first.folder().join("user/poetry.lock")).unwrap();
    assert!(lock.contains(&digests::sha256(&wheel::wheel("lib", "1.1", ""))), "{lock}");

    let gone = world.switch_off();
    let second = home("poetry").unwrap();
    second.write("user/pyproject.toml", &project);
    second.write("user/poetry.lock", &lock);
    second.run("user", "poetry", &["sync", "--no-interaction"], &credential).success();
    assert!(gone.requests().is_empty(), "{:?}", gone.requests());
}

#[test]
fn twine_and_uv_show_that_a_proxy_accepts_no_publish() {
    let (Some(home), Ok(_)) = (home("twine"), Home::with("uv")) else { return };
    let world = World::new();
    let name = wheel::wheel_name("app", "3.0");
    let file = home.write(&name, wheel::wheel("app", "3.0", ""));
    let (url, secret, file) =
        (world.proxy.url.as_str(), world.proxy.token.secret.as_str(), file.to_string_lossy());
    let words = "A proxy repository contains only packages that it fetched; clients cannot write to it.";
    let upload =
        ["upload", "--non-interactive", "--disable-progress-bar", "--repository-url", url, "-u", OWNER];
    let output = home.run("", "twine", &[&upload[..], &["-p", secret, &file]].concat(), &[]).refused("405");
    let flat = output.text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(words), "twine does not show the server's words:\n{}", output.text);
    let publish = ["publish", "--publish-url", url, "-u", OWNER, "-p", secret, &file];
    home.run("", "uv", &publish, &[]).refused("Server says: writes_not_permitted_on_proxy");
    world.proxy.file("app", "3.0", &name).expect(404);
}
