//! Hosted names hide the same names of upstreams in every format, also from clients that may not
//! read the hosted packages. Queries about many names send no hosted name to an upstream. Each test
//! upstream records its requests.

mod audit;
mod formats;
mod lists;
mod more_formats;
mod oci;
mod released;
mod scheme;
use crate::wheel;

use packhouse_tests::server::OWNER;
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Client, Server, digests};
use serde_json::{Value, json};

/// A private hosted repository and a public proxy, both in one public group.
struct HiddenNamesFixture {
    server: Server,
    upstream: Upstream,
    api: Api,
    hosted: String,
    proxy: String,
    group: String,
    /// A client that may read and write only the hosted repository.
    owner: Client,
}

impl HiddenNamesFixture {
    fn new(format: &str) -> Self {
        Self::with(format, &json!({}))
    }

    /// Creates a fixture whose group has these settings.
    fn with(format: &str, settings: &Value) -> Self {
        let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8").start();
        Self::on(server, format, settings)
    }

    fn on(server: Server, format: &str, settings: &Value) -> Self {
        let (api, upstream) = (Api::sign_in(&server), Upstream::start());
        let make = |body: Value| api.post("/v1/repositories", &body).expect(201).field("id");
        let hosted = make(json!({"name": "own", "format": format, "kind": "hosted"}));
        let fresh = json!({"public": true, "metadata_ttl_s": 0, "negative_ttl_s": 0});
        let proxy = make(json!({"name": "elsewhere", "format": format, "kind": "proxy",
            "upstream": {"url": upstream.url()}, "settings": fresh}));
        let mut public = settings.clone();
        public["public"] = json!(true);
        let group =
            make(json!({"name": "all", "format": format, "kind": "group", "members": [hosted, proxy],
            "settings": public}));
        let owner = api.create_token(&[&hosted], &["read", "write"], None);
        let owner = server.anonymous().basic(OWNER, &owner.secret);
        Self { server, upstream, api, hosted, proxy, group, owner }
    }

    /// Returns a client with a token that reads these repositories.
    fn reaching(&self, repositories: &[&String]) -> Client {
        let ids: Vec<&str> = repositories.iter().map(|id| id.as_str()).collect();
        self.server.anonymous().basic(OWNER, &self.api.create_token(&ids, &["read"], None).secret)
    }

    /// Returns clients that may not read the hosted repository. One has a token for the group and
    /// the proxy, the other has no credential.
    fn without_access(&self) -> [(&'static str, Client); 2] {
        [
            ("another credential", self.reaching(&[&self.group, &self.proxy])),
            ("no credential", self.server.anonymous()),
        ]
    }

    fn set(&self, repository: &str, settings: &Value) {
        self.api.patch(&format!("/v1/repositories/{repository}"), &json!({"settings": settings})).expect(200);
    }

    /// Deletes a version through the API.
    fn remove(&self, name: &str, version: &str) {
        let name = name.replace('@', "%40").replace('/', "%2F");
        let path = format!("/v1/repositories/{}/packages/{name}/versions/{version}", self.hosted);
        self.api.call("DELETE", &path).expect(204);
    }

    /// Returns the number of requests to the upstream that contain this name.
    fn upstream_requests(&self, name: &str) -> usize {
        self.upstream.requests().iter().filter(|request| request.target.contains(name)).count()
    }
}

/// Offers `org.example:ARTIFACT` at a Maven upstream, in a version that only the upstream has.
fn offer_maven(upstream: &Upstream, artifact: &str) {
    let folder = format!("/org/example/{artifact}");
    let file = format!("{folder}/99.0/{artifact}-99.0.jar");
    upstream.on(&file, Answer::ok("theirs"));
    upstream.on(&format!("{file}.sha1"), Answer::ok(digests::sha1(b"theirs")));
    upstream.on(&format!("{folder}/99.0/notes.txt"), Answer::ok("notes"));
    let text = format!(
        "<metadata><groupId>org.example</groupId><artifactId>{artifact}</artifactId><versioning>\
         <versions><version>99.0</version></versions></versioning></metadata>"
    );
    upstream.on(&format!("{folder}/maven-metadata.xml"), Answer::ok(text));
}
