//! Runs the protocol table with the memory host, and tests what a row of the table cannot express:
//! many versions, time, intents, and listings.

use super::table;

use packhouse_maven::Maven;
use packhouse_sdk::{Action, BodyPlan, VersionId};
use packhouse_testkit::{MemoryHost, Mount, TestRequest, run};
use serde_json::json;

/// 2026-11-21 05:01:40 UTC.
const NOW: u64 = 1_795_237_300_000;
const DAY: u64 = 24 * 60 * 60 * 1000;

fn hosted(settings: serde_json::Value) -> (MemoryHost, Mount<Maven>) {
    let host = MemoryHost::new();
    host.set_now(NOW);
    let mount = host.mount::<Maven>("releases", "hosted", settings);
    (host, mount)
}

fn put(mount: &Mount<Maven>, path: &str, body: &str) {
    mount.put(path).body(body).send().expect(201);
}

fn metadata(mount: &Mount<Maven>, folder: &str) -> String {
    mount.get(&format!("{folder}/maven-metadata.xml")).send().expect(200).text()
}

#[test]
fn the_protocol_table_holds() {
    let (_, mut mount) = hosted(json!({}));
    run(&mut mount, &table::cases());
}

#[test]
fn the_protocol_table_of_identical_redeploys_holds() {
    let (_, mut mount) = hosted(json!({"redeploy": "identical"}));
    run(&mut mount, &table::identical());
}

