//! Invalid documents of an upstream. They do not affect the content of other upstreams. A file
//! stays available even if the upstream refuses requests for its checksum.

use packhouse_tests::digests::{sha1, sha256};
use packhouse_tests::http::{Request, Response};
use packhouse_tests::images::{self, MANIFEST};
use packhouse_tests::python::SIMPLE_JSON;
use packhouse_tests::server::{OWNER, PASSWORD, eventually};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Client, Server};
use serde_json::{Value, json};
use std::rc::Rc;

const METADATA: &str = "org/a/lib/maven-metadata.xml";
const JAR: &str = "org/a/lib/1.0/lib-1.0.jar";

/// A server whose repositories are public.
struct PublicServer {
    server: Server,
    api: Api,
}

impl PublicServer {
    fn start() -> Rc<Self> {
        let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
        let api = Api::sign_in(&server);
        Rc::new(Self { server, api })
    }
}

struct Repository {
    name: String,
    client: Client,
}

/// Two proxies of a format, each with its own upstream, and a group of both.
struct GroupFixture {
    depot: Rc<PublicServer>,
    upstreams: [Upstream; 2],
    proxies: [Repository; 2],
    group: Repository,
}

impl GroupFixture {
    fn new(format: &str, settings: &Value) -> Self {
        Self::on(&PublicServer::start(), format, "", settings)
    }

    /// Creates the proxies and the group on an existing server. The repositories' names begin with
    /// `names`.
    fn on(depot: &Rc<PublicServer>, format: &str, names: &str, settings: &Value) -> Self {
        let PublicServer { server, api } = &**depot;
        let upstreams = [Upstream::start(), Upstream::start()];
        // Image clients need a credential even for public repositories.
        let client = match format {
            "docker" => server.anonymous().basic(OWNER, PASSWORD),
            _ => server.anonymous(),
        };
        let mut settings = settings.clone();
        settings["public"] = json!(true);
        let proxy = |name: &str, upstream: &Upstream| {
            let name = format!("{names}{name}");
            let id = api.create_proxy(&name, format, &upstream.url(), &settings);
            (id, Repository { name, client: client.clone() })
        };
        let ((first, one), (second, two)) = (proxy("one", &upstreams[0]), proxy("two", &upstreams[1]));
        let name = format!("{names}all");
        let group = json!({
            "name": name, "format": format, "kind": "group", "members": [first, second], "settings": {"public": true},
        });
        api.post("/v1/repositories", &group).expect(201);
        let group = Repository { name, client };
        Self { depot: Rc::clone(depot), upstreams, proxies: [one, two], group }
    }
}

fn get(repository: &Repository, path: &str) -> Response {
    let request = Request::new("GET", &format!("/repositories/{}/{path}", repository.name));
    repository.client.send(request.header("Accept", &format!("{SIMPLE_JSON}, */*; q=0.1")))
}

fn metadata(versions: &[&str]) -> String {
    let versions: String = versions.iter().map(|version| format!("<version>{version}</version>")).collect();
    format!("<metadata><versioning><versions>{versions}</versions></versioning></metadata>")
}

/// A document that the members of a group may have, for one format.
struct FormatDocument {
    /// The format, followed by a word that distinguishes its documents.
    which: &'static str,
    /// Path below a repository.
    path: &'static str,
    /// A valid document with one version.
    good: String,
    /// A text that every response made from the valid document contains.
    marker: &'static str,
    /// Invalid documents that an upstream sends instead.
    odd: &'static [&'static [u8]],
    /// Size limit of the document, in bytes.
    limit: u64,
}

