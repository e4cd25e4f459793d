//! Compressed documents for clients that accept them. Each variant decodes to the same bytes and
//! has its own entity tag. Conditional requests and range requests work. The server does not
//! compress files, nor documents whose bytes clients verify.

#[allow(dead_code, reason = "each test uses only some of it")]
use super::npm_upstream;
use crate::wheel;

use npm_upstream::{Part, offer, proxy, publish, server};
use packhouse_tests::images::{ImageRepository, MANIFEST};
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::{PythonRepository, SIMPLE_JSON};
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::upstream::Upstream;
use packhouse_tests::{Api, Client, MavenRepository, Request, Response, Server};
use serde_json::json;
use std::io::Read as _;

/// A document at a path.
struct Document<'a> {
    client: &'a Client,
    path: String,
    accept: &'a str,
}

impl Document<'_> {
    #[track_caller]
    fn ask(&self, method: &str, fields: &[(&str, &str)]) -> Response {
        let request = Request::new(method, &self.path).header("Accept", self.accept);
        let add = |request: Request, field: &(&str, &str)| request.header(field.0, field.1);
        self.client.send(fields.iter().fold(request, add))
    }

    /// Requests the document in this coding. The server sends a large document uncompressed until
    /// the compressed variant exists, so this function waits for the variant.
    #[track_caller]
    fn coded(&self, coding: &str) -> Response {
        eventually(coding, || {
            let answer = self.ask("GET", &[("Accept-Encoding", coding)]).expect(200);
            (answer.header("content-encoding") == Some(coding)).then_some(answer)
        })
    }

    /// Checks everything that must be true of a document with variants. Returns the document's
    /// bytes.
    #[track_caller]
    fn is_compressed(&self) -> Vec<u8> {
        let plain = self.ask("GET", &[]).expect(200);
        assert_eq!(plain.header("content-encoding"), None);
        assert!(varies(&plain), "{:?}", plain.headers);
        for refusal in ["identity", "gzip;q=0", "gzip;q=0, *;q=0.5", "br", ""] {
            let answer = self.ask("GET", &[("Accept-Encoding", refusal)]).expect(200);
            assert_eq!((answer.header("content-encoding"), &answer.body), (None, &plain.body), "{refusal}");
            assert_eq!(answer.header("etag"), plain.header("etag"), "{refusal}");
        }
        for coding in ["gzip", "zstd"] {
            self.has_variant(coding, &plain);
        }
        let best = self.ask("GET", &[("Accept-Encoding", "gzip, deflate, br, zstd")]).expect(200);
        assert_eq!(best.header("content-encoding"), Some("zstd"));
        let best = self.ask("GET", &[("Accept-Encoding", "zstd;q=0.5, gzip")]).expect(200);
        assert_eq!(best.header("content-encoding"), Some("gzip"));
        plain.body
    }

    #[track_caller]
    fn has_variant(&self, coding: &str, plain: &Response) {
        let answer = self.coded(coding);
        assert_eq!(decoded(&answer), plain.body, "{coding}");
        assert!(answer.body.len() < plain.body.len(), "{coding}");
        assert!(varies(&answer), "{:?}", answer.headers);
        assert_eq!(answer.header("content-type"), plain.header("content-type"));
        assert_eq!(answer.header("accept-ranges"), None, "ranges of a variant are of other bytes");
        let length = answer.body.len().to_string();
        assert_eq!(answer.header("content-length"), Some(length.as_str()));
        let (own, identity) = (answer.header("etag").unwrap(), plain.header("etag").unwrap());
        assert!(own != identity && own.starts_with('"'), "a strong tag of its own: {own}, {identity}");

        let accepts = ("Accept-Encoding", coding);
        let head = self.ask("HEAD", &[accepts]).expect(200);
        for name in ["content-encoding", "content-length", "content-type", "etag", "vary"] {
            assert_eq!(head.header(name), answer.header(name), "HEAD: {name}");
        }
        // A client may have either variant. It gets 304 with the tag of its own variant.
        for tag in [own, identity] {
            for fields in [vec![accepts], vec![]] {
                let fields = [fields, vec![("If-None-Match", tag)]].concat();
                let unchanged = self.ask("GET", &fields).expect(304);
                assert_eq!(unchanged.header("etag"), Some(tag));
                assert!(varies(&unchanged), "{:?}", unchanged.headers);
            }
            self.ask("GET", &[accepts, ("If-Match", tag)]).expect(200);
        }
        let other = [("Accept-Encoding", "identity"), ("If-None-Match", own)];
        assert_eq!(
            self.ask("GET", &other).expect(200).body,
            plain.body,
            "the client cannot decode the variant that it names"
        );
        self.ask("GET", &[accepts, ("If-Match", "\"other\"")]).expect(412);

        let range = ("Range", "bytes=3-9");
        let part = self.ask("GET", &[accepts, range]).expect(206);
        assert_eq!((part.header("content-encoding"), &part.body[..]), (None, &plain.body[3..10]));
        assert_eq!(part.header("etag"), Some(identity));
        self.ask("GET", &[accepts, range, ("If-Range", identity)]).expect(206);
        let whole = self.ask("GET", &[accepts, range, ("If-Range", own)]).expect(200);
        assert_eq!(decoded(&whole), plain.body, "a range of another variant is useless");
    }
}

