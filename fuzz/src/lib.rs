//! The code of the fuzz targets. No input may cause a panic or a server error (500). Plugins are
//! compiled into the fuzzing program and use the memory host. A panic in a plugin therefore ends
//! the program.
//!
//! `tests/inside/src/seeds.rs` includes this file, and passes the inputs in `seeds/` to these
//! functions in every run of the tests.

#![allow(unreachable_pub, reason = "the targets are separate programs that use these functions")]
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a failing target must panic"
)]

#[path = "../../plugins/cargo/tests/a_crate.rs"]
#[allow(dead_code, reason = "each user of this file needs only some of it")]
mod a_crate;
#[path = "../../plugins/helm/tests/chart.rs"]
mod chart;
#[path = "../../plugins/composer/tests/zip.rs"]
mod composer_zip;
#[path = "../../plugins/rubygems/tests/gem.rs"]
mod gem;
#[path = "../../host/runtime/src/recording/file.rs"]
#[allow(dead_code, reason = "each user of this file needs only some of it")]
mod recording_file;
#[path = "../../plugins/npm/tests/release.rs"]
#[allow(dead_code, reason = "each user of this file needs only some of it")]
mod release;
#[path = "../../host/packages/src/multipart/splitter.rs"]
#[allow(dead_code, reason = "each user of this file needs only some of it")]
mod splitter;
#[path = "../../plugins/python/tests/wheel.rs"]
mod wheel;

use a_crate::{ACrate, framed};
use packhouse_cargo::Cargo;
use packhouse_composer::Composer;
use packhouse_generic::Generic;
use packhouse_go::Go;
use packhouse_helm::Helm;
use packhouse_maven::Maven;
use packhouse_npm::Npm;
use packhouse_oci::Oci;
use packhouse_python::Python;
use packhouse_rubygems::RubyGems;
use packhouse_sdk::VersionId;
use packhouse_testkit::{Answer, MemoryHost};
use recording_file::Recording;
use release::{Release, gzip};
use serde_json::json;
use splitter::{FormEvent, PartHead, Splitter};

/// The file name of an uploaded wheel.
const WHEEL: &str = "hello-1.0-py3-none-any.whl";

/// Publishes to npm. Input that begins with a brace is the publish document. Any other input is the
/// archive in the tarball of a valid document. An accepted package must be served.
pub fn npm_publish(bytes: &[u8]) {
    let host = MemoryHost::new();
    let mount = host.mount::<Npm>("releases", "hosted", json!({}));
    let publish = mount.put("/lib").header("content-type", "application/json");
    let answer = match bytes.first() {
        Some(b'{') => publish.body(bytes).send(),
        _ => publish.json(&Release::new("lib", "1.0.0").raw(&gzip(bytes)).document()).send(),
    };
    if checked_status(answer) == 201 {
        assert_eq!(mount.get("/lib").send().status, 200, "an accepted package is not served");
    }
}

/// Uploads a wheel.
pub fn python_wheel(bytes: &[u8]) {
    upload(bytes);
}

/// Reads a recording of a plugin's call like `plugins replay`. A valid recording must be unchanged
/// after it is written and read again.
pub fn recording(bytes: &[u8]) {
    let Ok(recording) = Recording::parse(bytes) else { return };
    let ended = recording.outcome().expect("a recording has a call");
    let _ = (recording.function(), ended.is_failure(), ended.to_string());
    let written = recording.to_json();
    let again = Recording::parse(written.as_bytes()).expect("a written recording can be read");
    assert_eq!(again.to_json(), written);
}