impl FormatDocument {
    fn format(&self) -> &'static str {
        self.which.split(' ').next().unwrap()
    }

    /// Returns the path of the document at an upstream.
    fn target(&self) -> String {
        let path = self.path;
        match self.which {
            "docker tags" => format!("/v2/{path}?n=1000"),
            "docker manifest" => format!("/v2/{path}"),
            "generic" => format!("/{path}?limit=500&after="),
            _ => format!("/{path}"),
        }
    }

    fn answer(&self, body: impl Into<Vec<u8>>) -> Answer {
        let content_type = match self.which {
            "python" => SIMPLE_JSON,
            "docker manifest" => MANIFEST,
            "maven" => "text/xml",
            _ => "application/json",
        };
        Answer::ok(body).header("Content-Type", content_type)
    }

    fn get(&self, repository: &Repository) -> Response {
        let registry = if self.format() == "docker" { "/v2" } else { "" };
        let path = format!("{registry}/repositories/{}/{}", repository.name, self.path);
        let request = Request::new("GET", &path);
        repository.client.send(request.header("Accept", &format!("{SIMPLE_JSON}, */*; q=0.1")))
    }

    /// Creates two proxies and a group whose upstreams offer nothing but this document.
    fn world(&self, depot: &Rc<PublicServer>, number: usize) -> GroupFixture {
        let names = format!("{}-{number}-", self.which.replace(' ', "-"));
        let fresh = json!({"metadata_ttl_s": 0, "negative_ttl_s": 0});
        let world = GroupFixture::on(depot, self.format(), &names, &fresh);
        for upstream in &world.upstreams {
            // Composer requests this document first.
            let root = json!({"metadata-url": "/p2/%package%.json"});
            upstream.on("/packages.json", Answer::ok(root.to_string()));
        }
        world
    }

    /// Checks that the group ignores the first member's document and serves the second member's.
    /// `alone` is the group's status while the second member has nothing.
    fn is_left_out(&self, world: &GroupFixture, alone: u16) {
        let what = self.which;
        let answer = self.get(&world.group);
        assert_eq!(answer.status, alone, "{what}: {}", answer.text());
        world.upstreams[1].on(&self.target(), self.answer(self.good.as_str()));
        let answer = self.get(&world.group);
        assert_eq!(answer.status, 200, "{what}: {}", answer.text());
        assert!(answer.text().contains(self.marker), "{what}: {}", answer.text());
    }
}

const HTML: &[u8] = b"<html><body>Sign in</body></html>";

