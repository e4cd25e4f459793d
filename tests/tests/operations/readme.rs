//! Commands of README.md and of the tutorial `first-server.md`. The tests run them unchanged on a
//! fresh server.

use crate::wheel;

use packhouse_tests::clients::{debian_profile, has, run};
use packhouse_tests::docker::Docker;
use packhouse_tests::npm::{Js, Tool};
use packhouse_tests::python::Home;
use packhouse_tests::server::{OWNER, program};
use packhouse_tests::{Server, checkout, skip};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// The page with the commands for each format.
const TUTORIAL: &str = "docs/tutorials/first-server.md";

/// Returns the code of all fenced blocks of this language, in order.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == format!("```{language}") {
            found.push(lines.by_ref().take_while(|line| *line != "```").collect::<Vec<_>>().join("\n"));
        }
    }
    found
}

/// Writes a script `mvn` that uses Maven plugins from Debian's packages, if they are installed.
/// Returns a `PATH` with the script, so that the page's commands stay unchanged.
fn maven(folder: &Path) -> String {
    let settings = folder.join("global.xml");
    std::fs::write(&settings, format!("<settings>{}</settings>", debian_profile())).unwrap();
    let script = folder.join("bin/mvn");
    std::fs::create_dir_all(folder.join("bin")).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let text = format!("#!/bin/sh\nPATH='{path}' exec mvn -gs '{}' \"$@\"\n", settings.display());
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{path}", folder.join("bin").display())
}

fn page(path: &str) -> String {
    std::fs::read_to_string(checkout().join(path)).unwrap()
}

/// Returns the tutorial up to the end of its part about Maven, and its parts about the other
/// formats.
fn parts() -> [String; 4] {
    let tutorial = page(TUTORIAL);
    let (first, rest) = tutorial.split_once("\n### Python\n").expect("the heading of the tutorial");
    let (python, rest) = rest.split_once("\n### npm\n").expect("the heading of the tutorial");
    let (npm, images) = rest.split_once("\n### Container images\n").expect("the heading of the tutorial");
    [first, python, npm, images].map(str::to_owned)
}

/// Starts a server and returns it with a script: the sign-in of the tutorial, followed by these
/// lines.
fn goes_on(first: &str, lines: &str) -> (Server, String) {
    let (email, password) = ("me@example.com", "a password of yours");
    let server =
        Server::with().env("PACKHOUSE_OWNER_EMAIL", email).env("PACKHOUSE_OWNER_PASSWORD", password).start();
    let sign_in = blocks(first, "sh").into_iter().find(|block| block.contains("call sessions")).unwrap();
    let script = [vec![sign_in], blocks(lines, "sh")].concat().join("\n");
    let script = script
        .replace("127.0.0.1:8080", &server.packages().to_string())
        .replace("127.0.0.1:8081", &server.api().to_string());
    (server, script)
}

#[test]
fn the_lines_for_python_work_too() {
    let home = match Home::with("twine") {
        Ok(home) if has("curl") => home,
        _ => {
            return skip(
                "the tutorial's lines for Python",
                "no twine or no curl; `./bootstrap test` installs them",
            );
        }
    };
    let [first, python, ..] = parts();
    let (_server, script) = goes_on(&first, &python);
    home.write("dist/hello-1.0-py3-none-any.whl", wheel::wheel("hello", "1.0", ""));
    run(home.shell().args(["-euo", "pipefail", "-c", &script])).success();
    assert!(home.folder().join("elsewhere/hello/__init__.py").is_file());
}

#[test]
fn the_lines_for_npm_work_too() {
    let js = match Js::new(Tool::Npm11, "http://nowhere.test", "none") {
        Ok(js) if has("curl") => js,
        _ => {
            return skip(
                "the tutorial's lines for npm",
                "no npm or no curl; `./bootstrap test` installs them",
            );
        }
    };
    let [first, _, npm, _] = parts();
    let (_server, script) = goes_on(&first, &npm);
    js.package("hello", &json!({"name": "hello", "version": "1.0.0"}));
    js.shell("hello", &script).success();
    assert_eq!(js.installed("hello/elsewhere", "hello").as_deref(), Some("1.0.0"));
}