/// Renders a README in reStructuredText. The result must have a limited size and contain only
/// elements of the renderer.
pub fn readme_rst(bytes: &[u8]) {
    const MAX_BYTES: usize = 100_000;
    let text = String::from_utf8_lossy(bytes);
    let Some(rendered) =
        packhouse_rst::rendered(&text, packhouse_rst::Bounds { depth: 12, bytes: MAX_BYTES })
    else {
        return;
    };
    let html = rendered.blocks.concat();
    assert!(html.len() <= MAX_BYTES, "{} bytes", html.len());
    let mut open: Vec<&str> = Vec::new();
    for piece in html.split('<').skip(1) {
        let tag = piece.split_once('>').unwrap().0;
        let name = tag.split(' ').next().unwrap();
        assert!(
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'/'),
            "{tag}"
        );
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{html}"),
            None if name == "br" || name == "hr" => {}
            None => open.push(name),
        }
    }
    assert!(!rendered.whole || open.is_empty(), "{html}");
}

/// Renders a README in Markdown that may contain HTML. The result must be well formed, have a
/// limited size, and contain only allowed attributes.
pub fn readme_markdown(bytes: &[u8]) {
    const MAX_BYTES: usize = 42_000;
    let text = String::from_utf8_lossy(bytes);
    let bounds = packhouse_readme::Bounds { depth: 24, bytes: MAX_BYTES, is_over: &|| false };
    let Some(rendered) = packhouse_readme::render(packhouse_readme::MarkupKind::Markdown, &text, bounds)
    else {
        return;
    };
    assert!(rendered.html.len() <= MAX_BYTES, "{} bytes", rendered.html.len());
    let mut open: Vec<&str> = Vec::new();
    for piece in rendered.html.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap();
        assert!(!text.contains('>'), "{piece}");
        let name = tag.split(' ').next().unwrap();
        for (at, _) in tag.match_indices("=\"") {
            let attribute = tag[..at].rsplit(' ').next().unwrap();
            assert!(
                ["href", "rel", "start", "dir"].contains(&attribute) || tag.starts_with("a href="),
                "{tag}"
            );
        }
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{}", rendered.html),
            None if name == "br" || name == "hr" => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?} in {}", rendered.html);
}

/// Uploads a wheel with this METADATA. Everything else in the wheel is valid.
pub fn python_metadata(bytes: &[u8]) {
    let mut files = wheel::wheel_files("hello", "1.0", "");
    files[1].1 = bytes.to_vec();
    upload(&wheel::zip(&wheel::borrowed(&files)));
}

/// Uploads a wheel. An accepted wheel must be on the page of its project, in both forms.
fn upload(file: &[u8]) {
    let host = MemoryHost::new();
    let mount = host.mount::<Python>("python", "hosted", json!({}));
    let form = mount.post("/").part(":action", None, "file_upload").part("name", None, "hello");
    let answer = form.part("version", None, "1.0").part("content", Some(WHEEL), file).send();
    if checked_status(answer) == 200 {
        for form in ["application/vnd.pypi.simple.v1+json", "text/html"] {
            let page = mount.get("/simple/hello/").header("accept", form).send().expect(200);
            assert!(page.text().contains(WHEEL), "an accepted wheel is not on the page");
        }
    }
}

/// Serves a packument from the upstream of a proxy. A readable packument must be served as JSON, in
/// both forms.
pub fn npm_upstream(bytes: &[u8]) {
    let host = MemoryHost::new();
    let mount = host.mount::<Npm>("mirror", "proxy", json!({}));
    host.answer_upstream("GET", "lib", 200, &[("content-type", "application/json")], bytes);
    for form in ["application/json", "application/vnd.npm.install-v1+json"] {
        let answer = mount.get("/lib").header("accept", form).send();
        if checked_proxy_status(&answer) == 200 {
            assert!(answer.json()["versions"].is_object(), "not a packument: {}", answer.text());
        }
    }
    checked_proxy_status(&mount.get("/lib/latest").send());
    checked_proxy_status(&mount.get("/lib/-/lib-1.0.0.tgz").send());
}