type Row = (&'static str, &'static str, String, &'static str, &'static [&'static [u8]], u64);

fn documents() -> Vec<FormatDocument> {
    let sum = sha256(b"a file");
    let npm = json!({"name": "lib", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {
        "name": "lib", "version": "1.0.0", "dist": {"tarball": "https://files.test/lib.tgz", "shasum": sha1(b"a file")},
    }}});
    let python = json!({"files": [{"filename": "lib-1.0.tar.gz", "url": "/lib-1.0.tar.gz"}]});
    let tags = json!({"name": "lib", "tags": ["1.0"]});
    let cargo =
        json!({"name": "lib", "vers": "1.0.0", "deps": [], "cksum": sum, "features": {}, "yanked": false});
    let go = json!({"Version": "v1.0.0", "Time": "2026-01-02T03:04:05Z"});
    let helm = "apiVersion: v1\nentries:\n  lib:\n  - name: lib\n    version: 1.0.0\n    urls:\n    - lib-1.0.0.tgz\n";
    let gems = "created_at: 2026-01-02T03:04:05Z\n---\nlib 1.0.0 0123\n";
    let php = json!({"packages": {"acme/lib": [{"name": "acme/lib", "version": "1.0"}]}});
    let files = json!({"path": "/a/", "next": null, "entries": [{"name": "lib-1.0", "kind": "file"}]});
    let info = format!("---\n1.0.0 |checksum:{sum}\n");
    let manifest = images::manifest(&[b"layer"]);
    // Each row: format, path, valid document, text in the response, invalid documents, limit in
    // KiB.
    let rows: [Row; 13] = [
        (
            "maven",
            METADATA,
            metadata(&["1.0"]),
            "<version>1.0</version>",
            &[b"", HTML, b"<metadata>"],
            16_384,
        ),
        ("npm", "lib", npm.to_string(), "\"1.0.0\"", &[HTML, b"{}", b"{\"name\": \"other\"}"], 262_144),
        (
            "python",
            "simple/lib/",
            python.to_string(),
            "lib-1.0.tar.gz",
            &[b"", HTML, b"{\"files\": [{"],
            262_144,
        ),
        ("docker tags", "lib/tags/list", tags.to_string(), "\"1.0\"", &[b"", HTML, b"[]"], 4_096),
        ("docker manifest", "lib/manifests/1.0", manifest, "schemaVersion", &[b"", HTML, b"[]"], 4_096),
        ("cargo", "3/l/lib", format!("{cargo}\n"), "\"1.0.0\"", &[HTML, b"\xff"], 12_288),
        ("go list", "example.com/lib/@v/list", "v1.0.0\n".to_owned(), "v1.0.0", &[b"v1.0.0\n\xff"], 8_192),
        ("go latest", "example.com/lib/@latest", go.to_string(), "v1.0.0", &[b"", HTML], 64),
        (
            "helm",
            "index.yaml",
            helm.to_owned(),
            "lib-1.0.0.tgz",
            &[b"", HTML, b"entries: {}", b"\xff"],
            16_384,
        ),
        ("rubygems info", "info/lib", info, "1.0.0 |checksum", &[b"", HTML, b"---\n\xff"], 8_192),
        ("rubygems versions", "versions", gems.to_owned(), "lib 1.0.0", &[b"", HTML, b"---\n\xff"], 131_072),
        (
            "composer",
            "p2/acme/lib.json",
            php.to_string(),
            "\"1.0\"",
            &[b"", HTML, b"{\"packages\": 7}"],
            8_192,
        ),
        ("generic", "a/", files.to_string(), "lib-1.0", &[b"", HTML, b"[]"], 8_192),
    ];
    let document = |(which, path, good, marker, odd, limit): Row| {
        let limit = limit << 10;
        FormatDocument { which, path, good, marker, odd, limit }
    };
    rows.into_iter().map(document).collect()
}

#[test]
fn a_document_that_cannot_be_read_is_left_out_of_a_group() {
    let depot = PublicServer::start();
    for document in documents() {
        // A generic proxy treats a list of unknown form as a missing list, because most servers
        // write lists for people.
        let alone = if document.which == "generic" { 404 } else { 502 };
        for (number, odd) in document.odd.iter().enumerate() {
            let world = document.world(&depot, number);
            world.upstreams[0].on(&document.target(), document.answer(*odd));
            let answer = document.get(&world.proxies[0]);
            let what = format!("{} {}", document.which, String::from_utf8_lossy(odd));
            assert_eq!(answer.status, alone, "{what}: {}", answer.text());
            document.is_left_out(&world, alone);
        }
    }
}

#[test]
fn a_document_over_its_limit_is_left_out_of_a_group() {
    let depot = PublicServer::start();
    for document in documents() {
        let FormatDocument { which, limit, .. } = &document;
        let world = document.world(&depot, 0);
        // The header states the length, so the proxy can refuse the document before it reads the
        // body.
        let large = document.answer("").header("Content-Length", &(limit + 1).to_string());
        world.upstreams[0].on(&document.target(), large);
        let answer = document.get(&world.proxies[0]);
        // OCI's specification requires another status for a manifest.
        let is_manifest = *which == "docker manifest";
        assert_eq!(answer.status, if is_manifest { 413 } else { 502 }, "{which}: {}", answer.text());
        for text in [format!("is over the limit of {limit} bytes"), "upstream address".to_owned()] {
            assert!(is_manifest || answer.text().contains(&text), "{which}: {}", answer.text());
        }
        document.is_left_out(&world, 502);
    }
}

#[test]
fn parts_left_out_of_a_document_are_logged() {
    let depot = PublicServer::start();
    // Each row: document, valid part, invalid replacement, and the log's fields for the package and
    // the kind of item.
    let table = [
        ("maven", "<versions>", "<versions><version>3/4</version>", "org.a:lib", "versions"),
        ("npm", "\"versions\":{", "\"versions\":{\"2.0.0\":{},", "lib", "versions"),
        ("python", "\"files\":[", "\"files\":[{\"filename\":7},", "lib", "files"),
        ("docker tags", "\"tags\":[", "\"tags\":[\"-\",", "lib", "versions"),
        ("cargo", "\n", "\nno line\n", "lib", "versions"),
        ("go list", "\n", "\nno-version\n", "example.com/lib", "versions"),
        ("helm", "  lib:\n", "  lib:\n  - name: lib\n    version: latest\n", "lib", "versions"),
        ("rubygems info", "---\n", "---\nnonsense\n", "lib", "versions"),
        ("rubygems versions", "---\n", "---\n!! 1.0\n", "", "versions"),
        ("composer", "\"acme/lib\":[", "\"acme/lib\":[7,", "acme/lib", "versions"),
        ("generic", "\"entries\":[", "\"entries\":[{\"name\":\"..\",\"kind\":\"file\"},", "a", "files"),
    ];
    for (which, place, odd, package, items) in table {
        let document = documents().into_iter().find(|document| document.which == which).unwrap();
        let world = document.world(&depot, 0);
        let body = document.good.replacen(place, odd, 1);
        assert_ne!(body, document.good, "{which}");
        world.upstreams[0].on(&document.target(), document.answer(body));
        let before = world.depot.server.log().len();
        let text = document.get(&world.proxies[0]).expect(200).text();
        assert!(text.contains(document.marker), "{which}: {text}");
        let (message, fields) =
            (format!("unreadable {items} left out"), format!("package=\"{package}\" {items}=\"1\""));
        eventually(&format!("{which}: the omission is logged"), || {
            // A line of the log is JSON, so a backslash precedes each quote inside a message.
            let log = world.depot.server.log()[before..].replace('\\', "");
            log.lines().any(|line| line.contains(&message) && line.contains(&fields)).then_some(())
        });
    }
}

#[test]
fn metadata_that_mavens_own_reader_accepts_are_merged() {
    let world = GroupFixture::new("maven", &json!({"metadata_ttl_s": 0, "negative_ttl_s": 0}));
    world.upstreams[1].on(&format!("/{METADATA}"), Answer::ok(metadata(&["1.0"])));
    let latin1 = b"<?xml version='1.0' encoding='ISO-8859-1'?><!-- \xe9 -->".to_vec();
    for before in [latin1, b"<!DOCTYPE metadata>".to_vec()] {
        let bytes = [before, metadata(&["2.0", "${project.version}", "3/4"]).into_bytes()].concat();
        world.upstreams[0].on(&format!("/{METADATA}"), Answer::ok(bytes));
        let text = get(&world.group, METADATA).expect(200).text();
        assert!(text.contains("<version>1.0</version>") && text.contains("<version>2.0</version>"), "{text}");
        assert!(!text.contains("${") && !text.contains("3/4"), "{text}");
    }
}

#[test]
fn an_unreadable_python_page_is_left_out_of_a_group() {
    let world = GroupFixture::new("python", &json!({"metadata_ttl_s": 0, "negative_ttl_s": 0}));
    let page = |answer: &str| Answer::ok(answer).header("Content-Type", SIMPLE_JSON);
    world.upstreams[0].on("/simple/demo/", page(r#"{"files": [{"filename": "demo-1.0"#));
    get(&world.proxies[0], "simple/demo/").expect(502);
    get(&world.group, "simple/demo/").expect(502);
    let file = r#"{"files": [{"filename": "demo-1.0.tar.bz2", "url": "/demo-1.0.tar.bz2"}]}"#;
    world.upstreams[1].on("/simple/demo/", page(file));
    world.upstreams[1].on("/demo-1.0.tar.bz2", Answer::ok("bytes"));
    let listed = get(&world.group, "simple/demo/").expect(200).json();
    assert_eq!(listed["files"][0]["filename"], "demo-1.0.tar.bz2");
    assert_eq!(get(&world.group, "packages/demo/1.0/demo-1.0.tar.bz2").expect(200).text(), "bytes");
}

#[test]
fn a_file_whose_checksum_is_forbidden_is_served() {
    let world = GroupFixture::new("maven", &json!({}));
    world.upstreams[0].on(&format!("/{JAR}"), Answer::ok("a jar"));
    for ending in ["sha1", "sha256", "md5"] {
        world.upstreams[0].on(&format!("/{JAR}.{ending}"), Answer::new(403, ""));
    }
    assert_eq!(get(&world.proxies[0], JAR).expect(200).text(), "a jar");
    assert_eq!(get(&world.group, JAR).expect(200).text(), "a jar");
}

#[test]
fn a_file_with_a_wrong_checksum_is_served_if_the_setting_allows_it() {
    let wrong = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
    for policy in ["warn", "ignore"] {
        let world = GroupFixture::new("maven", &json!({"checksum_policy": policy}));
        world.upstreams[0].on(&format!("/{JAR}"), Answer::ok("a jar"));
        world.upstreams[0].on(&format!("/{JAR}.sha1"), Answer::ok(wrong));
        assert_eq!(get(&world.proxies[0], JAR).expect(200).text(), "a jar", "{policy}");
    }
}

#[test]
fn a_catalogue_of_archetypes_merges_all_members_and_changes() {
    let world = GroupFixture::new("maven", &json!({"metadata_ttl_s": 0, "negative_ttl_s": 0}));
    let catalogue = |artifact: &str| {
        format!(
            "<archetype-catalog><archetypes><archetype><groupId>g</groupId><artifactId>{artifact}</artifactId>\
             <version>1</version></archetype></archetypes></archetype-catalog>"
        )
    };
    for (upstream, artifact) in world.upstreams.iter().zip(["a", "b"]) {
        upstream.on("/archetype-catalog.xml", Answer::ok(catalogue(artifact)));
    }
    let text = get(&world.group, "archetype-catalog.xml").expect(200).text();
    assert!(
        text.contains("<artifactId>a</artifactId>") && text.contains("<artifactId>b</artifactId>"),
        "{text}"
    );
    world.upstreams[0].on("/archetype-catalog.xml", Answer::ok(catalogue("c")));
    let text = get(&world.proxies[0], "archetype-catalog.xml").expect(200).text();
    assert!(text.contains("<artifactId>c</artifactId>"), "{text}");
}
