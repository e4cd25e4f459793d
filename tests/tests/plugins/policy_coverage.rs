//! Content that a policy denies, at proxies and groups. The server refuses it at every address, for
//! example an image by its digest, a signature, and a file beside the files of a version.

use packhouse_tests::image_proxy::offer_blob;
use packhouse_tests::images::{self, MANIFEST};
use packhouse_tests::python::SIMPLE_JSON;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Client, Request, Response, Server, digests};
use serde_json::{Value, json};

const POLICIES: &str = "/v1/policies";

/// A format, with a function that offers files of `lib` at the upstream. The function returns the
/// files' paths in the repository of this name.
type FormatFiles = (&'static str, fn(&Upstream, &str) -> Vec<String>);

const FORMATS: [FormatFiles; 10] = [
    ("maven", maven),
    ("docker", docker),
    ("npm", npm),
    ("python", python),
    ("go", go),
    ("generic", generic),
    ("cargo", cargo),
    ("rubygems", rubygems),
    ("helm", helm),
    ("composer", composer),
];

fn below(repository: &str, paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| format!("/repositories/{repository}/{path}")).collect()
}

fn maven(upstream: &Upstream, repository: &str) -> Vec<String> {
    let paths = [
        "g/lib/1.0/lib-1.0.jar",
        "g/lib/1.0/lib-1.0.jar.asc",
        "g/lib/1.0/lib-1.0.jar.sigstore.json",
        "g/lib/1.0/other.jar",
        "g/lib/other.jar",
        "g/lib/1.0;x=1/lib-1.0.jar",
        "lib.jar",
    ];
    for path in paths {
        upstream.on(&format!("/{path}"), Answer::ok("bytes"));
        // A client may send `;` and `=` plain or encoded. The upstream offers the file under both
        // targets.
        upstream.on(&format!("/{}", path.replace(';', "%3B").replace('=', "%3D")), Answer::ok("bytes"));
    }
    below(repository, &paths.map(str::to_owned))
}

/// Offers an image at an upstream that sends no digest headers, as some registries do. Returns the
/// manifest's digest.
fn offer_image(upstream: &Upstream, image: &str, tag: &str, manifest: &str) -> String {
    let digest = images::digest(manifest.as_bytes());
    for reference in [tag, &digest] {
        let answer = Answer::ok(manifest).header("Content-Type", MANIFEST);
        upstream.on(&format!("/v2/{image}/manifests/{reference}"), answer);
    }
    offer_blob(upstream, image, b"{}");
    digest
}

fn docker(upstream: &Upstream, repository: &str) -> Vec<String> {
    let layer = offer_blob(upstream, "lib", b"layer");
    let digest = offer_image(upstream, "lib", "1.0", &images::manifest(&[b"layer"]));
    let signatures = [".sig", ".att", ""].map(|kind| format!("{}{kind}", digest.replace(':', "-")));
    for tag in &signatures {
        offer_image(upstream, "lib", tag, &images::manifest(&[tag.as_bytes()]));
    }
    let manifests = signatures.iter().map(String::as_str).chain(["1.0", &digest]);
    let manifests =
        manifests.map(|reference| format!("/v2/repositories/{repository}/lib/manifests/{reference}"));
    manifests.chain([format!("/v2/repositories/{repository}/lib/blobs/{layer}")]).collect()
}

