//! Tests with Maven: it publishes, prints understandable refusals, and resolves into an empty local
//! repository.

use packhouse_tests::clients::{Maven, build_section, consumer, distribution, goal, pom};
use packhouse_tests::long;
use packhouse_tests::{Api, MavenRepository, Server, digests, skip};
use serde_json::json;

/// A server, a repository and a Maven that may write there; `None`, with a printed reason, if
/// Maven is not installed.
fn set() -> Option<(Server, MavenRepository, Maven)> {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "maven");
    match Maven::new(&repository.token.secret) {
        Ok(maven) => Some((server, repository, maven)),
        Err(reason) => {
            skip("Maven", &reason);
            None
        }
    }
}

/// A project with one class that contains `word`, which publishes to `url`.
fn project(maven: &Maven, folder: &str, artifact: &str, version: &str, url: &str, word: &str) {
    let inside = format!("{}{}", distribution(url), build_section());
    maven.write(&format!("{folder}/pom.xml"), &pom(artifact, version, &inside));
    class(maven, folder, word);
}

fn class(maven: &Maven, folder: &str, word: &str) {
    let code = format!(
        "package org.example; public class Word {{ public static final String WORD = \"{word}\"; }}\n"
    );
    maven.write(&format!("{folder}/src/main/java/org/example/Word.java"), &code);
}

/// Resolves `version` of an artifact with a Maven whose local repository is empty; returns the
/// file's name and bytes.
fn resolve(repository: &MavenRepository, url: &str, artifact: &str, version: &str) -> (String, Vec<u8>) {
    let maven = Maven::new(&repository.token.secret).unwrap();
    maven.write("consumer/pom.xml", &consumer(url, artifact, version));
    maven.run("consumer", &[&goal("dependency", "copy-dependencies"), "-DoutputDirectory=out"]).success();
    let mut files = std::fs::read_dir(maven.folder().join("consumer/out")).unwrap();
    let file = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none(), "one dependency, one file");
    (file.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&file).unwrap())
}

#[test]
fn a_release_is_deployed_once_and_resolved_elsewhere() {
    let Some((server, repository, maven)) = set() else { return };
    let url = repository.url(&server);
    project(&maven, "hello", "hello", "1.0", &url, "hello");
    maven.run("hello", &["deploy"]).success();

    for end in [".pom", ".jar", "-sources.jar"] {
        let file = format!("org/example/hello/1.0/hello-1.0{end}");
        let bytes = repository.get(&file).expect(200).body;
        for algorithm in ["md5", "sha1", "sha256", "sha512"] {
            let sum = repository.get(&format!("{file}.{algorithm}")).expect(200).text();
            assert_eq!(sum.trim(), digests::by_name(algorithm, &bytes), "{file}.{algorithm}");
        }
    }
    let built = std::fs::read(maven.folder().join("hello/target/hello-1.0.jar")).unwrap();
    assert_eq!(resolve(&repository, &url, "hello", "1.0"), ("hello-1.0.jar".to_owned(), built.clone()));

    let reason = repository.put("org/example/hello/1.0/hello-1.0.jar", "another").expect(409).reason;
    let (_, sentence) = reason.split_once(' ').expect("a path, then the reason");
    let again = maven.run("hello", &["deploy"]).refused("409");
    assert!(
        again.text.contains(sentence),
        "Maven does not show the server's sentence {sentence:?}:\n{}",
        again.text
    );
    assert_eq!(repository.get("org/example/hello/1.0/hello-1.0.jar").body, built);
}

#[test]
fn a_file_is_deployed_without_a_project() {
    let Some((server, repository, maven)) = set() else { return };
    let url = repository.url(&server);
    maven.write("loose.jar", "bytes that a person has lying about");
    let (repository_url, file) =
        (format!("-Durl={url}"), format!("-Dfile={}/loose.jar", maven.folder().display()));
    let deploy = goal("deploy", "deploy-file");
    let arguments = [
        deploy.as_str(),
        "-DrepositoryId=packhouse",
        &repository_url,
        &file,
        "-DgroupId=org.example",
        "-DartifactId=loose",
        "-Dversion=2.0",
        "-Dpackaging=jar",
    ];
    maven.run("", &arguments).success();
    let (name, bytes) = resolve(&repository, &url, "loose", "2.0");
    assert_eq!(
        (name.as_str(), bytes.as_slice()),
        ("loose-2.0.jar", &b"bytes that a person has lying about"[..])
    );
    maven.run("", &arguments).refused("409");
}

