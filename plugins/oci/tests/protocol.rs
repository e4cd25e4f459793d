//! Runs the protocol table with the memory host, and tests what a row of the table cannot express:
//! groups, intents, presentation, removal of unreferenced manifests.

use super::table;

use packhouse_oci::Oci;
use packhouse_sdk::{Action, BodyPlan, VersionId};
use packhouse_testkit::{MemoryHost, Mount, Sending, TestRequest, World, run};
use serde_json::json;
use table::{OCI_IMAGE, OCI_INDEX, digest, image, index, put_manifest, referrer};

const CONFIG: &str = "{}";

fn hosted(host: &MemoryHost, name: &str) -> Mount<Oci> {
    host.mount::<Oci>(name, "hosted", json!({}))
}

fn request<'a>(mount: &'a Mount<Oci>, method: &str, target: &str) -> Sending<'a, Oci> {
    mount.request(method, target).claim("image")
}

fn get(mount: &Mount<Oci>, target: &str) -> packhouse_testkit::Answer {
    request(mount, "GET", target).send()
}

/// Pushes an image with one layer, whose bytes are the text `layer`. Returns the manifest.
fn push(mount: &mut Mount<Oci>, name: &str, tag: &str, layer: &str) -> String {
    let manifest = image(OCI_IMAGE, CONFIG, &[layer]);
    for blob in [CONFIG, layer] {
        mount.send(&table::push("a blob", name, blob).request).expect(201);
    }
    put(mount, name, tag, OCI_IMAGE, &manifest);
    manifest
}

fn put(mount: &mut Mount<Oci>, name: &str, tag: &str, kind: &str, manifest: &str) {
    mount.send(&put_manifest("", &format!("/{name}/manifests/{tag}"), kind, manifest).request).expect(201);
}

fn keys(mount: &Mount<Oci>, prefix: &str) -> Vec<String> {
    let records = mount.effects().records.into_iter().map(|(key, _)| key);
    records.filter(|key| key.starts_with(prefix)).collect()
}

#[test]
fn the_table_holds() {
    let mut mount = hosted(&MemoryHost::new(), "releases");
    run(&mut mount, &table::cases());
}

#[test]
fn unreferenced_blobs_are_collected_and_referenced_ones_stay() {
    let host = MemoryHost::new();
    let mut mount = hosted(&host, "r");
    let manifest = push(&mut mount, "app", "latest", "layer");
    mount.send(&table::push("a blob", "app", "unused").request).expect(201);
    host.end_grace();
    get(&mount, &format!("/app/blobs/{}", digest("unused"))).expect(404);
    get(&mount, &format!("/app/blobs/{}", digest("layer"))).expect(200);
    request(&mount, "DELETE", &format!("/app/manifests/{}", digest(&manifest))).send().expect(202);
    host.end_grace();
    let left = mount.effects();
    assert!(left.blobs.is_empty() && left.shown.is_empty(), "{left}");
    assert_eq!(keys(&mount, ""), ["g/app"]);
    push(&mut mount, "app", "latest", "layer");
    get(&mount, &format!("/app/blobs/{}", digest("layer"))).expect(200);
}

