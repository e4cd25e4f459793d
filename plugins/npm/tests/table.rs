//! npm's protocol as a table of requests and expected responses.
//!
//! Each row runs in two environments. In `protocol.rs`, the plugin is native code on an in-memory
//! host. The workspace's tests include this file too; there, the plugin is a WebAssembly component
//! in the host's runtime. Times and revisions differ between the two environments, so rows must not
//! depend on them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

#[path = "table/refused.rs"]
mod refused;
#[path = "release.rs"]
#[allow(dead_code, reason = "each user of this module uses a part of it")]
pub(crate) mod release;

use packhouse_testkit::Case;
use release::Release;
use serde_json::{Value, json};

const INSTALL: &str = "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*";
const ABBREVIATED: &str = "application/vnd.npm.install-v1+json";

/// All cases, for an empty repository with default settings.
pub(crate) fn cases() -> Vec<Case> {
    [
        nothing_published(),
        publishing(),
        both_forms(),
        publishing_again(),
        scopes(),
        refused::publishes(),
        refused::tarballs(),
        refused::manifest_confusion(),
        readmes(),
        attestations(),
        tags(),
        deprecations(),
        owners(),
        stale_changes(),
        searching(),
        accounts(),
        audits(),
        odd_addresses(),
    ]
    .concat()
}

fn get(name: &str, path: &str, status: u16) -> Case {
    Case::new(name, "GET", path, status)
}

fn put(name: &str, path: &str, status: u16, document: &Value) -> Case {
    Case::new(name, "PUT", path, status).with("content-type", "application/json").body(document.to_string())
}

fn delete(name: &str, path: &str, status: u16) -> Case {
    Case::new(name, "DELETE", path, status)
}

fn published(name: &str, release: &Release) -> Case {
    put(name, &release.path(), 201, &release.document()).contains("\"ok\":true")
}

/// A publish that must be refused with 400 and a message with these words.
fn refused(name: &str, path: &str, document: &Value, words: &str) -> Case {
    put(name, path, 400, document).contains(words)
}

fn nothing_published() -> Vec<Case> {
    vec![
        get("the repository itself", "/", 200).content("{}"),
        get("no package", "/lib", 404).code("not_found").contains("no package lib"),
        get("no version", "/lib/1.0.0", 404).code("not_found"),
        get("no tarball", "/lib/-/lib-1.0.0.tgz", 404).code("not_found"),
        get("no tags", "/-/package/lib/dist-tags", 404).code("not_found"),
        get("nothing found", "/-/v1/search?text=lib", 200).contains("\"total\":0"),
        delete("nothing to remove", "/lib/-rev/1", 404).code("not_found"),
    ]
}

fn publishing() -> Vec<Case> {
    let lib = Release::new("lib", "1.0.0");
    vec![
        published("a first version", &lib),
        get("its tarball", "/lib/-/lib-1.0.0.tgz", 200)
            .content(lib.tarball())
            .header("content-type", "application/octet-stream")
            .header("cache-control", "private, max-age=31536000, immutable"),
        get("by its number", "/lib/1.0.0", 200)
            .contains("\"tarball\":\"https://packhouse.test/repositories/releases/lib/-/lib-1.0.0.tgz\"")
            .contains(&lib.integrity())
            .contains(&lib.shasum())
            .lacks("client.test"),
        get("by its tag", "/lib/latest", 200).contains("\"_id\":\"lib@1.0.0\""),
        get("no such version", "/lib/9.9.9", 404).contains("version not found: 9.9.9"),
        get("no such tag", "/lib/next", 404).contains("version not found: next"),
        published("a second version under a tag", &Release::new("lib", "1.1.0-rc.1").tag("next")),
        get("the tag names it", "/lib/next", 200).contains("\"version\":\"1.1.0-rc.1\""),
        get("latest still names the first", "/lib/latest", 200).contains("\"version\":\"1.0.0\""),
    ]
}

fn both_forms() -> Vec<Case> {
    vec![
        get("abbreviated", "/lib", 200)
            .with("accept", INSTALL)
            .header("content-type", ABBREVIATED)
            .header("vary", "accept")
            .header("cache-control", "no-cache")
            .contains("\"dist-tags\":{\"latest\":\"1.0.0\",\"next\":\"1.1.0-rc.1\"}")
            .contains("\"dependencies\":{\"dep\":\"^1.0.0\"}")
            .contains("\"time\":{\"1.0.0\":")
            .contains("\"modified\":")
            .lacks("\"description\"")
            .lacks("\"readme\""),
        get("full", "/lib", 200)
            .with("accept", "application/json")
            .header("content-type", "application/json")
            .header("vary", "accept")
            .contains("\"_rev\":")
            .contains("\"time\":{\"1.0.0\":")
            .contains("\"description\":\"about lib\"")
            .contains("\"readme\":\"# lib\"")
            .contains("\"readmeFilename\":\"README.md\""),
        get("to write, whatever is accepted", "/lib?write=true", 200)
            .with("accept", INSTALL)
            .header("content-type", "application/json")
            .header("cache-control", "no-store")
            .contains("\"_rev\":"),
        Case::new("HEAD", "HEAD", "/lib", 200).content(""),
    ]
}

