//! Maven trees. The tests import them from a folder, from web pages and from a Packhouse server,
//! export them into a folder, and import the folder. Maven then resolves from the new server.

use std::path::Path;
use std::time::{Duration, SystemTime};

use packhouse_tests::clients::{Maven, consumer, goal, pom};
use packhouse_tests::digests::sha1;
use packhouse_tests::long;
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{MavenRepository, Server, skip};
use serde_json::json;
use tempfile::TempDir;

use super::world::{BEGIN_2020_MS, files, lines, moved, moved_with, version, write};

const SNAPSHOT: &str = "org/example/lib/2.0-SNAPSHOT";

/// Writes a tree with a release, a snapshot with a timestamp, a snapshot without one, a signature,
/// and files that no server accepts.
fn tree(root: &Path) {
    let put = |path: &str, bytes: &str| {
        write(root, path, bytes);
        write(root, &format!("{path}.sha1"), sha1(bytes.as_bytes()));
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(BEGIN_2020_MS);
        std::fs::File::options().write(true).open(root.join(path)).unwrap().set_modified(time).unwrap();
    };
    put("org/example/lib/1.0/lib-1.0.jar", "the library");
    put("org/example/lib/1.0/lib-1.0.jar.asc", "a signature");
    put("org/example/lib/1.0/lib-1.0.pom", &pom("lib", "1.0", ""));
    put(&format!("{SNAPSHOT}/lib-2.0-20200101.000000-1.jar"), "a build");
    put(&format!("{SNAPSHOT}/lib-2.0-20200101.000000-1.pom"), &pom("lib", "2.0-SNAPSHOT", ""));
    put(&format!("{SNAPSHOT}/lib-2.0-20200102.000000-2.jar"), "a later build");
    later(root, &format!("{SNAPSHOT}/lib-2.0-20200102.000000-2.jar"));
    put("org/example/old/1-SNAPSHOT/old-1-SNAPSHOT.jar", "the newest");
    put("archetype-catalog.xml", "<archetype-catalog/>");
    put("org/example/lib/maven-metadata.xml", "<metadata/>");
    write(root, ".index/nexus.gz", "an index");
}

/// Makes a file one day newer than the others.
fn later(root: &Path, path: &str) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(BEGIN_2020_MS + 86_400_000);
    std::fs::File::options().write(true).open(root.join(path)).unwrap().set_modified(time).unwrap();
}

const FILES: usize = 8;

#[test]
fn a_tree_is_moved_once_with_its_times() {
    let (server, home) = (Server::start(), TempDir::new().unwrap());
    let repository = MavenRepository::create(&server, "maven");
    tree(home.path());
    let words = ["import", "maven", "--from", "maven", &home.path().to_string_lossy()];
    let first = moved(&server, &words).success();
    assert_eq!((first.count("moved"), first.count("skipped")), (FILES, 1), "{:#?}", first.lines);
    assert!(
        first.line("org/example/lib/maven-metadata.xml")["reason"]
            .as_str()
            .unwrap()
            .contains("generates this file")
    );
    for (path, bytes) in files(home.path()) {
        if first.lines.iter().any(|line| line["path"] == path.as_str() && line["outcome"] == "moved") {
            assert_eq!(repository.get(&path).expect(200).body, bytes, "{path}");
        }
    }
    let jar = repository.get("org/example/lib/1.0/lib-1.0.jar").expect(200);
    assert_eq!(jar.header("last-modified"), Some("Wed, 01 Jan 2020 00:00:00 GMT"));
    assert_eq!(version(&server, &repository.id, "org.example:lib", "1.0")["published_at"], BEGIN_2020_MS);
    // The time of a version is the time of its first file; each file has its own time.
    assert_eq!(
        version(&server, &repository.id, "org.example:lib", "2.0-SNAPSHOT")["published_at"],
        BEGIN_2020_MS
    );
    let build = repository.get(&format!("{SNAPSHOT}/lib-2.0-20200102.000000-2.jar")).expect(200);
    assert_eq!(build.header("last-modified"), Some("Thu, 02 Jan 2020 00:00:00 GMT"));
    let metadata = repository.get("org/example/lib/maven-metadata.xml").expect(200).text();
    assert!(metadata.contains("<version>2.0-SNAPSHOT</version>"), "{metadata}");
    assert_eq!(moved(&server, &words).adds_nothing().count("present"), FILES);

    // After changes at the source, an import does not replace a release but replaces a snapshot
    // without a timestamp.
    write(home.path(), "org/example/old/1-SNAPSHOT/old-1-SNAPSHOT.jar", "newer");
    write(home.path(), "org/example/old/1-SNAPSHOT/old-1-SNAPSHOT.jar.sha1", sha1(b"newer"));
    write(home.path(), "org/example/lib/1.0/lib-1.0.jar", "another");
    write(home.path(), "org/example/lib/1.0/lib-1.0.jar.sha1", sha1(b"another"));
    let again = moved(&server, &words);
    assert!(!again.output.success && again.output.text.contains("not replaced"), "{}", again.output.text);
    assert_eq!((again.count("moved"), again.count("refused"), again.count("present")), (1, 1, FILES - 2));
    assert_eq!(repository.get("org/example/old/1-SNAPSHOT/old-1-SNAPSHOT.jar").expect(200).body, b"newer");
    assert_eq!(repository.get("org/example/lib/1.0/lib-1.0.jar").expect(200).body, b"the library");
}

