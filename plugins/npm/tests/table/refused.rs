//! Refused publishes: the archive that clients install must match the document.

use super::release::{self, Release};
use super::{get, published, put, refused};
use packhouse_testkit::Case;
use serde_json::{Value, json};

/// The host authorises a publish by the package in its address. The document, the manifest, the
/// attachment and the archive must therefore all be about this package.
pub(super) fn publishes() -> Vec<Case> {
    let good = Release::new("bad", "1.0.0");
    let with = |path: &str, value: Value| {
        let mut document = good.document();
        *document.pointer_mut(path).unwrap() = value;
        document
    };
    let attachment = |key: &str| {
        let mut document = good.document();
        let attachment = document["_attachments"]["bad-1.0.0.tgz"].take();
        document["_attachments"] = json!({key: attachment});
        document
    };
    let mut two = good.document();
    two["versions"]["1.0.1"] = json!({"name": "bad", "version": "1.0.1"});
    vec![
        refused("another package's document", "/other", &good.document(), "sent to the address of other"),
        refused("another name", "/bad", &with("/name", json!("lib")), "\"lib\""),
        refused("another manifest", "/bad", &with("/versions/1.0.0/name", json!("lib")), "not bad"),
        refused(
            "another number",
            "/bad",
            &with("/versions/1.0.0/version", json!("2.0.0")),
            "has the version number \"2.0.0\"",
        ),
        refused(
            "no number",
            "/bad",
            &with("/versions", json!({"x": {"name": "bad", "version": "x"}})),
            "not a version number",
        ),
        refused("two versions", "/bad", &two, "must contain one version, but this one contains 2"),
        refused("another version's attachment", "/bad", &attachment("bad-1.0.1.tgz"), "bad-1.0.0.tgz"),
        refused("another package's attachment", "/bad", &attachment("lib-1.0.0.tgz"), "bad-1.0.0.tgz"),
        refused("another scope's attachment", "/bad", &attachment("@x/bad-1.0.0.tgz"), "bad-1.0.0.tgz"),
        refused(
            "another length",
            "/bad",
            &with("/_attachments/bad-1.0.0.tgz/length", json!(1)),
            "stated length is 1",
        ),
        refused("no base64", "/bad", &with("/_attachments/bad-1.0.0.tgz/data", json!("%%%")), "not base64"),
        refused("no data", "/bad", &with("/_attachments/bad-1.0.0.tgz/data", Value::Null), "not base64"),
        refused(
            "another integrity",
            "/bad",
            &with("/versions/1.0.0/dist/integrity", json!("sha512-AAAA")),
            "dist.integrity",
        )
        .code("checksum_mismatch"),
        refused("another shasum", "/bad", &with("/versions/1.0.0/dist/shasum", json!("00")), "dist.shasum")
            .code("checksum_mismatch"),
        refused(
            "a tag that looks like a version",
            "/bad",
            &good.clone().tag("1.0").document(),
            "cannot be a tag",
        ),
        refused("capitals", "/Bad", &Release::new("Bad", "1.0.0").document(), "capital letters")
            .contains("`legacy_names`"),
        refused(
            "a tilde",
            "/@bad%2fx~",
            &Release::new("@bad/x~", "1.0.0").document(),
            "one of the characters",
        ),
        refused("a dot", "/@bad%2f.x", &Release::new("@bad/.x", "1.0.0").document(), "begins with a dot"),
        published("an underscore in a scope", &Release::new("@under/_x", "1.0.0")),
        get("its tarball", "/@under/_x/-/_x-1.0.0.tgz", 200),
        put("an impossible name", "/.bad", 404, &Release::new(".bad", "1.0.0").document()),
        Case::new("no JSON", "PUT", "/bad", 400).body("not JSON").contains("cannot be read"),
        Case::new("nothing", "PUT", "/bad", 400).body("").contains("cannot be read"),
        Case::new("an end within the tarball", "PUT", "/bad", 400)
            .body("{\"_attachments\":{\"a\":{\"data\":\"AAAA")
            .contains("ends within a string"),
        get("nothing was stored", "/bad", 404),
    ]
}

