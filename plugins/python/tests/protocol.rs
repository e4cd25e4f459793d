//! Runs the protocol table with the in-memory host. The other tests check behaviour that a row of
//! the table cannot express: many versions, time, intents, listed versions.

use super::table;
use super::wheel;

use packhouse_python::Python;
use packhouse_sdk::{Action, BodyPlan, VersionId};
use packhouse_testkit::{Answer, MemoryHost, Mount, TestRequest, run};
use serde_json::{Value, json};

/// 2026-11-21 05:01:40 UTC.
const NOW: u64 = 1_795_237_300_000;

fn hosted(settings: Value) -> (MemoryHost, Mount<Python>) {
    let host = MemoryHost::new();
    host.set_now(NOW);
    let mount = host.mount::<Python>("packages", "hosted", settings);
    (host, mount)
}

fn publish(mount: &Mount<Python>, project: &str, version: &str) -> Answer {
    let file = wheel::wheel(project, version, "");
    mount
        .post("/")
        .part(":action", None, "file_upload")
        .part("name", None, project)
        .part("version", None, version)
        .part("content", Some(&wheel::wheel_name(project, version)), file)
        .send()
        .expect(200)
}

fn page(mount: &Mount<Python>, project: &str) -> Value {
    let answer =
        mount.get(&format!("/simple/{project}/")).header("accept", "application/vnd.pypi.simple.v1+json");
    answer.send().expect(200).json()
}

#[test]
fn the_table_holds() {
    let (_, mut mount) = hosted(json!({}));
    run(&mut mount, &table::cases());
}

#[test]
fn the_tables_of_other_settings_hold() {
    run(&mut hosted(json!({"redeploy": "identical"})).1, &table::identical());
    run(&mut hosted(json!({"republish_deleted": true})).1, &table::republished());
}

#[test]
fn a_refused_upload_changes_nothing() {
    let (host, mount) = hosted(json!({}));
    publish(&mount, "one", "1.0");
    let before = mount.effects();
    let again = |project: &str, file: Vec<u8>| {
        let form = mount.post("/").part(":action", None, "file_upload").part("name", None, project);
        form.part("version", None, "1.0")
            .part("content", Some(&wheel::wheel_name(project, "1.0")), file)
            .send()
    };
    again("one", wheel::wheel("one", "1.0", "Author: other\n")).expect(409);
    again("two", wheel::wheel("one", "1.0", "")).expect(400);
    host.end_grace();
    assert_eq!(mount.effects(), before);
}

#[test]
fn at_most_sixteen_bills_of_materials_are_stored_beside_a_wheel() {
    let (host, mount) = hosted(json!({}));
    let names: Vec<String> =
        (10..30).map(|number| format!("lib-1.0.dist-info/sboms/{number}.cdx.json")).collect();
    let upload = |project: &str, more: &[(&str, &[u8])]| {
        let form = mount.post("/").part(":action", None, "file_upload").part("name", None, project);
        let file = wheel::wheel_with(project, "1.0", more);
        form.part("version", None, "1.0")
            .part("content", Some(&wheel::wheel_name(project, "1.0")), file)
            .send()
    };
    let more: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"{}"[..])).collect();
    upload("lib", &more).expect(200);
    let documents = host.documents("packages");
    assert_eq!(documents.len(), 16);
    assert_eq!(
        (documents[0].title.as_str(), documents[0].path.as_str(), documents[0].size),
        ("10.cdx.json", "packages/lib/1.0/lib-1.0-py3-none-any.whl", 2)
    );
    // The plugin skips documents that are too large, and files of other types.
    let large = vec![b' '; (16 << 20) + 1];
    let inside = |name: &str| format!("big-1.0.dist-info/sboms/{name}");
    let (first, second, text) = (inside("a.cdx.json"), inside("b.spdx.json"), inside("readme.txt"));
    upload("big", &[(&first, &large), (&second, b"{}"), (&text, b"no")]).expect(200);
    let documents = host.documents("packages");
    let titles: Vec<&str> = documents.iter().skip(16).map(|one| one.title.as_str()).collect();
    assert_eq!(titles, ["b.spdx.json"]);
}

#[test]
fn the_operators_limit_applies_to_the_file() {
    let file = wheel::wheel("lib", "1.0", "");
    for (limit, status) in [(file.len(), 200), (file.len() - 1, 413)] {
        let (_, mount) = hosted(json!({"max_file_bytes": limit}));
        let form = mount.post("/").part(":action", None, "file_upload").part("name", None, "lib");
        let sent =
            form.part("version", None, "1.0").part("content", Some(&wheel::wheel_name("lib", "1.0")), &file);
        sent.send().expect(status);
    }
}

