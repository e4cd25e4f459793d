//! Connection Settings: real clients publish and install with the texts. The tests paste each text
//! and change only the e-mail address and the token.

use crate::wheel;

use packhouse_tests::clients::{Maven, build_section, debian_profile, goal, pom};
use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::python::{Home, PythonRepository};
use packhouse_tests::said::ConnectionTexts;
use packhouse_tests::{Api, MavenRepository, Server, skip};
use serde_json::{Value, json};

#[test]
fn every_client_has_settings_and_a_proxy_only_those_for_reading() {
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
        let entries = hosted["clients"].as_array().unwrap();
        let separator = if clients.contains(',') { ',' } else { ' ' };
        for client in clients.split(separator) {
            assert!(entries.iter().any(|one| one["client"] == client), "{client} of {format}");
        }
        for one in entries {
            let text = one["text"].as_str().unwrap();
            assert!(!text.contains("{host}") && !text.contains("{http"), "{text}");
        }
        assert!(entries.iter().any(|one| one["text"].as_str().unwrap().contains("<REPOSITORY_TOKEN>")));
        let proxy = make(
            &format!("{format}-other"),
            json!({"kind": "proxy", "upstream": {"url": "https://upstream.example/"}}),
        );
        assert!(proxy["clients"].as_array().unwrap().iter().all(|one| one["purpose"] == "read"));
    }
}

#[test]
fn pip_twine_and_uv_work_with_the_pasted_settings() {
    let home = match Home::with("twine") {
        Ok(home) => home,
        Err(reason) => return skip("twine", &reason),
    };
    let server = Server::start();
    let repository = PythonRepository::create(&server, "py");
    let settings = ConnectionTexts::of(&server, &repository.id, &repository.token.secret);
    home.write(".pypirc", settings.text("twine", "publish", Some(".pypirc")));
    home.write("dist/hello-1.0-py3-none-any.whl", wheel::wheel("hello", "1.0", ""));
    let twine = settings.text("twine", "publish", None);
    home.run("", "twine", &twine.split_whitespace().skip(1).map(glob).collect::<Vec<_>>(), &[]).success();
    let config = home.write("pip.conf", settings.text("pip", "read", Some("pip.conf")));
    home.write(".netrc", settings.text("pip", "read", Some(".netrc")));
    let install = ["install", "--no-cache-dir", "--target", "site", "hello"];
    home.run("", "pip", &install, &[("PIP_CONFIG_FILE", config.to_str().unwrap())]).success();
    assert!(home.folder().join("site/hello/__init__.py").is_file());
    if Home::with("uv").is_err() {
        return skip("uv", "it is not here");
    }
    home.write("dist/hello-1.0-py3-none-any.whl", "");
    std::fs::remove_file(home.folder().join("dist/hello-1.0-py3-none-any.whl")).unwrap();
    home.write("dist/hello-2.0-py3-none-any.whl", wheel::wheel("hello", "2.0", ""));
    let uv = settings.text("uv", "publish", None);
    home.run("", "uv", &uv.split_whitespace().skip(1).collect::<Vec<_>>(), &[]).success();
    home.write("uv.toml", settings.text("uv", "read", Some("uv.toml")));
    home.run("", "uv", &["pip", "install", "--no-cache", "--target", "other", "hello==2.0"], &[]).success();
    assert!(home.folder().join("other/hello/__init__.py").is_file());
}

/// Expands the pattern in a command to the only file that exists, as a shell does.
fn glob(word: &str) -> &str {
    if word == "dist/*" { "dist/hello-1.0-py3-none-any.whl" } else { word }
}

#[test]
fn npm_works_with_the_pasted_settings() {
    let server = Server::start();
    let repository = NpmRepository::create(&server, "js");
    let js = match Js::new(Tool::Npm11, &repository.url(&server), "none") {
        Ok(js) => js,
        Err(reason) => return skip("npm", &reason),
    };
    let settings = ConnectionTexts::of(&server, &repository.id, &repository.token.secret);
    // Remove the test client's own settings, so that only the pasted ones are used.
    for file in [".npmrc", ".yarnrc.yml"] {
        let _ = std::fs::remove_file(js.folder().join(file));
    }
    js.package("lib", &json!({"name": "@acme/lib", "version": "1.0.0"}));
    js.write("lib/.npmrc", &settings.text("npm", "publish", Some(".npmrc")));
    let publish = settings.text("npm", "publish", None);
    js.run("lib", &publish.split_whitespace().skip(1).collect::<Vec<_>>()).success();
    js.package(
        "project",
        &json!({"name": "project", "version": "0.0.0", "dependencies": {"@acme/lib": "1.0.0"}}),
    );
    js.write("project/.npmrc", &settings.text("npm", "read", Some(".npmrc")));
    js.run("project", &["install"]).success();
    assert_eq!(js.installed("project", "@acme/lib").as_deref(), Some("1.0.0"));
}

#[test]
fn maven_works_with_the_pasted_settings() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "jars");
    let maven = match Maven::new("none") {
        Ok(maven) => maven,
        Err(reason) => return skip("Maven", &reason),
    };
    let settings = ConnectionTexts::of(&server, &repository.id, &repository.token.secret);
    // The location of Maven's own plugins depends on the machine.
    let machine = maven.write("machine.xml", &format!("<settings>{}</settings>", debian_profile()));
    let machine = ["--global-settings", machine.to_str().unwrap()];
    maven.write("settings.xml", &settings.text("Maven", "publish", Some("~/.m2/settings.xml")));
    let inside = format!("{}{}", settings.text("Maven", "publish", Some("pom.xml")), build_section());
    maven.write("hello/pom.xml", &pom("hello", "1.0", &inside));
    let deploy = settings.text("Maven", "publish", None);
    let deploy: Vec<&str> = deploy.split_whitespace().skip(1).collect();
    maven.run("hello", &[&machine[..], &deploy].concat()).success();
    repository.get("org/example/hello/1.0/hello-1.0.pom").expect(200);
    maven.write("settings.xml", &settings.text("Maven", "read", Some("~/.m2/settings.xml")));
    maven.forget();
    let dependency = "<packaging>pom</packaging><dependencies><dependency><groupId>org.example</groupId>\
                      <artifactId>hello</artifactId><version>1.0</version></dependency></dependencies>";
    maven.write("consumer/pom.xml", &pom("consumer", "1.0", dependency));
    let copy = goal("dependency", "copy-dependencies");
    maven.run("consumer", &[&machine[..], &[copy.as_str(), "-DoutputDirectory=out"]].concat()).success();
    assert!(maven.folder().join("consumer/out/hello-1.0.jar").is_file());
}