fn publishing_again() -> Vec<Case> {
    let other = Release::new("lib", "1.0.0").file("index.js", "other");
    vec![
        put("the same version", "/lib", 409, &Release::new("lib", "1.0.0").document())
            .code("conflict")
            .contains("lib@1.0.0 is published already"),
        put("with other bytes", "/lib", 409, &other.document()).code("conflict"),
        get("the first bytes stay", "/lib/-/lib-1.0.0.tgz", 200)
            .content(Release::new("lib", "1.0.0").tarball()),
        put(
            "build metadata do not make another version",
            "/lib",
            409,
            &Release::new("lib", "1.0.0+build.5").document(),
        )
        .code("conflict"),
    ]
}

fn scopes() -> Vec<Case> {
    let one = Release::new("@acme/lib", "1.0.0");
    let two = Release::new("@acme/lib", "2.0.0");
    vec![
        put("the slash encoded", "/@acme%2flib", 201, &one.document()),
        put("the slash plain", "/@acme/lib", 201, &two.document()),
        get("encoded", "/@acme%2Flib", 200).contains("\"2.0.0\"").contains("/@acme/lib/-/lib-1.0.0.tgz"),
        get("plain", "/@acme/lib", 200).contains("\"1.0.0\""),
        get("a version, encoded", "/@acme%2flib/2.0.0", 200),
        get("a version, plain", "/@acme/lib/latest", 200).contains("\"2.0.0\""),
        get("a tarball, encoded", "/@acme%2flib/-/lib-1.0.0.tgz", 200).content(one.tarball()),
        get("a tarball, plain", "/@acme/lib/-/lib-1.0.0.tgz", 200).content(one.tarball()),
        get("a tarball as its publisher spells it", "/@acme/lib/-/@acme/lib-1.0.0.tgz", 200)
            .content(one.tarball()),
        get("tags, encoded", "/-/package/@acme%2flib/dist-tags", 200).content("{\"latest\":\"2.0.0\"}"),
        get("tags, plain", "/-/package/@acme/lib/dist-tags", 200).content("{\"latest\":\"2.0.0\"}"),
        get("without its scope it is another package", "/lib/2.0.0", 404),
    ]
}

fn readmes() -> Vec<Case> {
    let release = |version: &str| Release::new("read", version);
    let full = |name: &str| get(name, "/read", 200);
    let latest = |name: &str, version: &str| {
        Case::new(name, "PUT", "/-/package/read/dist-tags/latest", 201)
            .with("content-type", "application/json")
            .body(json!(version).to_string())
    };
    let long = format!("# long {}", "é".repeat(700_000));
    vec![
        published(
            "without a readme",
            &release("1.0.0")
                .manifest_members(&json!({"readme": "ERROR: No README data found!", "readmeFilename": null})),
        ),
        full("the readme is empty").contains("\"readme\":\"\",\"readmeFilename\":\"\"").lacks("ERROR"),
        published(
            "with a readme",
            &release("1.1.0")
                .manifest_members(&json!({"readme": "# one", "readmeFilename": "readme.markdown"})),
        ),
        full("it is served").contains("\"readme\":\"# one\",\"readmeFilename\":\"readme.markdown\""),
        get("not in the abbreviated form", "/read", 200).with("accept", INSTALL).lacks("readme"),
        get("nor in the version", "/read/1.1.0", 200).lacks("readme"),
        published(
            "a version with another tag",
            &release("2.0.0-rc.1").tag("next").manifest_members(&json!({"readme": "# next"})),
        ),
        full("the readme of latest stays").contains("\"readme\":\"# one\"").lacks("# next"),
        published("a long one", &release("2.0.0").manifest_members(&json!({"readme": long}))),
        full("its beginning is served").contains("\"readme\":\"# long é").lacks("# one"),
        latest("latest moves", "2.0.0-rc.1"),
        full("the readme changes with it").contains("\"readme\":\"# next\""),
        latest("latest moves to a version without one", "1.0.0"),
        full("it is gone").contains("\"readme\":\"\""),
        latest("latest moves back", "2.0.0"),
        full("it is there again").contains("\"readme\":\"# long é"),
    ]
}

