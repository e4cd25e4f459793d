//! Images of several platforms, with signatures as tags and as referrers. The tests import them
//! from a Packhouse server and from a registry, export them as layouts, and import the layouts.

use packhouse_tests::clients::{has, run};
use packhouse_tests::images::{INDEX, ImageRepository, MANIFEST, digest, manifest};
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Server, skip};
use serde_json::{Value, json};
use std::process::Command;
use tempfile::TempDir;

use super::world::{lines, moved, moved_with, version};

/// Pushes an image of two platforms, one of them under its own tag, and a signature of each kind.
/// Returns the index's digest.
pub(crate) fn fill(repository: &ImageRepository, image: &str) -> String {
    let amd = repository.push(image, "amd64", &[b"one", b"shared"]).unwrap();
    let arm = repository.push(image, "arm64", &[b"two", b"shared"]).unwrap();
    let part = |manifest: &str, architecture: &str| {
        json!({"mediaType": MANIFEST, "digest": digest(manifest.as_bytes()), "size": manifest.len(),
            "platform": {"architecture": architecture, "os": "linux"}})
    };
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [part(&amd, "amd64"), part(&arm, "arm64")]});
    let index = index.to_string();
    repository.push_manifest(image, "1.0", INDEX, &index).expect(201);
    repository.push_manifest(image, "latest", INDEX, &index).expect(201);
    let subject = digest(index.as_bytes());
    // cosign stores a signature under a tag that it makes from the digest.
    repository.push(image, &format!("{}.sig", subject.replace(':', "-")), &[b"signature"]).unwrap();
    // The specification links a referrer to an image by the referrer's subject. The test pushes an
    // SBOM of the index, and a signature of the SBOM.
    let mut referrer: Value = serde_json::from_str(&manifest(&[b"sbom"])).unwrap();
    repository.push_blob(image, b"sbom").expect(201);
    referrer["artifactType"] = json!("application/vnd.example.sbom");
    referrer["subject"] = json!({"mediaType": INDEX, "digest": subject, "size": index.len()});
    let referrer = referrer.to_string();
    repository.push_manifest(image, &digest(referrer.as_bytes()), MANIFEST, &referrer).expect(201);
    let mut second: Value = serde_json::from_str(&manifest(&[b"sbom"])).unwrap();
    second["artifactType"] = json!("application/vnd.example.signature");
    second["subject"] =
        json!({"mediaType": MANIFEST, "digest": digest(referrer.as_bytes()), "size": referrer.len()});
    let second = second.to_string();
    repository.push_manifest(image, &digest(second.as_bytes()), MANIFEST, &second).expect(201);
    subject
}

/// A client's view of an image: its tags with their digests, and the referrers of the index.
pub(crate) fn contents(repository: &ImageRepository, image: &str, index: &str) -> Value {
    let tags = repository.get(&format!("{image}/tags/list")).expect(200).json()["tags"].clone();
    let named: Vec<Value> = tags
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| {
            let answer = repository.get(&format!("{image}/manifests/{}", tag.as_str().unwrap())).expect(200);
            json!([tag, answer.header("docker-content-digest"), answer.header("content-type"), answer.text()])
        })
        .collect();
    let mut referrers = Vec::new();
    let mut subjects = vec![index.to_owned()];
    while let Some(subject) = subjects.pop() {
        let found =
            repository.get(&format!("{image}/referrers/{subject}")).expect(200).json()["manifests"].clone();
        subjects
            .extend(found.as_array().unwrap().iter().map(|one| one["digest"].as_str().unwrap().to_owned()));
        referrers.push(found);
    }
    assert_eq!(referrers.len(), 3, "{referrers:?}");
    json!({"tags": named, "referrers": referrers})
}

#[test]
fn images_are_moved_with_their_platforms_and_signatures() {
    let (server, other, home) = (Server::start(), Server::start(), TempDir::new().unwrap());
    let create = |server: &Server, name: &str| ImageRepository::create(server, name, &json!({}));
    let (old, new) = (create(&server, "old"), create(&other, "new"));
    let index = fill(&old, "team/app");
    let api = format!("http://{}", server.api());
    let login = format!("{OWNER}:{PASSWORD}");
    let login = [("PACKHOUSE_SOURCE_LOGIN", login.as_str())];
    let words = ["import", "new", "--from", "packhouse", &api, "--source-repository", "old"];
    let first = moved_with(&other, &words, &login).success();
    let expected = contents(&old, "team/app", &index);
    assert_eq!(contents(&new, "team/app", &index), expected);
    assert!(first.count("moved") > 10, "{:#?}", first.lines);
    moved_with(&other, &words, &login).adds_nothing();
    let at =
        |server: &Server, id: &str| version(server, id, "team/app", "1.0")["published_at"].as_u64().unwrap();
    assert_eq!(at(&server, &old.id), at(&other, &new.id));

    // Imports from the same server as from a plain registry, with a token of the repository.
    let (third, address) = (create(&other, "third"), server.base_url());
    let token = format!("{OWNER}:{}", old.token.secret);
    let words = [
        "import",
        "third",
        "--from",
        "oci",
        &address,
        "--source-repository",
        "repositories/old",
        "--package",
        "team/app",
    ];
    moved_with(&other, &words, &[("PACKHOUSE_SOURCE_LOGIN", &token)]).success();
    assert_eq!(contents(&third, "team/app", &index), expected);
    moved_with(&other, &words, &[("PACKHOUSE_SOURCE_LOGIN", &token)]).adds_nothing();
    moved_with(&other, &words, &[("PACKHOUSE_SOURCE_LOGIN", "me:wrong")]).output.refused("401");

    // Exports the images and imports them again.
    let out = home.path().join("out");
    let to = out.to_string_lossy().into_owned();
    moved(&other, &["export", "new", &to]).success();
    moved(&other, &["export", "new", &to]).adds_nothing();
    let listed = lines(&out.join("export.jsonl"));
    for line in &listed[1..] {
        let bytes = std::fs::read(out.join(line["path"].as_str().unwrap())).unwrap();
        assert_eq!(line["sha256"], packhouse_tests::digests::sha256(&bytes), "{line}");
    }
    let back = create(&server, "back");
    moved(&server, &["import", "back", "--from", "export", &to]).success();
    moved(&server, &["import", "back", "--from", "export", &to]).adds_nothing();
    assert_eq!(contents(&back, "team/app", &index), expected);
    assert_eq!(at(&server, &old.id), at(&server, &back.id));

    if !has("skopeo") {
        return skip("skopeo", "no skopeo on the path");
    }
    let layout = format!("oci:{}:1.0", out.join("images/team/app").display());
    let inspect =
        run(Command::new("skopeo").args(["inspect", "--raw", &layout]).env("HOME", home.path())).success();
    assert!(inspect.text.contains("arm64"), "{}", inspect.text);
    let image = format!("docker://{}/repositories/back/team/app:1.0", server.packages());
    let creds = format!("{OWNER}:{}", back.token.secret);
    let words = ["inspect", "--raw", "--tls-verify=false", "--creds", &creds, &image];
    let inspect = run(Command::new("skopeo").args(words).env("HOME", home.path())).success();
    assert!(inspect.text.contains("arm64"), "{}", inspect.text);
}