fn npm(upstream: &Upstream, repository: &str) -> Vec<String> {
    let dist = json!({
        "tarball": format!("{}/lib/-/lib-1.0.0.tgz", upstream.url()), "shasum": digests::sha1(b"bytes"),
    });
    let document = json!({
        "_id": "lib", "name": "lib", "dist-tags": {"latest": "1.0.0"}, "time": {"1.0.0": "2015-01-05T10:00:00.000Z"},
        "versions": {"1.0.0": {"name": "lib", "version": "1.0.0", "dist": dist}},
    });
    upstream.on("/lib", Answer::ok(document.to_string()).header("Content-Type", "application/json"));
    upstream.on("/lib/-/lib-1.0.0.tgz", Answer::ok("bytes"));
    upstream.on("/-/npm/v1/attestations/lib@1.0.0", Answer::ok(r#"{"attestations": []}"#));
    below(repository, &["lib/-/lib-1.0.0.tgz", "-/npm/v1/attestations/lib@1.0.0"].map(str::to_owned))
}

fn python(upstream: &Upstream, repository: &str) -> Vec<String> {
    let name = "lib-1.0-py3-none-any.whl";
    let file = json!({
        "filename": name, "url": format!("/files/{name}"), "hashes": {"sha256": digests::sha256(b"bytes")},
        "core-metadata": true,
    });
    let page = json!({"meta": {"api-version": "1.1"}, "name": "lib", "files": [file]}).to_string();
    upstream.on("/simple/lib/", Answer::ok(page).header("Content-Type", SIMPLE_JSON));
    upstream.on(&format!("/files/{name}"), Answer::ok("bytes"));
    upstream.on(&format!("/files/{name}.metadata"), Answer::ok("METADATA"));
    below(repository, &[format!("packages/lib/1.0/{name}"), format!("packages/lib/1.0/{name}.metadata")])
}

fn go(upstream: &Upstream, repository: &str) -> Vec<String> {
    let at = "example.com/lib/@v/v1.0.0";
    let info = json!({"Version": "v1.0.0", "Time": "2015-01-05T10:00:00Z"}).to_string();
    upstream.on(&format!("/{at}.info"), Answer::ok(info));
    upstream.on(&format!("/{at}.mod"), Answer::ok("module example.com/lib\n"));
    upstream.on(&format!("/{at}.zip"), Answer::ok("bytes"));
    below(repository, &["mod", "zip"].map(|part| format!("{at}.{part}")))
}

fn generic(upstream: &Upstream, repository: &str) -> Vec<String> {
    upstream.on("/lib/tool-1.0", Answer::ok("bytes"));
    upstream.on("/tool", Answer::ok("bytes"));
    below(repository, &["lib/tool-1.0", "tool"].map(str::to_owned))
}

fn cargo(upstream: &Upstream, repository: &str) -> Vec<String> {
    let line = json!({
        "name": "library", "vers": "1.0.0", "deps": [], "features": {}, "yanked": false,
        "cksum": digests::sha256(b"bytes"),
    });
    upstream.on("/li/br/library", Answer::ok(line.to_string()));
    let config = json!({"dl": format!("{}/files", upstream.url())});
    upstream.on("/config.json", Answer::ok(config.to_string()));
    upstream.on("/files/library/1.0.0/download", Answer::ok("bytes"));
    below(repository, &["api/v1/crates/library/1.0.0/download".to_owned()])
}

fn rubygems(upstream: &Upstream, repository: &str) -> Vec<String> {
    let info = format!("---\n1.0.0 |checksum:{}\n", digests::sha256(b"bytes"));
    upstream.on("/info/lib", Answer::ok(info));
    let paths = ["gems/lib-1.0.0.gem", "quick/Marshal.4.8/lib-1.0.0.gemspec.rz"];
    paths.iter().for_each(|path| upstream.on(&format!("/{path}"), Answer::ok("bytes")));
    below(repository, &paths.map(str::to_owned))
}

fn helm(upstream: &Upstream, repository: &str) -> Vec<String> {
    let index = format!(
        "apiVersion: v1\nentries:\n  lib:\n  - apiVersion: v2\n    name: lib\n    version: 1.0.0\n    \
         created: \"2015-01-05T10:00:00Z\"\n    digest: {}\n    urls:\n    - lib-1.0.0.tgz\n",
        digests::sha256(b"bytes")
    );
    upstream.on("/index.yaml", Answer::ok(index));
    upstream.on("/lib-1.0.0.tgz", Answer::ok("bytes"));
    upstream.on("/lib-1.0.0.tgz.prov", Answer::ok("signature"));
    below(repository, &["charts/lib-1.0.0.tgz", "charts/lib-1.0.0.tgz.prov"].map(str::to_owned))
}

fn composer(upstream: &Upstream, repository: &str) -> Vec<String> {
    let version = json!({
        "name": "acme/lib", "version": "1.0.0",
        "dist": {"type": "zip", "url": format!("{}/lib.zip", upstream.url()), "shasum": digests::sha1(b"bytes")},
    });
    let root = json!({"packages": {"acme/lib": {"1.0.0": version}}});
    upstream.on("/packages.json", Answer::ok(root.to_string()).header("Content-Type", "application/json"));
    upstream.on("/lib.zip", Answer::ok("bytes"));
    below(repository, &["dists/acme/lib/1.0.0.zip".to_owned()])
}

fn server() -> Server {
    Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start()
}

/// Creates a policy for these packages of all repositories, previews it and enforces it. Returns
/// the policy's id.
#[track_caller]
fn enforce(api: &Api, component: &str, settings: Value, packages: Value) -> String {
    let body = json!({
        "name": "ours", "component": component, "settings": settings, "repositories": "*", "packages": packages,
    });
    let id = api.post(POLICIES, &body).expect(201).field("id");
    api.call("POST", &format!("{POLICIES}/{id}/preview")).expect(200);
    api.patch(&format!("{POLICIES}/{id}"), &json!({"mode": "enforced"})).expect(200);
    id
}

#[track_caller]
fn remove(api: &Api, id: &str) {
    api.call("DELETE", &format!("{POLICIES}/{id}")).expect(204);
}

fn deny_all(api: &Api) -> String {
    enforce(api, "names", json!({"claimed": ["*"], "distance": 0}), Value::Null)
}

/// The paths of a proxy's files, at the proxy and at a group with the proxy. Each path comes with a
/// client that may read it.
struct ProxyFiles {
    format: &'static str,
    all: Vec<(Client, String)>,
}

impl ProxyFiles {
    fn of(server: &Server, upstream: &Upstream, (format, offer): FormatFiles) -> ProxyFiles {
        let (near, group) = (format!("{format}-near"), format!("{format}-all"));
        let proxy = FormatRepository::proxy(server, format, &near, &upstream.url(), &json!({}));
        let all = FormatRepository::group(server, format, &group, &[&proxy]);
        let by_proxy = offer(upstream, &near).into_iter().map(|path| (proxy.client.clone(), path));
        let by_group = offer(upstream, &group).into_iter().map(|path| (all.client.clone(), path));
        ProxyFiles { format, all: by_proxy.chain(by_group).collect() }
    }

    #[track_caller]
    fn none_comes(&self, when: &str) {
        for (client, path) in &self.all {
            for method in ["GET", "HEAD"] {
                let answer = client.send(Request::new(method, path));
                let is_refused = matches!(answer.status, 403 | 404);
                assert!(is_refused, "{when}: {}: {method} {path}: {}", self.format, answer.status);
            }
        }
    }

    #[track_caller]
    fn each_comes(&self) {
        for (client, path) in &self.all {
            let answer = client.get(path);
            assert_eq!(answer.status, 200, "{}: {path}: {}", self.format, answer.text());
        }
    }
}

#[test]
fn a_proxy_of_any_format_serves_nothing_if_everything_is_denied() {
    let server = server();
    let api = Api::sign_in(&server);
    let upstreams = FORMATS.map(|format| (Upstream::start(), format));
    let files: Vec<ProxyFiles> =
        upstreams.iter().map(|(upstream, format)| ProxyFiles::of(&server, upstream, *format)).collect();
    let rule = deny_all(&api);
    files.iter().for_each(|files| files.none_comes("before anything was fetched"));
    remove(&api, &rule);
    files.iter().for_each(ProxyFiles::each_comes);
    deny_all(&api);
    files.iter().for_each(|files| files.none_comes("after everything was fetched"));
}

#[test]
fn checksums_are_text_that_no_policy_judges() {
    let (server, upstream) = (server(), Upstream::start());
    let api = Api::sign_in(&server);
    let proxy = FormatRepository::proxy(&server, "maven", "near", &upstream.url(), &json!({}));
    let jar = "g/lib/1.0/lib-1.0.jar";
    upstream.on(&format!("/{jar}"), Answer::ok("bytes"));
    upstream.on(&format!("/{jar}.sha1"), Answer::ok(digests::sha1(b"bytes")));
    deny_all(&api);
    assert_eq!(proxy.get(jar).status, 403);
    assert_eq!(proxy.get(&format!("{jar}.sha1")).expect(200).text(), digests::sha1(b"bytes"));
}

/// A rule about `g:lib` applies to the files in that package's folders, even if they belong to no
/// version. It does not apply to other files.
#[test]
fn a_file_without_a_version_is_judged_by_its_package() {
    let (server, upstream) = (server(), Upstream::start());
    let api = Api::sign_in(&server);
    let proxy = FormatRepository::proxy(&server, "maven", "near", &upstream.url(), &json!({}));
    for path in ["g/lib/1.0/other.jar", "g/lib/other.jar", "g/app/1.0/other.jar", "g/app/1.0/app-1.0.jar"] {
        upstream.on(&format!("/{path}"), Answer::ok("bytes"));
    }
    enforce(&api, "names", json!({"claimed": ["g:lib"], "distance": 0}), Value::Null);
    for path in ["g/lib/1.0/other.jar", "g/lib/other.jar"] {
        let refused = proxy.get(path).expect(403);
        assert!(refused.text().contains("policy_denied"), "{path}: {}", refused.text());
    }
    for path in ["g/app/1.0/other.jar", "g/app/1.0/app-1.0.jar"] {
        proxy.get(path).expect(200);
    }
}

#[test]
fn a_rule_about_some_packages_judges_files_whose_package_is_not_known() {
    let (server, upstream) = (server(), Upstream::start());
    let api = Api::sign_in(&server);
    let proxy = FormatRepository::proxy(&server, "maven", "near", &upstream.url(), &json!({}));
    let files = ["lib.jar", "g/lib/other.jar", "g/app/1.0/other.jar", "g/app/1.0/app-1.0.jar"];
    files.iter().for_each(|path| upstream.on(&format!("/{path}"), Answer::ok("bytes")));
    enforce(&api, "names", json!({"claimed": ["*"], "distance": 0}), json!(["g:lib"]));
    let statuses = || files.map(|path| proxy.get(path).status);
    assert_eq!(statuses(), [403, 403, 200, 200], "before anything was fetched");
    assert_eq!(statuses(), [403, 403, 200, 200], "afterwards");
}

/// The policy lets one tag pass. The parts that the tag's manifest names pass as well. An image
/// that no known tag names does not pass.
#[test]
fn the_parts_of_an_image_are_judged_as_the_version_that_named_them() {
    let (server, upstream) = (server(), Upstream::start());
    let api = Api::sign_in(&server);
    let proxy = FormatRepository::proxy(&server, "docker", "near", &upstream.url(), &json!({}));
    let layers = [offer_blob(&upstream, "lib", b"good"), offer_blob(&upstream, "lib", b"other")];
    let good = offer_image(&upstream, "lib", "1.0", &images::manifest(&[b"good"]));
    let other = offer_image(&upstream, "lib", "2.0", &images::manifest(&[b"other"]));
    let rule = enforce(&api, "licences", json!({"allow": ["MIT"], "unknown": "deny"}), Value::Null);
    let until =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    let exception =
        json!({"package": "lib", "version": "1.0", "reason": "accepted", "until": until + 3_600_000});
    api.post(&format!("{POLICIES}/{rule}/exceptions"), &exception).expect(201);
    let get = |rest: &str| -> Response { proxy.client.get(&format!("/v2/repositories/near/lib/{rest}")) };

    // No client has requested the tag yet, so the server does not know the package of the digest.
    get(&format!("manifests/{good}")).expect(403);
    get("manifests/1.0").expect(200);
    get(&format!("manifests/{good}")).expect(200);
    get(&format!("blobs/{}", layers[0])).expect(200);
    get("manifests/2.0").expect(403);
    get(&format!("manifests/{other}")).expect(403);
    get(&format!("blobs/{}", layers[1])).expect(403);
}
