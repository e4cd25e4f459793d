//! A Maven proxy with an upstream that the test scripts: its answers to clients, its cache, its
//! counters.

use crate::upstream::{Answer, Upstream};
use crate::{Api, Client, Request, Response, Server, digests};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A file of a release.
pub const JAR: &str = "org/example/a/1.0/a-1.0.jar";
/// The metadata of its artifact.
pub const METADATA: &str = "org/example/a/maven-metadata.xml";

/// A server with one proxy, its upstream, and a client that may read.
#[derive(Debug)]
pub struct World {
    /// The server.
    pub server: Server,
    /// The proxy's upstream.
    pub upstream: Upstream,
    /// The owner's session.
    pub api: Api,
    /// The proxy's id.
    pub id: String,
    /// A client with a token that may read the proxy.
    pub client: Client,
}

impl World {
    /// Creates the proxy with these settings.
    pub fn new(settings: &Value) -> Self {
        Self::with(&[], settings)
    }

    /// Also sets these variables of the server.
    pub fn with(environment: &[(&str, &str)], settings: &Value) -> Self {
        Self::before(Upstream::start(), None, environment, settings)
    }

    /// Uses this upstream; the proxy gets `address` instead of the upstream's own URL.
    pub fn before(
        upstream: Upstream,
        address: Option<&str>,
        environment: &[(&str, &str)],
        settings: &Value,
    ) -> Self {
        let mut builder = Server::with()
            .env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*")
            .env("PACKHOUSE_UPSTREAM_IDLE_MS", "700");
        for (name, value) in environment {
            builder = builder.env(name, value);
        }
        let server = builder.start();
        let api = Api::sign_in(&server);
        let own = upstream.url();
        let id = api.create_proxy("proxy", "maven", address.unwrap_or(&own), settings);
        let token = api.create_token(&[&id], &["read"], None);
        let client = server.anonymous().basic(crate::server::OWNER, &token.secret);
        Self { server, upstream, api, id, client }
    }

    /// GET of a file of the proxy.
    #[track_caller]
    pub fn get(&self, path: &str) -> Response {
        self.client.get(&format!("/repositories/proxy/{path}"))
    }

    /// Reads a file of the proxy; fails the test if the whole answer arrives.
    #[track_caller]
    pub fn broken(&self, path: &str) {
        let request = Request::new("GET", &format!("/repositories/proxy/{path}"));
        let answer = self.client.try_send(request);
        assert!(answer.is_err(), "the answer was complete: {:?}", answer.map(|answer| answer.status));
    }

    /// Changes settings.
    #[track_caller]
    pub fn set(&self, settings: &Value) {
        let path = format!("/v1/repositories/{}", self.id);
        self.api.patch(&path, &json!({"settings": settings})).expect(200);
    }

    /// The state of the cache, from the API.
    #[track_caller]
    pub fn cache(&self) -> Value {
        self.api.call("GET", &format!("/v1/repositories/{}/cache", self.id)).expect(200).json()
    }

    /// Paths of the cached files.
    pub fn cached_paths(&self) -> Vec<String> {
        let cache = self.cache();
        let items = cache["items"].as_array().unwrap().iter();
        items.map(|item| item["path"].as_str().unwrap().to_owned()).collect()
    }

    /// Hits, misses, stale answers and errors, as the API counts them.
    pub fn counts(&self) -> [u64; 4] {
        let cache = self.cache();
        ["hits", "misses", "stale", "errors"].map(|name| cache["counts"][name].as_u64().unwrap())
    }

    /// The counters of upstream answers from the server's metrics, by the label `result`. They
    /// cover all proxies of the server.
    pub fn measured(&self) -> BTreeMap<String, u64> {
        let text = Client::new(self.server.api()).get("/metrics").expect(200).text();
        let lines = text.lines().filter(|line| line.starts_with("packhouse_upstream_answers_total{"));
        lines
            .filter_map(|line| {
                let (labels, value) = line.rsplit_once(' ')?;
                let result = labels.split("result=\"").nth(1)?.split('"').next()?;
                Some((result.to_owned(), value.parse().ok()?))
            })
            .collect()
    }

    /// Publishes this answer on the upstream at this path, and the SHA-1 of `sum_of` at the path of
    /// the checksum file.
    pub fn offer(&self, path: &str, answer: Answer, sum_of: &[u8]) {
        self.upstream.on(&format!("/{path}"), answer);
        self.upstream.on(&format!("/{path}.sha1"), Answer::ok(digests::sha1(sum_of)));
    }

    /// Publishes metadata with these versions on the upstream; `answer` can change the answer.
    pub fn offer_metadata(&self, versions: &[&str], answer: impl Fn(Answer) -> Answer) {
        self.upstream.on(&format!("/{METADATA}"), answer(Answer::ok(metadata(versions))));
    }
}

/// The metadata of an artifact with these versions.
pub fn metadata(versions: &[&str]) -> String {
    let list: String = versions.iter().map(|version| format!("<version>{version}</version>")).collect();
    let last = versions.last().unwrap_or(&"");
    format!(
        "<metadata><groupId>org.example</groupId><artifactId>a</artifactId><versioning><latest>{last}</latest>\
         <release>{last}</release><versions>{list}</versions><lastUpdated>20260101000000</lastUpdated>\
         </versioning></metadata>"
    )
}
