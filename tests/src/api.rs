//! The management API as a person would use it: sign in, confirm, make a repository and a token for it.

use crate::http::{Client, Request, Response};
use crate::server::{OWNER, PASSWORD, Server};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What needs a fresh confirmation that is good for several calls: method, the path's beginning and end, and the action.
const CONFIRMED: [(&str, &str, &str, &str); 8] = [
    ("PUT", "/v1/sso", "", "change_sign_in"),
    ("DELETE", "/v1/sso", "", "change_sign_in"),
    ("POST", "/v1/trusted-publishers", "", "manage_publishers"),
    ("POST", "/v1/members", "", "manage_members"),
    ("POST", "/v1/members/", "/password-reset", "manage_members"),
    ("POST", "/v1/plugins", "", "manage_plugins"),
    ("POST", "/v1/plugins/", "/activate", "manage_plugins"),
    ("POST", "/v1/webhooks", "", "manage_webhooks"),
];

/// The action that a call needs a confirmation of.
fn confirmed_action(request: &Request) -> Option<&'static str> {
    let found = CONFIRMED.iter().find(|(method, begin, end, _)| {
        let rest = request.target().strip_prefix(begin);
        let is_there =
            rest.is_some_and(|rest| if end.is_empty() { rest.is_empty() } else { rest.ends_with(end) });
        request.method() == *method && is_there
    });
    found.map(|(_, _, _, action)| *action)
}

/// Somebody signed in.
#[derive(Clone, Debug)]
pub struct Api {
    client: Client,
    /// The session's secret.
    pub session: String,
    password: String,
    /// Confirmations that are good for several calls, by their action.
    confirmations: Arc<Mutex<BTreeMap<String, String>>>,
}

/// A token with the secret that is shown once.
#[derive(Clone, Debug)]
pub struct Token {
    /// What the API knows it by.
    pub id: String,
    /// The password that clients send.
    pub secret: String,
}

impl Api {
    /// Signs the owner in.
    pub fn sign_in(server: &Server) -> Self {
        Self::sign_in_as(server, OWNER, PASSWORD)
    }

    /// Signs a member in.
    #[track_caller]
    pub fn sign_in_as(server: &Server, email: &str, password: &str) -> Self {
        let client = Client::new(server.api());
        let body = json!({"email": email, "password": password});
        let answer = client.send(post("/v1/sessions", &body)).expect(201);
        let session = answer.field("session");
        assert!(!session.is_empty(), "no session in {}", answer.text());
        let client = client.with("Authorization", &format!("Bearer {session}"));
        Self { client, session, password: password.to_owned(), confirmations: Arc::default() }
    }

    /// The client that shows the session.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// A call with a JSON body.
    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Response {
        self.request(post(path, body))
    }

    /// A call, with a fresh confirmation where it needs one that is good for several calls.
    #[track_caller]
    pub fn request(&self, request: Request) -> Response {
        match confirmed_action(&request) {
            Some(action) => self.confirmed(action).send(request),
            None => self.client.send(request),
        }
    }

    /// A client that shows the session and a confirmation of this action, which is good for several calls.
    #[track_caller]
    pub fn confirmed(&self, action: &str) -> Client {
        let mut all = self.confirmations.lock().unwrap_or_else(PoisonError::into_inner);
        let token = all.entry(action.to_owned()).or_insert_with(|| self.confirm(action)).clone();
        self.client.clone().with("X-Confirmation-Token", &token)
    }

    /// Forgets the confirmations that were made: their five minutes are over.
    pub fn forget_confirmations(&self) {
        self.confirmations.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// A call of another method with a JSON body.
    #[track_caller]
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Response {
        let request = Request::new(method, path).header("Content-Type", "application/json");
        self.request(request.body(body.to_string()))
    }

    /// A PATCH with a JSON body.
    #[track_caller]
    pub fn patch(&self, path: &str, body: &Value) -> Response {
        self.send("PATCH", path, body)
    }

    /// A call without one.
    #[track_caller]
    pub fn call(&self, method: &str, path: &str) -> Response {
        self.request(Request::new(method, path))
    }

    /// A fresh confirmation for one action.
    #[track_caller]
    pub fn confirm(&self, action: &str) -> String {
        let answer =
            self.post("/v1/confirmations", &json!({"action": action, "password": self.password})).expect(201);
        answer.field("confirmation_token")
    }

    /// Makes a hosted Maven repository with these settings; answers its id.
    #[track_caller]
    pub fn create_maven(&self, name: &str, settings: &Value) -> String {
        let body = json!({"name": name, "format": "maven", "kind": "hosted", "settings": settings});
        self.post("/v1/repositories", &body).expect(201).field("id")
    }

    /// Makes a proxy repository of this format for this upstream; answers its id.
    #[track_caller]
    pub fn create_proxy(&self, name: &str, format: &str, upstream: &str, settings: &Value) -> String {
        let body = json!({
            "name": name, "format": format, "kind": "proxy", "upstream": {"url": upstream}, "settings": settings,
        });
        self.post("/v1/repositories", &body).expect(201).field("id")
    }

    /// Makes a token of the owner's with this scope for these repositories; `expires_at` in ms, none for never.
    #[track_caller]
    pub fn create_token(&self, repositories: &[&str], scope: &[&str], expires_at: Option<u64>) -> Token {
        let body = json!({
            "name": "a test's", "scope": scope, "format": "generic", "repositories": repositories,
            "expires_at": expires_at, "confirmation_token": self.confirm("create_token"),
        });
        let answer = self.post("/v1/tokens", &body).expect(201);
        Token { id: answer.field("id"), secret: answer.field("secret") }
    }
}

fn post(path: &str, body: &Value) -> Request {
    Request::new("POST", path).header("Content-Type", "application/json").body(body.to_string())
}

/// A hosted Maven repository with a token that may read and write there.
#[derive(Clone, Debug)]
pub struct MavenRepository {
    /// Its name.
    pub name: String,
    /// Its id in the API.
    pub id: String,
    /// The token.
    pub token: Token,
    /// A client that shows the token.
    pub client: Client,
}

impl MavenRepository {
    /// Makes one of that name with the settings that a repository has by default.
    #[track_caller]
    pub fn create(server: &Server, name: &str) -> Self {
        Self::create_with(server, name, &json!({}))
    }

    /// Makes one with settings of its own.
    #[track_caller]
    pub fn create_with(server: &Server, name: &str, settings: &Value) -> Self {
        let api = Api::sign_in(server);
        let id = api.create_maven(name, settings);
        let token = api.create_token(&[&id], &["read", "write"], None);
        let client = server.anonymous().basic(OWNER, &token.secret);
        Self { name: name.into(), id, token, client }
    }

    /// The path of a file of it.
    pub fn path(&self, file: &str) -> String {
        format!("/repositories/{}/{file}", self.name)
    }

    /// Its address, as clients write it.
    pub fn url(&self, server: &Server) -> String {
        format!("{}/repositories/{}", server.base_url(), self.name)
    }

    /// PUT of a file.
    #[track_caller]
    pub fn put(&self, file: &str, body: impl Into<Vec<u8>>) -> Response {
        self.client.put(&self.path(file), body)
    }

    /// GET of a file.
    #[track_caller]
    pub fn get(&self, file: &str) -> Response {
        self.client.get(&self.path(file))
    }
}