fn attestations() -> Vec<Case> {
    let release = Release::new("signed", "1.0.0").attested();
    let mut foreign = Release::new("signed", "1.0.1").attested().document();
    foreign["_attachments"]["signed-1.0.1.sigstore"] =
        release.document()["_attachments"]["signed-1.0.0.sigstore"].clone();
    vec![
        published("with an attestation", &release),
        get("the version names it", "/signed/1.0.0", 200)
            .contains("/-/npm/v1/attestations/signed@1.0.0")
            .contains("\"predicateType\":\"https://slsa.dev/provenance/v1\""),
        get("it is served", "/-/npm/v1/attestations/signed@1.0.0", 200)
            .contains("\"attestations\":[{\"bundle\":{")
            .contains("\"mediaType\":\"application/vnd.dev.sigstore.bundle.v0.3+json\""),
        get("with the slash of a scope", "/-/npm/v1/attestations/@acme%2flib@1.0.0", 404),
        refused("about another tarball", "/signed", &foreign, "another file than the tarball"),
    ]
}

fn tags() -> Vec<Case> {
    let at = |tag: &str| format!("/-/package/lib/dist-tags/{tag}");
    let set = |name: &str, tag: &str, status: u16, body: &str| {
        Case::new(name, "PUT", &at(tag), status).with("content-type", "application/json").body(body)
    };
    vec![
        get("all of them", "/-/package/lib/dist-tags", 200)
            .content("{\"latest\":\"1.0.0\",\"next\":\"1.1.0-rc.1\"}"),
        set("one more", "beta", 201, "\"1.1.0-rc.1\"").contains("\"ok\":true"),
        set("moved", "latest", 201, "\"1.1.0-rc.1\""),
        get("they are there", "/-/package/lib/dist-tags", 200)
            .content("{\"beta\":\"1.1.0-rc.1\",\"latest\":\"1.1.0-rc.1\",\"next\":\"1.1.0-rc.1\"}"),
        set("of a missing version", "beta", 404, "\"9.9.9\"").contains("no version 9.9.9"),
        set("that looks like a range", "1.x", 400, "\"1.0.0\"").contains("cannot be a tag"),
        set("without a number", "beta", 400, "1.0.0").contains("JSON string"),
        set("moved back", "latest", 201, "\"1.0.0\""),
        delete("removed", &at("beta"), 200).contains("\"ok\":true"),
        delete("removed again", &at("beta"), 404).contains("no tag beta"),
        delete("latest stays", &at("latest"), 400).contains("move it"),
        get("of no package", "/-/package/none/dist-tags", 404),
    ]
}

fn deprecations() -> Vec<Case> {
    let document = |text: &str| json!({"_id": "lib", "name": "lib", "versions": {"1.0.0": {"name": "lib", "version": "1.0.0", "deprecated": text}}});
    vec![
        put("deprecated", "/lib", 201, &document("use lib2")),
        get("in the version", "/lib/1.0.0", 200).contains("\"deprecated\":\"use lib2\""),
        get("in the packument", "/lib", 200).with("accept", INSTALL).contains("\"deprecated\":\"use lib2\""),
        get("the other is not", "/lib/1.1.0-rc.1", 200).lacks("deprecated"),
        put("taken back", "/lib", 201, &document("")),
        get("it is gone", "/lib/1.0.0", 200).lacks("deprecated"),
        put(
            "a missing version is ignored",
            "/lib",
            201,
            &json!({"versions": {"9.9.9": {"deprecated": "x"}}}),
        ),
        put("of no package", "/none", 404, &json!({"versions": {"1.0.0": {"deprecated": "x"}}})),
        put("too long", "/lib", 400, &document(&"x".repeat(5000))).contains("at most"),
        put("nothing that can be changed", "/lib", 400, &json!({"users": {"me": true}}))
            .contains("changes nothing"),
    ]
}

fn owners() -> Vec<Case> {
    vec![
        put("by yarn", "/lib", 201, &json!({"maintainers": [{"name": "ann", "email": "ann@example.com"}]})),
        get("they are in the packument", "/lib", 200)
            .contains("\"maintainers\":[{\"email\":\"ann@example.com\",\"name\":\"ann\"}]"),
        get("and listed", "/-/package/lib/collaborators", 200).content("{\"ann\":\"read-write\"}"),
        get("not public", "/-/package/lib/visibility", 200).content("{\"public\":false}"),
    ]
}

fn stale_changes() -> Vec<Case> {
    let without = json!({"_id": "lib", "versions": {"1.0.0": {}}});
    vec![
        put("a version left out at an old revision", "/lib/-rev/0", 409, &without)
            .code("conflict")
            .contains("read it again"),
        put("a deprecation at an old revision", "/lib", 409, &json!({"_rev": "0", "versions": {}}))
            .code("conflict"),
        delete("a tarball at an old revision", "/lib/-/lib-1.0.0.tgz/-rev/0", 409).code("conflict"),
        delete("the package at an old revision", "/lib/-rev/0", 409).code("conflict"),
        delete("without a revision", "/lib", 400).contains("add the revision"),
        get("nothing is gone", "/lib/-/lib-1.0.0.tgz", 200),
    ]
}

