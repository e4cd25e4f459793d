//! Indexes of packages with many versions. The server builds them from cached pieces. An index
//! contains every publish that was acknowledged before the request.

use crate::release;
use crate::wheel;

use std::collections::BTreeSet;
use std::io::Read as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::{PythonRepository, SIMPLE_JSON};
use packhouse_tests::{Request, Server};
use release::Release;
use serde_json::Value;

const MANY: usize = 150;
const MORE: usize = 25;
const FORMS: [&str; 2] = ["application/json", "application/vnd.npm.install-v1+json"];

fn publish(npm: &NpmRepository, number: usize) {
    npm.put("lib", &Release::new("lib", &format!("1.{number}.0")).document()).expect(201);
}

fn packument(npm: &NpmRepository, accept: &str) -> Value {
    let request = Request::new("GET", &npm.path("lib")).header("Accept", accept);
    npm.client.send(request).expect(200).json()
}

fn members(of: &Value) -> BTreeSet<String> {
    of.as_object().unwrap().keys().cloned().collect()
}

/// Two readers repeat their requests while a client publishes versions. Each response contains
/// every version that was acknowledged before the request.
#[test]
fn a_packument_contains_everything_published_before_its_request() {
    let server = Server::start();
    let npm = NpmRepository::create(&server, "npm");
    (0..MANY).for_each(|number| publish(&npm, number));
    let published = AtomicUsize::new(MANY);
    thread::scope(|scope| {
        for accept in FORMS {
            let (npm, published) = (&npm, &published);
            scope.spawn(move || {
                loop {
                    let before = published.load(Ordering::SeqCst);
                    let document = packument(npm, accept);
                    let (versions, times) = (members(&document["versions"]), members(&document["time"]));
                    for number in 0..before {
                        let version = format!("1.{number}.0");
                        assert!(versions.contains(&version) && times.contains(&version), "{version}");
                        let dist = &document["versions"][&version]["dist"];
                        assert!(dist["tarball"].as_str().unwrap().ends_with(&format!("lib-{version}.tgz")));
                    }
                    if before == MANY + MORE {
                        break;
                    }
                }
            });
        }
        for number in MANY..MANY + MORE {
            publish(&npm, number);
            published.store(number + 1, Ordering::SeqCst);
        }
    });
}

/// Other changes than publishes are also visible at once.
#[test]
fn a_packument_shows_changes_of_single_versions() {
    let server = Server::start();
    let npm = NpmRepository::create(&server, "npm");
    (0..MANY).for_each(|number| publish(&npm, number));
    let mut document = packument(&npm, FORMS[0]);
    document["versions"]["1.77.0"]["deprecated"] = "use another".into();
    npm.put("lib", &document).expect(201);
    for accept in FORMS {
        let served = packument(&npm, accept);
        assert_eq!(served["versions"]["1.77.0"]["deprecated"], "use another");
        assert!(served["versions"]["1.78.0"]["deprecated"].is_null());
    }
    let mut document = packument(&npm, FORMS[0]);
    document["versions"].as_object_mut().unwrap().remove("1.33.0");
    let revision = document["_rev"].as_str().unwrap().to_owned();
    npm.put(&format!("lib/-rev/{revision}"), &document).expect(201);
    for accept in FORMS {
        let served = packument(&npm, accept);
        assert_eq!(members(&served["versions"]).len(), MANY - 1);
        assert!(!served.to_string().contains("1.33.0"));
    }
}

#[test]
fn a_page_contains_everything_uploaded_before_its_request() {
    let server = Server::start();
    let python = PythonRepository::create(&server, "python");
    let upload = |number: usize| {
        let version = format!("1.{number}");
        let file = wheel::wheel("lib", &version, "");
        python.publish("lib", &version, &wheel::wheel_name("lib", &version), &file).expect(200);
    };
    (0..MANY).for_each(upload);
    for number in MANY..MANY + MORE {
        upload(number);
        let page = python.page("lib");
        let files = page["files"].as_array().unwrap();
        let names: Vec<String> =
            files.iter().map(|file| file["filename"].as_str().unwrap().to_owned()).collect();
        // The page is ordered by version, not by file name.
        let expected: Vec<String> =
            (0..=number).map(|number| wheel::wheel_name("lib", &format!("1.{number}"))).collect();
        assert_eq!(names, expected);
        assert_eq!(page["versions"].as_array().unwrap().len(), number + 1);
    }
}

/// Clients see a document of pieces as one document, whatever the server has cached. Its entity tag
/// stays while nothing changes. Ranges and compressed variants have the same bytes, also if the
/// server compresses piece by piece.
#[test]
fn a_document_of_pieces_is_one_document() {
    let mut server = Server::start();
    let (npm, python) = (NpmRepository::create(&server, "npm"), PythonRepository::create(&server, "python"));
    let publish_both = |number: usize| {
        publish(&npm, number);
        let version = format!("1.{number}");
        let file = wheel::wheel("lib", &version, "");
        python.publish("lib", &version, &wheel::wheel_name("lib", &version), &file).expect(200);
    };
    (0..MANY).for_each(publish_both);
    let (packument, page) = (npm.path("lib"), python.path("simple/lib/"));
    let documents = [
        (&npm.client, &packument, FORMS[0]),
        (&npm.client, &packument, FORMS[1]),
        (&python.client, &page, SIMPLE_JSON),
        (&python.client, &page, "text/html"),
    ];
    let tags = || {
        documents.map(|(client, path, accept)| {
            let ask = |name: &str, value: &str| {
                client.send(Request::new("GET", path).header("Accept", accept).header(name, value))
            };
            let plain = ask("Accept-Encoding", "identity").expect(200);
            let gzip = ask("Accept-Encoding", "gzip").expect(200);
            assert_eq!(gzip.header("content-encoding"), Some("gzip"), "{accept}");
            let mut decoded = Vec::new();
            flate2::read::GzDecoder::new(&*gzip.body).read_to_end(&mut decoded).unwrap();
            assert!(decoded == plain.body && gzip.body.len() < plain.body.len() / 2, "{accept}");
            let part = ask("Range", "bytes=20000-45000").expect(206);
            assert!(part.body == plain.body[20_000..=45_000], "{accept}");
            let tag = plain.header("etag").unwrap().to_owned();
            ask("If-None-Match", &tag).expect(304);
            tag
        })
    };
    let before = tags();
    publish_both(MANY);
    let after = tags();
    assert!(before.iter().zip(&after).all(|(before, after)| before != after), "{before:?} {after:?}");
    server.restart();
    assert_eq!(tags(), after, "nothing is cached");
}