fn varies(answer: &Response) -> bool {
    let mut names = answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("vary"));
    names.any(|(_, value)| value.split(',').any(|name| name.trim().eq_ignore_ascii_case("accept-encoding")))
}

fn decoded(answer: &Response) -> Vec<u8> {
    let mut bytes = Vec::new();
    match answer.header("content-encoding") {
        Some("gzip") => {
            flate2::read::GzDecoder::new(&answer.body[..]).read_to_end(&mut bytes).unwrap();
        }
        Some("zstd") => bytes = zstd::stream::decode_all(&answer.body[..]).unwrap(),
        Some(other) => panic!("{other}"),
        None => bytes.clone_from(&answer.body),
    }
    bytes
}

/// Returns this number of versions of a package, each with this number of dependencies.
fn parts(name: &str, versions: usize, needed: usize) -> Vec<Part> {
    let dependencies: serde_json::Map<_, _> =
        (0..needed).map(|number| (format!("needed-{number}"), json!("^1.0.0"))).collect();
    let part = |number| Part {
        dependencies: dependencies.clone().into(),
        ..Part::new(name, &format!("1.0.{number}"))
    };
    (0..versions).map(part).collect()
}

fn packument<'a>(repository: &'a NpmRepository, client: &'a Client, name: &str) -> Document<'a> {
    Document { client, path: repository.path(name), accept: "application/json" }
}

#[test]
fn packuments_of_any_size_are_compressed() {
    let server = server();
    let hosted = NpmRepository::create(&server, "hosted");
    // The server compresses the small document during the request. It compresses the larger ones in
    // the background, and serves them from memory or from storage.
    for (name, versions, needed, least) in
        [("small", 4, 2, 1 << 10), ("middle", 4, 1000, 1 << 16), ("large", 4, 15_000, 1 << 20)]
    {
        publish(&hosted, &parts(name, versions, needed));
        let length = packument(&hosted, &hosted.client, name).is_compressed().len();
        assert!(length >= least, "{name}: {length}");
    }
}

#[test]
fn a_changed_packument_is_compressed_again() {
    let server = server();
    let hosted = NpmRepository::create(&server, "hosted");
    let parts = parts("changing", 8, 5);
    for number in 0..parts.len() {
        publish(&hosted, &parts[number..=number]);
        let answer = packument(&hosted, &hosted.client, "changing").coded("gzip");
        let text = String::from_utf8(decoded(&answer)).unwrap();
        assert!(text.contains(&format!("\"1.0.{number}\"")), "{number}");
    }
}

#[test]
fn groups_and_proxies_compress_their_documents() {
    let (server, upstream) = (server(), Upstream::start());
    let hosted = NpmRepository::create(&server, "hosted");
    let proxy = proxy(&server, "proxy", &upstream.url(), &json!({}));
    publish(&hosted, &parts("ours", 8, 5));
    offer(&upstream, &parts("theirs", 8, 5));
    let more = json!({"kind": "group", "members": [hosted.id, proxy.id]});
    let group = NpmRepository::create_as(&server, "all", &more);
    let reached = [&hosted.id, &proxy.id, &group.id].map(String::as_str);
    let client = server
        .anonymous()
        .basic(OWNER, &Api::sign_in(&server).create_token(&reached, &["read"], None).secret);
    packument(&proxy, &client, "theirs").is_compressed();
    packument(&group, &client, "theirs").is_compressed();
    packument(&group, &client, "ours").is_compressed();
}

