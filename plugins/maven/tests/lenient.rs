//! Tests of proxies and groups whose upstreams send unusual documents and checksums.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use packhouse_maven::Maven;
use packhouse_sdk::Freshness;
use packhouse_testkit::{MemoryHost, Mount};
use serde_json::{Value, json};

const JAR: &str = "/org/a/lib/1.0/lib-1.0.jar";
const METADATA: &str = "/org/a/lib/maven-metadata.xml";
const CATALOGUE: &str = "/archetype-catalog.xml";

fn proxy(host: &MemoryHost, name: &str, own: Value) -> Mount<Maven> {
    let mut settings = json!({"upstream": "https://upstream.test"});
    settings.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    host.mount::<Maven>(name, "proxy", settings)
}

/// A proxy, a hosted repository with version 2.0 of the artifact, and a group of both.
fn group(host: &MemoryHost) -> (Mount<Maven>, Mount<Maven>, Mount<Maven>) {
    let (central, hosted) =
        (proxy(host, "central", json!({})), host.mount::<Maven>("own", "hosted", json!({})));
    let all = host.mount::<Maven>("all", "group", json!({})).members(&["own", "central"]);
    (central, hosted, all)
}

/// Serves a file from the upstream, without any checksum.
fn serve_upstream(host: &MemoryHost, path: &str, bytes: &[u8]) {
    host.answer_upstream("GET", path, 200, &[], bytes);
    for ending in ["sha1", "sha256", "md5"] {
        host.answer_upstream("GET", &format!("{path}.{ending}"), 404, &[], b"");
    }
}

fn document(before: &str, versions: &[&str]) -> String {
    let versions: String = versions.iter().map(|version| format!("<version>{version}</version>")).collect();
    format!(
        "{before}<metadata><groupId>org.a</groupId><artifactId>lib</artifactId><versioning><versions>{versions}\
         </versions><lastUpdated>20200101000000</lastUpdated></versioning></metadata>"
    )
}

#[test]
fn metadata_that_maven_can_read_is_accepted() {
    let latin1 = document("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><!-- \u{e9} -->", &["1.0"]);
    let latin1: Vec<u8> = latin1.chars().map(|symbol| symbol as u8).collect();
    let doctype = document("<!DOCTYPE metadata [<!ENTITY x 'y'>]>", &["1.0"]).into_bytes();
    let entity = document("", &["1.0"])
        .replace("<versioning>", "<plugins><plugin><name>&eacute;</name></plugin></plugins><versioning>");
    for bytes in [latin1, doctype, entity.into_bytes()] {
        let host = MemoryHost::new();
        let (central, _, _) = group(&host);
        proxy(&host, "second", json!({}));
        let both = host.mount::<Maven>("both", "group", json!({})).members(&["central", "second"]);
        host.answer_upstream("GET", METADATA, 200, &[], &bytes);
        assert_eq!(central.get(METADATA).send().expect(200).body, bytes, "not the upstream's bytes");
        assert!(both.get(METADATA).send().expect(200).text().contains("<version>1.0</version>"));
    }
}

#[test]
fn an_unreadable_upstream_does_not_hide_other_members() {
    let broken: [(&str, &[u8]); 4] = [
        ("text/html", b"<html>Sign in</html>"),
        ("text/xml", b""),
        ("text/xml", b"<metadata><versioning><versions><version>1.0"),
        ("text/xml", b"<html><body>Sign in</body></html>"),
    ];
    for (kind, bytes) in broken {
        let host = MemoryHost::new();
        let (central, own, all) = group(&host);
        host.answer_upstream("GET", METADATA, 200, &[("content-type", kind)], bytes);
        let answer = central.get(METADATA).send().expect(502);
        assert!(answer.text().contains("org/a/lib/maven-metadata.xml"), "{}", answer.text());
        // The hosted member names a plugin of this group, and the host does not withhold the
        // plugin's name from the upstream.
        let plugins = "<metadata><plugins><plugin><prefix>p</prefix><artifactId>p-plugin</artifactId></plugin></plugins></metadata>";
        own.put("/org/a/maven-metadata.xml").body(plugins).send().expect(201);
        host.answer_upstream("GET", "/org/a/maven-metadata.xml", 200, &[("content-type", kind)], bytes);
        assert!(
            all.get("/org/a/maven-metadata.xml").send().expect(200).text().contains("p-plugin"),
            "{kind}"
        );
        all.get("/org/a/maven-metadata.xml.sha1").send().expect(200);
        all.get(METADATA).send().expect(502);
    }
}

#[test]
fn versions_that_no_artifact_can_have_are_left_out() {
    let host = MemoryHost::new();
    let (central, _, _) = group(&host);
    let bytes = document("", &["1.0", "${project.version}", "3/4"]);
    host.answer_upstream("GET", METADATA, 200, &[], bytes.as_bytes());
    let text = central.get(METADATA).send().expect(200).text().to_owned();
    assert!(
        text.contains("<version>1.0</version>") && !text.contains("3/4") && !text.contains("${"),
        "{text}"
    );
}

#[test]
fn a_checksum_that_the_upstream_refuses_counts_as_missing() {
    for status in [401, 403, 405, 451] {
        let host = MemoryHost::new();
        let central = proxy(&host, "central", json!({}));
        host.answer_upstream("GET", JAR, 200, &[], b"a jar");
        for ending in ["sha1", "sha256", "md5"] {
            host.answer_upstream("GET", &format!("{JAR}.{ending}"), status, &[], b"");
        }
        assert_eq!(central.get(JAR).send().expect(200).body, b"a jar");
        central.get(&format!("{JAR}.sha1")).send().expect(404);
        host.answer_upstream("GET", &format!("{JAR}.sha1"), 500, &[], b"");
        central.get(JAR).send().expect(502);
    }
}

