//! Signing clients: the server verifies their signatures, and they verify the signatures that the
//! server serves.

use super::release::Release;
use super::{AttestationServer, verdicts, wheel};
use packhouse_tests::clients::run;
use packhouse_tests::go::Go;
use packhouse_tests::images::{ImageRepository, digest};
use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::python::{Home, PythonRepository};
use packhouse_tests::server::OWNER;
use packhouse_tests::sigstore::{BUNDLE, IDENTITY, ISSUER, Instance, Signer, statement};
use packhouse_tests::{checkout, digests, skip};
use serde_json::json;
use sha2::Digest as _;
use std::process::Command;

/// The predicate type of an image signature of cosign 3.
const SIGNATURE: &str = "https://sigstore.dev/cosign/sign/v1";

#[test]
fn cosign_signs_with_a_key_and_verifies_bundles_and_tags() {
    let cosign = match Go::client("cosign") {
        Ok(cosign) => cosign,
        Err(reason) => return skip("cosign", &reason),
    };
    let keys = ["generate-key-pair"];
    cosign.run_with(&[("COSIGN_PASSWORD", "")], &keys).success();
    let set = AttestationServer::trusting(&String::from_utf8(cosign.read("cosign.pub")).unwrap());
    let images = ImageRepository::create(&set.server, "images", &json!({}));
    let image = digest(images.push("app", "1.0", &[b"a layer"]).unwrap().as_bytes());
    let host = set.server.packages().to_string();
    let named = format!("{host}/repositories/images/app@{image}");
    let run = |arguments: &[&str]| cosign.run_with(&[("COSIGN_PASSWORD", "")], arguments);
    run(&["login", &host, "-u", OWNER, "-p", &images.token.secret]).success();
    let sign = ["sign", "--key", "cosign.key", "--tlog-upload=false", "--use-signing-config=false", "--yes"];
    let plain = ["--allow-http-registry", &named];
    let verify = |more: &[&str]| {
        run(&[&["verify", "--key", "cosign.pub", "--insecure-ignore-tlog=true"], more, &plain].concat())
    };
    verify(&[]).refused("no signatures found");

    // Signs the image with a bundle that refers to it.
    run(&[&sign[..], &plain].concat()).success();
    verify(&[]).success();
    let stated = set.stated(&images.id, "app", "1.0", 1);
    assert_eq!((verdicts(&stated), &stated[0]["kind"]), (vec!["verified"], &json!(SIGNATURE)), "{stated:#?}");
    assert!(stated[0]["key"].as_str().unwrap().starts_with("SHA256:"));

    // Signs the image in the older form, under a tag, and adds an attestation.
    run(&[&sign[..], &["--new-bundle-format=false"], &plain].concat()).success();
    verify(&["--new-bundle-format=false"]).success();
    cosign.write("predicate.json", r#"{"buildType": "by hand"}"#);
    let attest =
        ["attest", "--key", "cosign.key", "--tlog-upload=false", "--use-signing-config=false", "--yes"];
    let custom = ["--type", "https://example.com/by-hand/v1", "--predicate", "predicate.json"];
    run(&[&attest[..], &custom, &plain].concat()).success();
    let stated = set.stated(&images.id, "app", "1.0", 3);
    assert_eq!(verdicts(&stated), ["verified"; 3], "{stated:#?}");
    assert!(stated.iter().any(|one| one["kind"] == "https://example.com/by-hand/v1"), "{stated:#?}");

    // The server does not trust another key.
    run(&["generate-key-pair", "--output-key-prefix", "other"]).success();
    let other = ["sign", "--key", "other.key", "--tlog-upload=false", "--use-signing-config=false", "--yes"];
    run(&[&other[..], &plain].concat()).success();
    let stated = set.stated(&images.id, "app", "1.0", 4);
    assert_eq!(stated.iter().filter(|one| one["verdict"] == "failed").count(), 1, "{stated:#?}");
}

#[test]
fn cosign_verifies_a_workflows_bundle_that_is_served_here() {
    let cosign = match Go::client("cosign") {
        Ok(cosign) => cosign,
        Err(reason) => return skip("cosign", &reason),
    };
    let set = AttestationServer::new();
    let images = ImageRepository::create(&set.server, "images", &json!({}));
    let image = digest(images.push("app", "1.0", &[b"a layer"]).unwrap().as_bytes());
    let hex = image.strip_prefix("sha256:").unwrap();
    let mut signed = statement("", "sha256", hex);
    signed["predicateType"] = json!(SIGNATURE);
    let bundle = set.instance.bundle(&Signer::default(), &signed).to_string();
    super::images::refer(&images, BUNDLE, BUNDLE, bundle.as_bytes(), &image);
    assert_eq!(verdicts(&set.stated(&images.id, "app", "1.0", 1)), ["verified"]);
    let host = set.server.packages().to_string();
    let named = format!("{host}/repositories/images/app@{image}");
    cosign.run(&["login", &host, "-u", OWNER, "-p", &images.token.secret]).success();
    cosign.write("good.json", set.instance.trusted_root());
    cosign.write("other.json", Instance::new().trusted_root());
    let verify = |root: &str, identity: &str| {
        let who = ["--certificate-identity", identity, "--certificate-oidc-issuer", ISSUER];
        let how = ["verify", "--trusted-root", root, "--allow-http-registry"];
        cosign.run(&[&how[..], &who, &[named.as_str()]].concat())
    };
    verify("good.json", IDENTITY).success();
    verify("good.json", "https://github.com/mallory/x").refused("");
    verify("other.json", IDENTITY).refused("");
}

#[test]
fn regctl_lists_the_referrers_of_an_image() {
    let regctl = match Go::client("regctl") {
        Ok(regctl) => regctl,
        Err(reason) => return skip("regctl", &reason),
    };
    let set = AttestationServer::new();
    let images = ImageRepository::create(&set.server, "images", &json!({}));
    let image = digest(images.push("app", "1.0", &[b"a layer"]).unwrap().as_bytes());
    let about = statement("", "sha256", image.strip_prefix("sha256:").unwrap());
    let host = set.server.packages().to_string();
    regctl.run(&["registry", "set", "--skip-check", "--tls", "disabled", &host]).success();
    regctl
        .run(&["registry", "login", "--skip-check", &host, "-u", OWNER, "-p", &images.token.secret])
        .success();
    regctl.write("bundle.json", set.instance.bundle(&Signer::default(), &about).to_string());
    let named = format!("{host}/repositories/images/app:1.0");
    let put = ["artifact", "put", "--subject", &named, "--artifact-type", BUNDLE, "--file", "bundle.json"];
    regctl.run(&[&put[..], &["--file-media-type", BUNDLE]].concat()).success();
    let listed = regctl.run(&["artifact", "list", &named, "--format", "{{json .}}"]).success().text;
    assert!(listed.contains(BUNDLE), "{listed}");
    assert_eq!(verdicts(&set.stated(&images.id, "app", "1.0", 1)), ["verified"]);
}

/// Script that verifies attestations like `npm audit signatures`, with the same library. The tests
/// in `npm_audit.rs` run the command itself.
const VERIFY: &str = r"
const { bundleFromJSON } = require('@sigstore/bundle'), { TrustedRoot } = require('@sigstore/protobuf-specs');
const { Verifier, toSignedEntity, toTrustMaterial } = require('@sigstore/verify'), fs = require('fs');
const [address, token, good, other] = process.argv.slice(1).filter(word => word !== '--');
const verifier = root => new Verifier(toTrustMaterial(TrustedRoot.fromJSON(JSON.parse(fs.readFileSync(root)))));
(async () => {
  const answer = await fetch(address, { headers: { authorization: `Bearer ${token}` } });
  for (const { predicateType, bundle } of (await answer.json()).attestations) {
    const entity = toSignedEntity(bundleFromJSON(bundle));
    console.log(predicateType, verifier(good).verify(entity).identity.subjectAlternativeName);
    try { verifier(other).verify(entity); console.log('accepted'); } catch (error) { console.log(error.code); }
  }
})();
";

#[test]
fn npms_library_verifies_the_provenance_that_is_served() {
    let set = AttestationServer::new();
    let npm = NpmRepository::create(&set.server, "js");
    let js = match Js::new(Tool::Npm11, &npm.url(&set.server), &npm.token.secret) {
        Ok(js) => js,
        Err(reason) => return skip("npm11", &reason),
    };
    let release = Release::new("@acme/lib", "1.0.0");
    let about = statement(
        "pkg:npm/%40acme/lib@1.0.0",
        "sha512",
        &hex::encode(sha2::Sha512::digest(release.tarball())),
    );
    let bundle = set.instance.bundle(&Signer::default(), &about).to_string();
    let mut document = release.document();
    document["_attachments"]["lib.sigstore"] =
        json!({"content_type": BUNDLE, "length": bundle.len(), "data": bundle});
    npm.put(release.path().trim_start_matches('/'), &document).expect(201);
    js.write("good.json", &set.instance.trusted_root());
    js.write("other.json", &Instance::new().trusted_root());
    let address = format!("{}/-/npm/v1/attestations/@acme/lib@1.0.0", npm.url(&set.server));
    let output = js.script(VERIFY, &[&address, &npm.token.secret, "good.json", "other.json"]).success().text;
    let mut lines = output.lines();
    assert_eq!(lines.next(), Some(format!("https://slsa.dev/provenance/v1 {IDENTITY}").as_str()), "{output}");
    assert!(lines.next().is_some_and(|line| line != "accepted") && lines.next().is_none(), "{output}");
    assert_eq!(verdicts(&set.stated(&npm.id, "@acme/lib", "1.0.0", 1)), ["verified"]);
}

/// Script that verifies like `pypi-attestations verify`. It gets the trust root as an argument
/// instead of fetching it.
const CHECK: &str = r"
import pathlib, sys
from pypi_attestations import Attestation, AttestationError, Distribution, Provenance
from sigstore.models import TrustedRoot
from sigstore.verify import Verifier, policy
wheel, provenance, root, identity, issuer = sys.argv[1:]
Verifier.production = classmethod(lambda cls, offline=False: cls(trusted_root=TrustedRoot.from_file(root)))
who = policy.Identity(identity=identity, issuer=issuer)
text = pathlib.Path(provenance).read_text()
for bundle in Provenance.model_validate_json(text).attestation_bundles:
    for attestation in bundle.attestations:
        try:
            of = Distribution.from_file(pathlib.Path(wheel))
            print(attestation.verify(who, of)[0], attestation.verify(bundle.publisher, of)[0])
        except AttestationError as error:
            print('refused', error)
";

#[test]
fn twine_uploads_and_pypi_attestations_verifies() {
    let python = checkout().join(".tools/pypi-attestations/bin/python");
    let home = match Home::with("twine") {
        Ok(home) if python.is_file() => home,
        Ok(_) => {
            return skip("pypi-attestations", "no .tools/pypi-attestations: `./bootstrap test` installs it");
        }
        Err(reason) => return skip("twine", &reason),
    };
    let set = AttestationServer::new();
    let repository = PythonRepository::create(&set.server, "py");
    let (name, file) = (wheel::wheel_name("demo", "1.0"), wheel::wheel("demo", "1.0", ""));
    let about = statement(&name, "sha256", &digests::sha256(&file));
    home.write(&name, &file);
    home.write(
        &format!("{name}.publish.attestation"),
        set.instance.attestation(&Signer::default(), &about).to_string(),
    );
    let variables = [
        ("TWINE_REPOSITORY_URL", format!("{}/", repository.url)),
        ("TWINE_USERNAME", "__token__".to_owned()),
        ("TWINE_PASSWORD", repository.token.secret.clone()),
    ];
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let dist = format!("{name}.publish.attestation");
    home.run("", "twine", &["upload", "--attestations", "--non-interactive", &name, &dist], &variables)
        .success();
    assert_eq!(verdicts(&set.stated(&repository.id, "demo", "1.0", 1)), ["verified"]);
    let served =
        repository.client.get(&repository.path(&format!("integrity/demo/1.0/{name}/provenance"))).expect(200);
    home.write("provenance.json", served.body);
    home.write("good.json", set.instance.trusted_root());
    home.write("other.json", Instance::new().trusted_root());
    let check = |root: &str, identity: &str| {
        let mut command = Command::new(&python);
        command
            .args(["-c", CHECK, &name, "provenance.json", root, identity, ISSUER])
            .current_dir(home.folder());
        run(command.env("HOME", home.folder())).success().text
    };
    assert_eq!(
        check("good.json", IDENTITY).trim(),
        "https://slsa.dev/provenance/v1 https://slsa.dev/provenance/v1"
    );
    assert!(check("good.json", "https://github.com/mallory/x").contains("refused"));
    assert!(check("other.json", IDENTITY).contains("refused"));
}
