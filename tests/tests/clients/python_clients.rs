//! Tests with Python's clients: they publish, print understandable refusals, and install into empty
//! folders.

use crate::wheel;

use packhouse_tests::clients::ProgramOutput;
use packhouse_tests::long;
use packhouse_tests::python::{Home, PythonRepository};
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Server, skip};
use serde_json::json;

/// A server, a repository, and a home for this client; `None`, with a printed reason, if the client
/// is not installed.
fn set(client: &str) -> Option<(Server, PythonRepository, Home)> {
    let home = match Home::with(client) {
        Ok(home) => home,
        Err(reason) => {
            skip(client, &reason);
            return None;
        }
    };
    let server = Server::start();
    let repository = PythonRepository::create(&server, "py");
    Some((server, repository, home))
}

/// Writes a wheel and a source archive of a project's version into `dist`; returns their paths.
fn build(home: &Home, project: &str, version: &str) -> [String; 2] {
    let stem = format!("{}-{version}", project.replace('-', "_"));
    let wheel = home.write(&format!("dist/{stem}-py3-none-any.whl"), wheel::wheel(project, version, ""));
    let source = home.write(&format!("dist/{stem}.tar.gz"), wheel::sdist(project, version));
    [wheel, source].map(|path| path.to_string_lossy().into_owned())
}

fn twine(home: &Home, url: &str, secret: &str, more: &[&str]) -> ProgramOutput {
    let mut arguments =
        vec!["upload", "--non-interactive", "--disable-progress-bar", "--repository-url", url];
    arguments.extend(["-u", OWNER, "-p", secret]);
    arguments.extend(more);
    home.run("", "twine", &arguments, &[])
}

/// Installs into an empty folder.
fn pip(home: &Home, index: &str, more: &[&str]) -> ProgramOutput {
    let _ = std::fs::remove_dir_all(home.folder().join("site"));
    let mut arguments = vec!["install", "--no-cache-dir", "--target", "site", "--index-url", index];
    arguments.extend(more);
    home.run("", "pip", &arguments, &[])
}

fn installed(home: &Home, project: &str) -> Option<String> {
    std::fs::read_to_string(home.folder().join("site").join(project).join("__init__.py")).ok()
}

#[test]
fn twine_uploads_once_and_pip_installs() {
    let Some((server, repository, home)) = set("twine") else { return };
    let [wheel, source] = build(&home, "hello-twine", "1.0");
    let secret = &repository.token.secret;
    // Both spellings of the URL work without a redirect.
    twine(&home, &repository.url, secret, &[&wheel]).success();
    twine(&home, &format!("{}/", repository.url), secret, &[&source]).success();
    assert_eq!(repository.page("hello-twine")["files"].as_array().unwrap().len(), 2);

    let again = twine(&home, &repository.url, secret, &[&wheel]).refused("409");
    let words =
        "File already exists: hello_twine-1.0-py3-none-any.whl cannot be replaced; publish a new version";
    let flat = again.text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains(words), "twine does not show the server's words:\n{}", again.text);
    // twine supports `--skip-existing` for PyPI alone, and fails before it sends a request.
    twine(&home, &repository.url, secret, &["--skip-existing", &wheel]).refused("--skip-existing");

    pip(&home, &repository.index_of(secret), &["hello-twine"]).success();
    assert_eq!(installed(&home, "hello_twine").unwrap(), "VERSION = \"1.0\"\n");
    assert!(!server.log().contains(secret.as_str()), "a token in the log");
}

