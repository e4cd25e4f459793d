//! Names that are hosted hide themselves: from those who may not read them too, in every format, and from upstreams that are asked
//! about many at once. Each upstream counts what it is asked.

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

/// A private hosted repository and a public proxy, as one public group.
struct World {
    server: Server,
    upstream: Upstream,
    api: Api,
    hosted: String,
    proxy: String,
    group: String,
    /// Reaches the hosted repository alone, and may write there.
    owner: Client,
}

impl World {
    fn new(format: &str) -> Self {
        Self::with(format, &json!({}))
    }

    /// With these settings of the group's.
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

    /// With a token that reaches these repositories.
    fn reaching(&self, repositories: &[&String]) -> Client {
        let ids: Vec<&str> = repositories.iter().map(|id| id.as_str()).collect();
        self.server.anonymous().basic(OWNER, &self.api.create_token(&ids, &["read"], None).secret)
    }

    /// Who may not read what is hosted: a token of the group and the proxy, and nobody.
    fn strangers(&self) -> [(&'static str, Client); 2] {
        [("a stranger", self.reaching(&[&self.group, &self.proxy])), ("nobody", self.server.anonymous())]
    }

    fn set(&self, repository: &str, settings: &Value) {
        self.api.patch(&format!("/v1/repositories/{repository}"), &json!({"settings": settings})).expect(200);
    }

    /// Takes a version away by the API.
    fn remove(&self, name: &str, version: &str) {
        let name = name.replace('@', "%40").replace('/', "%2F");
        let path = format!("/v1/repositories/{}/packages/{name}/versions/{version}", self.hosted);
        self.api.call("DELETE", &path).expect(204);
    }

    /// How often the upstream was asked for anything of this name.
    fn asked(&self, name: &str) -> usize {
        self.upstream.seen().iter().filter(|seen| seen.target.contains(name)).count()
    }
}

/// What an upstream of Maven's has of `org.example:ARTIFACT`, in a version of its own.
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
