//! Packuments of packages with many versions. A packument from cached pieces must equal a packument
//! that is rendered as a whole.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::table::release;

use packhouse_npm::Npm;
use packhouse_sdk::VersionId;
use packhouse_testkit::{MemoryHost, Mount};
use proptest::prelude::*;
use release::Release;
use serde_json::{Value, json};

const FORMS: [&str; 2] = ["application/json", "application/vnd.npm.install-v1+json"];

/// Creates a package with a number of versions.
fn package(versions: usize) -> (MemoryHost, Mount<Npm>) {
    let host = MemoryHost::new();
    let mount = host.mount::<Npm>("releases", "hosted", json!({"republish_deleted": true}));
    (0..versions).for_each(|number| publish(&host, &mount, number));
    (host, mount)
}

fn publish(host: &MemoryHost, mount: &Mount<Npm>, number: usize) {
    // Each version has its own publication time.
    host.set_now(1_795_237_300_000 + number as u64 * 1000);
    let release = Release::new("lib", &format!("1.{number}.0"));
    mount.put("/lib").json(&release.document()).caller("ann@example.com").send().expect(201);
}

fn packument(mount: &Mount<Npm>, accept: &str) -> String {
    mount.get("/lib").header("accept", accept).send().expect(200).text().to_owned()
}

/// Asserts that the packument in each form is the same from cached pieces, from new pieces, and
/// rendered as a whole. To get the last one, the function adds a second member to a group, because
/// such a group renders packuments as a whole. The second member has one more version, which the
/// comparison ignores.
fn assert_whole(host: &MemoryHost, mount: &Mount<Npm>, versions: usize) {
    let pieced = FORMS.map(|accept| packument(mount, accept));
    host.forget_pieces();
    assert_eq!(pieced, FORMS.map(|accept| packument(mount, accept)));
    let more = host.mount::<Npm>("more", "hosted", json!({}));
    let release = Release::new("lib", "0.9.0");
    more.put("/lib").json(&release.document()).caller("ann@example.com").send().expect(201);
    let group = host.mount::<Npm>("all", "group", json!({})).members(&["releases", "more"]);
    for (accept, pieced) in FORMS.iter().zip(pieced) {
        let mut pieced: Value = serde_json::from_str(&pieced).unwrap();
        host.take_piece_counts();
        let at_once = packument(&group, accept).replace("/repositories/all/", "/repositories/releases/");
        assert_eq!(host.take_piece_counts(), (0, 0));
        let mut at_once: Value = serde_json::from_str(&at_once).unwrap();
        assert_eq!(at_once["versions"].as_object().unwrap().len(), versions + 1);
        for document in [&mut at_once, &mut pieced] {
            document["versions"].as_object_mut().unwrap().remove("0.9.0");
            let time = document["time"].as_object_mut().unwrap();
            time.remove("0.9.0");
            // The group merges these times from both members.
            time.remove("created");
            time.remove("modified");
            document.as_object_mut().unwrap().remove("modified");
        }
        assert_eq!(pieced["versions"], at_once["versions"]);
        assert_eq!(pieced, at_once);
    }
}

#[test]
fn a_publish_renders_only_its_own_run() {
    let (host, mount) = package(400);
    for accept in FORMS {
        packument(&mount, accept);
    }
    for number in [400, 401, 402] {
        publish(&host, &mount, number);
        for accept in FORMS {
            host.take_piece_counts();
            packument(&mount, accept);
            let (made, found) = host.take_piece_counts();
            assert!(made <= 2 && found >= 5, "{made} made, {found} found");
            packument(&mount, accept);
            assert_eq!(host.take_piece_counts(), (0, made + found), "all pieces come from cache");
        }
    }
    let id = |number: usize| VersionId::new("lib", format!("1.{number}.0"));
    mount.mark_version(&id(7), "deprecated", "old").unwrap();
    packument(&mount, FORMS[0]);
    assert_eq!(host.take_piece_counts().0, 1);
    mount.delete_version(&id(300)).unwrap();
    packument(&mount, FORMS[0]);
    assert!(host.take_piece_counts().0 <= 2);
    assert_whole(&host, &mount, 402);
}

/// The packument of a package with 63 versions is one piece. After one more publish, it consists of
/// several pieces.
#[test]
fn a_package_with_few_versions_is_one_piece() {
    let (host, mount) = package(63);
    packument(&mount, FORMS[0]);
    assert_eq!(host.take_piece_counts(), (1, 0));
    let at_once: Value = serde_json::from_str(&packument(&mount, FORMS[0])).unwrap();
    assert_eq!(host.take_piece_counts(), (0, 1));
    publish(&host, &mount, 63);
    let pieced: Value = serde_json::from_str(&packument(&mount, FORMS[0])).unwrap();
    assert!(host.take_piece_counts().0 > 0);
    for (number, version) in at_once["versions"].as_object().unwrap() {
        assert_eq!(&pieced["versions"][number], version);
        assert_eq!(pieced["time"][number], at_once["time"][number]);
    }
    assert_eq!(pieced["description"], "about lib");
    assert_eq!(pieced["dist-tags"], json!({"latest": "1.63.0"}));
}

