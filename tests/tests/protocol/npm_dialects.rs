//! Dialects of npm upstreams. They differ in the addresses of tarballs, and in the fields that they
//! state or leave out. Each document here has the shape that a real registry gives it.

#[allow(dead_code, reason = "each test uses only some of it")]
use super::npm_upstream;

use npm_upstream::{OLD, Part, at, cached_paths, client, packument, project, proxy, server};
use packhouse_tests::npm::{NpmRepository, Tool};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Request};
use serde_json::{Value, json};

/// The upstream, and another server on which some registries store their files.
struct Files<'a> {
    own: &'a Upstream,
    other: &'a Upstream,
}

/// A registry's dialect.
struct Dialect {
    /// Name of the dialect and of its package.
    name: &'static str,
    /// Serves the tarball and returns its address.
    tarball: fn(&Files<'_>, &Part) -> String,
    /// Changes the document as this registry does.
    document: fn(&mut Value),
    /// `true` if the registry states publication times.
    times: bool,
}

/// Serves a tarball at this path of an upstream and returns its address.
fn lies(upstream: &Upstream, part: &Part, target: &str) -> String {
    upstream.on(target, Answer::ok(part.tarball()).header("Content-Type", "application/octet-stream"));
    format!("{}{target}", upstream.url())
}

fn remove(document: &mut Value, members: &[&str]) {
    members.iter().for_each(|member| drop(document.as_object_mut().unwrap().remove(*member)));
}

fn manifest(document: &mut Value) -> &mut Value {
    document["versions"].as_object_mut().unwrap().values_mut().next().unwrap()
}

fn dist(document: &mut Value) -> &mut Value {
    &mut manifest(document)["dist"]
}

const DIALECTS: [Dialect; 11] = [
    Dialect {
        name: "@acme/public",
        tarball: |files, part| lies(files.own, part, &format!("/{}", part.path())),
        document: |document| {
            document["_rev"] = json!("3-abc");
            document["readme"] = json!("# public");
            document["users"] = json!({"ann": true});
            document["maintainers"] = json!([{"name": "ann", "email": "ann@example.com"}]);
            let manifest = manifest(document);
            manifest["_npmUser"] = json!({"name": "ann", "email": "ann@example.com"});
            manifest["_npmOperationalInternal"] = json!({"host": "s3", "tmp": "tmp/x"});
            manifest["dist"]["signatures"] = json!([{"keyid": "SHA256:x", "sig": "AA=="}]);
            manifest["dist"]["npm-signature"] = json!("-----BEGIN");
            manifest["dist"]["fileCount"] = json!(2);
        },
        times: true,
    },
    Dialect {
        name: "@acme/verdaccio",
        tarball: |files, part| lies(files.own, part, &format!("/{}", part.path())),
        document: |document| {
            document["_attachments"] = json!({"verdaccio-1.0.0.tgz": {"shasum": "00", "version": "1.0.0"}});
            document["_distfiles"] =
                json!({"verdaccio-1.0.0.tgz": {"url": "http://elsewhere.test/x", "sha": "00"}});
            document["_uplinks"] = json!({"npmjs": {"etag": "x", "fetched": 1}});
            document["_rev"] = json!("12-0f");
            document["users"] = json!({});
        },
        times: true,
    },
    Dialect {
        name: "nexus",
        tarball: |files, part| lies(files.own, part, &format!("/repository/npm/{}", part.path())),
        document: |document| {
            document["_id"] = json!("nexus");
            document["readmeFilename"] = json!("README.md");
            dist(document).as_object_mut().unwrap().remove("integrity");
            document["time"]["1.0.0"] = json!("2015-01-05T11:00:00.000+01:00");
        },
        times: true,
    },
    Dialect {
        // This registry repeats the scope before the file's name.
        name: "@acme/artifactory",
        tarball: |files, part| {
            lies(files.own, part, "/artifactory/api/npm/all/@acme/artifactory/-/@acme/artifactory-1.0.0.tgz")
        },
        document: |document| {
            document["_attachments"] = json!({});
            remove(document, &["time"]);
            let number = json!("1.0.0");
            manifest(document)["_id"] = json!("@acme/artifactory@1.0.0");
            document["dist-tags"] = json!({"latest": number});
        },
        times: false,
    },
    Dialect {
        // The address names no file. It redirects to a signed address on another server.
        name: "@acme/github",
        tarball: |files, part| {
            let signed = format!("/blobs/7f?sig=a%2Bb%3D&se={OLD}&sp=r");
            let to = lies(files.other, part, &signed);
            let target = "/download/@acme/github/1.0.0/0123abcd";
            files.own.on(target, Answer::redirect(&to));
            format!("{}{target}", files.own.url())
        },
        document: |document| remove(document, &["time", "_id"]),
        times: false,
    },
    Dialect {
        name: "@acme/gitlab",
        tarball: |files, part| {
            lies(files.own, part, "/api/v4/projects/7/packages/npm/@acme/gitlab/-/@acme/gitlab-1.0.0.tgz")
        },
        document: |document| {
            remove(document, &["time", "_id"]);
            dist(document).as_object_mut().unwrap().remove("integrity");
        },
        times: false,
    },
    Dialect {
        name: "azure",
        tarball: |files, part| {
            let to = lies(files.other, part, "/b-0/azure.blob?sv=2019&sig=x%2Fy");
            files.own.on(
                "/_packaging/feed/npm/registry/azure/-/azure-1.0.0.tgz",
                Answer::new(303, "").header("Location", &to),
            );
            format!("{}/_packaging/feed/npm/registry/azure/-/azure-1.0.0.tgz", files.own.url())
        },
        document: |document| {
            document["time"] = json!({});
            manifest(document)["publishTime"] = json!(OLD);
        },
        times: false,
    },
    Dialect {
        name: "elsewhere",
        tarball: |files, part| lies(files.other, part, "/files/elsewhere-1.0.0.tgz"),
        document: |document| document["modified"] = json!(OLD),
        times: true,
    },
    Dialect {
        name: "with-query",
        tarball: |files, part| lies(files.other, part, "/get?file=with-query-1.0.0.tgz&key=a%26b"),
        document: |_| {},
        times: true,
    },
    Dialect {
        // An old CouchDB writes a digest in capitals and states the time of a missing version.
        name: "couch",
        tarball: |files, part| lies(files.own, part, "/couch/-/couch-1.0.0.tgz"),
        document: |document| {
            let dist = dist(document);
            dist["shasum"] = json!(dist["shasum"].as_str().unwrap().to_uppercase());
            dist.as_object_mut().unwrap().remove("integrity");
            document["time"]["0.9.0"] = json!(OLD);
            document["versions"]["0.8.0"] =
                json!({"name": "another", "version": "0.8.0", "dist": {"tarball": "http://x.test/x.tgz"}});
            document["versions"]["0.7.0"] = json!({"name": "couch", "version": "0.7.0"});
            document["dist-tags"]["beta"] = json!("0.9.0");
            document["time"]["unpublished"] = json!({"name": "ann", "versions": ["0.9.0"]});
        },
        times: true,
    },
    Dialect {
        // The registry states several digests, one with options behind it and one with an unknown
        // algorithm.
        name: "digests",
        tarball: |files, part| lies(files.own, part, "/digests/-/digests-1.0.0.tgz"),
        document: |document| {
            let dist = dist(document);
            let integrity =
                format!("md5-AAAA sha384-AAAA sha1-AAAA {}?ct=x", dist["integrity"].as_str().unwrap());
            dist["integrity"] = json!(integrity);
            dist.as_object_mut().unwrap().remove("shasum");
        },
        times: true,
    },
];

/// Checks the proxy's document for a dialect's package. The document has the same form for each
/// dialect.
fn assert_normalized(
    dialect: &Dialect,
    proxy: &NpmRepository,
    address: &str,
    part: &Part,
    upstreams: &[&Upstream],
) {
    let name = dialect.name;
    for accept in
        ["application/json", "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*"]
    {
        let answer =
            proxy.client.send(Request::new("GET", &proxy.path(name)).header("Accept", accept)).expect(200);
        let (document, text) = (answer.json(), answer.text());
        assert_eq!(document["versions"].as_object().unwrap().keys().collect::<Vec<_>>(), ["1.0.0"], "{name}");
        assert_eq!(document["dist-tags"], json!({"latest": "1.0.0"}), "{name}");
        let dist = &document["versions"]["1.0.0"]["dist"];
        assert_eq!(dist["tarball"], format!("{address}/{}", part.path()), "{name}");
        assert_eq!(document["time"]["1.0.0"] == OLD, dialect.times, "{name}: {}", document["time"]);
        assert!(!text.contains("1970-01-01"), "{name}: {text}");
        assert!(!upstreams.iter().any(|upstream| text.contains(&upstream.url())), "{name}: {text}");
        assert_eq!(
            accept.starts_with("application/vnd"),
            answer.header("content-type") != Some("application/json")
        );
    }
}

#[test]
fn every_dialect_is_understood() {
    let (server, own, other) = (server(), Upstream::start(), Upstream::start());
    let parts = DIALECTS.map(|dialect| Part::new(dialect.name, "1.0.0"));
    for (dialect, part) in DIALECTS.iter().zip(&parts) {
        let files = Files { own: &own, other: &other };
        let mut document = packument(std::slice::from_ref(part), |part| (dialect.tarball)(&files, part));
        (dialect.document)(&mut document);
        let answer = Answer::ok(document.to_string()).header("Content-Type", "application/json");
        own.on(&format!("/registry{}", at(dialect.name)), answer);
    }
    // The registry is below a path of its host, as most registries are.
    let proxy = proxy(&server, "proxy", &format!("{}/registry/", own.url()), &json!({}));
    let address = proxy.url(&server);
    for (dialect, part) in DIALECTS.iter().zip(&parts) {
        assert_normalized(dialect, &proxy, &address, part, &[&own, &other]);
        for _ in 0..2 {
            assert_eq!(proxy.get(&part.path()).expect(200).body, part.tarball(), "{}", dialect.name);
        }
    }
    // The proxy requests a packument and a tarball for each package. Two packages need one more
    // request, for a redirect.
    assert_eq!(own.requests().len() + other.requests().len(), 2 * DIALECTS.len() + 2);
    let Some(js) = client(&server, Tool::Npm11, &proxy) else { return };
    project(&js, &parts);
    js.install("project").success();
    for part in &parts {
        assert_eq!(js.installed("project", &part.name).as_deref(), Some("1.0.0"), "{}", part.name);
    }
}

/// Makes a `dist` invalid.
type Spoil = fn(&mut Value);

/// An invalid `dist` is a failure of the upstream. The proxy caches nothing.
#[test]
fn invalid_dist_fields_are_refused() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = proxy(&server, "proxy", &format!("{}/registry", upstream.url()), &json!({}));
    let api = Api::sign_in(&server);
    let part = |number: usize| Part::new(&format!("lib-{number}"), "1.0.0");
    let good = |part: &Part| lies(&upstream, part, &format!("/{}", part.path()));
    let cases: [(&str, Spoil, u16); 12] = [
        ("no digest at all", |dist| remove(dist, &["integrity", "shasum"]), 502),
        (
            "an invalid digest",
            |dist| {
                dist["integrity"] = json!("sha512-x");
                dist["shasum"] = json!("y");
            },
            502,
        ),
        (
            "only a weak digest",
            |dist| {
                dist["integrity"] = json!("md5-AAAA");
                remove(dist, &["shasum"]);
            },
            502,
        ),
        ("no address", |dist| remove(dist, &["tarball"]), 404),
        ("an invalid address", |dist| dist["tarball"] = json!(7), 404),
        ("an empty address", |dist| dist["tarball"] = json!(""), 404),
        ("a credential in it", |dist| dist["tarball"] = json!("http://ann:secret@127.0.0.1/x.tgz"), 502),
        ("one outside of the upstream", |dist| dist["tarball"] = json!("../../x.tgz"), 502),
        ("a private one", |dist| dist["tarball"] = json!("http://10.0.0.1/x.tgz"), 502),
        ("a link-local one", |dist| dist["tarball"] = json!("http://169.254.169.254/latest"), 502),
        ("a file's", |dist| dist["tarball"] = json!("file:///etc/passwd"), 404),
        ("no host", |dist| dist["tarball"] = json!("http://"), 502),
    ];
    for (number, (what, spoil, status)) in cases.iter().enumerate() {
        let part = part(number);
        let mut document = packument(std::slice::from_ref(&part), good);
        spoil(dist(&mut document));
        upstream.on(&format!("/registry{}", at(&part.name)), Answer::ok(document.to_string()));
        let answer = proxy.get(&part.path());
        assert_eq!(answer.status, *status, "{what}: {}", answer.text());
        assert_eq!(upstream.count(&format!("/{}", part.path())), 0, "{what}");
    }
    assert!(
        !cached_paths(&api, &proxy).iter().any(|path| path.contains("tgz")),
        "{:?}",
        cached_paths(&api, &proxy)
    );
}