#[test]
fn a_refused_publish_changes_nothing() {
    let (host, mount) = hosted(json!({}));
    put(&mount, "/g/lib/1/lib-1.jar", "one");
    put(&mount, "/g/lib/2/lib-2.jar.sha1", "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    let before = mount.effects();
    mount.put("/g/lib/1/lib-1.jar").body("two").send().expect(409);
    mount.put("/g/lib/1/lib-1.jar.sha1").body("0".repeat(40)).send().expect(400);
    mount.put("/g/lib/2/lib-2.jar").body("two").send().expect(400);
    mount.put("/g/maven-metadata.xml").body("<").send().expect(400);
    host.end_grace();
    assert_eq!(mount.effects(), before);
}

#[test]
fn two_thousand_versions_are_listed_in_order() {
    let (_, mount) = hosted(json!({}));
    for number in (0..2000).rev() {
        put(&mount, &format!("/g/lib/1.{number}/lib-1.{number}.jar"), "jar");
    }
    let text = metadata(&mount, "/g/lib");
    let versions: Vec<&str> = text.lines().filter(|line| line.contains("<version>")).map(str::trim).collect();
    let expected: Vec<String> = (0..2000).map(|number| format!("<version>1.{number}</version>")).collect();
    assert_eq!(versions, expected);
    assert!(text.contains("<release>1.1999</release>"));
}

#[test]
fn metadata_of_many_versions_reads_only_the_changed_run() {
    let (host, mount) = hosted(json!({}));
    let publish = |number: usize| {
        host.set_now(NOW + number as u64 * 1000);
        put(&mount, &format!("/g/lib/1.{number}/lib-1.{number}.jar"), "jar");
    };
    let assert_newest = |number: usize| {
        let text = metadata(&mount, "/g/lib");
        let (minute, second) = (1 + (40 + number) / 60, (40 + number) % 60);
        let updated = format!("<lastUpdated>2026112105{minute:02}{second:02}</lastUpdated>");
        assert!(text.contains(&updated) && text.contains(&format!("<latest>1.{number}</latest>")), "{text}");
        assert_eq!(text.matches("<version>").count(), number + 1);
    };
    (0..64).for_each(publish);
    assert_newest(63);
    assert_eq!(host.take_piece_counts(), (0, 0), "metadata of few versions must not use cached pieces");
    (64..500).for_each(publish);
    assert_newest(499);
    host.take_piece_counts();
    for number in [500, 501, 502] {
        publish(number);
        assert_newest(number);
        let (made, found) = host.take_piece_counts();
        assert!((1..=2).contains(&made) && found >= 4, "{made} made, {found} found");
        assert_newest(number);
        assert_eq!(host.take_piece_counts(), (0, made + found));
    }
}

#[test]
fn the_same_records_give_the_same_bytes() {
    let (host, mount) = hosted(json!({}));
    put(&mount, "/g/lib/1/lib-1.jar", "one");
    let first = mount.get("/g/lib/maven-metadata.xml").send();
    assert!(first.text().contains("<lastUpdated>20261121050140</lastUpdated>"), "{first}");
    assert_eq!(first.modified, Some(NOW));
    host.set_now(NOW + DAY);
    assert_eq!(mount.get("/g/lib/maven-metadata.xml").send(), first);
    put(&mount, "/g/lib/2/lib-2.jar", "two");
    assert!(metadata(&mount, "/g/lib").contains("<lastUpdated>20261122050140</lastUpdated>"));
    // A deletion is a change, too: the time never goes back.
    host.set_now(NOW + 2 * DAY);
    mount.delete("/g/lib/2/").send().expect(204);
    assert!(metadata(&mount, "/g/lib").contains("<lastUpdated>20261123050140</lastUpdated>"));
}

#[test]
fn a_checksum_without_its_file_counts_for_a_day() {
    let (host, mount) = hosted(json!({}));
    put(&mount, "/g/lib/1/lib-1.jar.md5", "00000000000000000000000000000000");
    host.set_now(NOW + DAY);
    mount.put("/g/lib/1/lib-1.jar").body("jar").send().expect(400);
    host.set_now(NOW + DAY + 1);
    put(&mount, "/g/lib/1/lib-1.jar", "jar");
}

#[test]
fn published_versions_are_listed_and_deleted_ones_are_not() {
    let (host, mount) = hosted(json!({}));
    put(&mount, "/org/example/lib/1.0/lib-1.0.jar", "jar");
    put(&mount, "/org/example/lib/1.0/lib-1.0.pom", "pom");
    put(&mount, "/org/example/lib/2.0-SNAPSHOT/lib-2.0-20261121.050140-1.jar", "snapshot");
    put(&mount, "/org/example/lib/1.0/lib-1.0.jar.sha1", JAR_SHA1);
    put(&mount, "/plain", "plain");
    let listed: Vec<(String, String, usize)> = host
        .versions("releases")
        .into_iter()
        .map(|version| (version.name, version.version, version.files.len()))
        .collect();
    let lib = || "org.example:lib".to_owned();
    assert_eq!(listed, [(lib(), "1.0".to_owned(), 2), (lib(), "2.0-SNAPSHOT".to_owned(), 1)]);
    mount.delete("/org/example/lib/1.0/lib-1.0.pom").send().expect(204);
    assert_eq!(host.versions("releases")[0].files[0].path, "org/example/lib/1.0/lib-1.0.jar");
    mount.delete("/org/").send().expect(204);
    assert_eq!(host.versions("releases"), []);
}

/// SHA-1 of `jar`.
const JAR_SHA1: &str = "f92e777f4341930bad9b2422283c4680d00dbc06";

#[test]
fn a_folder_of_many_files_is_deleted() {
    let (host, mount) = hosted(json!({}));
    for number in 0..2500 {
        put(&mount, &format!("/g/lib/1.{}/lib-1.{}-c{number}.jar", number % 5, number % 5), "jar");
    }
    put(
        &mount,
        "/g/maven-metadata.xml",
        "<metadata><plugins><plugin><prefix>p</prefix><artifactId>lib</artifactId></plugin></plugins></metadata>",
    );
    put(&mount, "/g/lib/maven-metadata.xml", "<metadata/>");
    put(&mount, "/g/lib/1.9/lib-1.9.jar.md5", "00000000000000000000000000000000");
    mount.delete("/g/lib/").send().expect(204);
    host.end_grace();
    let left = mount.effects();
    let keys: Vec<&str> = left.records.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["a/g//m", "a/g//t"], "{left}");
    assert!(left.blobs.is_empty() && left.shown.is_empty(), "{left}");
    mount.get("/g/maven-metadata.xml").send().expect(404);
}