#[test]
fn the_lines_for_container_images_work_too() {
    let docker = match Docker::start() {
        Ok(docker) if has("curl") => docker,
        Ok(_) => return skip("the tutorial's lines for container images", "no curl on the path"),
        Err(reason) => return skip("the tutorial's lines for container images", &reason),
    };
    std::fs::write(docker.home().join("Dockerfile"), "FROM scratch\nCOPY hello /hello\n").unwrap();
    std::fs::write(docker.home().join(".dockerignore"), "*\n!hello\n").unwrap();
    std::fs::write(docker.home().join("hello"), "hello").unwrap();
    docker.run(&["build", "-t", "hello", "."]).success();
    let [first, .., images] = parts();
    let (server, script) = goes_on(&first, &images);
    let said = run(docker.command("bash").args(["-euo", "pipefail", "-c", &script])).success();
    assert!(
        said.text.contains("Login Succeeded") && said.text.contains("Image is up to date"),
        "{}",
        said.text
    );
    drop(server);
}

#[test]
fn the_first_publish_of_the_tutorial_works_line_by_line() {
    for program in ["mvn", "jar", "curl"] {
        if !has(program) {
            return skip("the tutorial's first publish", &format!("no {program} on the path"));
        }
    }
    let mut blocks = blocks(&parts()[0], "sh").into_iter();
    let start = blocks.next().unwrap();
    let (email, password) = ("me@example.com", "a password of yours");
    assert_eq!(
        start,
        format!("PACKHOUSE_OWNER_EMAIL={email} PACKHOUSE_OWNER_PASSWORD='{password}' ./bootstrap run")
    );

    let server =
        Server::with().env("PACKHOUSE_OWNER_EMAIL", email).env("PACKHOUSE_OWNER_PASSWORD", password).start();
    let script = blocks.collect::<Vec<_>>().join("\n");
    let script = script
        .replace("127.0.0.1:8080", &server.packages().to_string())
        .replace("127.0.0.1:8081", &server.api().to_string());
    let home = tempfile::TempDir::new().unwrap();
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", &script]).current_dir(home.path());
    command.env("PATH", maven(home.path())).env("HOME", home.path()).env_remove("MAVEN_OPTS");
    let said = run(&mut command).success();
    assert!(said.text.contains("the same bytes"), "{}", said.text);
}

#[test]
fn the_first_package_of_the_readme_works_line_by_line() {
    let readme = page("README.md");
    assert!(blocks(&readme, "sh")[0].contains("./bootstrap test"));
    let Ok(home) = Home::with("twine") else {
        return skip("README's first package", "no twine; `./bootstrap test` installs it");
    };
    let (_, lines) = readme.split_once("\n## The first package\n").expect("the README's heading");
    let server = Server::start();
    home.write("dist/hello-1.0-py3-none-any.whl", wheel::wheel("hello", "1.0", ""));
    let lines = blocks(lines, "bash").join("\n");
    let lines = lines
        .replace("127.0.0.1:8080", &server.packages().to_string())
        .replace("owner%40localhost", &OWNER.replace('@', "%40"))
        .replace("owner@localhost", OWNER);
    let script = format!("packhouse() {{ '{}' \"$@\"; }}\n{lines}", program().display());
    let mut command = home.shell();
    command.args(["-euo", "pipefail", "-c", &script]);
    command.env("PACKHOUSE_DATA", server.data());
    command.env("PACKHOUSE_PACKAGES_LISTEN", server.packages().to_string());
    command.env("PACKHOUSE_API_LISTEN", server.api().to_string());
    run(&mut command).success();
    assert!(home.folder().join("elsewhere/hello/__init__.py").is_file());
}