#[test]
fn an_export_imports_identically() {
    let (server, home) = (Server::start(), TempDir::new().unwrap());
    MavenRepository::create(&server, "old");
    tree(&home.path().join("tree"));
    let at = |name: &str| home.path().join(name).to_string_lossy().into_owned();
    moved(&server, &["import", "old", "--from", "maven", &at("tree")]).success();
    assert_eq!(moved(&server, &["export", "old", &at("out")]).success().count("moved"), FILES);
    assert_eq!(moved(&server, &["export", "old", &at("out")]).adds_nothing().count("present"), FILES);
    let listed = lines(&home.path().join("out/export.jsonl"));
    assert_eq!((listed.len(), &listed[0]["format"]), (FILES + 1, &json!("maven")));
    let time = |line: &serde_json::Value| {
        let later = line["path"].as_str().unwrap().contains("20200102");
        if later { "2020-01-02T00:00:00Z" } else { "2020-01-01T00:00:00Z" }
    };
    assert!(listed[1..].iter().all(|line| line["published_at"] == time(line)), "{listed:#?}");

    // Imports into another server from the folder and from the first server. Each import finds that
    // the files of the earlier one are already present.
    let other = Server::start();
    let new = MavenRepository::create(&other, "new");
    assert_eq!(
        moved(&other, &["import", "new", "--from", "export", &at("out")]).success().count("moved"),
        FILES
    );
    let login = format!("{}:{}", packhouse_tests::server::OWNER, packhouse_tests::server::PASSWORD);
    let api = format!("http://{}", server.api());
    let words = ["import", "new", "--from", "packhouse", &api, "--source-repository", "old"];
    let again = moved_with(&other, &words, &[("PACKHOUSE_SOURCE_LOGIN", &login)]);
    assert_eq!(again.adds_nothing().count("present"), FILES);
    assert_eq!(version(&other, &new.id, "org.example:lib", "1.0")["published_at"], BEGIN_2020_MS);
    moved(&other, &["export", "new", &at("again")]).success();
    let stays = |name: &str| -> Vec<_> {
        let all = files(&home.path().join(name));
        all.into_iter().filter(|(path, _)| path != ".packhouse-export" && path != "export.jsonl").collect()
    };
    assert_eq!(stays("out"), stays("again"));
    assert_eq!(listed[1..], lines(&home.path().join("again/export.jsonl"))[1..]);
    // An export does not overwrite the export of another repository.
    moved(&other, &["export", "new", &at("out")]).output.refused("holds an export of old");
    moved(&other, &["export", "new", &at("tree")]).output.refused("holds no export");
}

#[test]
fn pages_are_followed_downwards_with_a_credential() {
    let (server, upstream) = (Server::start(), Upstream::start());
    let repository = MavenRepository::create(&server, "maven");
    let basic = packhouse_tests::http::basic("me", "secret");
    let guarded = |answer: Answer| answer.guarded(&basic, "Basic realm=\"x\"");
    let page = |links: &[&str]| {
        let links: String = links.iter().map(|link| format!("<a href=\"{link}\">x</a>")).collect();
        guarded(Answer::ok(format!("<html><body>{links}</body></html>")).header("Content-Type", "text/html"))
    };
    upstream.on("/m/", page(&["../", "?C=N", "org/", "http://127.0.0.1:1/elsewhere.jar"]));
    upstream.on("/m/org/", page(&["/m/", "a/"]));
    upstream.on("/m/org/a/", page(&["1/", "maven-metadata.xml"]));
    upstream.on("/m/org/a/1/", page(&["a-1.jar", "a-1.jar.sha1", "a-1.jar.md5", "a-1.pom"]));
    let jar = || Answer::ok("jar").header("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT");
    upstream.on("/m/org/a/1/a-1.jar", guarded(jar()));
    upstream.on("/m/org/a/1/a-1.jar.sha1", guarded(Answer::ok(sha1(b"jar") + "  a-1.jar\n")));
    upstream.on("/m/org/a/1/a-1.pom", guarded(Answer::ok("<project/>").chunked(4)));
    let address = format!("{}/m", upstream.url());
    for kind in ["maven", "cloudrepo"] {
        let words = ["import", "maven", "--from", kind, &address];
        let done = moved_with(&server, &words, &[("PACKHOUSE_SOURCE_LOGIN", "me:secret")]).success();
        let ends = (done.count("moved"), done.count("present"));
        assert_eq!(ends, if kind == "maven" { (2, 0) } else { (0, 2) }, "{:#?}", done.lines);
    }
    let found = version(&server, &repository.id, "org:a", "1");
    assert_eq!(found["files"].as_array().unwrap().len(), 2);
    assert_eq!(
        repository.get("org/a/1/a-1.jar").expect(200).header("last-modified"),
        Some("Wed, 01 Jan 2020 00:00:00 GMT")
    );
    let wrong = moved_with(
        &server,
        &["import", "maven", "--from", "maven", &address],
        &[("PACKHOUSE_SOURCE_LOGIN", "me:wrong")],
    );
    wrong.output.refused("the credential is missing or wrong");
}

