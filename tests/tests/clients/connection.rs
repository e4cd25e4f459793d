//! Connection Settings: what they say is pasted, word for word but for e-mail address and token, and real clients publish and install
//! with it.

use crate::wheel;

use packhouse_tests::clients::{Maven, build_section, debian_profile, goal, pom};
use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::python::{Home, PythonRepository};
use packhouse_tests::said::ConnectionSaid as Said;
use packhouse_tests::{Api, MavenRepository, Server, skip};
use serde_json::{Value, json};

#[test]
fn every_client_is_told_and_a_proxy_of_reading_alone() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    for (format, clients) in [
        ("python", "pip uv poetry twine"),
        ("npm", "npm,pnpm,yarn 1,yarn 4,bun"),
        ("maven", "Maven,Gradle (Kotlin),Gradle (Groovy),sbt"),
        ("docker", "docker podman helm containerd Kubernetes"),
        ("cargo", "cargo"),
        ("go", "go curl"),
        ("generic", "curl wget"),
    ] {
        let make = |name: &str, more: Value| {
            let mut body = json!({"name": name, "format": format});
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let id = api.post("/v1/repositories", &body).expect(201).field("id");
            api.call("GET", &format!("/v1/repositories/{id}/connection")).expect(200).json()
        };
        let hosted = make(&format!("{format}-own"), json!({"kind": "hosted"}));
        assert!(hosted["address"].as_str().unwrap().ends_with(&format!("/repositories/{format}-own/")));
        let told = hosted["clients"].as_array().unwrap();
        let separator = if clients.contains(',') { ',' } else { ' ' };
        for client in clients.split(separator) {
            assert!(told.iter().any(|one| one["client"] == client), "{client} of {format}");
        }
        for one in told {
            let text = one["text"].as_str().unwrap();
            assert!(!text.contains("{host}") && !text.contains("{http"), "{text}");
        }
        assert!(told.iter().any(|one| one["text"].as_str().unwrap().contains("<REPOSITORY_TOKEN>")));
        let proxy = make(
            &format!("{format}-other"),
            json!({"kind": "proxy", "upstream": {"url": "https://upstream.example/"}}),
        );
        assert!(proxy["clients"].as_array().unwrap().iter().all(|one| one["purpose"] == "read"));
    }
}

#[test]
fn pip_twine_and_uv_work_with_what_is_pasted() {
    let home = match Home::with("twine") {
        Ok(home) => home,
        Err(reason) => return skip("twine", &reason),
    };
    let server = Server::start();
    let repository = PythonRepository::create(&server, "py");
    let said = Said::of(&server, &repository.id, &repository.token.secret);
    home.write(".pypirc", said.text("twine", "publish", Some(".pypirc")));
    home.write("dist/hello-1.0-py3-none-any.whl", wheel::wheel("hello", "1.0", ""));
    let twine = said.text("twine", "publish", None);
    home.run("", "twine", &twine.split_whitespace().skip(1).map(glob).collect::<Vec<_>>(), &[]).well();
    let config = home.write("pip.conf", said.text("pip", "read", Some("pip.conf")));
    home.write(".netrc", said.text("pip", "read", Some(".netrc")));
    let install = ["install", "--no-cache-dir", "--target", "site", "hello"];
    home.run("", "pip", &install, &[("PIP_CONFIG_FILE", config.to_str().unwrap())]).well();
    assert!(home.folder().join("site/hello/__init__.py").is_file());
    if Home::with("uv").is_err() {
        return skip("uv", "it is not here");
    }
    home.write("dist/hello-1.0-py3-none-any.whl", "");
    std::fs::remove_file(home.folder().join("dist/hello-1.0-py3-none-any.whl")).unwrap();
    home.write("dist/hello-2.0-py3-none-any.whl", wheel::wheel("hello", "2.0", ""));
    let uv = said.text("uv", "publish", None);
    home.run("", "uv", &uv.split_whitespace().skip(1).collect::<Vec<_>>(), &[]).well();
    home.write("uv.toml", said.text("uv", "read", Some("uv.toml")));
    home.run("", "uv", &["pip", "install", "--no-cache", "--target", "other", "hello==2.0"], &[]).well();
    assert!(home.folder().join("other/hello/__init__.py").is_file());
}

/// What a shell makes of the pattern of the one file that is there.
fn glob(word: &str) -> &str {
    if word == "dist/*" { "dist/hello-1.0-py3-none-any.whl" } else { word }
}

#[test]
fn npm_works_with_what_is_pasted() {
    let server = Server::start();
    let repository = NpmRepository::create(&server, "js");
    let js = match Js::new(Tool::Npm11, &repository.url(&server), "none") {
        Ok(js) => js,
        Err(reason) => return skip("npm", &reason),
    };
    let said = Said::of(&server, &repository.id, &repository.token.secret);
    // What the test's own client brings along is not to help.
    for file in [".npmrc", ".yarnrc.yml"] {
        let _ = std::fs::remove_file(js.folder().join(file));
    }
    js.package("lib", &json!({"name": "@acme/lib", "version": "1.0.0"}));
    js.write("lib/.npmrc", &said.text("npm", "publish", Some(".npmrc")));
    let publish = said.text("npm", "publish", None);
    js.run("lib", &publish.split_whitespace().skip(1).collect::<Vec<_>>()).well();
    js.package(
        "project",
        &json!({"name": "project", "version": "0.0.0", "dependencies": {"@acme/lib": "1.0.0"}}),
    );
    js.write("project/.npmrc", &said.text("npm", "read", Some(".npmrc")));
    js.run("project", &["install"]).well();
    assert_eq!(js.installed("project", "@acme/lib").as_deref(), Some("1.0.0"));
}

#[test]
fn maven_works_with_what_is_pasted() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "jars");
    let maven = match Maven::new("none") {
        Ok(maven) => maven,
        Err(reason) => return skip("Maven", &reason),
    };
    let said = Said::of(&server, &repository.id, &repository.token.secret);
    // Where Maven's own plugins come from is the machine's affair.
    let machine = maven.write("machine.xml", &format!("<settings>{}</settings>", debian_profile()));
    let machine = ["--global-settings", machine.to_str().unwrap()];
    maven.write("settings.xml", &said.text("Maven", "publish", Some("~/.m2/settings.xml")));
    let inside = format!("{}{}", said.text("Maven", "publish", Some("pom.xml")), build_section());
    maven.write("hello/pom.xml", &pom("hello", "1.0", &inside));
    let deploy = said.text("Maven", "publish", None);
    let deploy: Vec<&str> = deploy.split_whitespace().skip(1).collect();
    maven.run("hello", &[&machine[..], &deploy].concat()).well();
    repository.get("org/example/hello/1.0/hello-1.0.pom").expect(200);
    maven.write("settings.xml", &said.text("Maven", "read", Some("~/.m2/settings.xml")));
    maven.forget();
    let dependency = "<packaging>pom</packaging><dependencies><dependency><groupId>org.example</groupId>\
                      <artifactId>hello</artifactId><version>1.0</version></dependency></dependencies>";
    maven.write("consumer/pom.xml", &pom("consumer", "1.0", dependency));
    let copy = goal("dependency", "copy-dependencies");
    maven.run("consumer", &[&machine[..], &[copy.as_str(), "-DoutputDirectory=out"]].concat()).well();
    assert!(maven.folder().join("consumer/out/hello-1.0.jar").is_file());
}