#[test]
fn untagged_manifests_are_removed_unless_a_setting_keeps_them() {
    let host = MemoryHost::new();
    let mut mount = host.mount::<Oci>("r", "hosted", json!({"keep_untagged": false}));
    let first = push(&mut mount, "app", "latest", "first");
    let second = push(&mut mount, "app", "latest", "second");
    assert_eq!(keys(&mount, "m/"), [format!("m/app:{}", digest(&second))]);
    get(&mount, &format!("/app/manifests/{}", digest(&first))).expect(404);
    // A part of an index and a referrer stay until the index or the subject is removed.
    let both = index(OCI_INDEX, OCI_IMAGE, &[&second]);
    put(&mut mount, "app", "multi", OCI_INDEX, &both);
    let signature = referrer("application/x.signature", &second, "signed")
        .replace(&digest(r#"{"architecture":"amd64","os":"linux"}"#), &digest(CONFIG));
    put(&mut mount, "app", "signature", OCI_IMAGE, &signature);
    for tag in ["latest", "signature"] {
        request(&mount, "DELETE", &format!("/app/manifests/{tag}")).send().expect(202);
    }
    assert_eq!(keys(&mount, "m/").len(), 3, "{}", mount.effects());
    request(&mount, "DELETE", "/app/manifests/multi").send().expect(202);
    assert_eq!(keys(&mount, ""), ["g/app"]);
}

#[test]
fn a_tag_is_a_version_with_the_files_of_its_manifest() {
    let host = MemoryHost::new();
    let mut mount = hosted(&host, "r");
    push(&mut mount, "team/app", "1.0", "one");
    push(&mut mount, "team/app", "1.0", "two");
    let versions = host.versions("r");
    assert_eq!(versions.len(), 1);
    let version = &versions[0];
    assert_eq!((version.name.as_str(), version.version.as_str()), ("team/app", "1.0"));
    let mut paths: Vec<&str> = version.files.iter().map(|file| file.path.as_str()).collect();
    paths.sort_unstable();
    let layer = format!("team/app/blobs/{}", digest("two"));
    assert!(paths.contains(&layer.as_str()) && paths.contains(&"team/app/manifests/1.0"), "{paths:?}");
    assert_eq!(paths.len(), 3, "{paths:?}");
    mount.delete_version(&VersionId::new("team/app", "1.0")).unwrap();
    assert_eq!(host.versions("r"), []);
    assert_eq!(mount.delete_version(&VersionId::new("team/app", "1.0")).unwrap_err().status, 404);
    let marked = mount.mark_version(&VersionId::new("team/app", "1.0"), "yanked", "");
    assert_eq!(marked.unwrap_err().problems[0].code, "not_supported");
}

#[test]
fn intents_say_what_is_needed() {
    let mount = hosted(&MemoryHost::new(), "r");
    let plan = |method: &str, target: &str| {
        let mut request = TestRequest::new(method, target);
        request.claim = Some("image".to_owned());
        mount.plan(&request).unwrap()
    };
    let blob = format!("/team/app/blobs/{}", digest("x"));
    for (method, target, action, for_publish) in [
        ("GET", "/team/app/manifests/latest", Action::Read, false),
        ("HEAD", "/team/app/manifests/latest", Action::Read, true),
        ("GET", blob.as_str(), Action::Read, false),
        ("HEAD", blob.as_str(), Action::Read, true),
        ("GET", "/team/app/blobs/uploads/1", Action::Read, true),
        ("GET", "/team/app/tags/list", Action::Read, false),
        ("POST", "/team/app/blobs/uploads/", Action::Publish, false),
        ("DELETE", "/team/app/blobs/uploads/1", Action::Publish, false),
        ("PUT", "/team/app/manifests/latest", Action::Publish, false),
        ("DELETE", "/team/app/manifests/latest", Action::Delete, false),
    ] {
        let intent = plan(method, target);
        assert_eq!((intent.action, intent.for_publish), (action, for_publish), "{method} {target}");
        assert_eq!(intent.subject.as_deref(), Some("team/app"), "{method} {target}");
    }
    let mount_of = |from: &str| plan("POST", &format!("/a/blobs/uploads/?mount={}&from={from}", digest("x")));
    assert_eq!(mount_of("repositories/base/team/app").also_read, ["base"]);
    assert!(mount_of("repositories/r/team/app").also_read.is_empty());
    assert!(mount_of("../../etc").also_read.is_empty());
    let mut chunk = TestRequest::new("PATCH", "/a/blobs/uploads/1");
    chunk.claim = Some("image".to_owned());
    chunk.headers = vec![("content-range".to_owned(), "5-9".to_owned())];
    chunk.body = b"56789".to_vec();
    let append = mount.plan(&chunk).unwrap().body;
    assert_eq!(append, BodyPlan::Append { upload: "1".to_owned(), offset: Some(5), limit: 50_000_000_000 });
}

#[test]
fn a_blob_is_mounted_from_a_repository_that_the_caller_may_read() {
    let host = MemoryHost::new();
    let (mut base, mount) = (hosted(&host, "base"), hosted(&host, "r"));
    push(&mut base, "app", "latest", "layer");
    let target = format!("/b/blobs/uploads/?mount={}&from=repositories/base/app", digest("layer"));
    request(&mount, "HEAD", &format!("/b/blobs/{}", digest("layer"))).send().expect(404);
    request(&mount, "POST", &target).send().expect(201);
    assert_eq!(get(&mount, &format!("/b/blobs/{}", digest("layer"))).expect(200).text(), "layer");
}

#[test]
fn a_manifest_may_not_name_a_blob_of_another_repository() {
    let host = MemoryHost::new();
    let (mut secret, mut mount) = (hosted(&host, "secret"), hosted(&host, "r"));
    push(&mut secret, "app", "latest", "secret layer");
    mount.send(&table::push("a config", "app", CONFIG).request).expect(201);
    let manifest = image(OCI_IMAGE, CONFIG, &["secret layer"]);
    let case = put_manifest("", "/app/manifests/latest", OCI_IMAGE, &manifest);
    let refused = mount.send(&case.request).expect(400);
    assert_eq!(refused.code(), "MANIFEST_BLOB_UNKNOWN");
    get(&mount, &format!("/app/blobs/{}", digest("secret layer"))).expect(404);
}

#[test]
fn a_group_serves_its_members_in_their_order() {
    let host = MemoryHost::new();
    let (mut one, mut two) = (hosted(&host, "one"), hosted(&host, "two"));
    let group = host.mount::<Oci>("all", "group", json!({})).members(&["one", "two"]);
    let first = push(&mut one, "app", "latest", "first");
    push(&mut two, "app", "latest", "second");
    let other = push(&mut two, "app", "1.0", "other");
    let latest = get(&group, "/app/manifests/latest").expect(200);
    assert_eq!(latest.text(), first);
    assert_eq!(get(&group, "/app/manifests/1.0").expect(200).text(), other);
    get(&group, &format!("/app/manifests/{}", digest(&other))).expect(200);
    get(&group, &format!("/app/blobs/{}", digest("second"))).expect(200);
    let tags = get(&group, "/app/tags/list").expect(200).json();
    assert_eq!(tags, json!({"name": "repositories/all/app", "tags": ["1.0", "latest"]}));
    let page = get(&group, "/app/tags/list?n=1").expect(200);
    assert_eq!(page.header("link"), Some("</v2/repositories/all/app/tags/list?n=1&last=1.0>; rel=\"next\""));
    get(&group, "/app/manifests/none").expect(404);
    assert_eq!(get(&group, "/none/tags/list").expect(404).code(), "NAME_UNKNOWN");
    let empty = host.mount::<Oci>("empty", "group", json!({}));
    // The host itself refuses a request to a group without members. The memory host does not apply
    // the template of error responses, so the error does not have the form of a registry's error.
    assert_eq!(get(&empty, "/app/manifests/latest").expect(404).code(), "not_found");
}

#[test]
fn referrers_of_all_members_are_listed_in_pages() {
    let host = MemoryHost::new();
    let (mut one, mut two) = (hosted(&host, "one"), hosted(&host, "two"));
    let group = host.mount::<Oci>("all", "group", json!({})).members(&["one", "two"]);
    for mount in [&mut one, &mut two] {
        mount.send(&table::push("a config", "app", CONFIG).request).expect(201);
    }
    let mut expected = Vec::new();
    for number in 0..12 {
        let note = "x".repeat(200_000);
        let manifest = json!({
            "schemaVersion": 2, "mediaType": OCI_IMAGE, "artifactType": "a b", "layers": [],
            "config": {"mediaType": "c", "digest": digest(CONFIG), "size": 2},
            "subject": {"mediaType": OCI_IMAGE, "digest": digest("subject"), "size": 7},
            "annotations": {"note": note, "number": number.to_string()},
        });
        let (manifest, member) = (manifest.to_string(), if number % 2 == 0 { &mut one } else { &mut two });
        put(member, "app", &digest(&manifest), OCI_IMAGE, &manifest);
        expected.push(digest(&manifest));
    }
    expected.sort_unstable();
    let (mut found, mut pages) = (Vec::new(), 0);
    let mut next = Some(format!("/app/referrers/{}?artifactType=a%20b", digest("subject")));
    while let Some(target) = next {
        let page = get(&group, &target).expect(200);
        let manifests = page.json()["manifests"].as_array().unwrap().clone();
        found.extend(manifests.iter().map(|one| one["digest"].as_str().unwrap().to_owned()));
        let link = page.header("link").map(|link| link.split(['<', '>']).nth(1).unwrap().to_owned());
        next = link.map(|link| link.strip_prefix("/v2/repositories/all").unwrap().to_owned());
        pages += 1;
    }
    assert_eq!(found, expected);
    assert!(pages > 2, "{pages}");
}

#[test]
fn the_presentation_of_an_image_has_its_parts() {
    let host = MemoryHost::new();
    let mut mount = hosted(&host, "r");
    let config = json!({
        "architecture": "amd64", "os": "linux", "config": {"Labels": {"org.example.team": "a"}},
        "history": [{"created_by": "COPY . .", "created": "2026-01-01T00:00:00Z"}, {"created_by": "ENV A=1", "empty_layer": true}],
    })
    .to_string();
    let part =
        |kind: &str, bytes: &str| json!({"mediaType": kind, "digest": digest(bytes), "size": bytes.len()});
    let manifest = json!({
        "schemaVersion": 2, "mediaType": OCI_IMAGE, "annotations": {"note": "b"},
        "config": part("application/vnd.oci.image.config.v1+json", &config),
        "layers": [part("application/vnd.oci.image.layer.v1.tar+gzip", "layer")],
    })
    .to_string();
    for blob in [config.as_str(), "layer", CONFIG] {
        mount.send(&table::push("a blob", "app", blob).request).expect(201);
    }
    put(&mut mount, "app", "1.0", OCI_IMAGE, &manifest);
    let signature = referrer("application/x.signature", &manifest, "c");
    mount.send(&table::push("a blob", "app", r#"{"architecture":"amd64","os":"linux"}"#).request).expect(201);
    put(&mut mount, "app", &digest(&signature), OCI_IMAGE, &signature);
    let presentation = mount.present_version(&VersionId::new("app", "1.0")).unwrap();
    let image = &presentation["image"];
    assert_eq!(image["digest"], digest(&manifest));
    assert_eq!(
        image["layers"],
        json!([{"digest": digest("layer"), "size": 5, "media_type": "application/vnd.oci.image.layer.v1.tar+gzip"}])
    );
    assert_eq!(
        (&image["history"][0]["created_by"], &image["history"][1]["empty_layer"]),
        (&json!("COPY . ."), &json!(true))
    );
    assert_eq!(image["labels"], json!({"note": "b", "org.example.team": "a"}));
    assert_eq!(image["platforms"][0]["architecture"], "amd64");
    assert_eq!(image["platforms"][0]["size"], json!(config.len() + 5));
    assert_eq!(image["referrers"][0]["artifact_type"], "application/x.signature");
    assert_eq!(image["referrers"][0]["annotations"], json!({"note": "c"}));

    let all = json!({
        "schemaVersion": 2, "mediaType": OCI_INDEX,
        "manifests": [{"mediaType": OCI_IMAGE, "digest": digest(&manifest), "size": manifest.len(),
            "platform": {"os": "linux", "architecture": "arm64", "variant": "v8"}}],
    })
    .to_string();
    put(&mut mount, "app", "all", OCI_INDEX, &all);
    let presentation = mount.present_version(&VersionId::new("app", "all")).unwrap();
    let platform = json!({"os": "linux", "architecture": "arm64", "variant": "v8", "digest": digest(&manifest), "size": config.len() + 5});
    assert_eq!(presentation["image"]["platforms"], json!([platform]));
    assert_eq!(mount.present_version(&VersionId::new("app", "none")).unwrap_err().status, 404);
}
