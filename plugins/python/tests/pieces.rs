//! Tests that a page built from pieces equals the page that the plugin renders as a whole.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::wheel;

use packhouse_python::Python;
use packhouse_sdk::VersionId;
use packhouse_testkit::{MemoryHost, Mount};
use proptest::prelude::*;
use serde_json::{Value, json};

const FORMS: [&str; 2] = ["application/vnd.pypi.simple.v1+json", "text/html"];

/// Mounts a repository with a project that has this number of files.
fn project(files: usize) -> (MemoryHost, Mount<Python>) {
    let host = MemoryHost::new();
    let mount = host.mount::<Python>("packages", "hosted", json!({"republish_deleted": true}));
    (0..files).for_each(|number| publish(&mount, &version(number)));
    (host, mount)
}

/// Returns a version for each number. The order of the versions differs from the order of their
/// texts.
fn version(number: usize) -> String {
    match number % 4 {
        0 => format!("1.{number}"),
        1 => format!("1.{number}rc1"),
        2 => format!("{}.0", number / 10),
        _ => format!("1!0.{number}.post2"),
    }
}

fn publish(mount: &Mount<Python>, version: &str) {
    let sent = mount.post("/").part(":action", None, "file_upload").part("name", None, "lib");
    let name = wheel::wheel_name("lib", version);
    sent.part("version", None, version)
        .part("content", Some(&name), wheel::wheel("lib", version, "Requires-Python: >=3.8\n"))
        .send();
}

fn page(mount: &Mount<Python>, accept: &str) -> String {
    mount.get("/simple/lib/").header("accept", accept).send().expect(200).text().to_owned()
}

/// Asserts that the page is the same with cached pieces, with new pieces, and rendered as a whole.
/// The plugin renders a page as a whole if two members of a group have the project.
fn assert_whole(host: &MemoryHost, mount: &Mount<Python>) {
    let pieced = FORMS.map(|accept| page(mount, accept));
    host.forget_pieces();
    assert_eq!(pieced, FORMS.map(|accept| page(mount, accept)));
    let read: Value = serde_json::from_str(&pieced[0]).unwrap();
    let first = read["versions"].as_array().unwrap().first().cloned();
    let more = host.mount::<Python>("more", "hosted", json!({}));
    publish(&more, first.unwrap().as_str().unwrap());
    let group = host.mount::<Python>("all", "group", json!({})).members(&["packages", "more"]);
    host.take_piece_counts();
    assert_eq!(pieced, FORMS.map(|accept| page(&group, accept)));
    assert_eq!(host.take_piece_counts(), (0, 0));
}

#[test]
fn an_upload_renders_only_its_run_again() {
    let (host, mount) = project(500);
    for accept in FORMS {
        page(&mount, accept);
    }
    for number in [500, 504, 508] {
        publish(&mount, &version(number));
        for accept in FORMS {
            host.take_piece_counts();
            page(&mount, accept);
            let (made, found) = host.take_piece_counts();
            assert!(made <= 4 && found >= 4, "{made} made, {found} found");
            page(&mount, accept);
            assert_eq!(host.take_piece_counts(), (0, made + found), "all pieces must come from the cache");
        }
    }
    assert_whole(&host, &mount);
}

#[test]
fn few_files_are_one_piece() {
    let (host, mount) = project(50);
    for accept in FORMS {
        page(&mount, accept);
        assert_eq!(host.take_piece_counts(), (1, 0), "{accept}");
        page(&mount, accept);
        assert_eq!(host.take_piece_counts(), (0, 1), "{accept}");
    }
    publish(&mount, &version(50));
    page(&mount, FORMS[0]);
    assert_eq!(host.take_piece_counts(), (1, 0));
    assert_whole(&host, &mount);
}

#[test]
fn a_quarantined_project_lists_no_files() {
    let (host, mount) = project(100);
    let status = json!({"status": "quarantined", "reason": "looked into"});
    mount.put("/projects/lib/status").json(&status).send().expect(200);
    for accept in FORMS {
        assert!(!page(&mount, accept).contains(".whl"), "{accept}");
    }
    let read: Value = serde_json::from_str(&page(&mount, FORMS[0])).unwrap();
    assert_eq!((&read["project-status"], &read["files"]), (&status, &json!([])));
    assert_whole(&host, &mount);
}

/// A change to a project, or a read of its page.
#[derive(Clone, Debug)]
enum ProjectChange {
    Publish(usize),
    Delete(usize),
    Yank(usize, &'static str),
    Read(usize),
}

fn changes() -> impl Strategy<Value = Vec<ProjectChange>> {
    let change = prop_oneof![
        (0..160usize).prop_map(ProjectChange::Publish),
        (0..160usize).prop_map(ProjectChange::Delete),
        ((0..160usize), prop_oneof![Just("yanked"), Just("")])
            .prop_map(|(number, state)| ProjectChange::Yank(number, state)),
        (0..2usize).prop_map(ProjectChange::Read),
    ];
    prop::collection::vec(change, 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn cached_pieces_are_up_to_date(changes in changes(), files in prop_oneof![Just(20), Just(60), Just(120)]) {
        let (host, mount) = project(files);
        for change in changes {
            let id = |number: usize| VersionId::new("lib", version(number));
            // The server refuses some changes, such as publishing an existing file.
            match change {
                ProjectChange::Publish(number) => publish(&mount, &version(number)),
                ProjectChange::Delete(number) => drop(mount.delete_version(&id(number))),
                ProjectChange::Yank(number, state) => drop(mount.mark_version(&id(number), state, "why")),
                ProjectChange::Read(form) => drop(page(&mount, FORMS[form])),
            }
            page(&mount, FORMS[0]);
        }
        assert_whole(&host, &mount);
    }
}