#[test]
fn a_refused_twine_user_reads_the_reason() {
    let Some((server, repository, home)) = set("twine") else { return };
    let [wheel, _] = build(&home, "refused", "1.0");
    let api = Api::sign_in(&server);
    let reader = api.create_token(&[&repository.id], &["read"], None);
    twine(&home, &repository.url, &reader.secret, &[&wheel]).refused("403");
    twine(&home, &repository.url, "wrong", &[&wheel]).refused("401");
    let revoked = api.create_token(&[&repository.id], &["read", "write"], None);
    api.call("DELETE", &format!("/v1/tokens/{}", revoked.id)).expect(204);
    twine(&home, &repository.url, &revoked.secret, &[&wheel]).refused("401");
    pip(&home, &repository.index_of(&revoked.secret), &["refused"])
        .refused("401 Error, Credentials not correct");
    pip(&home, &repository.index(), &["refused"]).refused("ERROR");
    let challenged = server.anonymous().get(&repository.path("simple/refused/")).expect(401);
    assert!(challenged.header("www-authenticate").unwrap().starts_with("Basic realm="));
    repository.client.get(&repository.path("simple/refused/")).expect(404);

    let broken = home.write("dist/refused-1.0-py3-none-any.whl", wheel::wheel("other", "1.0", ""));
    // The wheel's file name and its metadata name different projects. The publish must fail, and
    // neither project may exist afterwards.
    twine(&home, &repository.url, &repository.token.secret, &[&broken.to_string_lossy()]).refused("");
    repository.client.get(&repository.path("simple/refused/")).expect(404);
    repository.client.get(&repository.path("simple/other/")).expect(404);
}

#[test]
fn pip_takes_what_fits_and_checks_what_it_gets() {
    if !long() {
        return;
    }
    let Some((_server, repository, home)) = set("twine") else { return };
    let secret = &repository.token.secret;
    for (version, more) in [("1.0", ""), ("1.10", ""), ("2.0rc1", ""), ("3.0", "Requires-Python: >=99\n")] {
        let name = wheel::wheel_name("fits", version);
        let path = home.write(&format!("dist/{name}"), wheel::wheel("fits", version, more));
        twine(&home, &repository.url, secret, &[&path.to_string_lossy()]).success();
    }
    let index = repository.index_of(secret);
    pip(&home, &index, &["fits"]).success();
    assert_eq!(
        installed(&home, "fits").unwrap(),
        "VERSION = \"1.10\"\n",
        "neither a release candidate nor a version for Python 99"
    );
    pip(&home, &index, &["--pre", "fits"]).success();
    assert_eq!(installed(&home, "fits").unwrap(), "VERSION = \"2.0rc1\"\n");
    pip(&home, &index, &["Fits==1.0"]).success();

    let page = repository.page("fits");
    let hash = page["files"][1]["hashes"]["sha256"].as_str().unwrap();
    let locked = home.write("requirements.txt", format!("fits==1.10 --hash=sha256:{hash}\n"));
    pip(&home, &index, &["--require-hashes", "-r", &locked.to_string_lossy()]).success();
    let other = home.write("other.txt", format!("fits==1.10 --hash=sha256:{}\n", "0".repeat(64)));
    pip(&home, &index, &["--require-hashes", "-r", &other.to_string_lossy()])
        .refused("DO NOT MATCH THE HASHES");
    pip(&home, &index, &["absent"]).refused("No matching distribution found for absent");
}