#[test]
fn a_version_is_yanked_and_unyanked() {
    let (host, mount) = hosted(json!({}));
    publish(&mount, "lib", "1.0");
    publish(&mount, "lib", "1.1");
    let id = VersionId::new("lib", "1.0.0");
    mount.mark_version(&id, "yanked", "broken \"<b>\"").unwrap();
    let files = &page(&mount, "lib")["files"];
    assert_eq!((&files[0]["yanked"], &files[1]["yanked"]), (&json!("broken \"<b>\""), &json!(false)));
    let html = mount.get("/simple/lib/").send().text();
    assert!(html.contains("data-yanked=\"broken &quot;&lt;b&gt;&quot;\""), "{html}");
    let listed = host.versions("packages");
    assert_eq!((listed[0].state.as_str(), listed[1].state.as_str()), ("yanked", ""));
    assert_eq!(listed[0].properties, [("reason".to_owned(), "broken \"<b>\"".to_owned())]);
    assert_eq!(listed[0].files.len(), 1);
    assert_eq!(mount.get("/pypi/lib/json").send().json()["info"]["version"], "1.1");

    mount.mark_version(&id, "yanked", "").unwrap();
    assert_eq!(page(&mount, "lib")["files"][0]["yanked"], true);
    mount.mark_version(&id, "", "").unwrap();
    assert_eq!(page(&mount, "lib")["files"][0]["yanked"], false);
    assert_eq!(host.versions("packages")[0].state, "");

    assert_eq!(mount.mark_version(&id, "deprecated", "").unwrap_err().problems[0].code, "not_supported");
    assert_eq!(mount.mark_version(&VersionId::new("lib", "2"), "yanked", "").unwrap_err().status, 404);
    assert_eq!(mount.mark_version(&id, "yanked", "two\nlines").unwrap_err().status, 400);
}

#[test]
fn a_file_that_joins_a_yanked_version_is_yanked() {
    let (host, mount) = hosted(json!({}));
    publish(&mount, "lib", "1.0");
    mount.mark_version(&VersionId::new("lib", "1.0"), "yanked", "old").unwrap();
    let form = mount.post("/").part(":action", None, "file_upload").part("name", None, "lib");
    form.part("version", None, "1.0")
        .part("content", Some("lib-1.0.tar.gz"), wheel::sdist("lib", "1.0"))
        .send()
        .expect(200);
    assert!(page(&mount, "lib")["files"].as_array().unwrap().iter().all(|file| file["yanked"] == "old"));
    assert_eq!(
        (host.versions("packages")[0].state.as_str(), host.versions("packages")[0].files.len()),
        ("yanked", 2)
    );
}

#[test]
fn published_versions_are_listed_and_deleted_ones_are_not() {
    let (host, mount) = hosted(json!({}));
    publish(&mount, "Lib.One", "1.0");
    publish(&mount, "Lib.One", "2.0");
    let listed = host.versions("packages");
    assert_eq!((listed[0].name.as_str(), listed[0].version.as_str()), ("lib-one", "1.0"));
    assert_eq!(listed[0].summary, "About Lib.One");
    assert_eq!(listed[0].files[0].path, "packages/lib-one/1.0/lib_one-1.0-py3-none-any.whl");
    mount.delete_version(&VersionId::new("lib-one", "1.0")).unwrap();
    assert_eq!(mount.delete_version(&VersionId::new("lib-one", "1.0")).unwrap_err().status, 404);
    assert_eq!(host.versions("packages").len(), 1);
    mount.delete_version(&VersionId::new("lib-one", "2.0")).unwrap();
    host.end_grace();
    let left = mount.effects();
    let keys: Vec<&str> = left.records.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["d/lib-one-1-py3-none-any.whl", "d/lib-one-2-py3-none-any.whl"]);
    assert!(left.blobs.is_empty() && left.shown.is_empty(), "{left}");
}

#[test]
fn two_thousand_versions_are_listed_in_order() {
    let (_, mount) = hosted(json!({}));
    for number in (0..2000).rev() {
        publish(&mount, "lib", &format!("1.{number}"));
    }
    let page = page(&mount, "lib");
    let expected: Vec<String> = (0..2000).map(|number| format!("1.{number}")).collect();
    assert_eq!(page["versions"], json!(expected));
    assert_eq!(page["files"].as_array().unwrap().len(), 2000);
    assert_eq!(page["files"][1999]["filename"], "lib-1.1999-py3-none-any.whl");
}

#[test]
fn the_same_state_gives_the_same_bytes() {
    let (host, mount) = hosted(json!({}));
    publish(&mount, "lib", "1.0");
    let first = mount.get("/simple/lib/").send();
    host.set_now(NOW + 1000);
    assert_eq!(mount.get("/simple/lib/").send(), first);
    assert_eq!(page(&mount, "lib")["files"][0]["upload-time"], "2026-11-21T05:01:40.000000Z");
}

#[test]
fn intents_have_the_required_action_and_body() {
    let (_, mount) = hosted(json!({}));
    let plan = |method: &str, target: &str| mount.plan(&TestRequest::new(method, target)).unwrap();
    let post = plan("POST", "/");
    assert_eq!(post.action, Action::Publish);
    assert_eq!(post.body, BodyPlan::Parts { limit: 10_000_000_000 + (16 << 20) });
    assert_eq!(post.digests, ["md5", "blake2b-256"]);
    let index = plan("GET", "/simple/lib/");
    assert!(index.action == Action::Read && index.for_publish && index.subject.as_deref() == Some("lib"));
    let file = plan("GET", "/packages/lib/1.0/lib-1.0.tar.gz");
    assert!(file.action == Action::Read && !file.for_publish);
    assert_eq!(plan("DELETE", "/packages/lib/1.0/lib-1.0.tar.gz").action, Action::Delete);
    assert_eq!(plan("PUT", "/projects/lib/status").action, Action::Publish);
}
