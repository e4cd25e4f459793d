//! Versions that a Maven proxy withholds, because they are withdrawn or too young. The proxy
//! neither lists them in `maven-metadata.xml` nor serves their files, at its own address and in a
//! group.

use packhouse_tests::clock::JumpingClock;
use packhouse_tests::server::OWNER;
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Client, MavenRepository, Request, Server, ServerBuilder, digests};
use serde_json::{Value, json};

const OLD: &str = "Wed, 01 Jan 2020 00:00:00 GMT";
/// A date in the far future, so that a version is always too young.
const YOUNG: &str = "Tue, 01 Jan 2999 00:00:00 GMT";
const VIEWS: [&str; 2] = ["proxy", "group"];

/// A proxy, and a group of the proxy and an empty hosted repository.
struct MavenProxyFixture {
    _server: Server,
    upstream: Upstream,
    api: Api,
    proxy: String,
    hosted: MavenRepository,
    client: Client,
}

impl MavenProxyFixture {
    fn new(settings: &Value) -> Self {
        Self::on(Server::with(), settings)
    }

    fn on(server: ServerBuilder, settings: &Value) -> Self {
        let server = server.env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
        let (upstream, api) = (Upstream::start(), Api::sign_in(&server));
        let proxy = api.create_proxy("proxy", "maven", &upstream.url(), settings);
        let hosted = MavenRepository::create(&server, "hosted");
        let group =
            json!({"name": "group", "format": "maven", "kind": "group", "members": [proxy, hosted.id]});
        let group = api.post("/v1/repositories", &group).expect(201).field("id");
        let token = api.create_token(&[&group, &proxy, &hosted.id], &["read"], None);
        let client = server.anonymous().basic(OWNER, &token.secret);
        Self { _server: server, upstream, api, proxy, hosted, client }
    }

    fn set(&self, settings: &Value) {
        let path = format!("/v1/repositories/{}", self.proxy);
        self.api.patch(&path, &json!({"settings": settings})).expect(200);
    }

    /// Offers an artifact with these versions and their dates at the upstream.
    fn lay(&self, artifact: &str, versions: &[(&str, &str)]) {
        for (version, date) in versions {
            for end in ["pom", "jar"] {
                let (path, text) = (file(artifact, version, end), format!("{artifact} {version} {end}"));
                self.upstream.on(&format!("/{path}"), Answer::ok(text.clone()).header("Last-Modified", date));
                self.upstream.on(&format!("/{path}.sha1"), Answer::ok(digests::sha1(text.as_bytes())));
            }
        }
        let list: String =
            versions.iter().map(|(version, _)| format!("<version>{version}</version>")).collect();
        let document = format!(
            "<metadata><groupId>org.example</groupId><artifactId>{artifact}</artifactId><versioning>\
             <versions>{list}</versions><lastUpdated>99990101000000</lastUpdated></versioning></metadata>"
        );
        self.upstream.on(&format!("/org/example/{artifact}/maven-metadata.xml"), Answer::ok(document));
    }

    /// Fails unless the metadata list exactly the offered versions and the server serves only their
    /// files. Checks the proxy and the group.
    #[track_caller]
    fn offers(&self, artifact: &str, offered: &[&str], withheld: &[&str]) {
        for view in VIEWS {
            let path = format!("/repositories/{view}/org/example/{artifact}/maven-metadata.xml");
            let document = self.client.get(&path).expect(200).text();
            let sum = self.client.get(&format!("{path}.sha1")).expect(200).text();
            assert_eq!(sum, digests::sha1(document.as_bytes()), "{view}");
            for (versions, there) in [(offered, true), (withheld, false)] {
                for version in versions {
                    let listed = document.contains(&format!("<version>{version}</version>"));
                    assert_eq!(listed, there, "{version} in {view}: {document}");
                    self.serves(view, artifact, version, if there { 200 } else { 404 });
                }
            }
        }
    }

    #[track_caller]
    fn serves(&self, view: &str, artifact: &str, version: &str, status: u16) {
        for end in ["pom", "jar"] {
            let path = format!("/repositories/{view}/{}", file(artifact, version, end));
            let answer = self.client.get(&path).expect(status);
            self.client.send(Request::new("HEAD", &path)).expect(status);
            if status == 200 {
                assert_eq!(answer.text(), format!("{artifact} {version} {end}"));
            }
        }
    }
}

fn file(artifact: &str, version: &str, end: &str) -> String {
    format!("org/example/{artifact}/{version}/{artifact}-{version}.{end}")
}