#[test]
fn a_yanked_version_is_installed_only_by_number() {
    let Some((server, repository, home)) = set("twine") else { return };
    let secret = &repository.token.secret;
    for version in ["1.0", "1.1"] {
        let [wheel, _] = build(&home, "pulled", version);
        twine(&home, &repository.url, secret, &[&wheel]).success();
    }
    let api = Api::sign_in(&server);
    let version = format!("/v1/repositories/{}/packages/pulled/versions/1.1", repository.id);
    let state = |state: &str, status| {
        let body = json!({"state": state, "reason": "deletes your files"});
        api.send("PUT", &format!("{version}/state"), &body).expect(status)
    };
    state("yanked", 200);
    let index = repository.index_of(secret);
    pip(&home, &index, &["pulled"]).success();
    assert_eq!(installed(&home, "pulled").unwrap(), "VERSION = \"1.0\"\n");
    let pinned = pip(&home, &index, &["pulled==1.1"]).success();
    assert!(pinned.text.contains("deletes your files"), "pip does not show the reason:\n{}", pinned.text);
    state("", 200);
    pip(&home, &index, &["pulled"]).success();
    assert_eq!(installed(&home, "pulled").unwrap(), "VERSION = \"1.1\"\n");

    state("deprecated", 405);
    api.call("DELETE", &version).expect(204);
    api.call("DELETE", &version).expect(404);
    state("yanked", 404);
    pip(&home, &index, &["pulled==1.1"]).refused("No matching distribution found");
    // A file's name cannot be used again after the file is deleted, unless the repository allows
    // it.
    let [wheel, _] = build(&home, "pulled", "1.1");
    twine(&home, &repository.url, secret, &[&wheel]).refused("409");
    let settings = json!({"settings": {"republish_deleted": true}});
    api.patch(&format!("/v1/repositories/{}", repository.id), &settings).expect(200);
    twine(&home, &repository.url, secret, &[&wheel]).success();
}

#[test]
fn uv_publishes_locks_and_syncs() {
    let Some((_server, repository, home)) = set("uv") else { return };
    let [wheel, source] = build(&home, "hello-uv", "1.0");
    let secret = &repository.token.secret;
    let publish = |url: &str, secret: &str, more: &[&str]| {
        let mut arguments = vec!["publish", "--publish-url", url, "-u", OWNER, "-p", secret];
        arguments.extend(more);
        arguments.extend([wheel.as_str(), source.as_str()]);
        home.run("", "uv", &arguments, &[])
    };
    publish(&repository.url, secret, &[]).success();
    publish(&repository.url, secret, &[]).refused("File already exists");
    let check = repository.index_of(secret);
    let again = publish(&repository.url, secret, &["--check-url", &check]).success();
    assert!(again.text.contains("already exists, skipping"), "{}", again.text);
    publish(&repository.index(), secret, &[]).refused("405");
    publish(&repository.url, "wrong", &[]).refused("401");

    let index = format!(
        "[[tool.uv.index]]\nname = \"packhouse\"\nurl = \"{}\"\ndefault = true\n",
        repository.index()
    );
    let project = "[project]\nname = \"app\"\nversion = \"0\"\nrequires-python = \">=3.9\"\ndependencies = [\"hello-uv\"]\n";
    home.write("app/pyproject.toml", format!("{project}\n{index}"));
    let credential =
        [("UV_INDEX_PACKHOUSE_USERNAME", OWNER), ("UV_INDEX_PACKHOUSE_PASSWORD", secret.as_str())];
    home.run("app", "uv", &["lock"], &credential).success();
    let lock = std::fs::read_to_string(home.folder().join("app/uv.lock")).unwrap();
    let hash = repository.page("hello-uv")["files"][0]["hashes"]["sha256"].as_str().unwrap().to_owned();
    assert!(lock.contains(&hash) && !lock.contains(secret.as_str()), "{lock}");
    home.run("app", "uv", &["sync", "--frozen", "--no-cache"], &credential).success();
    assert!(home.folder().join("app/.venv").is_dir());
    home.run("app", "uv", &["lock", "--no-cache", "--upgrade"], &[]).refused("401");

    home.write("app/uv.lock", lock.replace(&hash, &"0".repeat(64)));
    std::fs::remove_dir_all(home.folder().join("app/.venv")).unwrap();
    home.run("app", "uv", &["sync", "--frozen", "--no-cache"], &credential).refused("Hash mismatch");
}