pub(super) fn tarballs() -> Vec<Case> {
    let bad = || Release::new("bad", "1.0.0");
    let own = |package: Value| bad().package_json(&package.to_string());
    vec![
        refused(
            "another package's archive",
            "/bad",
            &own(json!({"name": "lib", "version": "1.0.0"})).document(),
            "lib@1.0.0, not of bad@1.0.0",
        ),
        refused(
            "another version's archive",
            "/bad",
            &own(json!({"name": "bad", "version": "1.0.1"})).document(),
            "bad@1.0.1, not of bad@1.0.0",
        ),
        refused("a damaged package.json", "/bad", &bad().package_json("{").document(), "cannot be read"),
        refused(
            "no package.json",
            "/bad",
            &bad().files(&[("package/index.js", "x")]).document(),
            "not contain a package.json",
        ),
        refused(
            "two of them",
            "/bad",
            &bad().file("../other/package.json", "{}").document(),
            "more than once",
        ),
        refused("no gzip", "/bad", &bad().raw(b"plain").document(), "not compressed with gzip"),
        refused("no tar", "/bad", &bad().raw(&release::gzip(&[b'x'; 1024])).document(), "not a tar archive"),
        published(
            "a byte order mark is ignored",
            &Release::new("bom", "1.0.0").package_json("\u{feff}{\"name\":\"bom\",\"version\":\"v1.0.0\"}"),
        ),
        get("nothing was stored", "/bad", 404),
    ]
}

/// Clients select dependencies by the manifest, and run the archive. If the two differ, the
/// repository serves the archive's values.
pub(super) fn manifest_confusion() -> Vec<Case> {
    let accepted = |bare: &str, members: Value, manifest: Value| {
        let mut own = json!({"name": format!("@same/{bare}"), "version": "1.0.0"});
        own.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let release = Release::new(&format!("@same/{bare}"), "1.0.0")
            .package_json(&own.to_string())
            .manifest_members(&manifest);
        published(bare, &release)
    };
    let served = |bare: &str| get(bare, &format!("/@same%2f{bare}/1.0.0"), 200);
    vec![
        accepted(
            "added",
            json!({}),
            json!({"dependencies": {"evil": "1"}, "peerDependencies": {"evil": "1"}}),
        ),
        served("added").lacks("evil"),
        accepted(
            "hidden",
            json!({"dependencies": {"evil": "1"}, "bin": {"git": "evil.js"}}),
            json!({"dependencies": null, "bin": null}),
        ),
        served("hidden")
            .contains("\"dependencies\":{\"evil\":\"1\"}")
            .contains("\"bin\":{\"git\":\"evil.js\"}"),
        accepted(
            "script",
            json!({"scripts": {"postinstall": "evil"}}),
            json!({"scripts": null, "hasInstallScript": false}),
        ),
        served("script").contains("\"postinstall\":\"evil\"").contains("\"hasInstallScript\":true"),
        accepted(
            "pinst",
            json!({"scripts": {"_postinstall": "husky"}}),
            json!({"scripts": {"postinstall": "husky"}, "hasInstallScript": true}),
        ),
        served("pinst").contains("\"_postinstall\":\"husky\"").lacks("hasInstallScript"),
        accepted("shrinkwrap", json!({}), json!({"_hasShrinkwrap": true})),
        served("shrinkwrap").lacks("_hasShrinkwrap"),
        published(
            "pinned",
            &Release::new("@same/pinned", "1.0.0")
                .file("npm-shrinkwrap.json", "{}")
                .manifest_members(&json!({"_hasShrinkwrap": false})),
        ),
        get("is reported", "/@same%2fpinned", 200)
            .with("accept", "application/vnd.npm.install-v1+json")
            .contains("\"_hasShrinkwrap\":true"),
        accepted("gyp", json!({}), json!({"scripts": {"install": "node-gyp rebuild"}, "gypfile": true})),
        get("it runs something", "/@same%2fgyp/1.0.0", 200).contains("\"hasInstallScript\":true"),
        accepted("bin", json!({"bin": "./cli.js"}), json!({"bin": {"bin": "cli.js"}})),
        accepted("programs", json!({"directories": {"bin": "tools"}}), json!({"bin": {"one": "tools/one"}})),
        accepted("git", json!({"dependencies": {"a": "u/r"}}), json!({"dependencies": {"a": "github:u/r"}})),
        accepted(
            "bundle",
            json!({"bundledDependencies": ["x"]}),
            json!({"bundledDependencies": null, "bundleDependencies": ["x"], "dependencies": {"x": "*"}}),
        ),
        accepted(
            "optional",
            json!({"dependencies": {"a": "1"}, "optionalDependencies": {"a": "1"}}),
            json!({"dependencies": {}}),
        ),
    ]
}
