//! The text of a denial as npm, twine, Maven and skopeo print it.

use std::process::Command;

use packhouse_tests::clients::{Maven, build_section, distribution, has, pom, run};
use packhouse_tests::images::{ImageRepository, layout};
use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::python::{Home, PythonRepository};
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, MavenRepository, Server, skip};
use serde_json::json;

use super::{enforced, wheel};

pub(crate) fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn each_client_prints_the_reason_of_a_denial() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    enforced(&api, "names", json!({"publish": ["acme*"]}), json!("*"));
    std::thread::scope(|scope| {
        for client in [npm, twine, maven, skopeo] {
            let server = &server;
            scope.spawn(move || client(server));
        }
    });
}

fn npm(server: &Server) {
    for tool in [Tool::Npm11, Tool::Pnpm] {
        let repository = NpmRepository::create(server, tool.name());
        let js = match Js::new(tool, &repository.url(server), &repository.token.secret) {
            Ok(js) => js,
            Err(reason) => return skip(tool.name(), &reason),
        };
        js.package("left", &json!({"name": "left", "version": "1.0.0"}));
        js.publish("left").refused("left may not be published here: its name must match acme* (policy ours)");
    }
}

fn twine(server: &Server) {
    let home = match Home::with("twine") {
        Ok(home) => home,
        Err(reason) => return skip("twine", &reason),
    };
    let repository = PythonRepository::create(server, "py");
    let file = format!("dist/{}", wheel::wheel_name("hello", "1.0"));
    let file = home.write(&file, wheel::wheel("hello", "1.0", "")).to_string_lossy().into_owned();
    let secret = &repository.token.secret;
    let arguments =
        ["upload", "--non-interactive", "--disable-progress-bar", "--repository-url", &repository.url];
    let output = home.run("", "twine", &[&arguments[..], &["-u", OWNER, "-p", secret, &file]].concat(), &[]);
    let output = output.refused("403");
    let words = "hello may not be published here: its name must match acme* (policy ours)";
    assert!(flat(&output.text).contains(words), "twine shows the server's words:\n{}", output.text);
}

fn maven(server: &Server) {
    let repository = MavenRepository::create(server, "jars");
    let maven = match Maven::new(&repository.token.secret) {
        Ok(maven) => maven,
        Err(reason) => return skip("Maven", &reason),
    };
    let inside = format!("{}{}", distribution(&repository.url(server)), build_section());
    maven.write("hello/pom.xml", &pom("hello", "1.0", &inside));
    maven.write("hello/src/main/java/org/example/Word.java", "package org.example; public class Word {}\n");
    let output = maven.run("hello", &["deploy"]).refused("403");
    let words = "org.example:hello may not be published here: its name must match acme* (policy ours)";
    assert!(flat(&output.text).contains(words), "Maven shows the server's words:\n{}", output.text);
}

fn skopeo(server: &Server) {
    if !has("skopeo") {
        return skip("skopeo", "no skopeo on the path");
    }
    let repository = ImageRepository::create(server, "images", &json!({}));
    let home = tempfile::TempDir::new().unwrap();
    let policy = r#"{"default":[{"type":"insecureAcceptAnything"}]}"#;
    std::fs::write(home.path().join("policy.json"), policy).unwrap();
    layout(&home.path().join("here"), &["amd64"]);
    let there = format!("docker://{}/repositories/images/team/app:1.0", server.packages());
    let creds = format!("--dest-creds={OWNER}:{}", repository.token.secret);
    let mut command = Command::new("skopeo");
    command
        .arg("--policy")
        .arg(home.path().join("policy.json"))
        .current_dir(home.path())
        .env("HOME", home.path());
    command.args(["copy", "--dest-tls-verify=false", &creds, "oci:here", &there]);
    run(&mut command).refused("team/app may not be published here");
}