/// Serves a page of a project from the upstream of a proxy. The first byte selects JSON or HTML.
pub fn python_upstream(bytes: &[u8]) {
    let Some((form, page)) = bytes.split_first() else { return };
    let kind = if form % 2 == 0 { "application/vnd.pypi.simple.v1+json" } else { "text/html" };
    let host = MemoryHost::new();
    let mount = host.mount::<Python>("proxy", "proxy", json!({"upstream": "https://upstream.test"}));
    host.answer_upstream("GET", "simple/hello/", 200, &[("content-type", kind)], page);
    let answer = mount.get("/simple/hello/").header("accept", "application/vnd.pypi.simple.v1+json").send();
    if checked_proxy_status(&answer) == 200 {
        assert!(answer.json()["files"].is_array(), "not a page: {}", answer.text());
    }
    checked_proxy_status(&mount.get("/simple/hello/").send());
    checked_proxy_status(&mount.get(&format!("/packages/hello/1.0/{WHEEL}")).send());
}

/// Uploads a `maven-metadata.xml` beside a file. The metadata that the plugin serves must contain
/// the stored version.
pub fn maven_metadata(bytes: &[u8]) {
    let host = MemoryHost::new();
    let mount = host.mount::<Maven>("releases", "hosted", json!({}));
    mount.put("/org/example/lib/1.0/lib-1.0.jar").body("x").send().expect(201);
    let path = "/org/example/lib/maven-metadata.xml";
    checked_status(mount.put(path).body(bytes).send());
    let served = mount.get(path).send().expect(200).text();
    assert!(served.contains("1.0"), "the stored version is missing: {served}");
    mount.get(&format!("{path}.sha1")).send().expect(200);
}

/// Uploads the manifest of an image. The first byte selects the media type. An accepted manifest
/// must be served unchanged.
pub fn oci_manifest(bytes: &[u8]) {
    let Some((form, manifest)) = bytes.split_first() else { return };
    let kinds = [
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
    ];
    let kind = kinds[usize::from(*form) % kinds.len()];
    let host = MemoryHost::new();
    let mount = host.mount::<Oci>("images", "hosted", json!({}));
    let empty =
        "/app/blobs/uploads/?digest=sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    mount.request("POST", empty).claim("image").body("{}").send().expect(201);
    let put = mount.request("PUT", "/app/manifests/latest").claim("image").header("content-type", kind);
    if checked_status(put.body(manifest).send()) == 201 {
        let served = mount.request("GET", "/app/manifests/latest").claim("image").send().expect(200);
        assert_eq!(served.body, manifest, "the served manifest differs from the accepted one");
    }
}

/// Verifies a statement about a package. The first byte selects the media type. The verdict must
/// never be `verified`, because no file has the digest that the test requires (all zeros).
pub fn attestation(bytes: &[u8]) {
    use packhouse_attest::{Trust, TrustFiles, Verdict, judge};
    static TRUST: std::sync::LazyLock<Trust> = std::sync::LazyLock::new(|| {
        // This file is compiled for the fuzzer and for the tests, in different folders of the
        // checkout.
        let folders = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        let mut roots = folders.map(|folder| folder.join("tests/fixtures/sigstore/trusted_root.json"));
        let roots = roots.find(|root| root.is_file()).into_iter().collect();
        Trust::read(&TrustFiles { roots, ..TrustFiles::default() }).unwrap()
    });
    let Some((form, bytes)) = bytes.split_first() else { return };
    let kind = match form % 4 {
        0 => "application/vnd.dev.sigstore.bundle.v0.3+json",
        1 => "application/vnd.dev.cosign.simplesigning.v1+json",
        2 => "application/vnd.dsse.envelope.v1+json",
        _ => "application/pgp-signature",
    };
    let judged = judge(&TRUST, kind, &format!("sha256:{}", "0".repeat(64)), bytes);
    assert_ne!(judged.verdict, Verdict::Verified);
}