#[test]
fn a_snapshot_is_deployed_twice_and_the_newer_one_is_resolved() {
    if !long() {
        return;
    }
    let Some((server, repository, maven)) = set() else { return };
    let url = repository.url(&server);
    project(&maven, "snap", "snap", "2.0-SNAPSHOT", &url, "first");
    maven.run("snap", &["deploy"]).success();
    class(&maven, "snap", "second");
    maven.run("snap", &["deploy"]).success();

    let metadata = repository.get("org/example/snap/2.0-SNAPSHOT/maven-metadata.xml").expect(200).text();
    assert!(metadata.contains("<buildNumber>2</buildNumber>"), "{metadata}");
    let built = std::fs::read(maven.folder().join("snap/target/snap-2.0-SNAPSHOT.jar")).unwrap();
    let (name, bytes) = resolve(&repository, &url, "snap", "2.0-SNAPSHOT");
    assert!(name.starts_with("snap-2.0-") && name.ends_with(".jar"), "{name}");
    assert_eq!(digests::sha256(&bytes), digests::sha256(&built));
    let plain = repository.get("org/example/snap/2.0-SNAPSHOT/snap-2.0-SNAPSHOT.jar").expect(200);
    assert_eq!(
        digests::sha256(&plain.body),
        digests::sha256(&built),
        "the plain name resolves to the newest"
    );
}

#[test]
fn a_range_of_versions_resolves_to_the_highest_in_it() {
    if !long() {
        return;
    }
    let Some((server, repository, maven)) = set() else { return };
    let url = repository.url(&server);
    for version in ["1.9", "1.10", "2.0"] {
        project(&maven, version, "ranged", version, &url, version);
        maven.run(version, &["deploy"]).success();
    }
    assert_eq!(resolve(&repository, &url, "ranged", "[1.0,2.0)").0, "ranged-1.10.jar");
    assert_eq!(resolve(&repository, &url, "ranged", "[1.0,]").0, "ranged-2.0.jar");
    assert_eq!(resolve(&repository, &url, "ranged", "LATEST").0, "ranged-2.0.jar");
}

#[test]
fn the_modules_of_a_build_are_deployed_in_parallel() {
    if !long() {
        return;
    }
    let Some((server, repository, maven)) = set() else { return };
    let url = repository.url(&server);
    let names = ["one", "two", "three", "four", "five", "six"];
    let modules: String = names.iter().map(|name| format!("<module>{name}</module>")).collect();
    let inside = format!(
        "<packaging>pom</packaging><modules>{modules}</modules>{}{}",
        distribution(&url),
        build_section()
    );
    maven.write("all/pom.xml", &pom("all", "1.0", &inside));
    for name in names {
        let parent = "<parent><groupId>org.example</groupId><artifactId>all</artifactId><version>1.0</version></parent>";
        maven.write(&format!("all/{name}/pom.xml"), &pom(name, "1.0", parent));
        class(&maven, &format!("all/{name}"), name);
    }
    maven.run("all", &["-T", "4", "deploy"]).success();
    for name in names {
        let built = std::fs::read(maven.folder().join(format!("all/{name}/target/{name}-1.0.jar"))).unwrap();
        let served = repository.get(&format!("org/example/{name}/1.0/{name}-1.0.jar")).expect(200).body;
        assert_eq!(digests::sha256(&served), digests::sha256(&built), "{name}");
    }
    assert_eq!(resolve(&repository, &url, "six", "1.0").0, "six-1.0.jar");
}

#[test]
fn a_refusal_names_its_reason_in_mavens_output() {
    let Some((server, repository, maven)) = set() else { return };
    let url = repository.url(&server);
    project(&maven, "hello", "hello", "1.0", &url, "hello");

    maven.credential("owner@example.com", "wrong");
    maven.run("hello", &["deploy"]).refused("401");
    let reader = Api::sign_in(&server).create_token(&[&repository.id], &["read"], None);
    maven.credential("owner@example.com", &reader.secret);
    maven.run("hello", &["deploy"]).refused("403");
    repository.get("org/example/hello/1.0/hello-1.0.pom").expect(404);

    let public = MavenRepository::create_with(&server, "open", &json!({"public": true}));
    maven.credential("owner@example.com", &public.token.secret);
    project(&maven, "open", "open", "1.0", &public.url(&server), "open");
    maven.run("open", &["deploy"]).success();
    let nobody = Maven::new("").unwrap();
    nobody.write(
        "settings.xml",
        &format!("<settings>{}</settings>", packhouse_tests::clients::debian_profile()),
    );
    nobody.write("consumer/pom.xml", &consumer(&public.url(&server), "open", "1.0"));
    nobody.run("consumer", &[&goal("dependency", "copy-dependencies")]).success();
    nobody.write("consumer/pom.xml", &consumer(&public.url(&server), "absent", "1.0"));
    nobody.run("consumer", &[&goal("dependency", "copy-dependencies")]).refused("Could not find artifact");
}