#[test]
fn too_young_versions_are_withheld_except_for_exempt_names() {
    let world = MavenProxyFixture::new(
        &json!({"min_release_age_s": 86_400, "metadata_ttl_s": 0, "negative_ttl_s": 0}),
    );
    for artifact in ["a", "b"] {
        world.lay(artifact, &[("1.0", OLD), ("2.0", YOUNG)]);
    }
    world.offers("a", &["1.0"], &["2.0"]);
    world.set(&json!({"min_release_age_except": ["org.example:b", "org.other:*"]}));
    world.offers("a", &["1.0"], &["2.0"]);
    world.offers("b", &["1.0", "2.0"], &[]);
    world.set(&json!({"min_release_age_except": ["org.example:*"]}));
    world.offers("a", &["1.0", "2.0"], &[]);
    // The exemption is removed. The proxy withholds files again that it fetched under the
    // exemption.
    world.set(&json!({"min_release_age_except": []}));
    world.offers("a", &["1.0"], &["2.0"]);
    world.offers("b", &["1.0"], &["2.0"]);
}

#[test]
fn the_age_of_files_without_a_date_counts_from_their_first_sight() {
    let clock = JumpingClock::new();
    let settings = json!({"min_release_age_s": 86_400, "metadata_ttl_s": 0, "negative_ttl_s": 0});
    let world = MavenProxyFixture::on(Server::with().clock(&clock), &settings);
    let all = [("1.0", OLD), ("2.0", ""), ("3.0", YOUNG), ("4.0", "")];
    world.lay("a", &all);
    // The metadata name version 4.0 before its files exist at the upstream.
    for end in ["pom", "jar"] {
        world.upstream.forget(&format!("/{}", file("a", "4.0", end)));
    }
    world.offers("a", &["1.0"], &["2.0", "3.0", "4.0"]);
    clock.set(86_400 + 60);
    world.lay("a", &all);
    world.offers("a", &["1.0", "2.0"], &["3.0", "4.0"]);
}

#[test]
fn versions_that_the_upstream_withdraws_are_withheld() {
    let world = MavenProxyFixture::new(&json!({"metadata_ttl_s": 0, "negative_ttl_s": 0}));
    let both = [("1.0", OLD), ("2.0", OLD)];
    world.lay("a", &both);
    world.offers("a", &["1.0", "2.0"], &[]);
    world.lay("a", &both[..1]);
    // The files still exist at the upstream, but only the metadata decide.
    world.offers("a", &["1.0"], &["2.0"]);
    let versions = format!("/v1/repositories/{}/packages/org.example%3Aa/versions", world.proxy);
    let states = || {
        let versions = world.api.call("GET", &versions).expect(200).json();
        let all = versions["items"].as_array().unwrap().iter();
        all.map(|one| format!("{} {}", one["version"].as_str().unwrap(), one["state"].as_str().unwrap()))
            .collect::<std::collections::BTreeSet<_>>()
    };
    assert!(states().contains("2.0 withdrawn") && states().contains("1.0 "), "{:?}", states());
    world.set(&json!({"keep_withdrawn": true}));
    for end in ["pom", "jar"] {
        world.upstream.forget(&format!("/{}", file("a", "2.0", end)));
    }
    world.offers("a", &["1.0", "2.0"], &[]);
    world.set(&json!({"keep_withdrawn": false}));
    world.offers("a", &["1.0"], &["2.0"]);
    world.lay("a", &both);
    world.offers("a", &["1.0", "2.0"], &[]);
    assert!(states().contains("2.0 "), "{:?}", states());
}

#[test]
fn a_claimed_or_hosted_name_is_not_served_from_upstream() {
    let world = MavenProxyFixture::new(&json!({}));
    world.lay("own", &[("9.0", OLD)]);
    world.lay("next", &[("9.0", OLD)]);
    world.hosted.put(&file("own", "1.0", "jar"), "own 1.0 jar").expect(201);
    let settings = json!({"settings": {"claimed_names": ["org.example:next"]}});
    world.api.patch(&format!("/v1/repositories/{}", world.hosted.id), &settings).expect(200);
    let get = |path: &str| world.client.get(&format!("/repositories/group/{path}"));
    for artifact in ["own", "next"] {
        get(&file(artifact, "9.0", "jar")).expect(404);
        get(&format!("{}.sha1", file(artifact, "9.0", "jar"))).expect(404);
    }
    let document = get("org/example/own/maven-metadata.xml").expect(200).text();
    assert!(document.contains("<version>1.0</version>") && !document.contains("9.0"), "{document}");
    get("org/example/next/maven-metadata.xml").expect(404);
    assert_eq!(get(&file("own", "1.0", "jar")).expect(200).text(), "own 1.0 jar");
    assert!(
        world.upstream.requests().is_empty(),
        "the upstream got no request: {:?}",
        world.upstream.requests()
    );
}
