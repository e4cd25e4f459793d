//! A proxy of container images, and helpers that publish images on a scripted upstream registry.

use crate::api::Api;
use crate::http::{Client, Request, Response};
use crate::images::digest;
use crate::server::{OWNER, Server};
use crate::upstream::{Answer, Upstream};
use serde_json::{Value, json};

/// A server that may reach upstreams on this machine, and has a short timeout for a silent
/// upstream.
pub fn server() -> Server {
    let near = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*");
    near.env("PACKHOUSE_UPSTREAM_IDLE_MS", "1500").start()
}

/// A proxy of images, and a client that may read it.
#[derive(Debug)]
pub struct ImageProxy {
    /// Its name.
    pub name: String,
    /// Its id in the API.
    pub id: String,
    /// The owner's session.
    pub api: Api,
    /// A client with a token that reads.
    pub client: Client,
    /// The token.
    pub secret: String,
}

impl ImageProxy {
    /// Creates a proxy of this name for the registry at this URL.
    #[track_caller]
    pub fn create(server: &Server, name: &str, upstream: &str, settings: &Value) -> Self {
        let api = Api::sign_in(server);
        let id = api.create_proxy(name, "docker", upstream, settings);
        let secret = api.create_token(&[&id], &["read"], None).secret;
        let client = server.anonymous().basic(OWNER, &secret);
        Self { name: name.to_owned(), id, api, client, secret }
    }

    /// The path of a resource of an image.
    pub fn path(&self, rest: &str) -> String {
        format!("/v2/repositories/{}/{rest}", self.name)
    }

    /// GET of a resource of an image.
    #[track_caller]
    pub fn get(&self, rest: &str) -> Response {
        self.client.get(&self.path(rest))
    }

    /// HEAD of a resource of an image.
    #[track_caller]
    pub fn head(&self, rest: &str) -> Response {
        self.client.send(Request::new("HEAD", &self.path(rest)))
    }

    /// Reads a resource of an image; fails the test if the whole answer arrives.
    #[track_caller]
    pub fn broken(&self, rest: &str) {
        let answer = self.client.try_send(Request::new("GET", &self.path(rest)));
        assert!(answer.is_err(), "the answer was complete: {:?}", answer.map(|answer| answer.status));
    }

    /// Changes settings.
    #[track_caller]
    pub fn set(&self, settings: &Value) {
        let path = format!("/v1/repositories/{}", self.id);
        self.api.patch(&path, &json!({"settings": settings})).expect(200);
    }

    /// Sets the credentials for the upstream. `token_realm` is a further URL to which the server
    /// may send them.
    #[track_caller]
    pub fn credentials(&self, username: &str, password: &str, token_realm: Option<&str>) {
        let body = json!({
            "username": username, "password": password, "token_realm": token_realm,
            "confirmation_token": self.api.confirm("set_upstream_credentials"),
        });
        self.api
            .send("PUT", &format!("/v1/repositories/{}/upstream-credentials", self.id), &body)
            .expect(204);
    }

    /// The state of its cache, from the API.
    pub fn cache(&self) -> Value {
        self.api.call("GET", &format!("/v1/repositories/{}/cache", self.id)).expect(200).json()
    }

    /// Method and path of each cached resource.
    pub fn cached_paths(&self) -> Vec<String> {
        let cache = self.cache();
        let items = cache["items"].as_array().expect("a list of cached resources").iter();
        items.map(|item| item["path"].as_str().expect("its path").to_owned()).collect()
    }
}

/// Publishes a manifest on the upstream by its digest and, if given, by a tag; returns the digest.
pub fn offer(upstream: &Upstream, image: &str, tag: Option<&str>, kind: &str, manifest: &str) -> String {
    let named = digest(manifest.as_bytes());
    let answer =
        |body: &str| Answer::ok(body).header("Content-Type", kind).header("Docker-Content-Digest", &named);
    for reference in tag.into_iter().chain([named.as_str()]) {
        upstream.on(&format!("/v2/{image}/manifests/{reference}"), answer(manifest));
    }
    named
}

/// Publishes a layer or a config on the upstream; returns its digest.
pub fn offer_blob(upstream: &Upstream, image: &str, bytes: &[u8]) -> String {
    let named = digest(bytes);
    upstream.on(&format!("/v2/{image}/blobs/{named}"), Answer::ok(bytes));
    named
}