/// Publishes a crate. The first byte selects the role of the input: the body, the metadata beside a
/// valid file, or the archive beside valid metadata. An accepted crate must be served.
pub fn cargo_publish(bytes: &[u8]) {
    let Some((form, bytes)) = bytes.split_first() else { return };
    let right = ACrate::new("hello", "1.0.0");
    let body = match form % 3 {
        0 => bytes.to_vec(),
        1 => framed(bytes, &right.file),
        _ => right.file(a_crate::gzip(bytes)).body(),
    };
    let host = MemoryHost::new();
    let mount = host.mount::<Cargo>("crates", "hosted", json!({}));
    if checked_status(mount.put("/api/v1/crates/new").body(body).send()) == 200 && form % 3 == 2 {
        mount.get("/he/ll/hello").send().expect(200);
        mount.get("/api/v1/crates/hello/1.0.0/download").send().expect(200);
    }
}

/// Serves documents from the upstream registry of a proxy. The first byte selects whether the input
/// is the page of a crate or `config.json`.
pub fn cargo_upstream(bytes: &[u8]) {
    let Some((form, bytes)) = bytes.split_first() else { return };
    let host = MemoryHost::new();
    let mount = host.mount::<Cargo>("mirror", "proxy", json!({}));
    let config =
        br#"{"dl": "https://files.test/{lowerprefix}/{crate}-{version}.crate", "api": "https://far.test"}"#;
    let line = br#"{"name":"hello","vers":"1.0.0","deps":[],"cksum":"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824","features":{},"yanked":false}"#;
    let (config, page) = if form % 2 == 0 { (&config[..], bytes) } else { (bytes, &line[..]) };
    host.answer_upstream("GET", "/config.json", 200, &[], config);
    host.answer_upstream("GET", "/he/ll/hello", 200, &[], page);
    host.answer_upstream("GET", "https://far.test/api/v1/crates?q=hello&per_page=10", 200, &[], bytes);
    for path in
        ["/he/ll/hello", "/api/v1/crates/hello/1.0.0/download", "/api/v1/crates?q=hello", "/he/ll/hello"]
    {
        checked_proxy_status(&mount.get(path).send());
    }
}

/// Uploads a module. Input that begins like a zip is the zip. Any other input is the `go.mod` in a
/// zip that is otherwise valid. An accepted module must be served.
pub fn go_module(bytes: &[u8]) {
    let zip = if bytes.starts_with(b"PK") {
        bytes.to_vec()
    } else {
        wheel::zip(&[("example.com/a@v1.0.0/go.mod", bytes), ("example.com/a@v1.0.0/a.go", b"package a")])
    };
    let host = MemoryHost::new();
    let mount = host.mount::<Go>("modules", "hosted", json!({}));
    if checked_status(mount.put("/example.com/a/@v/v1.0.0.zip").body(zip).send()) == 201 {
        for path in ["@v/list", "@latest", "@v/v1.0.0.info", "@v/v1.0.0.mod", "@v/v1.0.0.zip"] {
            mount.get(&format!("/example.com/a/{path}")).send().expect(200);
        }
        mount.present_version(&VersionId::new("example.com/a", "v1.0.0")).unwrap();
    }
}

/// Serves lists and versions from the upstream of a module proxy.
pub fn go_upstream(bytes: &[u8]) {
    let host = MemoryHost::new();
    let mount = host.mount::<Go>("mirror", "proxy", json!({"min_release_age_s": 60}));
    for path in ["@v/list", "@latest", "@v/v1.0.0.info", "@v/v1.0.0.mod", "@v/v1.0.0.zip", "@v/main.info"] {
        host.answer_upstream("GET", &format!("/example.com/a/{path}"), 200, &[], bytes);
    }
    for path in ["@v/list", "@latest", "@v/v1.0.0.info", "@v/v1.0.0.mod", "@v/v1.0.0.zip", "@v/main.info"] {
        checked_proxy_status(&mount.get(&format!("/example.com/a/{path}")).send());
    }
}

/// Serves a listing from the upstream of a file proxy. The same input is also used as the digest of
/// an upload.
pub fn generic_listing(bytes: &[u8]) {
    let host = MemoryHost::new();
    let mount = host.mount::<Generic>("mirror", "proxy", json!({}));
    host.answer_upstream("GET", "/a/?limit=500&after=", 200, &[("content-type", "application/json")], bytes);
    for form in ["application/json", "text/html"] {
        checked_proxy_status(&mount.get("/a/").header("accept", form).send());
    }
    let hosted = host.mount::<Generic>("files", "hosted", json!({}));
    let digest = String::from_utf8_lossy(bytes).into_owned();
    checked_status(hosted.put("/a/b").header("content-digest", &digest).body("x").send());
}

