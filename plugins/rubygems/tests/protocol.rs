//! Runs the protocol table with the in-memory host. The other tests check behaviour that a row of
//! the table cannot express: growing documents, yanks and listings. One test lets Ruby read the
//! Marshal documents.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::gem;
use super::table;

use flate2::read::{GzDecoder, ZlibDecoder};
use gem::{built, gem, needs, yaml};
use packhouse_rubygems::RubyGems;
use packhouse_sdk::VersionId;
use packhouse_testkit::{MemoryHost, Mount, TestRequest, run};
use serde_json::{Value, json};
use std::io::Read as _;

/// 2026-11-21 05:01:40 UTC.
const NOW: u64 = 1_795_237_300_000;

fn hosted(settings: Value) -> (MemoryHost, Mount<RubyGems>) {
    let host = MemoryHost::new();
    host.set_now(NOW);
    let mount = host.mount::<RubyGems>("gems", "hosted", settings);
    (host, mount)
}

fn push(mount: &Mount<RubyGems>, name: &str, version: &str) {
    mount.post("/api/v1/gems").body(gem(name, version, "")).send().expect(200);
}

fn text(mount: &Mount<RubyGems>, path: &str) -> String {
    mount.get(path).send().expect(200).text()
}

#[test]
fn the_protocol_table_holds() {
    run(&mut hosted(json!({})).1, &table::cases());
}

#[test]
fn the_protocol_tables_of_other_settings_hold() {
    run(&mut hosted(json!({"redeploy": "identical"})).1, &table::identical());
    run(&mut hosted(json!({"republish_deleted": true})).1, &table::republished());
}

#[test]
fn versions_and_info_grow_only_at_their_end() {
    let (host, mount) = hosted(json!({}));
    let (mut versions, mut info) = (String::new(), "---\n".to_owned());
    for (at, (name, version)) in
        [("b", "1.0"), ("a", "2.0"), ("b", "0.9"), ("a", "1.0")].into_iter().enumerate()
    {
        host.set_now(NOW + at as u64);
        push(&mount, name, version);
        let now = text(&mount, "/versions");
        assert!(now.starts_with(&versions), "{versions}\n{now}");
        let last = now.lines().last().unwrap().to_owned();
        let sum = md5_of(&text(&mount, &format!("/info/{name}")));
        assert_eq!(last, format!("{name} {version} {sum}"));
        versions = now;
        if name == "b" {
            let now = text(&mount, "/info/b");
            assert!(now.starts_with(&info), "{info}\n{now}");
            info = now;
        }
    }
    assert!(versions.starts_with("created_at: 2026-11-21T05:01:40.000Z\n---\nb 1.0 "), "{versions}");
}

