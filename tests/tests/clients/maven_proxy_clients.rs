//! Tests with Maven and Gradle through a proxy of another Packhouse, and through a group with the
//! proxy. The clients resolve the upstream's packages and verify every checksum. They do so again
//! after the upstream has ended.

use packhouse_tests::clients::{Maven, consumer, goal, has, run};
use packhouse_tests::long;
use packhouse_tests::server::OWNER;
use packhouse_tests::upstream::Upstream;
use packhouse_tests::{Api, MavenRepository, Server, digests, payload, skip};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// An upstream server with a public repository; a second server with a proxy of it, a hosted
/// repository, and a group of both.
struct World {
    far: Option<Server>,
    near: Server,
    origin: MavenRepository,
    hosted: MavenRepository,
    /// A token that reads the proxy and the group.
    secret: String,
}

impl World {
    fn new(settings: &Value) -> Self {
        let far = Server::start();
        let near = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
        let origin = MavenRepository::create_with(&far, "origin", &json!({"public": true}));
        let hosted = MavenRepository::create(&near, "hosted");
        let api = Api::sign_in(&near);
        let proxy = api.create_proxy("proxy", "maven", &origin.url(&far), settings);
        let group =
            json!({"name": "group", "format": "maven", "kind": "group", "members": [hosted.id, proxy]});
        let group = api.post("/v1/repositories", &group).expect(201).field("id");
        let token = api.create_token(&[&group, &hosted.id, &proxy], &["read", "write"], None);
        Self { far: Some(far), near, origin, hosted, secret: token.secret }
    }

    fn url(&self, repository: &str) -> String {
        format!("{}/repositories/{repository}", self.near.base_url())
    }

    /// Ends the upstream server; a scripted upstream at its address records later requests.
    fn switch_off(&mut self) -> Upstream {
        let address = self.far.take().unwrap().packages();
        Upstream::start_at(address)
    }

    /// Resolves `artifact` with a Maven whose local repository is empty; returns SHA-256 by file
    /// name.
    #[track_caller]
    fn resolve(&self, repository: &str, artifact: &str, version: &str) -> BTreeMap<String, String> {
        let maven = Maven::new(&self.secret).unwrap();
        maven.write("consumer/pom.xml", &consumer(&self.url(repository), artifact, version));
        maven.run("consumer", &[&goal("dependency", "copy-dependencies"), "-DoutputDirectory=out"]).success();
        files(&maven.folder().join("consumer/out"))
    }
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let named = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.map(|path| (named(&path), digests::sha256(&std::fs::read(&path).unwrap()))).collect()
}

/// Publishes a jar and its POM with these dependencies; returns the jar's SHA-256.
fn publish(
    repository: &MavenRepository,
    artifact: &str,
    version: &str,
    file: &str,
    needs: &[(&str, &str)],
) -> String {
    let needs: String = needs
        .iter()
        .map(|(artifact, version)| {
            format!(
                "<dependency><groupId>org.example</groupId><artifactId>{artifact}</artifactId>\
                 <version>{version}</version></dependency>"
            )
        })
        .collect();
    let pom = format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>org.example</groupId>\
         <artifactId>{artifact}</artifactId><version>{version}</version><dependencies>{needs}</dependencies></project>"
    );
    let seed = file.bytes().map(u64::from).sum();
    let (jar, path) =
        (payload::bytes(seed, 50_000), format!("org/example/{artifact}/{version}/{artifact}-{file}"));
    repository.put(&format!("{path}.pom"), pom).expect(201);
    repository.put(&format!("{path}.jar"), jar.clone()).expect(201);
    digests::sha256(&jar)
}

fn no_maven() -> bool {
    Maven::new("").map_err(|reason| skip("Maven", &reason)).is_err()
}

#[test]
fn maven_resolves_through_a_proxy_and_again_without_the_upstream() {
    if no_maven() {
        return;
    }
    let mut world = World::new(&json!({}));
    let base = publish(&world.origin, "base", "1.0", "1.0", &[]);
    publish(&world.origin, "lib", "1.9", "1.9", &[]);
    let lib = publish(&world.origin, "lib", "1.10", "1.10", &[("base", "1.0")]);
    publish(&world.origin, "lib", "2.0", "2.0", &[]);
    let all = BTreeMap::from([("base-1.0.jar".to_owned(), base), ("lib-1.10.jar".to_owned(), lib)]);
    assert_eq!(world.resolve("proxy", "lib", "[1.0,2.0)"), all);
    let gone = world.switch_off();
    assert_eq!(world.resolve("proxy", "lib", "[1.0,2.0)"), all);
    assert!(gone.requests().is_empty(), "{:?}", gone.requests());
}