#[test]
fn a_setting_decides_about_files_with_a_wrong_checksum() {
    let host = MemoryHost::new();
    host.answer_upstream("GET", JAR, 200, &[], b"a jar");
    let sha1 = format!("{JAR}.sha1");
    host.answer_upstream("GET", &sha1, 200, &[], b"da39a3ee5e6b4b0d3255bfef95601890afd80709");
    proxy(&host, "strict", json!({})).get(JAR).send().expect(502);
    proxy(&host, "fail", json!({"checksum_policy": "fail"})).get(JAR).send().expect(502);
    let warned = proxy(&host, "warn", json!({"checksum_policy": "warn"})).get(JAR).send();
    assert_eq!(warned.expect(200).body, b"a jar");
    let checksum_requests = || host.fetched().iter().filter(|target| target.ends_with("sha1")).count();
    let before = checksum_requests();
    let ignored = proxy(&host, "ignore", json!({"checksum_policy": "ignore"})).get(JAR).send();
    assert_eq!((ignored.expect(200).body.as_slice(), checksum_requests()), (b"a jar".as_slice(), before));
}

#[test]
fn an_unreadable_checksum_blocks_a_file_only_with_the_setting_fail() {
    let host = MemoryHost::new();
    serve_upstream(&host, JAR, b"a jar");
    host.answer_upstream("GET", &format!("{JAR}.sha1"), 503, &[], b"");
    for policy in ["fail", "warn"] {
        let status = if policy == "warn" { 200 } else { 502 };
        proxy(&host, policy, json!({"checksum_policy": policy})).get(JAR).send().expect(status);
    }
    let lines = host.log();
    assert_eq!((lines.len(), lines[0].level.as_str()), (1, "warn"), "{lines:?}");
    assert!(format!("{lines:?}").contains("status 503"), "{lines:?}");
    // The proxy still reads the other checksums.
    host.answer_upstream("GET", &format!("{JAR}.md5"), 200, &[], b"d41d8cd98f00b204e9800998ecf8427e");
    proxy(&host, "warn", json!({"checksum_policy": "warn"})).get(JAR).send().expect(200);
    assert!(
        host.log()[2].message.contains("does not match the checksum of its upstream"),
        "{:?}",
        host.log()
    );
}

#[test]
fn the_checksums_that_few_upstreams_have_are_requested_together() {
    let host = MemoryHost::new();
    serve_upstream(&host, JAR, b"a jar");
    let sha256 = "3a1d1c1b2bd36fbb0ea2fbaf8bd1f85ab4b0a3b9c0d3f1e0e5f3d8f2c6b7a190";
    host.answer_upstream("GET", &format!("{JAR}.sha256"), 200, &[], sha256.as_bytes());
    proxy(&host, "central", json!({})).get(JAR).send().expect(502);
    let requested: Vec<String> = host.fetched().into_iter().skip(1).collect();
    assert_eq!(requested, ["sha1", "sha256", "md5"].map(|ending| format!("GET {JAR}.{ending}")));
}

#[test]
fn files_without_an_artifact_are_requested_again() {
    let host = MemoryHost::new();
    let central = proxy(&host, "central", json!({}));
    for path in [CATALOGUE, "/.index/nexus-maven-repository-index.properties", "/org/a/keys.txt"] {
        serve_upstream(&host, path, b"one");
        let answer = central.get(path).send().expect(200);
        assert!(!answer.header("cache-control").unwrap_or_default().contains("immutable"), "{path}");
        let fetched = host.fetches().into_iter().rfind(|one| one.target == path).unwrap();
        assert_ne!(fetched.fresh, Some(Freshness::Immutable), "{path}");
    }
    serve_upstream(&host, JAR, b"a jar");
    assert!(central.get(JAR).send().expect(200).header("cache-control").unwrap().contains("immutable"));
}

#[test]
fn a_group_merges_the_archetype_catalogues_of_its_members() {
    let host = MemoryHost::new();
    let (_, own, all) = group(&host);
    let catalogue = |archetypes: &[(&str, &str)]| {
        let one = |(artifact, version): &(&str, &str)| {
            format!(
                "<archetype><groupId>g</groupId><artifactId>{artifact}</artifactId><version>{version}</version></archetype>"
            )
        };
        let all: String = archetypes.iter().map(one).collect();
        format!("<archetype-catalog><archetypes>{all}</archetypes></archetype-catalog>")
    };
    host.answer_upstream("GET", CATALOGUE, 404, &[], b"");
    all.get(CATALOGUE).send().expect(404);
    let upstream = catalogue(&[("a", "1"), ("b", "1")]);
    serve_upstream(&host, CATALOGUE, upstream.as_bytes());
    assert_eq!(
        all.get(CATALOGUE).send().expect(200).text(),
        upstream,
        "the group must serve the bytes of the only member with a catalogue"
    );
    own.put(CATALOGUE).body(catalogue(&[("b", "1"), ("c", "2")])).send().expect(201);
    let text = all.get(CATALOGUE).send().expect(200).text().to_owned();
    let listed = |artifact: &str| text.matches(&format!("<artifactId>{artifact}</artifactId>")).count();
    assert_eq!((listed("a"), listed("b"), listed("c")), (1, 1, 1), "{text}");
    assert_eq!(all.get(&format!("{CATALOGUE}.sha1")).send().expect(200).text().len(), 40);
    host.answer_upstream("GET", CATALOGUE, 200, &[], b"<html>Sign in</html>");
    let text = all.get(CATALOGUE).send().expect(200).text().to_owned();
    assert!(text.contains("<artifactId>c</artifactId>") && !text.contains("html"), "{text}");
}
