//! The Python index's protocol as a table: what clients send, and what must come back.
//!
//! It runs natively over the memory host (`protocol.rs`), and through the component and the runtime (the workspace's tests
//! include this file). Times differ between the two, so that no row depends on one. Each part has projects of its own, and
//! all run in one repository, in their order.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "in tests, a fault is to be loud")]

use super::wheel::{self, Faults};
use packhouse_testkit::Case;
use sha2::{Digest as _, Sha256};

const JSON: &str = "application/vnd.pypi.simple.v1+json";
const HTML: &str = "application/vnd.pypi.simple.v1+html";
/// What pip sends.
const PIP: &str =
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01";

/// All parts, for a repository with the settings that it has if nothing is said, in which nothing is published.
pub(crate) fn cases() -> Vec<Case> {
    [
        nothing_published(),
        twine_uploads(),
        pages(),
        negotiation(),
        redirects(),
        files(),
        refused_forms(),
        refused_names(),
        refused_wheels(),
        refused_zips(),
        refused_sources(),
        attestations(),
        status(),
        legacy(),
        deletions(),
    ]
    .concat()
}

/// For a repository whose `redeploy` is `identical`.
pub(crate) fn identical() -> Vec<Case> {
    let file = wheel::wheel("same", "1.0", "");
    vec![
        upload("first", "same", "1.0", &file, 200),
        upload("the same bytes again", "same", "1.0", &file, 200),
        upload("other bytes", "same", "1.0", &wheel::wheel("same", "1.0", "Author: me\n"), 409)
            .code("version_already_exists"),
    ]
}

/// For a repository whose `republish_deleted` is true.
pub(crate) fn republished() -> Vec<Case> {
    let address = "/packages/again/1.0/again-1.0-py3-none-any.whl";
    let (first, second) = (wheel::wheel("again", "1.0", ""), wheel::wheel("again", "1.0", "Author: me\n"));
    vec![
        upload("first", "again", "1.0", &first, 200),
        upload("while it is there", "again", "1.0", &second, 409),
        Case::new("deleted", "DELETE", address, 204),
        upload("its name again", "again", "1.0", &second, 200),
        Case::new("the other bytes", "GET", address, 200).content(&second),
    ]
}

/// The form as twine sends it, with the file called so.
fn form(name: &str, project: &str, version: &str, filename: &str, file: &[u8], status: u16) -> Case {
    let filetype = if filename.ends_with(".whl") { "bdist_wheel" } else { "sdist" };
    Case::new(name, "POST", "/", status)
        .part(":action", None, "file_upload")
        .part("protocol_version", None, "1")
        .part("name", None, project)
        .part("version", None, version)
        .part("filetype", None, filetype)
        .part("metadata_version", None, "2.1")
        .part("requires_dist", None, "a")
        .part("requires_dist", None, "b")
        .part("content", Some(filename), file)
}

/// A wheel of this project's version.
fn upload(name: &str, project: &str, version: &str, file: &[u8], status: u16) -> Case {
    form(name, project, version, &wheel::wheel_name(project, version), file, status)
}