#[test]
fn maven_sees_a_newer_snapshot_and_the_last_one_when_the_upstream_is_gone() {
    if !long() {
        return;
    }
    if no_maven() {
        return;
    }
    let mut world = World::new(&json!({"metadata_ttl_s": 0, "negative_ttl_s": 0}));
    for (build, file) in ["1.0-20260101.100000-1", "1.0-20260102.100000-2"].iter().enumerate() {
        let jar = publish(&world.origin, "snap", "1.0-SNAPSHOT", file, &[]);
        let resolved = world.resolve("proxy", "snap", "1.0-SNAPSHOT");
        assert_eq!(resolved, BTreeMap::from([("snap-1.0-SNAPSHOT.jar".to_owned(), jar)]), "build {build}");
    }
    let before = world.resolve("proxy", "snap", "1.0-SNAPSHOT");
    world.switch_off().down(true);
    assert_eq!(world.resolve("proxy", "snap", "1.0-SNAPSHOT"), before);
}

#[test]
fn maven_resolves_hosted_names_first_through_a_group() {
    if !long() {
        return;
    }
    if no_maven() {
        return;
    }
    let mut world = World::new(&json!({}));
    let lib = publish(&world.origin, "lib", "1.0", "1.0", &[]);
    publish(&world.origin, "own", "9.0", "9.0", &[]);
    let own = publish(&world.hosted, "own", "1.0", "1.0", &[("lib", "1.0")]);
    let all = BTreeMap::from([("lib-1.0.jar".to_owned(), lib), ("own-1.0.jar".to_owned(), own)]);
    assert_eq!(world.resolve("group", "own", "[1.0,]"), all, "9.0 is another's");
    let gone = world.switch_off();
    assert_eq!(world.resolve("group", "own", "[1.0,]"), all);
    assert!(gone.requests().is_empty(), "{:?}", gone.requests());
}

#[test]
fn maven_shows_that_a_proxy_and_a_group_accept_no_publish() {
    if no_maven() {
        return;
    }
    let world = World::new(&json!({}));
    let maven = Maven::new(&world.secret).unwrap();
    maven.write("loose.jar", "bytes");
    let file = format!("-Dfile={}/loose.jar", maven.folder().display());
    for (repository, words) in [
        ("proxy", "A proxy repository contains only packages that it fetched; clients cannot write to it."),
        ("group", "A group repository has no storage of its own; write to one of its members."),
    ] {
        let (deploy, url) = (goal("deploy", "deploy-file"), format!("-Durl={}", world.url(repository)));
        let arguments = [
            deploy.as_str(),
            "-DrepositoryId=packhouse",
            &url,
            &file,
            "-DgroupId=org.example",
            "-DartifactId=loose",
            "-Dversion=1.0",
            "-Dpackaging=jar",
        ];
        let output = maven.run("", &arguments).refused("405");
        assert!(output.text.contains(words), "Maven does not show the server's sentence:\n{}", output.text);
    }
}

#[test]
fn gradle_resolves_through_a_group_and_again_without_the_upstream() {
    if !long() {
        return;
    }
    if !has("gradle") {
        return skip("Gradle", "no gradle on the path");
    }
    let mut world = World::new(&json!({}));
    let lib = publish(&world.origin, "lib", "1.10", "1.10", &[]);
    publish(&world.origin, "lib", "1.9", "1.9", &[]);
    publish(&world.origin, "own", "9.0", "9.0", &[]);
    let own = publish(&world.hosted, "own", "1.0", "1.0", &[("lib", "[1.0,2.0)")]);
    let all = BTreeMap::from([("lib-1.10.jar".to_owned(), lib), ("own-1.0.jar".to_owned(), own)]);
    let Some(resolved) = gradle(&world) else { return };
    assert_eq!(resolved, all);
    let gone = world.switch_off();
    assert_eq!(gradle(&world).unwrap(), all);
    assert!(gone.requests().is_empty(), "{:?}", gone.requests());
}

/// Resolves `own:1.+` through the group with a Gradle whose cache is empty. Returns `None` if
/// Gradle does not run on this JDK.
fn gradle(world: &World) -> Option<BTreeMap<String, String>> {
    let home = tempfile::TempDir::new().unwrap();
    let script = format!(
        "repositories {{ maven {{ url '{}'; credentials {{ username '{OWNER}'; password '{}' }} }} }}\n\
         configurations {{ wanted }}\ndependencies {{ wanted 'org.example:own:1.+' }}\n\
         task fetch(type: Copy) {{ from configurations.wanted; into 'out' }}\n",
        world.url("group"),
        world.secret,
    );
    std::fs::write(home.path().join("build.gradle"), script).unwrap();
    let mut command = Command::new("gradle");
    command
        .current_dir(home.path())
        .env("GRADLE_USER_HOME", home.path().join("home"))
        .env("HOME", home.path());
    let output = run(command.args(["--no-daemon", "--quiet", "fetch"]));
    let misfit = ["Could not determine java version", "Unsupported class file"];
    if !output.success && misfit.iter().any(|words| output.text.contains(words)) {
        skip("Gradle", "this Gradle does not run on this JDK");
        return None;
    }
    output.success();
    Some(files(&home.path().join("out")))
}