/// Returns the status of a proxy's response. Panics on a server error other than 502.
fn checked_proxy_status(answer: &Answer) -> u16 {
    assert!(answer.status < 500 || answer.status == 502, "answered {}: {}", answer.status, answer.text());
    answer.status
}

/// Returns the status of a response. Panics on a server error.
fn checked_status(answer: Answer) -> u16 {
    assert!(answer.status < 500, "answered {}: {}", answer.status, answer.text());
    answer.status
}

/// Splits the body of a form with the boundary `X`. The parts must not depend on the size of the
/// pieces in which the body arrives. The first byte is the size of a piece.
pub fn multipart(bytes: &[u8]) {
    let Some((size, body)) = bytes.split_first() else { return };
    let in_pieces = split(body, usize::from(*size).max(1));
    assert_eq!(
        in_pieces,
        split(body, body.len().max(1)),
        "pieces of {size} bytes give another result than the whole body"
    );
}

/// Returns the head and the data of each part; `None` for a malformed body.
fn split(body: &[u8], size: usize) -> Option<Vec<(PartHead, Vec<u8>)>> {
    let mut splitter = Splitter::new("X");
    let mut found: Vec<(PartHead, Vec<u8>)> = Vec::new();
    for piece in body.chunks(size) {
        splitter.push(piece);
        while let Some(event) = splitter.next().ok()? {
            match event {
                FormEvent::Begin(head) => found.push((head, Vec::new())),
                FormEvent::Data(bytes) => found.last_mut().unwrap().1.extend_from_slice(&bytes),
                FormEvent::End => {}
            }
        }
    }
    splitter.is_complete().then_some(found)
}

/// Publishes a chart. The first byte selects whether the input is the tar archive or the
/// Chart.yaml. An accepted chart must be in the index.
pub fn helm_chart(bytes: &[u8]) {
    let Some((form, bytes)) = bytes.split_first() else { return };
    let file = match form % 2 {
        0 => chart::gzip(bytes),
        _ => chart::archive(&[("demo/Chart.yaml", bytes)]),
    };
    let host = MemoryHost::new();
    let mount = host.mount::<Helm>("charts", "hosted", json!({}));
    if checked_status(mount.post("/api/charts").body(&file).send()) == 201 {
        let index = mount.get("/index.yaml").send().expect(200).text();
        assert!(index.contains("urls:"), "an accepted chart is not in the index");
    }
}

/// Serves an index of charts from the upstream of a proxy. A readable index must be served.
pub fn helm_upstream(bytes: &[u8]) {
    let host = MemoryHost::new();
    let mount = host.mount::<Helm>("proxy", "proxy", json!({"upstream": "https://upstream.test"}));
    host.answer_upstream("GET", "index.yaml", 200, &[], bytes);
    if checked_proxy_status(&mount.get("/index.yaml").send()) == 200 {
        mount.get("/api/charts").send().expect(200);
    }
    checked_proxy_status(&mount.get("/charts/demo-1.0.0.tgz").send());
}