#[test]
fn poetry_publishes_and_installs_from_its_lock_file() {
    if !long() {
        return;
    }
    let Some((_server, repository, home)) = set("poetry") else { return };
    let secret = repository.token.secret.as_str();
    build(&home, "hello-poetry", "1.0");
    home.write(
        "pyproject.toml",
        "[project]\nname = \"hello-poetry\"\nversion = \"1.0\"\nrequires-python = \">=3.9\"\n",
    );
    let credential = [
        ("POETRY_REPOSITORIES_PACKHOUSE_URL", repository.url.as_str()),
        ("POETRY_HTTP_BASIC_PACKHOUSE_USERNAME", OWNER),
        ("POETRY_HTTP_BASIC_PACKHOUSE_PASSWORD", secret),
    ];
    let publish = |more: &[&str]| {
        let arguments = [&["publish", "--no-interaction", "--repository", "packhouse"], more].concat();
        home.run("", "poetry", &arguments, &credential)
    };
    publish(&[]).success();
    publish(&[]).refused("File already exists");
    publish(&["--skip-existing"]).success();

    let source = format!("[[tool.poetry.source]]\nname = \"packhouse\"\nurl = \"{}\"\n", repository.index());
    let project = "[project]\nname = \"app\"\nversion = \"0\"\nrequires-python = \">=3.9\"\ndependencies = [\"hello-poetry\"]\n";
    home.write("app/pyproject.toml", format!("{project}[tool.poetry]\npackage-mode = false\n{source}"));
    home.run("app", "poetry", &["lock", "--no-interaction"], &credential[1..]).success();
    let lock = std::fs::read_to_string(home.folder().join("app/poetry.lock")).unwrap();
    let hash = repository.page("hello-poetry")["files"][0]["hashes"]["sha256"].as_str().unwrap().to_owned();
    assert!(lock.contains(&hash) && !lock.contains(secret), "{lock}");
    home.run("app", "poetry", &["sync", "--no-interaction"], &credential[1..]).success();
}

#[test]
fn hatch_publishes() {
    if !long() {
        return;
    }
    let Some((_server, repository, home)) = set("hatch") else { return };
    let [wheel, source] = build(&home, "hello-hatch", "1.0");
    let publish = |secret: &str| {
        let url = repository.url.as_str();
        let arguments =
            ["publish", "--no-prompt", "--repo", url, "--user", OWNER, "--auth", secret, &wheel, &source];
        home.run("", "hatch", &arguments, &[])
    };
    publish("wrong").refused("401");
    publish(&repository.token.secret).success();
    assert_eq!(repository.page("hello-hatch")["files"].as_array().unwrap().len(), 2);
    publish(&repository.token.secret).refused("already exist");
}

#[test]
fn pdm_publishes_and_installs_from_its_lock_file() {
    if !long() {
        return;
    }
    let Some((_server, repository, home)) = set("pdm") else { return };
    let secret = repository.token.secret.as_str();
    build(&home, "hello-pdm", "1.0");
    home.write("pyproject.toml", project("hello-pdm"));
    publish(&home, "pdm", &repository, secret).success();
    publish(&home, "pdm", &repository, secret).refused("409 Conflict");
    assert_eq!(repository.page("hello-pdm")["files"].as_array().unwrap().len(), 2);

    let url = repository.index().replace("http://", "http://${INDEX_USER}:${INDEX_TOKEN}@");
    let source = format!("[[tool.pdm.source]]\nname = \"pypi\"\nurl = \"{url}\"\nverify_ssl = false\n");
    let app = "[project]\nname = \"app\"\nversion = \"0\"\nrequires-python = \">=3.9\"\ndependencies = [\"hello-pdm\"]\n";
    home.write("app/pyproject.toml", format!("{app}[tool.pdm]\ndistribution = false\n{source}"));
    let credential = [("INDEX_USER", OWNER), ("INDEX_TOKEN", secret), ("PDM_IGNORE_ACTIVE_VENV", "1")];
    home.run("app", "pdm", &["lock"], &credential).success();
    let lock = std::fs::read_to_string(home.folder().join("app/pdm.lock")).unwrap();
    assert!(!lock.contains(secret), "{lock}");
    home.run("app", "pdm", &["sync", "--no-self"], &credential).success();
    let mut other = lock.clone();
    for file in repository.page("hello-pdm")["files"].as_array().unwrap() {
        let hash = file["hashes"]["sha256"].as_str().unwrap();
        assert!(lock.contains(hash), "{lock}");
        other = other.replace(hash, &"0".repeat(64));
    }
    home.write("app/pdm.lock", other);
    std::fs::remove_dir_all(home.folder().join("app/.venv")).unwrap();
    home.run("app", "pdm", &["sync", "--no-self"], &credential).refused("hash");
}