fn searching() -> Vec<Case> {
    let found = |name: &str, text: &str| get(name, &format!("/-/v1/search?text={text}"), 200);
    vec![
        found("by name", "signed")
            .contains("\"total\":1")
            .contains("\"name\":\"signed\"")
            .contains("\"date\":"),
        found("by its description", "about%20signed").contains("\"total\":1"),
        found("nothing", "absent").contains("\"total\":0").contains("\"objects\":[]"),
        found("in a scope", "scope:acme").contains("\"name\":\"@acme/lib\"").contains("\"total\":1"),
        found("by keyword", "keywords:testing%20signed").contains("\"total\":1"),
        found("by another keyword", "keywords:none").contains("\"total\":0"),
        found("by a keyword in plain words", "testing%20signed")
            .contains("\"total\":1")
            .contains("\"name\":\"signed\""),
        found("when nothing is found, at a time", "absent").lacks("1970-01-01"),
        found("a page", "&size=1&from=1").lacks("\"objects\":[]"),
        found("invalid sizes", "signed&size=x&from=-1").contains("\"total\":1"),
    ]
}

fn accounts() -> Vec<Case> {
    vec![
        get("ping", "/-/ping", 200).content("{}"),
        get("whoami without a credential", "/-/whoami", 401).code("unauthorized"),
        get("the profile without a credential", "/-/npm/v1/user", 401).code("unauthorized"),
        get("the tokens without a credential", "/-/npm/v1/tokens", 401).code("unauthorized"),
        Case::new("token create", "POST", "/-/npm/v1/tokens", 410)
            .body("{\"password\":\"secret\"}")
            .code("NPM_CLI_TOKEN_CREATE_DISABLED"),
        Case::new("legacy login", "PUT", "/-/user/org.couchdb.user:ann", 410)
            .body("{\"password\":\"secret\"}")
            .code("LEGACY_NPM_LOGIN_DISABLED"),
        Case::new("legacy login at a revision", "PUT", "/-/user/org.couchdb.user:ann/-rev/1", 410)
            .code("LEGACY_NPM_LOGIN_DISABLED"),
    ]
}

fn audits() -> Vec<Case> {
    let post = |name: &str, path: &str| {
        Case::new(name, "POST", path, 200)
            .with("content-encoding", "gzip")
            .body(release::gzip(b"{\"lib\":[\"1.0.0\"]}"))
    };
    vec![
        post("advisories", "/-/npm/v1/security/advisories/bulk").content("{}"),
        post("the older form", "/-/npm/v1/security/audits/quick").contains("\"advisories\":{}"),
        post("the oldest", "/-/npm/v1/security/audits").contains("\"vulnerabilities\":{"),
    ]
}

fn odd_addresses() -> Vec<Case> {
    vec![
        get("more than a version", "/lib/1.0.0/x", 404),
        get("the tarball of another package", "/lib/-/other-1.0.0.tgz", 404),
        get("no tarball", "/lib/-/lib-1.0.0.zip", 404),
        get("a scope alone", "/@acme", 404),
        get("an unsupported request", "/-/stage", 404).code("not_supported").contains("in the portal"),
        get("trusted publishers", "/-/package/lib/trust", 404).code("not_supported"),
        get("access list packages", "/-/org/acme/package", 404).code("not_supported").contains("npm access"),
        get("team ls", "/-/team/acme/devs/user", 404).code("not_supported").contains("npm team"),
        Case::new("access grant", "PUT", "/-/team/acme/devs/package", 404)
            .code("not_supported")
            .contains("npm access"),
        Case::new("access set", "POST", "/-/package/lib/access", 404)
            .code("not_supported")
            .contains("npm access"),
        Case::new("org set", "PUT", "/-/org/acme/user", 404).code("not_supported").contains("npm org"),
        Case::new("org rm", "DELETE", "/-/org/acme/user", 404).code("not_supported").contains("npm org"),
        Case::new("profile set", "POST", "/-/npm/v1/user", 404).code("not_supported").contains("npm profile"),
        get("a user, as npm owner reads it", "/-/user/org.couchdb.user:ann%40example.com", 200)
            .contains("\"name\":\"ann@example.com\"")
            .contains("\"email\":\"ann@example.com\""),
        get("a user without an address", "/-/user/org.couchdb.user:ann", 200).contains("\"name\":\"ann\""),
        get("no user", "/-/user/ann", 404).code("not_supported"),
        get("a name with a blank", "/a%20b", 404).contains("No package can have the name"),
        get("at a revision", "/lib/-rev/1", 404),
        Case::new("another method", "POST", "/lib", 405).header("allow", "DELETE, GET, HEAD, PUT"),
        put("a tag the old way", "/lib/latest", 405, &json!("1.0.0")),
    ]
}