#[test]
fn intents_describe_the_request() {
    let (_, mount) = hosted(json!({}));
    let plan = |method: &str, target: &str| mount.plan(&TestRequest::new(method, target)).unwrap();
    let jar = plan("PUT", "/org/example/lib/1.0/lib-1.0.jar");
    assert_eq!((jar.action, jar.subject.as_deref()), (Action::Publish, Some("org.example:lib:1.0")));
    assert_eq!(jar.body, BodyPlan::Body { limit: 50_000_000_000 });
    assert_eq!((jar.digests, jar.check), (vec!["sha1".to_owned(), "md5".to_owned()], true));
    assert_eq!(plan("PUT", "/g/lib/1/lib-1.jar.sha1").body, BodyPlan::Body { limit: 1024 });
    assert_eq!(plan("PUT", "/g/lib/maven-metadata.xml").body, BodyPlan::Body { limit: 1 << 20 });
    for target in ["/g/lib/maven-metadata.xml", "/g/lib/maven-metadata.xml.sha256"] {
        let read = plan("GET", target);
        assert!(read.action == Action::Read && read.for_publish, "{target}");
    }
    for target in ["/", "/g/", "/g/lib/1/lib-1.jar", "/g/lib/1/lib-1.jar.sha1"] {
        assert!(!plan("HEAD", target).for_publish, "{target}");
    }
    assert_eq!(plan("DELETE", "/g/lib/").action, Action::Delete);
}

#[test]
fn versions_can_be_deleted_but_not_marked() {
    let (_, mount) = hosted(json!({}));
    put(&mount, "/org/example/lib/1.0/lib-1.0.jar", "jar");
    let id = VersionId::new("org.example:lib", "1.0");
    assert_eq!(mount.mark_version(&id, "yanked", "").unwrap_err().problems[0].code, "not_supported");
    mount.delete_version(&id).unwrap();
    mount.get("/org/example/lib/maven-metadata.xml").send().expect(404);
    assert_eq!(mount.delete_version(&id).unwrap_err().status, 404);
    assert_eq!(mount.delete_version(&VersionId::new("org", "1.0")).unwrap_err().status, 404);
}

#[test]
fn files_of_a_version_are_deleted_one_by_one() {
    let (_, mount) = hosted(json!({}));
    put(&mount, "/g/lib/1/lib-1.jar", "jar");
    put(&mount, "/g/lib/1/notes.txt", "a plain file makes no version");
    mount.delete("/g/lib/1/lib-1.jar").send().expect(204);
    mount.get("/g/lib/maven-metadata.xml").send().expect(404);
    mount.get("/g/lib/1/notes.txt").send().expect(200);
    mount.delete("/g/lib/1/notes.txt").send().expect(204);
    mount.get("/").send().expect(404);
}

#[test]
fn a_version_is_presented_with_the_content_of_its_pom() {
    let (_, mount) = hosted(json!({}));
    let pom = "<project><artifactId>lib</artifactId><name>Lib</name><description>For all</description><version>1.0</version>\
               <dependencies><dependency><groupId>g</groupId><artifactId>a</artifactId><version>${project.version}</version>\
               <optional>true</optional></dependency></dependencies></project>";
    put(&mount, "/org/example/lib/1.0/lib-1.0.jar", "jar");
    let id = VersionId::new("org.example:lib", "1.0");
    assert_eq!(mount.present_version(&id).unwrap(), json!({}));
    put(&mount, "/org/example/lib/1.0/lib-1.0.pom", pom);
    let presented = mount.present_version(&id).unwrap();
    assert_eq!(presented["readme"], json!({"media_type": "text/plain", "text": "Lib\n\nFor all"}));
    assert_eq!(
        presented["dependencies"],
        json!([{"name": "g:a", "requirement": "1.0", "group": "optional"}])
    );
    // A file that is not a POM does not cause an error.
    put(&mount, "/org/example/lib/2.0/lib-2.0.pom", "\u{0}<<<");
    assert_eq!(mount.present_version(&VersionId::new("org.example:lib", "2.0")).unwrap(), json!({}));
}
