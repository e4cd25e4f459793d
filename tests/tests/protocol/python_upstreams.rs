//! A Python proxy over every kind of index. The indexes have different pages, and clients get all
//! of them in one form. The proxy compares files with the digests of the page.

use crate::wheel;

use packhouse_tests::python::{PythonRepository, SIMPLE_JSON};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Server, ServerBuilder, digests};
use serde_json::{Value, json};

const WHEEL: &str = "demo-1.0-py3-none-any.whl";
const SOURCE: &str = "demo-1.1.tar.gz";
const HTML: &str = "text/html; charset=utf-8";

fn server() -> Server {
    builder().start()
}

fn builder() -> ServerBuilder {
    Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*")
}

fn wheel_bytes() -> Vec<u8> {
    wheel::wheel("demo", "1.0", "")
}

fn source_bytes() -> Vec<u8> {
    wheel::sdist("demo", "1.1")
}

/// An upstream index with the page of the project `demo`, its wheel and its source archive.
struct Dialect {
    name: &'static str,
    /// The upstream address in the proxy's settings.
    root: &'static str,
    /// Path, content type and text of the page. A placeholder `{…}` in the text stands for a digest
    /// or for another host's address.
    page: [&'static str; 3],
    /// Paths of the wheel and of the source archive. The prefix `cdn:` stands for another host.
    files: [&'static str; 2],
    /// Hash algorithm, `requires-python` and `core-metadata` of the wheel. The last value is the
    /// reason for which the source archive was yanked.
    expected: (&'static str, Value, Value, Value),
}

fn dialects() -> Vec<Dialect> {
    let checked = || json!({"sha256": digests::sha256(b"METADATA")});
    vec![
        Dialect {
            name: "Simple API in HTML",
            root: "/simple/",
            page: [
                "/simple/demo/",
                HTML,
                r##"<!DOCTYPE html><html><head><meta name="pypi:repository-version" content="1.0">
                <title>Links for demo</title></head><body><h1>Links for demo</h1>
                <a href="../../files/ab/demo-1.0-py3-none-any.whl#sha256={wheel-sha256}" data-requires-python="&gt;=3.8, &lt;4"
                   data-dist-info-metadata="sha256={metadata-sha256}">demo-1.0-py3-none-any.whl</a><br />
                <a href="../../files/cd/demo-1.1.tar.gz#sha256={source-sha256}" data-yanked="bad &amp; old">demo-1.1.tar.gz</a><br />
                <a href="../../files/ef/demo-2.0.txt#sha256={source-sha256}">demo-2.0.txt</a></body></html>"##,
            ],
            files: ["/files/ab/demo-1.0-py3-none-any.whl", "/files/cd/demo-1.1.tar.gz"],
            expected: ("sha256", json!(">=3.8, <4"), checked(), json!("bad & old")),
        },
        Dialect {
            name: "Simple API in JSON, files on another host",
            root: "",
            page: [
                "/simple/demo/",
                SIMPLE_JSON,
                r#"{"meta": {"api-version": "1.1", "_last-serial": 7}, "name": "demo", "versions": ["1.0", "1.1"],
                "files": [{"filename": "demo-1.0-py3-none-any.whl", "url": "{cdn}/p/demo-1.0-py3-none-any.whl",
                    "hashes": {"sha256": "{wheel-sha256}"}, "requires-python": ">=3.8", "size": 9, "yanked": false,
                    "upload-time": "2020-01-01T00:00:00.000000Z", "data-dist-info-metadata": {"sha256": "{metadata-sha256}"}},
                    {"filename": "demo-1.1.tar.gz", "url": "{cdn}/p/demo-1.1.tar.gz", "hashes": {"sha256": "{source-sha256}"},
                    "requires-python": null, "yanked": "bad", "core-metadata": false}]}"#,
            ],
            files: ["cdn:/p/demo-1.0-py3-none-any.whl", "cdn:/p/demo-1.1.tar.gz"],
            expected: ("sha256", json!(">=3.8"), checked(), json!("bad")),
        },
        Dialect {
            name: "HTML by its own type, of the newest version",
            root: "/pypi/simple",
            page: [
                "/pypi/simple/demo/",
                "application/vnd.pypi.simple.v1+html",
                r#"<a href="{cdn}/demo-1.0-py3-none-any.whl#sha256={wheel-sha256}"
                data-core-metadata="true" data-dist-info-metadata="sha256=00">demo-1.0-py3-none-any.whl</a>
                <a data-yanked href="{cdn}/demo-1.1.tar.gz#sha256={source-sha256}">demo-1.1.tar.gz</a>"#,
            ],
            files: ["cdn:/demo-1.0-py3-none-any.whl", "cdn:/demo-1.1.tar.gz"],
            expected: ("sha256", Value::Null, json!(true), json!(true)),
        },
        Dialect {
            name: "devpi",
            root: "/root/dev/+simple/",
            page: [
                "/root/dev/+simple/demo/",
                HTML,
                r#"<!DOCTYPE html><html><head><title>root/dev: links for demo</title></head><body>
                <h1>root/dev: links for demo</h1><form action="/root/dev/+simple/demo/refresh" method="post"></form>
                <a href="../../+f/ab1/cdef0/demo-1.0-py3-none-any.whl#sha256={wheel-sha256}" data-requires-python="&gt;=3.8">demo-1.0-py3-none-any.whl</a><br/>
                <a href="../../+f/ab2/cdef1/demo-1.1.tar.gz#sha256={source-sha256}" data-yanked="">demo-1.1.tar.gz</a><br/></body></html>"#,
            ],
            files: [
                "/root/dev/+f/ab1/cdef0/demo-1.0-py3-none-any.whl",
                "/root/dev/+f/ab2/cdef1/demo-1.1.tar.gz",
            ],
            expected: ("sha256", json!(">=3.8"), json!(false), json!(true)),
        },
        Dialect {
            name: "Nexus",
            root: "/repository/py/simple",
            page: [
                "/repository/py/simple/demo/",
                HTML,
                r#"<html lang="en"><head><title>Links for demo</title></head><body><h1>Links for demo</h1>
                <a href="../../packages/demo/1.0/demo-1.0-py3-none-any.whl#md5={wheel-md5}" rel="internal" data-requires-python="&gt;=3.8">demo-1.0-py3-none-any.whl</a><br/>
                <a href="../../packages/demo/1.1/demo-1.1.tar.gz#md5={source-md5}" rel="internal">demo-1.1.tar.gz</a><br/></body></html>"#,
            ],
            files: [
                "/repository/py/packages/demo/1.0/demo-1.0-py3-none-any.whl",
                "/repository/py/packages/demo/1.1/demo-1.1.tar.gz",
            ],
            expected: ("md5", json!(">=3.8"), json!(false), json!(false)),
        },
        Dialect {
            name: "Artifactory",
            root: "/artifactory/api/pypi/py/simple",
            page: [
                "/artifactory/api/pypi/py/simple/demo/",
                "text/html",
                r#"<!DOCTYPE html><html><head><title>Simple Index</title><meta name="api-version" value="2"/></head><body>
                <a data-requires-python="&gt;=3.8" href="../../packages/packages/ab/cd/demo-1.0-py3-none-any.whl#sha256={wheel-sha256}" rel="internal" >demo-1.0-py3-none-any.whl</a><br/>
                <a href="../../packages/packages/ef/01/demo-1.1.tar.gz#sha256={source-sha256}" rel="internal" >demo-1.1.tar.gz</a><br/></body></html>"#,
            ],
            files: [
                "/artifactory/api/pypi/py/packages/packages/ab/cd/demo-1.0-py3-none-any.whl",
                "/artifactory/api/pypi/py/packages/packages/ef/01/demo-1.1.tar.gz",
            ],
            expected: ("sha256", json!(">=3.8"), json!(false), json!(false)),
        },
        Dialect {
            name: "Gitea",
            root: "/api/packages/team/pypi",
            page: [
                "/api/packages/team/pypi/simple/demo/",
                HTML,
                r##"<!DOCTYPE html><html><head><title>Links for demo</title></head><body><h1>Links for demo</h1>
                <a href="{own}/api/packages/team/pypi/files/demo/1.0/demo-1.0-py3-none-any.whl#sha256-{wheel-sha256}" data-requires-python="&gt;=3.8">demo-1.0-py3-none-any.whl</a><br>
                <a href="{own}/api/packages/team/pypi/files/demo/1.1/demo-1.1.tar.gz#sha256={source-sha256}">demo-1.1.tar.gz</a><br></body></html>"##,
            ],
            files: [
                "/api/packages/team/pypi/files/demo/1.0/demo-1.0-py3-none-any.whl",
                "/api/packages/team/pypi/files/demo/1.1/demo-1.1.tar.gz",
            ],
            expected: ("", json!(">=3.8"), json!(false), json!(false)),
        },
        Dialect {
            name: "a server's list of a folder",
            root: "/wheels/",
            page: [
                "/wheels/demo/",
                "text/html;charset=UTF-8",
                r#"<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN"><html><head><title>Index of /wheels/demo</title></head>
                <body><h1>Index of /wheels/demo</h1><table><tr><th><a href="?C=N;O=D">Name</a></th><th><a href="?C=M;O=A">Last modified</a></th></tr>
                <tr><td valign="top"><img src="/icons/back.gif" alt="[PARENTDIR]"></td><td><a href="/wheels/">Parent Directory</a></td></tr>
                <tr><td><a href="demo-1.0-py3-none-any.whl">demo-1.0-py3-none-a..&gt;</a></td><td align="right">2020-01-01 00:00</td></tr>
                <tr><td><a href="demo-1.1.tar.gz">demo-1.1.tar.gz</a></td><td align="right">2020-01-01 00:00</td></tr></table></body></html>"#,
            ],
            files: ["/wheels/demo/demo-1.0-py3-none-any.whl", "/wheels/demo/demo-1.1.tar.gz"],
            expected: ("", Value::Null, json!(false), json!(false)),
        },
        Dialect {
            name: "handwritten, with a base and shouted hashes",
            root: "/simple",
            page: [
                "/simple/demo/",
                HTML,
                r#"<HTML><HEAD><BASE HREF="/far/"></HEAD><!-- <a href="demo-9.tar.gz">demo-9.tar.gz</a> --><BODY>
                <A HREF=demo-1.0-py3-none-any.whl#SHA256={WHEEL-SHA256}>the wheel</A>
                <A CLASS='x' HREF='demo-1.1.tar.gz#egg=demo-1.1&amp;sha256={source-sha256}'> demo-1.1.tar.gz </A>"#,
            ],
            files: ["/far/demo-1.0-py3-none-any.whl", "/far/demo-1.1.tar.gz"],
            expected: ("sha256", Value::Null, json!(false), json!(false)),
        },
    ]
}

/// Replaces the placeholders for digests and addresses.
fn written(text: &str, own: &Upstream, cdn: &Upstream) -> String {
    let (wheel, source) = (wheel_bytes(), source_bytes());
    let mut text = text.replace("{own}", &own.url()).replace("{cdn}", &cdn.url());
    for algorithm in ["md5", "sha256"] {
        text = text.replace(&format!("{{wheel-{algorithm}}}"), &digests::by_name(algorithm, &wheel));
        text = text.replace(&format!("{{source-{algorithm}}}"), &digests::by_name(algorithm, &source));
    }
    text.replace("{WHEEL-SHA256}", &digests::sha256(&wheel).to_uppercase())
        .replace("{metadata-sha256}", &digests::sha256(b"METADATA"))
}

#[test]
fn every_dialect_is_understood() {
    let server = server();
    for (number, dialect) in dialects().into_iter().enumerate() {
        let (own, cdn) = (Upstream::start(), Upstream::start());
        let [path, kind, text] = dialect.page;
        own.on(path, Answer::ok(written(text, &own, &cdn)).header("Content-Type", kind));
        for (at, bytes) in dialect.files.iter().zip([wheel_bytes(), source_bytes()]) {
            let (host, at) = at.strip_prefix("cdn:").map_or((&own, *at), |at| (&cdn, at));
            host.on(at, Answer::ok(bytes));
            host.on(&format!("{at}.metadata"), Answer::ok("METADATA"));
        }
        let url = format!("{}{}", own.url(), dialect.root);
        let proxy = PythonRepository::proxy(&server, &format!("p{number}"), &url, &json!({}));
        assert_normalized(&dialect, &proxy);
        for request in [own.requests(), cdn.requests()].concat() {
            assert_eq!(request.header("authorization"), None, "{}: {request:?}", dialect.name);
        }
    }
}

fn assert_normalized(dialect: &Dialect, proxy: &PythonRepository) {
    let (name, page) = (dialect.name, proxy.page("demo"));
    let (algorithm, requires, metadata, yanked) = &dialect.expected;
    let files = page["files"].as_array().unwrap();
    let names: Vec<_> = files.iter().map(|file| file["filename"].as_str().unwrap()).collect();
    assert_eq!(names, [WHEEL, SOURCE], "{name}");
    assert_eq!(page["versions"], json!(["1.0", "1.1"]), "{name}");
    let hashes = match *algorithm {
        "" => json!({}),
        algorithm => json!({algorithm: digests::by_name(algorithm, &wheel_bytes())}),
    };
    let fields = ["hashes", "requires-python", "core-metadata"].map(|field| &files[0][field]);
    assert_eq!(fields, [&hashes, requires, metadata], "{name}");
    assert_eq!(&files[1]["yanked"], yanked, "{name}");
    assert_eq!(proxy.file("demo", "1.0", WHEEL).expect(200).body, wheel_bytes(), "{name}");
    assert_eq!(proxy.file("demo", "1.1", SOURCE).expect(200).body, source_bytes(), "{name}");
    let beside = proxy.file("demo", "1.0", &format!("{WHEEL}.metadata"));
    match metadata {
        Value::Bool(false) => drop(beside.expect(404)),
        _ => assert_eq!(beside.expect(200).text(), "METADATA", "{name}"),
    }
}

#[test]
fn the_redirect_of_a_page_is_followed() {
    let (server, upstream) = (server(), Upstream::start());
    upstream.on("/simple/demo/", Answer::redirect("/simple/Demo/index.html"));
    let page = format!("<a href=\"{WHEEL}#sha256={}\">{WHEEL}</a>", digests::sha256(&wheel_bytes()));
    upstream.on("/simple/Demo/index.html", Answer::ok(page).header("Content-Type", HTML));
    upstream.on(&format!("/simple/Demo/{WHEEL}"), Answer::redirect("/stored/7"));
    upstream.on("/stored/7", Answer::ok(wheel_bytes()));
    let proxy = PythonRepository::proxy(&server, "proxy", &upstream.url(), &json!({}));
    assert_eq!(proxy.page("demo")["files"].as_array().unwrap().len(), 1);
    assert_eq!(proxy.file("demo", "1.0", WHEEL).expect(200).body, wheel_bytes());
    proxy.client.get(&proxy.path("simple/De_mo/")).expect(301);
}

#[test]
fn a_file_is_compared_with_its_page_in_every_algorithm() {
    let (server, upstream) = (server(), Upstream::start());
    let page = |algorithm: &str, of: &[u8]| {
        let hash = digests::by_name(algorithm, of);
        let page = format!("<a href=\"{algorithm}/{WHEEL}#{algorithm}={hash}\">{WHEEL}</a>");
        upstream.on("/simple/demo/", Answer::ok(page).header("Content-Type", HTML));
    };
    let proxy = PythonRepository::proxy(&server, "proxy", &upstream.url(), &json!({"metadata_ttl_s": 0}));
    for algorithm in ["md5", "sha1", "sha512", "sha256"] {
        upstream.on(&format!("/simple/demo/{algorithm}/{WHEEL}"), Answer::ok(wheel_bytes()));
        page(algorithm, b"other bytes");
        proxy.file("demo", "1.0", WHEEL).expect(502);
    }
    page("md5", &wheel_bytes());
    assert_eq!(proxy.file("demo", "1.0", WHEEL).expect(200).body, wheel_bytes());
}

#[test]
fn an_evicted_file_is_fetched_from_the_address_on_its_page() {
    let (server, upstream) = (server(), Upstream::start());
    let page = |folder: &str| {
        let hash = digests::sha256(&wheel_bytes());
        let page = format!("<a href=\"{folder}/{WHEEL}#sha256={hash}\">{WHEEL}</a>");
        upstream.on("/simple/demo/", Answer::ok(page).header("Content-Type", HTML));
    };
    let settings = json!({"metadata_ttl_s": 0, "negative_ttl_s": 0});
    let proxy = PythonRepository::proxy(&server, "proxy", &upstream.url(), &settings);
    page("old");
    upstream.on(&format!("/simple/demo/old/{WHEEL}"), Answer::ok(wheel_bytes()));
    proxy.file("demo", "1.0", WHEEL).expect(200);
    // The upstream moves the file, and the test purges the cached one.
    page("new");
    upstream.forget(&format!("/simple/demo/old/{WHEEL}"));
    upstream.on(&format!("/simple/demo/new/{WHEEL}"), Answer::ok(wheel_bytes()));
    let purge = format!("/v1/repositories/{}/cache?path=", proxy.id);
    packhouse_tests::Api::sign_in(&server).call("DELETE", &purge).expect(204);
    assert_eq!(proxy.file("demo", "1.0", WHEEL).expect(200).body, wheel_bytes());
}

/// The largest projects have pages with this many files, and a call has 64 MiB of memory.
#[test]
fn a_page_of_fifteen_thousand_files_is_read_in_the_memory_of_a_call() {
    // The time limit is long enough even if many tests run at once.
    let server = builder().env("PACKHOUSE_PLUGINS_PYTHON_CALL_TIMEOUT_MS", "60000").start();
    let upstream = Upstream::start();
    let hash = digests::sha256(&wheel_bytes());
    let names: Vec<String> = (0..1_000)
        .flat_map(|number| (0..15).map(move |build| format!("demo-1.{number}-{build}-py3-none-any.whl")))
        .collect();
    let file = |name: &String| {
        json!({"filename": name, "url": format!("../../packages/{hash}/{name}"), "hashes": {"sha256": hash},
            "requires-python": ">=3.8", "size": 2_000_000, "upload-time": "2026-01-02T03:04:05.678901Z", "yanked": false,
            "core-metadata": {"sha256": hash}, "data-dist-info-metadata": {"sha256": hash}})
    };
    let files: Vec<Value> = names.iter().map(file).collect();
    let page = json!({"meta": {"api-version": "1.1"}, "name": "demo", "files": files}).to_string();
    upstream.on("/simple/demo/", Answer::ok(page).header("Content-Type", SIMPLE_JSON));
    let proxy = PythonRepository::proxy(&server, "json", &upstream.url(), &json!({}));
    let document = proxy.page("demo");
    assert_eq!(document["files"].as_array().unwrap().len(), names.len());
    assert_eq!(document["files"][14_999]["core-metadata"], json!({"sha256": hash}));

    let link = |name: &String| {
        format!("<a href=\"{name}#sha256={hash}\" data-core-metadata=\"sha256={hash}\">{name}</a>\n")
    };
    let page: String = names.iter().map(link).collect();
    upstream.on("/simple/demo/", Answer::ok(page).header("Content-Type", HTML));
    let proxy = PythonRepository::proxy(&server, "html", &upstream.url(), &json!({}));
    assert_eq!(proxy.page("demo")["versions"].as_array().unwrap().len(), 1_000);
}