/// A project file, for clients that need one to publish.
fn project(name: &str) -> String {
    format!("[project]\nname = \"{name}\"\nversion = \"1.0\"\nrequires-python = \">=3.9\"\n")
}

/// Publishes all of `dist` by this client.
fn publish(home: &Home, client: &str, repository: &PythonRepository, secret: &str) -> ProgramOutput {
    let url = repository.url.as_str();
    let poetry = [
        ("POETRY_REPOSITORIES_PACKHOUSE_URL", url),
        ("POETRY_HTTP_BASIC_PACKHOUSE_USERNAME", OWNER),
        ("POETRY_HTTP_BASIC_PACKHOUSE_PASSWORD", secret),
    ];
    match client {
        "twine" => {
            let files = std::fs::read_dir(home.folder().join("dist")).unwrap();
            let files: Vec<String> =
                files.map(|file| file.unwrap().path().to_string_lossy().into_owned()).collect();
            twine(home, url, secret, &files.iter().map(String::as_str).collect::<Vec<_>>())
        }
        "uv" => home.run("", "uv", &["publish", "--publish-url", url, "-u", OWNER, "-p", secret], &[]),
        "poetry" => {
            home.run("", "poetry", &["publish", "--no-interaction", "--repository", "packhouse"], &poetry)
        }
        "hatch" => {
            let arguments = ["publish", "--no-prompt", "--repo", url, "--user", OWNER, "--auth", secret];
            home.run("", "hatch", &arguments, &[])
        }
        _ => {
            let arguments = ["publish", "--no-build", "--repository", url, "-u", OWNER, "-P", secret];
            home.run("", client, &arguments, &[])
        }
    }
}

/// Checks each client's own words when the server refuses its token.
#[test]
fn clients_print_an_understandable_refusal_of_a_credential() {
    let server = Server::start();
    let repository = PythonRepository::create(&server, "py");
    let api = Api::sign_in(&server);
    let reader = api.create_token(&[&repository.id], &["read"], None);
    let revoked = api.create_token(&[&repository.id], &["read", "write"], None);
    api.call("DELETE", &format!("/v1/tokens/{}", revoked.id)).expect(204);
    for client in ["twine", "uv", "poetry", "hatch", "pdm"] {
        let home = match Home::with(client) {
            Ok(home) => home,
            Err(reason) => {
                skip(client, &reason);
                continue;
            }
        };
        let name = format!("refused-{client}");
        build(&home, &name, "1.0");
        home.write("pyproject.toml", project(&name));
        for (secret, status, words) in [
            (reader.secret.as_str(), "403", "[write]"),
            (revoked.secret.as_str(), "401", "was revoked"),
            ("pkh_mistyped", "401", "is not accepted"),
        ] {
            let output = publish(&home, client, &repository, secret).refused(status);
            // pdm prints only the answer's status, in its own words.
            let words = match (client, status) {
                ("pdm", "403") => "Forbidden",
                ("pdm", _) => "Unauthorized",
                _ => words,
            };
            assert!(output.text.contains(words), "{client}:\n{}", output.text);
        }
        repository.client.get(&repository.path(&format!("simple/{name}/"))).expect(404);
        publish(&home, client, &repository, &repository.token.secret).success();
    }
}