#[test]
fn each_address_has_its_own_pieces() {
    let (host, mount) = package(100);
    let group = host.mount::<Npm>("all", "group", json!({})).members(&["releases"]);
    packument(&mount, FORMS[0]);
    host.take_piece_counts();
    let through_group = packument(&group, FORMS[0]);
    assert_eq!(host.take_piece_counts().1, 0, "the member's pieces contain the member's links");
    assert!(through_group.contains("/repositories/all/lib/-/lib-1.7.0.tgz"));
    assert!(!through_group.contains("/repositories/releases/"));
    packument(&mount, FORMS[0]);
    assert_eq!(host.take_piece_counts().0, 0);
}

/// Lets the upstream serve a packument with a number of versions, each of at least this many bytes.
fn upstream(host: &MemoryHost, versions: usize, bytes: usize) {
    let version = |number: usize| {
        let version = format!("1.{number}.0");
        let tarball = format!("https://files.elsewhere.test/lib-{version}.tgz");
        let dist = json!({"tarball": tarball, "shasum": "da39a3ee5e6b4b0d3255bfef95601890afd80709"});
        (
            version.clone(),
            json!({"name": "lib", "version": version, "padding": "x".repeat(bytes), "dist": dist}),
        )
    };
    let versions: serde_json::Map<_, _> = (0..versions).map(version).collect();
    let times = versions.keys().map(|number| (number.clone(), json!("2026-11-11T05:01:40.000Z")));
    let document = json!({
        "name": "lib", "dist-tags": {"latest": "1.7.0", "gone": "9.9.9"}, "description": "theirs",
        "time": times.collect::<serde_json::Map<_, _>>(), "versions": versions,
    });
    host.answer_upstream("GET", "lib", 200, &[], document.to_string().as_bytes());
    host.answer_upstream("GET", "https://files.elsewhere.test/lib-1.7.0.tgz", 200, &[], b"");
}

#[test]
fn an_upstreams_packument_is_read_once() {
    let host = MemoryHost::new();
    let mount = host.mount::<Npm>("releases", "proxy", json!({}));
    host.mount::<Npm>("twice", "proxy", json!({}));
    let group = host.mount::<Npm>("all", "group", json!({})).members(&["releases", "twice"]);
    upstream(&host, 200, 2_000);
    for accept in FORMS {
        let made = packument(&mount, accept);
        let (cached, _) = host.take_piece_counts();
        assert!(cached > 3);
        assert_eq!(packument(&mount, accept), made);
        let (more, found) = host.take_piece_counts();
        assert!(more == 0 && found >= cached, "{found} of {cached}");
        // A group renders the packument as a whole, because another member may add versions.
        let at_once = packument(&group, accept).replace("/repositories/all/", "/repositories/releases/");
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        assert_eq!(read(&made), read(&at_once));
        assert_eq!(read(&made)["dist-tags"], json!({"latest": "1.7.0"}));
        host.take_piece_counts();
    }
    mount.get("/lib/-/lib-1.7.0.tgz").send().expect(200);
    assert_eq!(host.take_piece_counts(), (0, 1), "the outline is cached");
    upstream(&host, 201, 2_000);
    assert!(packument(&mount, FORMS[0]).contains("\"1.200.0\""), "a new document needs new pieces");
}

/// An action on a package.
#[derive(Clone, Debug)]
enum PackageAction {
    Publish(usize),
    Delete(usize),
    Deprecate(usize),
    Read(usize),
}

fn actions() -> impl Strategy<Value = Vec<PackageAction>> {
    let action = prop_oneof![
        (0..140usize).prop_map(PackageAction::Publish),
        (0..140usize).prop_map(PackageAction::Delete),
        (0..140usize).prop_map(PackageAction::Deprecate),
        (0..2usize).prop_map(PackageAction::Read),
    ];
    prop::collection::vec(action, 1..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn cached_pieces_stay_current(actions in actions(), versions in prop_oneof![Just(20), Just(60), Just(90)]) {
        let (host, mount) = package(versions);
        let mut exists: Vec<bool> = (0..140).map(|number| number < versions).collect();
        for action in actions {
            let id = |number: usize| VersionId::new("lib", format!("1.{number}.0"));
            match action {
                PackageAction::Publish(number) if !exists[number] => {
                    publish(&host, &mount, number);
                    exists[number] = true;
                }
                PackageAction::Delete(number) if exists[number] => {
                    mount.delete_version(&id(number)).unwrap();
                    exists[number] = false;
                }
                PackageAction::Deprecate(number) if exists[number] => {
                    mount.mark_version(&id(number), "deprecated", &format!("since {number}")).unwrap();
                }
                PackageAction::Read(form) => drop(packument(&mount, FORMS[form])),
                _ => {}
            }
            let pieced = packument(&mount, FORMS[0]);
            prop_assert!(pieced.len() > 1000);
        }
        assert_whole(&host, &mount, exists.iter().filter(|exists| **exists).count());
    }
}