fn asked(name: &str, path: &str, status: u16) -> Case {
    Case::new(name, "GET", path, status)
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn demo() -> Vec<u8> {
    wheel::wheel(
        "Demo.Project",
        "1.0",
        "Requires-Python: >=3.8\nProject-URL: Home, https://example.org\n\nLong <b>text</b>\n",
    )
}

fn nothing_published() -> Vec<Case> {
    vec![
        asked("the address works", "/", 200).header("content-type", "text/html; charset=utf-8"),
        asked("an empty list", "/simple/", 200)
            .with("accept", JSON)
            .content(r#"{"meta":{"api-version":"1.4"},"projects":[]}"#),
        asked("no project", "/simple/demo-project/", 404).code("not_found"),
        asked("no file", "/packages/demo/1.0/demo-1.0.tar.gz", 404).code("not_found"),
        asked("no legacy document", "/pypi/demo/json", 404).code("not_found"),
        Case::new("an upload to the index", "POST", "/simple/", 405).header("allow", "GET, HEAD"),
        asked("no such address", "/nothing", 404),
    ]
}

fn twine_uploads() -> Vec<Case> {
    let (file, source) = (demo(), wheel::sdist("demo.project", "1.0"));
    let name = "demo_project-1.0-py3-none-any.whl";
    vec![
        form("a wheel with its digests", "Demo.Project", "1.0", name, &file, 200)
            .part("sha256_digest", None, sha256(&file))
            .part("blake2_256_digest", None, ""),
        form("its source", "demo-project", "1.0", "demo_project-1.0.tar.gz", &source, 200).part(
            "gpg_signature",
            Some("demo_project-1.0.tar.gz.asc"),
            "-----BEGIN PGP SIGNATURE-----",
        ),
        form("the same again", "Demo.Project", "1.0", name, &file, 409)
            .code("version_already_exists")
            .contains("File already exists")
            .contains("publish a new version"),
        form(
            "under another spelling",
            "demo_project",
            "1.0.0",
            "Demo.Project-1.0.0-py3-none-any.whl",
            &file,
            409,
        )
        .code("version_already_exists"),
        form(
            "a wheel for another Python",
            "demo.project",
            "1.0",
            "demo_project-1.0-cp312-none-any.whl",
            &file,
            200,
        ),
        upload("a later version", "demo.project", "1.10", &wheel::wheel("demo.project", "1.10", ""), 200),
        upload(
            "a version between",
            "demo.project",
            "1.9rc1",
            &wheel::wheel("demo.project", "1.9rc1", ""),
            200,
        ),
    ]
}

fn pages() -> Vec<Case> {
    let file = demo();
    let metadata = wheel::wheel_files(
        "Demo.Project",
        "1.0",
        "Requires-Python: >=3.8\nProject-URL: Home, https://example.org\n\nLong <b>text</b>\n",
    );
    let metadata = &metadata.iter().find(|(name, _)| name.ends_with("METADATA")).unwrap().1;
    let (address, hash) =
        ("../../packages/demo-project/1.0/demo_project-1.0-py3-none-any.whl", sha256(&file));
    vec![
        asked("the list", "/simple/", 200).with("accept", JSON).contains(r#"{"name":"demo-project"}"#),
        asked("the list in HTML", "/simple/", 200).contains("<a href=\"demo-project/\">demo-project</a>"),
        asked("a project in JSON", "/simple/demo-project/", 200)
            .with("accept", PIP)
            .header("content-type", JSON)
            .contains(r#""versions":["1.0","1.9rc1","1.10"]"#)
            .contains(&format!(r#""url":"{address}""#))
            .contains(&format!(r#""hashes":{{"sha256":"{hash}"}}"#))
            .contains(&format!(r#""size":{}"#, file.len()))
            .contains(r#""requires-python":">=3.8""#)
            .contains(&format!(r#""core-metadata":{{"sha256":"{}"}}"#, sha256(metadata)))
            .contains(r#""upload-time":"20"#)
            .contains(r#""yanked":false"#)
            .contains(r#""gpg-sig":true"#)
            .contains(r#""project-status":{"status":"active"}"#),
        asked("a project in HTML", "/simple/demo-project/", 200)
            .with("accept", HTML)
            .header("content-type", HTML)
            .contains("<meta name=\"pypi:repository-version\" content=\"1.4\">")
            .contains(&format!("<a href=\"{address}#sha256={hash}\" data-requires-python=\"&gt;=3.8\""))
            .contains(&format!("data-core-metadata=\"sha256={}\"", sha256(metadata)))
            .contains("data-gpg-sig=\"true\">demo_project-1.0.tar.gz</a>"),
        asked("its metadata", "/packages/demo-project/1.0/demo_project-1.0-py3-none-any.whl.metadata", 200)
            .content(metadata),
    ]
}

fn negotiation() -> Vec<Case> {
    vec![
        asked("nothing said", "/simple/demo-project/", 200)
            .header("content-type", "text/html; charset=utf-8"),
        asked("anything", "/simple/demo-project/", 200)
            .with("accept", "*/*")
            .header("content-type", "text/html; charset=utf-8"),
        asked("the latest", "/simple/demo-project/", 200)
            .with("accept", "application/vnd.pypi.simple.latest+json")
            .header("content-type", JSON),
        asked("by the query", &format!("/simple/demo-project/?format={}", JSON.replace('+', "%2B")), 200)
            .with("accept", "text/html")
            .header("content-type", JSON),
        asked("what there is not", "/simple/demo-project/", 406)
            .with("accept", "application/vnd.pypi.simple.v2+json")
            .code("not_acceptable"),
        asked("what there is not, of the list", "/simple/", 406)
            .with("accept", "image/png")
            .code("not_acceptable"),
    ]
}

fn redirects() -> Vec<Case> {
    vec![
        asked("the list without its slash", "/simple", 301).header("location", "simple/"),
        asked("a project without its slash", "/simple/demo-project", 301).header("location", "demo-project/"),
        asked("the same, not normalised", "/simple/Demo_Project", 301).header("location", "demo-project/"),
        asked("not normalised", "/simple/Demo._Project/", 301).header("location", "../demo-project/"),
        asked("what is no name", "/simple/-x-/", 404).code("not_found"),
        asked("what would break a header", "/simple/a%20b", 404).code("not_found"),
    ]
}

fn files() -> Vec<Case> {
    let at = |name: &str| format!("/packages/demo-project/1.0/{name}");
    vec![
        asked("a wheel", &at("demo_project-1.0-py3-none-any.whl"), 200)
            .content(demo())
            .header("content-type", "application/zip")
            .header("cache-control", "private, max-age=31536000, immutable"),
        asked("a source", &at("demo_project-1.0.tar.gz"), 200).header("content-type", "application/gzip"),
        asked("its signature", &at("demo_project-1.0.tar.gz.asc"), 200)
            .content("-----BEGIN PGP SIGNATURE-----")
            .header("content-type", "application/pgp-signature"),
        asked("no signature", &at("demo_project-1.0-py3-none-any.whl.asc"), 404).code("not_found"),
        asked("no provenance", &at("demo_project-1.0-py3-none-any.whl.provenance"), 404).code("not_found"),
        asked("under another version", "/packages/demo-project/1.1/demo_project-1.0.tar.gz", 404),
        asked("under another project", "/packages/demo/1.0/demo_project-1.0.tar.gz", 404),
        Case::new("HEAD", "HEAD", &at("demo_project-1.0.tar.gz"), 200).content(""),
    ]
}

/// Forms that say too little, too much or something wrong.
fn refused_forms() -> Vec<Case> {
    let file = wheel::wheel("forms", "1.0", "");
    let name = "forms-1.0-py3-none-any.whl";
    let post = |name: &str, status| Case::new(name, "POST", "/", status);
    let whole = |name: &str, status| {
        form(name, "forms", "1.0", "forms-1.0-py3-none-any.whl", &wheel::wheel("forms", "1.0", ""), status)
    };
    let action = |word: &str| {
        post(word, 410).part(":action", None, word).code("not_supported").lacks("was ever registered")
    };
    vec![
        Case::new("no form at all", "POST", "/", 400).body("x"),
        post("no action", 400).part("name", None, "forms").contains(":action"),
        action("submit"),
        action("register"),
        action("doc_upload"),
        post("no file", 400).part(":action", None, "file_upload").contains("`content` is missing"),
        whole("the name twice", 400).part("name", None, "other").contains("`name` is in the form twice"),
        whole("two files", 400).part("content", Some(name), &file).contains("`content` is in the form twice"),
        whole("a wrong SHA-256", 400).part("sha256_digest", None, "0".repeat(64)).code("checksum_mismatch"),
        whole("a wrong MD5", 400).part("md5_digest", None, "0".repeat(32)).code("checksum_mismatch"),
        whole("a wrong BLAKE2", 400)
            .part("blake2_256_digest", None, "0".repeat(64))
            .code("checksum_mismatch"),
        whole("no digest", 400).part("md5_digest", None, "x").code("invalid_checksum"),
        whole("another protocol", 400).part("protocol_version", None, "2").contains("twice"),
        asked("nothing came of it", "/simple/forms/", 404),
    ]
}

/// Names and versions that do not agree, or that are none.
fn refused_names() -> Vec<Case> {
    let file = wheel::wheel("names", "1.0", "");
    let name = "names-1.0-py3-none-any.whl";
    let sent = |case: &str, project: &str, version: &str, called: &str| {
        form(case, project, version, called, &file, 400)
    };
    vec![
        sent("another project in the form", "other", "1.0", name)
            .contains("the upload says that it is other 1.0"),
        sent("another version in the form", "names", "2.0", name).contains("says that it is names 2.0"),
        sent("no name", "-names", "1.0", name).contains("no name of a project"),
        sent("no version", "names", "one", name).contains("PEP 440"),
        sent("a name that leads away", "names", "1.0", "../names-1.0-py3-none-any.whl")
            .contains("no name of a distribution file"),
        sent("a Windows program", "names", "1.0", "names-1.0.win32.exe").contains("neither a wheel"),
        sent("tags that are none", "names", "1.0", "names-1.0-py3-none.whl")
            .contains("NAME-VERSION-TAGS.whl"),
        form("another type", "names", "1.0", "names-1.0.tar.gz", &file, 400).contains("gzip"),
        asked("nothing came of it", "/simple/names/", 404),
    ]
}

/// Wheels that are about something else than their name.
fn refused_wheels() -> Vec<Case> {
    let name = "mine-1.0-py3-none-any.whl";
    let sent = |case: &str, file: &[u8], words: &str| {
        form(case, "mine", "1.0", name, file, 400).code("invalid_distribution").contains(words)
    };
    let changed = |end: &str, change: &dyn Fn(&[u8]) -> Option<Vec<u8>>| {
        let files = wheel::wheel_files("mine", "1.0", "");
        let files = files.into_iter().filter_map(|(name, content)| match name.ends_with(end) {
            true => change(&content).map(|content| (name, content)),
            false => Some((name, content)),
        });
        wheel::zip(&wheel::borrowed(&files.collect::<Vec<_>>()))
    };
    let replaced = |from: &'static str, to: &'static str| {
        move |content: &[u8]| Some(String::from_utf8_lossy(content).replace(from, to).into_bytes())
    };
    let mut added = wheel::wheel_files("mine", "1.0", "");
    added.insert(0, ("mine/evil.py".to_owned(), b"import os".to_vec()));
    vec![
        sent(
            "another project's wheel",
            &wheel::wheel("victim", "1.0", ""),
            "belongs to another name or version",
        ),
        sent("another version's", &wheel::wheel("mine", "2.0", ""), "belongs to another name or version"),
        sent(
            "metadata of another project",
            &changed("METADATA", &replaced("Name: mine", "Name: victim")),
            "\"victim 1.0\"",
        ),
        sent(
            "metadata of another version",
            &changed("METADATA", &replaced("Version: 1.0", "Version: 1.1")),
            "of mine 1.0",
        ),
        sent(
            "two names",
            &changed("METADATA", &replaced("Name: mine", "Name: mine\nName: victim")),
            "name twice",
        ),
        sent(
            "no metadata",
            &changed("METADATA", &|_| None),
            "names mine-1.0.dist-info/METADATA, which it does not have",
        ),
        sent("no WHEEL", &changed("WHEEL", &|_| None), "WHEEL"),
        sent(
            "another format of wheel",
            &changed("WHEEL", &replaced("Wheel-Version: 1.0", "Wheel-Version: 2.0")),
            "1.x",
        ),
        sent("no RECORD", &changed("RECORD", &|_| None), "no file mine-1.0.dist-info/RECORD"),
        sent(
            "a file that RECORD does not name",
            &wheel::zip(&wheel::borrowed(&added)),
            "does not name its file mine/evil.py",
        ),
        sent("no archive", b"PK", "no zip archive"),
        sent("nothing", b"", "no zip archive"),
        asked("nothing came of it", "/simple/mine/", 404),
        asked("nor of the other", "/simple/victim/", 404),
    ]
}

/// Archives that two programs would unpack differently.
fn refused_zips() -> Vec<Case> {
    let files = wheel::wheel_files("zips", "1.0", "");
    let files = wheel::borrowed(&files);
    let sent = |case: &str, file: &[u8], words: &str| {
        upload(case, "zips", "1.0", file, 400).code("invalid_distribution").contains(words)
    };
    let broken =
        |case: &str, faults: Faults, words: &str| sent(case, &wheel::broken_zip(&files, &faults), words);
    let with = |name: &'static str| [&files[..], &[(name, &b"x"[..])]].concat();
    let none = Faults::default;
    let whole = wheel::zip(&files);
    let bomb = vec![0_u8; 70 << 20];
    let mut large = with("zips/zeros");
    large.last_mut().unwrap().1 = &bomb;
    vec![
        broken(
            "another name in front",
            Faults { local_name: Some("zips/__evil__.py"), ..none() },
            "two headers that differ",
        ),
        broken("something in front", Faults { before: b"MZ", ..none() }, "before its first file"),
        broken("something in between", Faults { between: b"PK\x03\x04", ..none() }, "stands behind its file"),
        broken("something behind", Faults { behind: b"PK", ..none() }, "behind its end record"),
        sent("two archives", &[&whole[..], &whole].concat(), "do not agree"),
        broken("too few entries", Faults { more_entries: 1, ..none() }, "not as many entries"),
        broken("encrypted", Faults { flags: 1, ..none() }, "encrypted"),
        broken("another compression", Faults { method: Some(14), ..none() }, "neither stored nor deflated"),
        broken("a second name", Faults { extra: b"\x75\x70\x01\x00\x01", ..none() }, "two names"),
        broken("a damaged extra field", Faults { extra: b"\x01\x00\xff", ..none() }, "extra field"),
        broken("another size", Faults { size: Some(3), ..none() }, "stored in another size"),
        sent("one file twice", &wheel::zip(&with("zips/__init__.py")), "two files"),
        sent("a file and a folder", &wheel::zip(&with("zips/__init__.py/")), "two files"),
        sent("a file above", &wheel::zip(&with("../evil.py")), "no name for a file"),
        sent("an absolute file", &wheel::zip(&with("/evil.py")), "no name for a file"),
        sent("a Windows path", &wheel::zip(&with("zips\\evil.py")), "no name for a file"),
        sent("a zero in a name", &wheel::zip(&with("zips/a\0.py")), "no name for a file"),
        sent("a bomb", &wheel::zip(&large), "100 times its size"),
        sent("cut off", &whole[..whole.len() - 1], "behind its end record"),
        asked("nothing came of it", "/simple/zips/", 404),
    ]
}

fn refused_sources() -> Vec<Case> {
    let info = wheel::metadata("source", "1.0", "");
    let info = info.as_bytes();
    let sent = |case: &str, file: &[u8], words: &str| {
        form(case, "source", "1.0", "source-1.0.tar.gz", file, 400)
            .code("invalid_distribution")
            .contains(words)
    };
    let tar = |files: &[(&str, &[u8])]| wheel::tar_gz(files);
    let whole = wheel::tar(&[("source-1.0/PKG-INFO", info)]);
    let bomb = wheel::gzip(&vec![0; 70 << 20]);
    vec![
        sent("no gzip", &whole, "not compressed by gzip"),
        sent("a bomb", &bomb, "100 times its size"),
        sent("no PKG-INFO", &tar(&[("source-1.0/setup.py", b"")]), "no file NAME-VERSION/PKG-INFO"),
        sent("two folders", &tar(&[("source-1.0/PKG-INFO", info), ("other/x", b"")]), "one folder"),
        sent("a file beside", &tar(&[("source-1.0/PKG-INFO", info), ("setup.py", b"")]), "one folder"),
        sent(
            "PKG-INFO twice",
            &tar(&[("source-1.0/PKG-INFO", info), ("source-1.0/PKG-INFO", info)]),
            "there twice",
        ),
        sent(
            "a file above",
            &tar(&[("source-1.0/PKG-INFO", info), ("source-1.0/../../x", b"")]),
            "no name for a file",
        ),
        sent("another project's", &wheel::sdist("victim", "1.0"), "\"victim 1.0\""),
        sent("cut off", &wheel::gzip(&whole[..700]), "it ends too early"),
        sent("something behind", &wheel::gzip(&[&whole[..], b"more"].concat()), "behind its end"),
        sent("damaged", &wheel::gzip(&whole.iter().map(|byte| byte ^ 1).collect::<Vec<_>>()), "damaged"),
        form(
            "a zipped source",
            "source",
            "1.0",
            "source-1.0.zip",
            &wheel::zip(&[("source-1.0/PKG-INFO", info)]),
            200,
        ),
    ]
}

/// An attestation of this file, with nothing in it that anybody could check.
fn attestation(filename: &str, hash: &str) -> String {
    use base64::Engine as _;
    let encoded = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let statement = format!(
        r#"{{"_type":"https://in-toto.io/Statement/v1","subject":[{{"name":"{filename}","digest":{{"sha256":"{hash}"}}}}],"predicateType":"https://docs.pypi.org/attestations/publish/v1","predicate":null}}"#
    );
    format!(
        r#"[{{"version":1,"verification_material":{{"certificate":"{}","transparency_entries":[{{}}]}},"envelope":{{"statement":"{}","signature":"{}"}}}}]"#,
        encoded("certificate"),
        encoded(&statement),
        encoded("signature")
    )
}

fn attestations() -> Vec<Case> {
    let file = wheel::wheel("attested", "1.0", "");
    let name = "attested-1.0-py3-none-any.whl";
    let good = attestation(name, &sha256(&file));
    let sent = |case: &str, attestations: &str, status| {
        upload(case, "attested", "1.0", &wheel::wheel("attested", "1.0", ""), status).part(
            "attestations",
            None,
            attestations,
        )
    };
    let refused = |case: &str, attestations: &str| sent(case, attestations, 400).code("invalid_attestations");
    let kind = "application/vnd.pypi.integrity.v1+json";
    vec![
        refused("of another file", &attestation("other-1.0-py3-none-any.whl", &sha256(&file))),
        refused("of other bytes", &attestation(name, &sha256(b""))),
        refused("none", "[]"),
        refused("no list", "{}"),
        refused("of another version", &good.replace(r#""version":1"#, r#""version":2"#)),
        refused("without a signature", &good.replace("signature", "other")),
        sent("of this very file", &good, 200),
        asked("its provenance", "/integrity/attested/1.0/attested-1.0-py3-none-any.whl/provenance", 200)
            .header("content-type", kind)
            .contains("attestation_bundles")
            .contains("transparency_entries"),
        asked("beside the file", &format!("/packages/attested/1.0/{name}.provenance"), 200)
            .header("content-type", kind),
        asked("its page tells", "/simple/attested/", 200)
            .with("accept", JSON)
            .contains(&format!(r#""provenance":"../../integrity/attested/1.0/{name}/provenance""#)),
        asked("no provenance", "/integrity/demo-project/1.0/demo_project-1.0.tar.gz/provenance", 404),
    ]
}

fn status() -> Vec<Case> {
    let path = "/projects/state/status";
    let put = |case: &str, body: &str, status| Case::new(case, "PUT", path, status).body(body);
    let next = |case: &str, version: &str, status| {
        upload(case, "state", version, &wheel::wheel("state", version, ""), status)
    };
    vec![
        put("of no project", r#"{"status":"archived"}"#, 404),
        next("a project", "1.0", 200),
        asked("active", path, 200).content(r#"{"status":"active"}"#),
        put("deprecated", r#"{"status":"deprecated","reason":"use <other>"}"#, 200),
        asked("its page tells", "/simple/state/", 200)
            .with("accept", JSON)
            .contains(r#""project-status":{"reason":"use <other>","status":"deprecated"}"#),
        asked("in HTML too", "/simple/state/", 200)
            .contains("<meta name=\"pypi:project-status\" content=\"deprecated\">")
            .contains("<meta name=\"pypi:project-status-reason\" content=\"use &lt;other&gt;\">"),
        next("it still takes files", "1.1", 200),
        put("archived", r#"{"status":"archived"}"#, 200),
        next("no more files", "1.2", 403).contains("archived"),
        put("quarantined", r#"{"status":"quarantined"}"#, 200),
        asked("nothing is offered", "/simple/state/", 200).with("accept", JSON).contains(r#""files":[]"#),
        put("active again", r#"{"status":"active"}"#, 200),
        asked("all is offered", "/simple/state/", 200)
            .with("accept", JSON)
            .contains("state-1.1-py3-none-any.whl"),
        put("no status", r#"{"status":"gone"}"#, 400),
        put("no document", "archived", 400),
    ]
}

fn legacy() -> Vec<Case> {
    let file = demo();
    vec![
        asked("a project", "/pypi/demo-project/json", 200)
            .header("content-type", "application/json")
            .contains(r#""version":"1.10""#)
            .contains(r#""releases":{"1.0":["#)
            .contains(&format!(r#""sha256":"{}""#, sha256(&file))),
        asked("a version", "/pypi/Demo.Project/1.0/json", 200)
            .contains(r#""summary":"About Demo.Project""#)
            .contains(r#""name":"demo"#)
            .contains(r#""project_urls":{"Home":"https://example.org"}"#)
            .contains(r#""python_version":"py3""#)
            .contains(r#""python_version":"source""#)
            .contains(r#""requires_python":">=3.8""#),
        asked("an equal version", "/pypi/demo-project/1.0.0/json", 200).contains(r#""version":"1.0""#),
        asked("no version", "/pypi/demo-project/9/json", 404),
        asked("no project", "/pypi/absent/json", 404),
    ]
}

fn deletions() -> Vec<Case> {
    let file = wheel::wheel("going", "1.0", "");
    let at = "/packages/going/1.0/going-1.0-py3-none-any.whl";
    vec![
        upload("a file", "going", "1.0", &file, 200),
        form("and its source", "going", "1.0", "going-1.0.tar.gz", &wheel::sdist("going", "1.0"), 200),
        Case::new("what goes with it", "DELETE", &format!("{at}.metadata"), 400),
        Case::new("of another version", "DELETE", "/packages/going/1.1/going-1.0.tar.gz", 404),
        Case::new("the file", "DELETE", at, 204),
        Case::new("the file again", "DELETE", at, 404),
        asked("it is gone", at, 404),
        asked("the source is left", "/simple/going/", 200)
            .with("accept", JSON)
            .contains(r#""versions":["1.0"]"#),
        upload("its name is used", "going", "1.0", &file, 409)
            .code("version_already_exists")
            .contains("deleted"),
        Case::new("the source", "DELETE", "/packages/going/1.0/going-1.0.tar.gz", 204),
        asked("the project is gone", "/simple/going/", 404),
        asked("from the list too", "/simple/", 200).with("accept", JSON).lacks("going"),
        upload("its name is used still", "going", "1.0", &file, 409),
        upload("another version", "going", "1.1", &wheel::wheel("going", "1.1", ""), 200),
    ]
}
