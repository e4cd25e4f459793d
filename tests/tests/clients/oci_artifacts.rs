//! Artifacts other than images: skopeo and curl push a chart and a signature, and clients find them
//! by their subject. Also tests byte ranges of layers.

use packhouse_tests::clients::{ProgramOutput, has, run};
use packhouse_tests::images::{INDEX, ImageRepository, MANIFEST, artifact, digest, layout};
use packhouse_tests::server::OWNER;
use packhouse_tests::{Request, Server, skip};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

const SIGNATURE: &str = "application/vnd.example.signature";
const EMPTY: (&str, &str) = ("application/vnd.oci.empty.v1+json", "{}");

fn curl(home: &Path, secret: &str, arguments: &[&str]) -> ProgramOutput {
    let mut command = Command::new("curl");
    command.args(["-sS", "--fail-with-body", "--user", &format!("{OWNER}:{secret}")]).args(arguments);
    run(command.current_dir(home).env("HOME", home))
}

fn copy(home: &Path, secret: &str, side: &str, from: &str, to: &str) -> ProgramOutput {
    let policy = home.join("policy.json");
    std::fs::write(&policy, r#"{"default":[{"type":"insecureAcceptAnything"}]}"#).unwrap();
    let mut command = Command::new("skopeo");
    command.arg("--policy").arg(policy).args(["copy", "--all", "--preserve-digests"]);
    command.args([
        &format!("--{side}-tls-verify=false"),
        &format!("--{side}-creds={OWNER}:{secret}"),
        from,
        to,
    ]);
    run(command.current_dir(home).env("HOME", home))
}

#[test]
fn skopeo_copies_an_index_a_chart_and_a_signature_there_and_back() {
    if !has("skopeo") {
        return skip("skopeo", "no skopeo on the path");
    }
    let server = Server::start();
    let repository = ImageRepository::create(&server, "images", &json!({}));
    let (home, secret) = (TempDir::new().unwrap(), repository.token.secret.as_str());
    let at = |name: &str| home.path().join(name);
    let there = |name: &str| format!("docker://{}/repositories/images/{name}", server.packages());
    let subject = layout(&at("index"), &["amd64", "arm64"]);
    let size = manifest_size(&at("index"), &subject);
    let about = json!({
        "artifactType": SIGNATURE, "annotations": {"by": "someone"},
        "subject": {"mediaType": INDEX, "digest": subject, "size": size},
    });
    let signature = artifact(&at("signature"), EMPTY, (SIGNATURE, b"signed"), &about);
    let chart = artifact(
        &at("chart"),
        (
            "application/vnd.cncf.helm.config.v1+json",
            r#"{"apiVersion":"v2","name":"hello","version":"1.2.3"}"#,
        ),
        ("application/vnd.cncf.helm.chart.content.v1.tar+gzip", b"an archive"),
        &json!({}),
    );
    let signed = there(&format!("app@{signature}"));
    for (name, target, digest) in [
        ("index", there("app:1"), &subject),
        ("signature", signed, &signature),
        ("chart", there("charts/hello:1.2.3"), &chart),
    ] {
        copy(home.path(), secret, "dest", &format!("oci:{name}"), &target).success();
        let back = format!("{name}-back");
        copy(home.path(), secret, "src", &target, &format!("oci:{back}")).success();
        assert!(std::fs::read_to_string(at(&back).join("index.json")).unwrap().contains(digest));
    }
    let found = repository.get(&format!("app/referrers/{subject}")).expect(200).json();
    assert_eq!(found["manifests"].as_array().map(Vec::len), Some(1));
    assert_eq!(found["manifests"][0]["digest"], signature);
    let layer = repository.get("charts/hello/manifests/1.2.3").expect(200).json();
    let layer = layer["layers"][0]["digest"].as_str().unwrap().to_owned();
    assert_eq!(repository.get(&format!("charts/hello/blobs/{layer}")).expect(200).body, b"an archive");
}

fn manifest_size(layout: &Path, digest: &str) -> u64 {
    let blob = layout.join("blobs").join(digest.replace(':', "/"));
    std::fs::metadata(blob).unwrap().len()
}

#[test]
fn curl_attaches_a_signature_and_finds_it() {
    if !has("curl") {
        return skip("curl", "no curl on the path");
    }
    let server = Server::start();
    let repository = ImageRepository::create(&server, "images", &json!({}));
    let (home, secret) = (TempDir::new().unwrap(), repository.token.secret.as_str());
    let url = |rest: &str| format!("{}{}", server.base_url(), repository.path(rest));
    let image = repository.push("app", "1", &[b"a layer"]).unwrap();
    for blob in ["signed", "{}"] {
        let target = url(&format!("app/blobs/uploads/?digest={}", digest(blob.as_bytes())));
        curl(home.path(), secret, &["--data-binary", blob, &target]).success();
    }
    let signature = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": SIGNATURE,
        "config": {"mediaType": EMPTY.0, "digest": digest(b"{}"), "size": 2},
        "layers": [{"mediaType": SIGNATURE, "digest": digest(b"signed"), "size": 6}],
        "subject": {"mediaType": MANIFEST, "digest": digest(image.as_bytes()), "size": image.len()},
    });
    let signature = signature.to_string();
    let target = url(&format!("app/manifests/{}", digest(signature.as_bytes())));
    let kind = format!("Content-Type: {MANIFEST}");
    let put = ["-i", "-X", "PUT", "-H", &kind, "--data-binary", &signature, &target];
    let output = curl(home.path(), secret, &put).success().text.to_lowercase();
    assert!(output.contains(&format!("oci-subject: {}", digest(image.as_bytes()))), "{output}");

    let referrers = url(&format!("app/referrers/{}?artifactType={SIGNATURE}", digest(image.as_bytes())));
    let found: Value =
        serde_json::from_str(&curl(home.path(), secret, &[&referrers]).success().text).unwrap();
    assert_eq!(found["manifests"][0]["digest"], digest(signature.as_bytes()));
    let signed = url(&format!("app/blobs/{}", digest(b"signed")));
    assert_eq!(curl(home.path(), secret, &[&signed]).success().text, "signed");
    curl(home.path(), secret, &["-X", "DELETE", &target]).success();
    let found = curl(home.path(), secret, &[&referrers]).success();
    assert!(found.text.contains(r#""manifests":[]"#), "{}", found.text);
    curl(home.path(), "wrong", &[&referrers]).refused("authentication required");
}

/// Requests byte ranges as the conformance suite does.
#[test]
fn a_part_of_a_layer_is_served() {
    let server = Server::start();
    let repository = ImageRepository::create(&server, "images", &json!({}));
    let layer: Vec<u8> = (0..=255).cycle().take(2048).collect();
    repository.push_blob("app", &layer).expect(201);
    let target = repository.path(&format!("app/blobs/{}", digest(&layer)));
    let ask = |range: &str| {
        repository.client.send(Request::new("GET", &target).header("Range", &format!("bytes={range}")))
    };
    for (range, from, to) in
        [("500-1499", 500, 1499), ("500-", 500, 2047), ("-500", 1548, 2047), ("2000-5000", 2000, 2047)]
    {
        let answer = ask(range).expect(206);
        assert_eq!(
            answer.header("content-range"),
            Some(format!("bytes {from}-{to}/2048").as_str()),
            "{range}"
        );
        assert_eq!(answer.body, layer[from..=to], "{range}");
    }
    for range in ["500-0", "5000-10000"] {
        ask(range).expect(416);
    }
}