/// Publishes a Composer package. The first byte selects whether the input is the zip or the
/// composer.json. An accepted package must be in the metadata.
pub fn composer_publish(bytes: &[u8]) {
    let Some((form, bytes)) = bytes.split_first() else { return };
    let file = match form % 2 {
        0 => bytes.to_vec(),
        _ => composer_zip::zip(&[("composer.json", bytes)]),
    };
    let host = MemoryHost::new();
    let mount = host.mount::<Composer>("php", "hosted", json!({}));
    let published = mount.post("/").body(&file).send();
    let text = published.text();
    if checked_status(published) == 201 {
        let reply: serde_json::Value = serde_json::from_str(&text).unwrap();
        let [name, version] = ["name", "version"].map(|member| reply[member].as_str().unwrap().to_owned());
        let documents =
            ["", "~dev"].map(|dev| mount.get(&format!("/p2/{name}{dev}.json")).send().expect(200));
        let listed = |document: &Answer| {
            let document = document.json();
            let versions = document["packages"][&name].as_array().unwrap().clone();
            versions.iter().any(|one| one["version"] == *version)
        };
        assert!(documents.iter().any(listed), "an accepted package is not in the metadata");
        mount.present_version(&VersionId::new(name, version)).unwrap();
    }
}

/// Serves documents from the upstream of a Composer proxy. The first byte selects whether the input
/// replaces `packages.json`. The input is also the metadata of a package and the reply to an audit.
pub fn composer_upstream(bytes: &[u8]) {
    let Some((form, bytes)) = bytes.split_first() else { return };
    let host = MemoryHost::new();
    let mount = host.mount::<Composer>("proxy", "proxy", json!({"upstream": "https://upstream.test"}));
    let right = br#"{"metadata-url": "/p2/%package%.json", "security-advisories": {"api-url": "/api"}}"#;
    let root = if form % 3 == 1 { bytes } else { &right[..] };
    host.answer_upstream("GET", "packages.json", 200, &[], root);
    for document in ["demo", "demo~dev"] {
        host.answer_upstream("GET", &format!("p2/acme/{document}.json"), 200, &[], bytes);
    }
    host.answer_upstream("POST", "api", 200, &[], bytes);
    for path in ["/p2/acme/demo.json", "/p2/acme/demo~dev.json"] {
        let answer = mount.get(path).send();
        if checked_proxy_status(&answer) == 200 {
            assert!(answer.json()["packages"]["acme/demo"].is_array(), "not metadata: {}", answer.text());
        }
    }
    for path in ["/dists/acme/demo/1.0.zip", "/dists/acme/demo/dev-main.zip"] {
        checked_proxy_status(&mount.get(path).send());
    }
    let audit = mount.get("/security-advisories?packages[]=acme/demo").send();
    if checked_proxy_status(&audit) == 200 {
        assert!(audit.json()["advisories"].is_object(), "not advisories: {}", audit.text());
    }
}

/// Pushes a gem. The first byte selects whether the input is the archive or the YAML. An accepted
/// gem must be in every index.
pub fn rubygems_gem(bytes: &[u8]) {
    let Some((form, bytes)) = bytes.split_first() else { return };
    let file = match form % 2 {
        0 => bytes.to_vec(),
        _ => gem::archive(&gem::gzip(bytes), &gem::gzip(b""), None),
    };
    let host = MemoryHost::new();
    let mount = host.mount::<RubyGems>("gems", "hosted", json!({}));
    if checked_status(mount.post("/api/v1/gems").body(&file).send()) == 200 {
        let versions = mount.get("/versions").send().expect(200).text();
        let line = versions.lines().last().unwrap_or_default();
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(words.len(), 3, "not a line of three words: {line}");
        mount.get(&format!("/info/{}", words[0])).send().expect(200);
        mount.get(&format!("/quick/Marshal.4.8/{}-{}.gemspec.rz", words[0], words[1])).send().expect(200);
        mount.get("/specs.4.8.gz").send().expect(200);
    }
}

/// Serves `info` and `versions` from the upstream of a gem proxy.
pub fn rubygems_upstream(bytes: &[u8]) {
    let host = MemoryHost::new();
    let mount = host.mount::<RubyGems>("proxy", "proxy", json!({"upstream": "https://upstream.test"}));
    host.answer_upstream("GET", "info/demo", 200, &[], bytes);
    host.answer_upstream("GET", "versions", 200, &[], bytes);
    for path in ["/info/demo", "/versions", "/names", "/latest_specs.4.8.gz", "/gems/demo-1.0.gem"] {
        checked_proxy_status(&mount.get(path).send());
    }
}