#[test]
fn artifacts_are_found_by_their_names_without_a_list() {
    let (server, upstream) = (Server::start(), Upstream::start());
    let repository = MavenRepository::create(&server, "maven");
    let url = upstream.url();
    let all = ["import", "maven", "--from", "cloudrepo", &url];
    moved(&server, &all).output.refused("lists its folders");
    upstream.on(
        "/org/a/maven-metadata.xml",
        Answer::ok("<metadata><versioning><versions><version>1</version><version>2-SNAPSHOT</version></versions></versioning></metadata>"),
    );
    upstream.on(
        "/org/a/2-SNAPSHOT/maven-metadata.xml",
        Answer::ok("<metadata><versioning><snapshot><timestamp>20200101.000000</timestamp><buildNumber>3</buildNumber></snapshot></versioning></metadata>"),
    );
    let at = "Wed, 01 Jan 2020 00:00:00 GMT";
    for path in ["1/a-1.pom", "1/a-1.jar", "1/a-1.jar.asc", "2-SNAPSHOT/a-2-20200101.000000-3.jar"] {
        upstream.on(&format!("/org/a/{path}"), Answer::ok(path).header("Last-Modified", at));
    }
    let one = [&all[..], &["--package", "org:a"]].concat();
    assert_eq!(moved(&server, &one).success().count("moved"), 4);
    moved(&server, &one).adds_nothing();
    assert_eq!(version(&server, &repository.id, "org:a", "1")["published_at"], BEGIN_2020_MS);
    repository.get("org/a/2-SNAPSHOT/a-2-20200101.000000-3.jar").expect(200);
    moved(&server, &[&all[..], &["--package", "org:none"]].concat()).output.refused("404");
}

#[test]
fn maven_resolves_moved_artifacts_from_the_new_repository() {
    if !long() {
        return;
    }
    let (server, home) = (Server::start(), TempDir::new().unwrap());
    let old = MavenRepository::create(&server, "old");
    let maven = match Maven::new(&old.token.secret) {
        Ok(maven) => maven,
        Err(reason) => return skip("mvn", &reason),
    };
    maven.write("jar/lib.jar", "a library");
    let deploy = goal("deploy", "deploy-file");
    for number in ["1.0", "1.1-SNAPSHOT"] {
        let (url, number) = (format!("-Durl={}", old.url(&server)), format!("-Dversion={number}"));
        let words = [
            &deploy,
            &url,
            "-DrepositoryId=packhouse",
            "-Dfile=lib.jar",
            "-DgroupId=org.example",
            "-DartifactId=lib",
            &number,
        ];
        maven.run("jar", &words).success();
    }
    let other = Server::start();
    let new = MavenRepository::create(&other, "new");
    let out = home.path().join("out").to_string_lossy().into_owned();
    moved(&server, &["export", "old", &out]).success();
    // The program can also import the export as a plain tree.
    moved(&other, &["import", "new", "--from", "export", &out]).success();
    moved(&other, &["import", "new", "--from", "maven", &out]).adds_nothing();
    maven.credential(packhouse_tests::server::OWNER, &new.token.secret);
    for number in ["1.0", "1.1-SNAPSHOT"] {
        maven.forget();
        maven.write("consumer/pom.xml", &consumer(&new.url(&other), "lib", number));
        maven.run("consumer", &[&goal("dependency", "resolve")]).success();
        let folder = maven.local().join(format!("org/example/lib/{number}"));
        let jar = files(&folder).into_iter().find(|(path, _)| path.ends_with(".jar")).unwrap();
        assert_eq!(jar.1, b"a library");
    }
}