#[test]
fn indexes_of_python_projects_are_compressed() {
    let server = Server::start();
    let repository = PythonRepository::create(&server, "python");
    for number in 0..12 {
        let version = format!("1.{number}");
        let (name, wheel) = (wheel::wheel_name("project", &version), wheel::wheel("project", &version, ""));
        repository.publish("project", &version, &name, &wheel).expect(200);
    }
    for accept in [SIMPLE_JSON, "application/vnd.pypi.simple.v1+html", "text/html"] {
        let path = repository.path("simple/project/");
        Document { client: &repository.client, path, accept }.is_compressed();
    }
}

#[test]
fn maven_metadata_is_compressed_and_jars_are_not() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "maven");
    for number in 0..60 {
        repository.put(&format!("org/example/a/1.{number}/a-1.{number}.jar"), "jar ".repeat(500)).expect(201);
    }
    let document =
        |file: &str| Document { client: &repository.client, path: repository.path(file), accept: "*/*" };
    document("org/example/a/maven-metadata.xml").is_compressed();
    let jar =
        document("org/example/a/1.0/a-1.0.jar").ask("GET", &[("Accept-Encoding", "gzip, zstd")]).expect(200);
    assert_eq!((jar.header("content-encoding"), jar.body.len()), (None, 2000));
    assert!(!varies(&jar), "{:?}", jar.headers);
}

#[test]
fn documents_verified_by_their_bytes_are_not_compressed() {
    let server = Server::start();
    let repository = ImageRepository::create(&server, "images", &json!({}));
    let layers: Vec<Vec<u8>> = (0..20_u8).map(|number| vec![number; 10]).collect();
    let layers: Vec<&[u8]> = layers.iter().map(Vec::as_slice).collect();
    let manifest = repository.push("app", "latest", &layers).unwrap();
    assert!(manifest.len() > 1024, "{}", manifest.len());
    let path = repository.path("app/manifests/latest");
    let document = Document { client: &repository.client, path, accept: MANIFEST };
    let answer = document.ask("GET", &[("Accept-Encoding", "gzip, zstd")]).expect(200);
    assert_eq!((answer.header("content-encoding"), answer.text()), (None, manifest));
}

#[test]
fn responses_with_tokens_are_not_compressed() {
    let server = Server::start();
    let hosted = NpmRepository::create(&server, "hosted");
    let api = Api::sign_in(&server);
    for _ in 0..20 {
        api.create_token(&[&hosted.id], &["read"], None);
    }
    let answer =
        packument(&hosted, &hosted.client, "-/npm/v1/tokens").ask("GET", &[("Accept-Encoding", "gzip")]);
    let answer = answer.expect(200);
    assert!(answer.json()["objects"].as_array().unwrap().len() > 10 && answer.body.len() > 1024);
    assert_eq!(answer.header("content-encoding"), None);
}

#[test]
fn an_operator_may_disable_compression() {
    let server = Server::with().env("PACKHOUSE_RESPONSES_COMPRESSION", "false").start();
    let hosted = NpmRepository::create(&server, "hosted");
    publish(&hosted, &parts("plain", 4, 2));
    let answer =
        packument(&hosted, &hosted.client, "plain").ask("GET", &[("Accept-Encoding", "gzip")]).expect(200);
    assert_eq!(answer.header("content-encoding"), None);
    assert!(!varies(&answer), "{:?}", answer.headers);
}

#[test]
fn lists_of_the_api_are_compressed() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    for number in 0..30 {
        api.create_maven(&format!("repository-{number}"), &json!({}));
    }
    let plain = api.call("GET", "/v1/repositories").expect(200);
    for coding in ["gzip", "zstd"] {
        let request = Request::new("GET", "/v1/repositories").header("Accept-Encoding", coding);
        let answer = api.client().send(request).expect(200);
        assert_eq!(answer.header("content-encoding"), Some(coding));
        assert_eq!(decoded(&answer), plain.body);
        assert!(varies(&answer) && varies(&plain));
    }
}