/// MD5 in hex.
fn md5_of(text: &str) -> String {
    use md5::{Digest as _, Md5};
    Md5::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn documents_have_a_digest_and_old_bundlers_use_the_md5() {
    let (_, mount) = hosted(json!({}));
    push(&mount, "a", "1.0");
    let answer = mount.get("/versions").send().expect(200);
    use base64::Engine as _;
    let raw: Vec<u8> = gem::sha256(&answer.body)
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let digest = base64::engine::general_purpose::STANDARD.encode(raw);
    assert_eq!(answer.header("repr-digest"), Some(format!("sha-256=:{digest}:").as_str()));
    let md5 = md5_of(&answer.text());
    let old = mount
        .get("/versions")
        .header("user-agent", "bundler/2.3.27")
        .header("if-none-match", &format!("\"{md5}\""));
    old.send().expect(304);
}

#[test]
fn a_version_is_yanked_and_restored() {
    let (host, mount) = hosted(json!({}));
    push(&mount, "lib", "1.0");
    let id = VersionId::new("lib", "1.0");
    mount.mark_version(&id, "yanked", "broken").unwrap();
    mount.get("/info/lib").send().expect(404);
    let listed = host.versions("gems");
    assert_eq!((listed[0].state.as_str(), listed[0].files.len()), ("yanked", 1));
    assert!(listed[0].properties.contains(&("reason".to_owned(), "broken".to_owned())));
    mount.mark_version(&id, "", "").unwrap();
    mount.get("/gems/lib-1.0.gem").send().expect(200);
    assert_eq!(host.versions("gems")[0].state, "");
    assert_eq!(mount.mark_version(&id, "deprecated", "").unwrap_err().status, 405);
    assert_eq!(mount.mark_version(&VersionId::new("lib", "2.0"), "yanked", "").unwrap_err().status, 404);
    assert_eq!(mount.mark_version(&VersionId::new("../x", "2"), "", "").unwrap_err().status, 404);
}

#[test]
fn a_pushed_version_is_listed_and_a_deleted_one_keeps_its_file_name_reserved() {
    let (host, mount) = hosted(json!({}));
    mount.post("/api/v1/gems").body(gem("lib", "1.0", &needs("rake", "~>", "13.0"))).send().expect(200);
    let listed = host.versions("gems");
    assert_eq!(
        (listed[0].name.as_str(), listed[0].version.as_str(), listed[0].summary.as_str()),
        ("lib", "1.0", "About lib")
    );
    assert_eq!(listed[0].files[0].path, "gems/lib-1.0.gem");
    let id = VersionId::new("lib", "1.0");
    let presented = mount.present_version(&id).unwrap();
    assert_eq!(presented["readme"]["text"], "A longer text about lib");
    assert_eq!(presented["dependencies"], json!([{"name": "rake", "requirement": "~> 13.0", "group": ""}]));
    mount.delete_version(&id).unwrap();
    assert_eq!(mount.delete_version(&id).unwrap_err().status, 404);
    host.end_grace();
    let left = mount.effects();
    assert!(left.blobs.is_empty() && left.shown.is_empty(), "{left}");
    assert_eq!(left.records.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["f/lib-1.0"]);
}

#[test]
fn retention_knows_pre_releases() {
    let (_, mount) = hosted(json!({}));
    let ids = [VersionId::new("a", "1.0-java"), VersionId::new("a", "1.0.rc1"), VersionId::new("a", "x")];
    let facts = mount.judge_versions(&ids).unwrap();
    assert_eq!((&facts[0]["prerelease"], &facts[1]["prerelease"]), (&json!(false), &json!(true)));
    assert_eq!(facts[2]["prerelease"], Value::Null);
}

#[test]
fn intents_name_each_gem_that_a_file_may_belong_to() {
    let (_, mount) = hosted(json!({}));
    let plan = |method: &str, target: &str| mount.plan(&TestRequest::new(method, target)).unwrap();
    assert_eq!(plan("GET", "/gems/net-http-2-1.0.gem").packages, ["net-http", "net-http-2"]);
    assert_eq!(plan("GET", "/quick/Marshal.4.8/rake-13.0.gemspec.rz").packages, ["rake"]);
    assert!(plan("GET", "/versions").many_packages);
    assert_eq!(plan("GET", "/info/rake").packages, ["rake"]);
}

/// Runs a Ruby program with `document` as its input, and returns its output. Returns `None` if Ruby
/// is not installed.
fn ruby(program: &str, document: &[u8]) -> Option<String> {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let child = Command::new("ruby")
        .args(["-rrubygems", "-e", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        println!("skipped: ruby: not here");
        return None;
    };
    child.stdin.take().unwrap().write_all(document).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn ruby_reads_the_marshal_documents() {
    let (_, mount) = hosted(json!({}));
    let more = format!("{}long: x\n", needs("rake", "~>", "13.0"));
    mount
        .post("/api/v1/gems")
        .body(built("lib", "1.0", &yaml("lib", "1.0", "x86_64-linux", &more)))
        .send()
        .expect(200);
    push(&mount, "lib", "1.9");
    push(&mount, "lib", "1.10");
    push(&mount, "lib", "2.0.rc1");
    let mut index = Vec::new();
    let gz = mount.get("/latest_specs.4.8.gz").send().expect(200).body;
    GzDecoder::new(gz.as_slice()).read_to_end(&mut index).unwrap();
    let show = "print Marshal.load(STDIN.binmode.read).map { |n, v, p| \"#{n} #{v.class} #{v} #{p}\" }.join(\"\\n\")";
    let Some(output) = ruby(show, &index) else { return };
    assert_eq!(output, "lib Gem::Version 1.0 x86_64-linux\nlib Gem::Version 1.10 ruby");
    for (name, count) in [("specs", "3"), ("prerelease_specs", "1")] {
        let mut index = Vec::new();
        let gz = mount.get(&format!("/{name}.4.8.gz")).send().expect(200).body;
        GzDecoder::new(gz.as_slice()).read_to_end(&mut index).unwrap();
        assert_eq!(ruby("print Marshal.load(STDIN.binmode.read).size", &index).unwrap(), count, "{name}");
    }
    let mut quick = Vec::new();
    let rz = mount.get("/quick/Marshal.4.8/lib-1.0-x86_64-linux.gemspec.rz").send().expect(200).body;
    ZlibDecoder::new(rz.as_slice()).read_to_end(&mut quick).unwrap();
    let show = "s = Marshal.load(STDIN.binmode.read); print [s.full_name, s.platform.to_s, s.summary, s.dependencies.map(&:to_s), \
                s.required_ruby_version.to_s, s.date.year, s.email, s.authors, s.platform == Gem::Platform.new('x86_64-linux')].inspect";
    assert_eq!(
        ruby(show, &quick).unwrap(),
        "[\"lib-1.0-x86_64-linux\", \"x86_64-linux\", \"About lib\", [\"rake (~> 13.0)\"], \">= 2.0\", 2026, [\"ann@example.org\"], [\"Ann\"], true]"
    );
    // Some versions of Ruby do not load the licences and the metadata, so this checks their
    // positions in the document.
    let show = "d = STDIN.binmode.read; a = Marshal.load(d[d.index(\"\\x04\\b\".b, 2)..]); print [a.size, a[17], a[18]].inspect";
    assert_eq!(ruby(show, &quick).unwrap(), "[19, [\"MIT\"], {}]");
}
