//! A repository of any format, with a token for it.

use crate::api::{Api, Token};
use crate::http::{Client, Response, basic};
use crate::server::{OWNER, Server};
use serde_json::{Value, json};

/// A repository with a token that may read and write there.
#[derive(Clone, Debug)]
pub struct FormatRepository {
    /// Its name.
    pub name: String,
    /// Its id in the API.
    pub id: String,
    /// The token.
    pub token: Token,
    /// A client that sends the token.
    pub client: Client,
    /// Its URL without a slash at its end.
    pub url: String,
}

impl FormatRepository {
    /// Creates a hosted repository with these settings.
    #[track_caller]
    pub fn hosted(server: &Server, format: &str, name: &str, settings: &Value) -> Self {
        Self::create(server, format, name, &json!({"kind": "hosted", "settings": settings}), &[])
    }

    /// Creates a proxy of this URL with these settings.
    #[track_caller]
    pub fn proxy(server: &Server, format: &str, name: &str, upstream: &str, settings: &Value) -> Self {
        let more = json!({"kind": "proxy", "upstream": {"url": upstream}, "settings": settings});
        Self::create(server, format, name, &more, &[])
    }

    /// Creates a proxy of the repository `far` on another server. The proxy sends the token of
    /// `far`.
    #[track_caller]
    pub fn proxy_of(server: &Server, format: &str, name: &str, far: &Self, settings: &Value) -> Self {
        let proxy = Self::proxy(server, format, name, &format!("{}/", far.url), settings);
        let api = Api::sign_in(server);
        let body = json!({
            "username": OWNER, "password": far.token.secret,
            "confirmation_token": api.confirm("set_upstream_credentials"),
        });
        api.send("PUT", &format!("/v1/repositories/{}/upstream-credentials", proxy.id), &body).expect(204);
        proxy
    }

    /// Creates a group of these repositories; the group's token reaches the members too.
    #[track_caller]
    pub fn group(server: &Server, format: &str, name: &str, members: &[&Self]) -> Self {
        let ids: Vec<&str> = members.iter().map(|member| member.id.as_str()).collect();
        Self::create(server, format, name, &json!({"kind": "group", "members": ids}), &ids)
    }

    /// Creates a repository with these fields in addition to name and format. The token also
    /// reaches the repositories with the ids `others`.
    #[track_caller]
    pub fn create(server: &Server, format: &str, name: &str, more: &Value, others: &[&str]) -> Self {
        let api = Api::sign_in(server);
        let mut body = more.clone();
        body["name"] = json!(name);
        body["format"] = json!(format);
        let id = api.post("/v1/repositories", &body).expect(201).field("id");
        let reached: Vec<&str> = others.iter().copied().chain([id.as_str()]).collect();
        let token = api.create_token(&reached, &["read", "write"], None);
        let client = server.anonymous().basic(OWNER, &token.secret);
        let url = format!("{}/repositories/{name}", server.base_url());
        Self { name: name.to_owned(), id, token, client, url }
    }

    /// This repository on another server with the same database, or on its own server after a
    /// restart.
    pub fn on(&self, server: &Server) -> Self {
        let client = server.anonymous().basic(OWNER, &self.token.secret);
        let url = format!("{}/repositories/{}", server.base_url(), self.name);
        Self { client, url, ..self.clone() }
    }

    /// The value that its client sends in `Authorization`.
    pub fn authorization(&self) -> String {
        basic(OWNER, &self.token.secret)
    }

    /// A token of the owner with this scope for this repository alone.
    #[track_caller]
    pub fn token_for(&self, server: &Server, scope: &[&str]) -> String {
        Api::sign_in(server).create_token(&[&self.id], scope, None).secret
    }

    /// The path of a resource in the repository.
    pub fn path(&self, below: &str) -> String {
        format!("/repositories/{}/{below}", self.name)
    }

    /// GET of a resource in the repository.
    #[track_caller]
    pub fn get(&self, below: &str) -> Response {
        self.client.get(&self.path(below))
    }

    /// PUT of these bytes.
    #[track_caller]
    pub fn put(&self, below: &str, bytes: impl Into<Vec<u8>>) -> Response {
        self.client.put(&self.path(below), bytes)
    }

    /// GET of a resource of the API below `/v1/repositories/ID/`.
    #[track_caller]
    pub fn api_get(&self, server: &Server, below: &str) -> Response {
        Api::sign_in(server).call("GET", &format!("/v1/repositories/{}/{below}", self.id))
    }

    /// The text from Connection Settings for this client and purpose, with the repository's token
    /// filled in. It is the content of `file`, or a command if `file` is `None`.
    #[track_caller]
    pub fn connection_text(
        &self,
        server: &Server,
        client: &str,
        purpose: &str,
        file: Option<&str>,
    ) -> String {
        let connection = self.api_get(server, "connection").expect(200).json();
        let all = connection["clients"].as_array().expect("a list of clients");
        let selected = |one: &&Value| {
            one["client"] == client && one["purpose"] == purpose && one["file"].as_str() == file
        };
        let found =
            all.iter().find(selected).unwrap_or_else(|| panic!("{client} {purpose} {file:?}: {connection}"));
        let text = found["text"].as_str().expect("a text");
        text.replace("<EMAIL>", OWNER).replace("<REPOSITORY_TOKEN>", &self.token.secret)
    }

    /// The repository's URL, with this token in it.
    pub fn url_of(&self, secret: &str) -> String {
        self.url.replacen("http://", &format!("http://{}:{secret}@", OWNER.replace('@', "%40")), 1)
    }
}
