//! Runs the format's test table on the in-memory host. Other tests check behaviour that a table row
//! cannot express: revisions, removals, many versions and intents.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::table;

use packhouse_npm::Npm;
use packhouse_sdk::{Action, BodyPlan, Token, VersionId};
use packhouse_testkit::{Answer, MemoryHost, Mount, TestRequest, run};
use serde_json::{Value, json};
use table::release::Release;

/// 2026-11-21 05:01:40 UTC.
const NOW: u64 = 1_795_237_300_000;

fn hosted(settings: Value) -> (MemoryHost, Mount<Npm>) {
    let host = MemoryHost::new();
    host.set_now(NOW);
    let mount = host.mount::<Npm>("releases", "hosted", settings);
    (host, mount)
}

fn publish(mount: &Mount<Npm>, release: &Release) -> Answer {
    mount.put(&release.path()).json(&release.document()).caller("ann@example.com").send()
}

fn packument(mount: &Mount<Npm>, name: &str) -> Value {
    mount.get(&format!("/{name}?write=true")).send().expect(200).json()
}

fn keys(packument: &Value, member: &str) -> Vec<String> {
    packument[member].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn the_table_holds() {
    let (_, mut mount) = hosted(json!({}));
    run(&mut mount, &table::cases());
}

#[test]
fn a_refused_publish_changes_nothing() {
    let (host, mount) = hosted(json!({}));
    publish(&mount, &Release::new("lib", "1.0.0")).expect(201);
    let before = mount.effects();
    publish(&mount, &Release::new("lib", "1.0.0")).expect(409);
    publish(&mount, &Release::new("lib", "1.1.0").package_json("{}")).expect(400);
    mount.put("/lib/-rev/0").json(&json!({"versions": {}})).send().expect(409);
    host.end_grace();
    assert_eq!(mount.effects(), before);
}

/// npm unpublishes a version in two requests. It sends the packument without the version, and then
/// deletes the tarball at the new revision.
#[test]
fn a_version_is_unpublished_in_two_steps() {
    let (host, mount) = hosted(json!({}));
    for version in ["1.0.0", "1.1.0", "2.0.0-rc.1"] {
        publish(&mount, &Release::new("lib", version)).expect(201);
    }
    let mut document = packument(&mount, "lib");
    assert_eq!(document["dist-tags"]["latest"], "2.0.0-rc.1");
    document["versions"].as_object_mut().unwrap().remove("2.0.0-rc.1");
    document["dist-tags"].as_object_mut().unwrap().remove("latest");
    let revision = document["_rev"].as_str().unwrap().to_owned();
    mount.put(&format!("/lib/-rev/{revision}")).json(&document).send().expect(201);
    let again = mount.put(&format!("/lib/-rev/{revision}")).json(&document).send().expect(409);
    assert_eq!(again.code(), "conflict");

    let left = packument(&mount, "lib");
    assert_eq!(keys(&left, "versions"), ["1.0.0", "1.1.0"]);
    assert_eq!(
        left["dist-tags"],
        json!({"latest": "1.1.0"}),
        "`latest` falls back on the highest remaining version"
    );
    mount.get("/lib/-/lib-2.0.0-rc.1.tgz").send().expect(404);
    let revision = left["_rev"].as_str().unwrap();
    mount.delete(&format!("/lib/-/lib-2.0.0-rc.1.tgz/-rev/{revision}")).send().expect(200);
    mount.delete(&format!("/lib/-/lib-1.0.0.tgz/-rev/{revision}")).send().expect(200);
    assert_eq!(keys(&packument(&mount, "lib"), "versions"), ["1.1.0"]);
    assert_eq!(host.versions("releases").len(), 1);
}

#[test]
fn numbers_of_an_unpublished_package_cannot_be_used_again() {
    let (host, mount) = hosted(json!({}));
    publish(&mount, &Release::new("lib", "1.0.0").attested()).expect(201);
    let revision = packument(&mount, "lib")["_rev"].as_str().unwrap().to_owned();
    mount.delete(&format!("/lib/-rev/{revision}")).send().expect(200);
    mount.get("/lib").send().expect(404);
    host.end_grace();
    let left = mount.effects();
    assert!(left.blobs.is_empty() && left.shown.is_empty(), "{left}");
    let again = publish(&mount, &Release::new("lib", "1.0.0")).expect(409);
    assert_eq!(again.code(), "conflict");
    assert!(again.text().contains("was published and removed"), "{again}");
    publish(&mount, &Release::new("lib", "1.0.1")).expect(201);
}

#[test]
fn a_setting_allows_to_use_numbers_again() {
    let (_, mount) = hosted(json!({"republish_deleted": true}));
    publish(&mount, &Release::new("lib", "1.0.0")).expect(201);
    let revision = packument(&mount, "lib")["_rev"].as_str().unwrap().to_owned();
    mount.delete(&format!("/lib/-rev/{revision}")).send().expect(200);
    publish(&mount, &Release::new("lib", "1.0.0").file("a", "other")).expect(201);
    publish(&mount, &Release::new("lib", "1.0.0")).expect(409);
}

#[test]
fn a_setting_allows_legacy_names() {
    let (_, mount) = hosted(json!({"legacy_names": true}));
    for name in ["JSONStream", "@acme/x~", "@acme/.x", "it's(old)!"] {
        publish(&mount, &Release::new(name, "1.0.0")).expect(201);
        let path = format!("/{}", name.replace('/', "%2f"));
        let document = mount.get(&path).send().expect(200).json();
        let tarball = document["versions"]["1.0.0"]["dist"]["tarball"].as_str().unwrap();
        let tarball = tarball.strip_prefix("https://packhouse.test/repositories/releases").unwrap();
        mount.get(tarball).send().expect(200);
    }
    // A name that differs only in capital letters is another package.
    mount.get("/jsonstream").send().expect(404);
}

#[test]
fn each_version_has_its_own_readme() {
    let (host, mount) = hosted(json!({}));
    let readme = |number: &str| format!("# {number}\n{}", "text ".repeat(4000));
    for number in ["1.0.0", "1.1.0"] {
        publish(&mount, &Release::new("lib", number).manifest_members(&json!({"readme": readme(number)})))
            .expect(201);
    }
    let served = || packument(&mount, "lib")["readme"].as_str().unwrap_or_default().to_owned();
    assert_eq!(served(), readme("1.1.0"));
    mount.delete_version(&VersionId::new("lib", "1.1.0")).unwrap();
    assert_eq!(served(), readme("1.0.0"));
    let old = json!({"versions": {"1.0.0": {"deprecated": "old", "readme": "another"}}});
    mount.put("/lib").json(&old).send().expect(201);
    assert_eq!(served(), readme("1.0.0"), "a deprecation does not change the readme");
    mount.delete_version(&VersionId::new("lib", "1.0.0")).unwrap();
    host.end_grace();
    assert!(mount.effects().blobs.is_empty(), "the package's readmes are removed with it");
}

#[test]
fn the_operators_limit_applies_to_the_tarball() {
    let fits = Release::new("lib", "1.0.0");
    let (_, mount) = hosted(json!({"max_file_bytes": fits.tarball().len()}));
    publish(&mount, &fits).expect(201);
    let refused = publish(&mount, &Release::new("lib", "1.1.0").file("more", "x")).expect(413);
    assert_eq!(refused.code(), "file_too_large");
    let (_, mount) = hosted(json!({"max_file_bytes": fits.tarball().len() - 1}));
    publish(&mount, &fits).expect(413);
}

#[test]
fn the_publisher_is_recorded() {
    let (_, mount) = hosted(json!({}));
    publish(&mount, &Release::new("lib", "1.0.0")).expect(201);
    let document = packument(&mount, "lib");
    let ann = json!({"name": "ann@example.com", "email": "ann@example.com"});
    assert_eq!((&document["maintainers"], &document["versions"]["1.0.0"]["_npmUser"]), (&json!([ann]), &ann));
    assert_eq!(
        mount.get("/-/whoami").caller("ann@example.com").send().expect(200).json()["username"],
        "ann@example.com"
    );
    assert_eq!(
        mount.get("/-/npm/v1/user").caller("ann@example.com").send().expect(200).json()["email"],
        "ann@example.com"
    );
}

#[test]
fn a_version_is_signed_with_the_hosts_key() {
    let (_, mount) = hosted(json!({}));
    let release = Release::new("lib", "1.0.0");
    publish(&mount, &release).expect(201);
    let signature = &packument(&mount, "lib")["versions"]["1.0.0"]["dist"]["signatures"][0];
    let keys = mount.get("/-/npm/v1/keys").send().expect(200).json();
    assert_eq!((&keys["keys"][0]["keyid"], &keys["keys"][0]["expires"]), (&signature["keyid"], &Value::Null));
    assert_eq!(keys["keys"][0]["scheme"], "ecdsa-sha2-nistp256");
    assert!(signature["sig"].as_str().is_some_and(|text| !text.is_empty()));
}

#[test]
fn a_sign_in_uses_the_hosts_page() {
    let (host, mount) = hosted(json!({}));
    let begun = mount.post("/-/v1/login").json(&json!({})).send().expect(200).json();
    let done = begun["doneUrl"].as_str().unwrap();
    let path = done.strip_prefix("https://packhouse.test/repositories/releases").unwrap().to_owned();
    assert!(begun["loginUrl"].as_str().unwrap().starts_with("https://"));
    let waiting = mount.get(&path).send().expect(202);
    assert_eq!((waiting.header("retry-after"), waiting.text().as_str()), (Some("5"), "{}"));
    host.grant_login(path.rsplit('/').next().unwrap(), "PLACEHOLDER");
    let granted = mount.get(&path).send().expect(200);
    assert_eq!(
        (granted.header("cache-control"), granted.json()),
        (Some("no-store"), json!({"token": "PLACEHOLDER"}))
    );
    mount.get("/-/v1/login/unknown").send().expect(404);
    let many = (0..1000).map(|_| mount.post("/-/v1/login").json(&json!({})).send());
    let refused = many.into_iter().find(|answer| answer.status != 200).unwrap().expect(429);
    assert_eq!((refused.code(), refused.header("retry-after")), ("too_many_attempts", Some("60")));
}

#[test]
fn tokens_are_listed_and_revoked() {
    let (host, mount) = hosted(json!({}));
    for (id, scope) in [("1", "read"), ("2", "write")] {
        let scope = vec![scope.to_owned()];
        let (name, hint) = (format!("token {id}"), "pkh_ab".to_owned());
        host.add_token("ann", Token { id: id.to_owned(), name, hint, scope, created: NOW, expires: None });
    }
    let listed = mount.get("/-/npm/v1/tokens").caller("ann").send().expect(200).json();
    let objects: Vec<(&str, bool)> = listed["objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|token| (token["key"].as_str().unwrap(), token["readonly"].as_bool().unwrap()))
        .collect();
    assert_eq!((objects, &listed["urls"]), (vec![("2", false), ("1", true)], &json!({})));
    assert_eq!(listed["objects"][0].get("cidr_whitelist"), None, "npm would show even an empty list");
    mount.delete("/-/npm/v1/tokens/token/1").caller("ann").send().expect(200);
    mount.delete("/-/npm/v1/tokens/token/1").caller("ann").send().expect(404);
    mount.delete("/-/user/token/2").caller("ann").send().expect(200);
}

#[test]
fn intents_have_the_required_action() {
    let (_, mount) = hosted(json!({}));
    let plan = |method: &str, target: &str| mount.plan(&TestRequest::new(method, target)).unwrap();
    let publish = plan("PUT", "/@acme%2flib");
    assert_eq!((publish.action, publish.subject.as_deref()), (Action::Publish, Some("@acme/lib")));
    assert_eq!(publish.body, BodyPlan::Body { limit: 280_000_000 + (32 << 20) });
    for (method, target, action) in [
        ("PUT", "/lib/-rev/1", Action::Delete),
        ("DELETE", "/lib/-rev/1", Action::Delete),
        ("DELETE", "/lib/-/lib-1.0.0.tgz/-rev/1", Action::Delete),
        ("PUT", "/-/package/lib/dist-tags/x", Action::Publish),
        ("DELETE", "/-/package/lib/dist-tags/x", Action::Publish),
        ("POST", "/-/npm/v1/security/advisories/bulk", Action::Read),
        ("POST", "/-/v1/login", Action::Open),
        ("GET", "/-/v1/login/x", Action::Open),
        ("POST", "/-/npm/v1/tokens", Action::Open),
        ("PUT", "/-/user/org.couchdb.user:ann", Action::Open),
        ("DELETE", "/-/user/token/x", Action::Read),
    ] {
        assert_eq!(plan(method, target).action, action, "{method} {target}");
    }
    for target in ["/-/npm/v1/tokens", "/-/user/org.couchdb.user:ann"] {
        let method = if target.ends_with("tokens") { "POST" } else { "PUT" };
        assert_eq!(plan(method, target).body, BodyPlan::None, "the plugin must not read the password");
    }
    assert!(plan("GET", "/lib?write=true").for_publish && !plan("GET", "/lib").for_publish);
    let mut before_publish = TestRequest::new("GET", "/lib");
    before_publish.headers.push(("npm-command".to_owned(), "publish".to_owned()));
    assert!(mount.plan(&before_publish).unwrap().for_publish);
}

#[test]
fn upkeep_removes_and_marks_versions() {
    let (host, mount) = hosted(json!({}));
    for version in ["1.0.0", "1.1.0"] {
        publish(&mount, &Release::new("lib", version)).expect(201);
    }
    let id = VersionId::new("lib", "1.1.0");
    mount.mark_version(&id, "deprecated", "broken").unwrap();
    assert_eq!(packument(&mount, "lib")["versions"]["1.1.0"]["deprecated"], "broken");
    assert_eq!(host.versions("releases")[1].state, "deprecated");
    assert_eq!(host.versions("releases")[1].files.len(), 1, "its files stay published");
    mount.mark_version(&id, "", "").unwrap();
    assert_eq!(packument(&mount, "lib")["versions"]["1.1.0"]["deprecated"], Value::Null);
    assert_eq!(mount.mark_version(&id, "yanked", "").unwrap_err().problems[0].code, "not_supported");
    mount.delete_version(&id).unwrap();
    assert_eq!(mount.delete_version(&id).unwrap_err().status, 404);
    assert_eq!(packument(&mount, "lib")["dist-tags"], json!({"latest": "1.0.0"}));
    mount.delete_version(&VersionId::new("lib", "1.0.0")).unwrap();
    mount.get("/lib").send().expect(404);
    assert_eq!(mount.mark_version(&id, "deprecated", "x").unwrap_err().status, 404);
    assert_eq!(mount.delete_version(&VersionId::new("no name", "1")).unwrap_err().status, 404);
}

/// Both forms of a packument have all 2,000 versions. One document deprecates all of them, as `npm
/// deprecate` does.
#[test]
fn two_thousand_versions_are_served_and_deprecated() {
    let (_, mount) = hosted(json!({}));
    let readme = json!({"readme": "word ".repeat(2000)});
    for number in 0..2000 {
        publish(&mount, &Release::new("lib", &format!("1.{number}.0")).manifest_members(&readme)).expect(201);
    }
    let mut full = packument(&mount, "lib");
    assert_eq!(full.to_string().matches("word word").count(), 1000, "one readme, not one for each version");
    assert_eq!(keys(&full, "versions").len(), 2000);
    assert_eq!(full["dist-tags"]["latest"], "1.1999.0");
    let short =
        mount.get("/lib").header("accept", "application/vnd.npm.install-v1+json").send().expect(200).json();
    assert_eq!(keys(&short, "versions"), keys(&full, "versions"));
    assert_eq!(keys(&short, "time").len(), 2002);

    for manifest in full["versions"].as_object_mut().unwrap().values_mut() {
        manifest["deprecated"] = json!("old");
    }
    mount.put("/lib").json(&full).send().expect(201);
    let full = packument(&mount, "lib");
    let deprecated =
        full["versions"].as_object().unwrap().values().filter(|manifest| manifest["deprecated"] == "old");
    assert_eq!(deprecated.count(), 2000);
    let revision = full["_rev"].as_str().unwrap();
    mount.delete(&format!("/lib/-rev/{revision}")).send().expect(200);
    mount.get("/lib").send().expect(404);
}

#[test]
fn a_presentation_has_the_readme_the_dependencies_and_the_attestations() {
    let (_, mount) = hosted(json!({}));
    let package = json!({
        "name": "lib", "version": "1.0.0", "dependencies": {"dep": "^1.0.0"},
        "optionalDependencies": {"dep": "^1.0.0"}, "peerDependencies": {"host": ">=2"},
    });
    let release = Release::new("lib", "1.0.0").package_json(&package.to_string());
    publish(&mount, &release.manifest_members(&json!({"readmeFilename": "README"})).attested()).expect(201);
    let presentation = mount.present_version(&VersionId::new("lib", "1.0.0")).unwrap();
    assert_eq!(presentation["readme"], json!({"media_type": "text/plain", "text": "# lib"}));
    let host = json!({"name": "host", "requirement": ">=2", "group": "peer"});
    let dep = json!({"name": "dep", "requirement": "^1.0.0", "group": "optional"});
    assert_eq!(presentation["dependencies"], json!([host, dep]));
    let stated = &presentation["attestations"][0];
    assert_eq!(stated["path"], "-/npm/v1/attestations/lib@1.0.0");
    assert!(stated["kind"].as_str().unwrap().starts_with("https://"), "{stated}");
    assert_eq!(mount.present_version(&VersionId::new("lib", "2.0.0")).unwrap_err().status, 404);
}
