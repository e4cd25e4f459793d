//! The command `npm audit signatures`: npm verifies the registry's signatures and provenance, and
//! finds tampered packages. The command first fetches a trust root, so the test provides a TUF
//! repository.

use super::AttestationServer;
use super::release::Release;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use packhouse_tests::clients::ProgramOutput;
use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::sigstore::{BUNDLE, Instance, Signer, statement};
use packhouse_tests::skip;
use packhouse_tests::tuf::{HOST, Tuf};
use packhouse_tests::upstream::{Answer, Upstream};
use serde_json::{Value, json};
use sha2::Digest as _;

/// Publishes a package with provenance, and another without.
fn publish(set: &AttestationServer, npm: &NpmRepository) {
    for (name, is_attested) in [("lib", true), ("plain", false)] {
        let manifest = json!({"name": name, "version": "1.0.0"}).to_string();
        let release = Release::new(name, "1.0.0").files(&[("package/package.json", &manifest)]);
        let mut document = release.document();
        if is_attested {
            let sha512 = hex::encode(sha2::Sha512::digest(release.tarball()));
            let about = statement("pkg:npm/lib@1.0.0", "sha512", &sha512);
            let bundle = set.instance.bundle(&Signer::default(), &about).to_string();
            document["_attachments"]["lib.sigstore"] =
                json!({"content_type": BUNDLE, "length": bundle.len(), "data": bundle});
        }
        npm.put(name, &document).expect(201);
    }
}

/// Runs the command with the trust root of this TUF repository.
fn audit(js: &Js, tuf: &Tuf, more: &[&str]) -> ProgramOutput {
    js.write(&format!("cache/_tuf/{HOST}/root.json"), &tuf.root);
    let variables = tuf.variables();
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    js.run_with("project", &variables, &[&["audit", "signatures"], more].concat())
}

/// A registry that serves the repository's packages after changing them, as an attacker between npm
/// and the registry would.
fn between(npm: &NpmRepository, server: &str, change: impl Fn(&mut Value)) -> Upstream {
    let upstream = Upstream::start();
    let on = |below: &str, body: Vec<u8>| {
        upstream.on(
            &format!("/repositories/js/{below}"),
            Answer::ok(body).header("Content-Type", "application/json"),
        );
    };
    for name in ["lib", "plain"] {
        let mut packument = npm.get(name).expect(200).json();
        if name == "plain" {
            change(&mut packument["versions"]["1.0.0"]["dist"]);
        }
        on(name, packument.to_string().replace(server, &upstream.url()).into_bytes());
    }
    for below in ["-/npm/v1/keys", "-/npm/v1/attestations/lib@1.0.0"] {
        on(below, npm.get(below).expect(200).body);
    }
    upstream
}

#[test]
fn npm_verifies_signatures_and_provenance_and_finds_tampered_packages() {
    for tool in [Tool::Npm10, Tool::Npm11] {
        let set = AttestationServer::new();
        let npm = NpmRepository::create(&set.server, "js");
        let js = match Js::new(tool, &npm.url(&set.server), &npm.token.secret) {
            Ok(js) => js,
            Err(reason) => {
                skip(tool.name(), &reason);
                continue;
            }
        };
        let (tuf, foreign) =
            match (Tuf::start(&set.instance.trusted_root()), Tuf::start(&Instance::new().trusted_root())) {
                (Ok(tuf), Ok(foreign)) => (tuf, foreign),
                (Err(reason), _) | (_, Err(reason)) => return skip("a repository of trust", &reason),
            };
        publish(&set, &npm);
        // For a package with provenance, npm 10 also requires a statement of the registry that is
        // recorded in a public log. The test therefore installs such a package only with npm 11.
        let takes_provenance = tool == Tool::Npm11;
        let mut project = json!({"name": "project", "version": "1.0.0", "dependencies": {"plain": "1.0.0"}});
        if takes_provenance {
            project["dependencies"]["lib"] = json!("1.0.0");
        }
        js.package("project", &project);
        js.install("project").success();
        let output = audit(&js, &tuf, &[]).success().text;
        assert!(tuf.requested_hosts().iter().any(|line| line.contains(HOST)), "{:?}", tuf.requested_hosts());
        if takes_provenance {
            assert!(output.contains("2 packages have verified registry signatures"), "{output}");
            assert!(output.contains("1 package has a verified attestation"), "{output}");
            // Under another Sigstore instance the package's provenance is invalid, and the
            // registry's signatures are still valid.
            js.forget("elsewhere");
            let output = audit(&js, &foreign, &[]);
            assert!(
                !output.success && output.text.contains("1 package has an invalid attestation"),
                "{}",
                output.text
            );
            assert!(!output.text.contains("invalid registry signature"), "{}", output.text);
        } else {
            assert!(output.contains("1 package has a verified registry signature"), "{output}");
        }

        // An attacker between npm and the registry replaces the package, signs it with another key,
        // or removes the signature.
        let another = format!("sha512-{}", STANDARD.encode(sha2::Sha512::digest(b"another")));
        let base = set.server.base_url();
        let found = |change: &dyn Fn(&mut Value)| {
            js.forget("elsewhere");
            let registry = between(&npm, &base, change);
            let output = audit(&js, &tuf, &["--registry", &format!("{}/repositories/js/", registry.url())]);
            assert!(!output.success, "{tool:?}: {}", output.text);
            output.text
        };
        let output = found(&|dist| dist["integrity"] = json!(another));
        assert!(
            output.contains("1 package has an invalid registry signature") && output.contains("plain@1.0.0"),
            "{output}"
        );
        assert!(output.contains("Someone might have tampered with this package"), "{output}");
        let output = found(&|dist| dist["signatures"][0]["sig"] = json!("MEUCIQCAAAA="));
        assert!(output.contains("1 package has an invalid registry signature"), "{output}");
        let output = found(&|dist| drop(dist.as_object_mut().unwrap().remove("signatures")));
        assert!(output.contains("1 package has a missing registry signature"), "{output}");
    }
}

#[test]
fn npm_installs_no_tarball_that_differs_from_the_signed_one() {
    let set = AttestationServer::new();
    let npm = NpmRepository::create(&set.server, "js");
    let js = match Js::new(Tool::Npm11, &npm.url(&set.server), &npm.token.secret) {
        Ok(js) => js,
        Err(reason) => return skip("npm11", &reason),
    };
    publish(&set, &npm);
    let registry = between(&npm, &set.server.base_url(), |_| ());
    let other = Release::new("plain", "1.0.0")
        .files(&[("package/package.json", "{\"name\": \"plain\", \"version\": \"1.0.0\", \"evil\": true}")]);
    registry.on("/repositories/js/plain/-/plain-1.0.0.tgz", Answer::ok(other.tarball()));
    js.package(
        "project",
        &json!({"name": "project", "version": "1.0.0", "dependencies": {"plain": "1.0.0"}}),
    );
    let address = format!("{}/repositories/js/", registry.url());
    let output = js.run("project", &["install", "--no-audit", "--fetch-retries=0", "--registry", &address]);
    assert!(!output.success && output.text.contains("EINTEGRITY"), "{}", output.text);
}
