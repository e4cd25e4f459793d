//! A client of the management API. It does what a person would do: sign in, confirm, create a
//! repository and a token for that repository.

use crate::http::{Client, Request, Response};
use crate::server::{OWNER, PASSWORD, Server};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

/// Calls that need a confirmation. The server accepts the same confirmation for several calls. A
/// row has the method, the beginning and the end of the path, and the action to confirm.
const CONFIRMED: [(&str, &str, &str, &str); 9] = [
    ("PUT", "/v1/sso", "", "change_sign_in"),
    ("DELETE", "/v1/sso", "", "change_sign_in"),
    ("POST", "/v1/trusted-publishers", "", "manage_publishers"),
    ("POST", "/v1/members", "", "manage_members"),
    ("POST", "/v1/members/", "/password-reset", "manage_members"),
    ("POST", "/v1/plugins", "", "manage_plugins"),
    ("POST", "/v1/plugins/", "/activate", "manage_plugins"),
    ("POST", "/v1/webhooks", "", "manage_webhooks"),
    ("POST", "/v1/api-tokens", "", "create_api_token"),
];

/// Returns the action that the caller must confirm for this request, or `None`.
fn confirmed_action(request: &Request) -> Option<&'static str> {
    let found = CONFIRMED.iter().find(|(method, begin, end, _)| {
        let rest = request.target().strip_prefix(begin);
        let is_there =
            rest.is_some_and(|rest| if end.is_empty() { rest.is_empty() } else { rest.ends_with(end) });
        request.method() == *method && is_there
    });
    found.map(|(_, _, _, action)| *action)
}

/// The session of a member.
#[derive(Clone, Debug)]
pub struct Api {
    client: Client,
    /// The session's secret.
    pub session: String,
    password: String,
    /// Confirmations that the server accepts several times, by their action.
    confirmations: Arc<Mutex<BTreeMap<String, String>>>,
    /// The path below which the server has the API; empty for the root.
    base: String,
}

/// A token with its secret, which the API shows once.
#[derive(Clone, Debug)]
pub struct Token {
    /// The token's id in the API.
    pub id: String,
    /// The password that clients send.
    pub secret: String,
}

/// An API token with a client that sends it.
#[derive(Clone, Debug)]
pub struct ApiToken {
    /// The token's id in the API.
    pub id: String,
    /// The secret, which the API shows once.
    pub secret: String,
    /// A client of the API that sends the token.
    pub client: Client,
}

impl ApiToken {
    /// The API token with this id and this secret.
    pub fn new(address: std::net::SocketAddr, id: &str, secret: &str) -> Self {
        let client = Client::new(address).with("Authorization", &format!("Bearer {secret}"));
        Self { id: id.to_owned(), secret: secret.to_owned(), client }
    }

    /// Sends a request of this method with a JSON body.
    #[track_caller]
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Response {
        let request = Request::new(method, path).header("Content-Type", "application/json");
        self.client.send(request.body(body.to_string()))
    }
}

/// The time in ms since 1970 that is this many days ahead.
pub fn days_ahead(days: u64) -> u64 {
    let now = UNIX_EPOCH.elapsed().expect("a time after 1970").as_millis();
    u64::try_from(now).expect("a time in ms") + days * 24 * 60 * 60 * 1000
}

impl Api {
    /// Signs the owner in.
    pub fn sign_in(server: &Server) -> Self {
        Self::sign_in_as(server, OWNER, PASSWORD)
    }

    /// Signs a member in.
    #[track_caller]
    pub fn sign_in_as(server: &Server, email: &str, password: &str) -> Self {
        Self::enter(Client::new(server.api()), "", email, password)
    }

    /// Signs the owner in at a server that has its API below the path `base`.
    #[track_caller]
    pub fn below(client: Client, base: &str) -> Self {
        Self::enter(client, base, OWNER, PASSWORD)
    }

    #[track_caller]
    fn enter(client: Client, base: &str, email: &str, password: &str) -> Self {
        let body = json!({"email": email, "password": password});
        let answer = client.send(post(&format!("{base}/v1/sessions"), &body)).expect(201);
        let session = answer.field("session");
        assert!(!session.is_empty(), "no session in {}", answer.text());
        let client = client.with("Authorization", &format!("Bearer {session}"));
        Self {
            client,
            session,
            password: password.to_owned(),
            confirmations: Arc::default(),
            base: base.to_owned(),
        }
    }

    /// The client that sends the session.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// POST with a JSON body.
    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Response {
        self.request(post(path, body))
    }

    /// Sends a request. Adds a confirmation if `CONFIRMED` lists the call.
    #[track_caller]
    pub fn request(&self, request: Request) -> Response {
        let action = confirmed_action(&request);
        let request = request.below(&self.base);
        match action {
            Some(action) => self.confirmed(action).send(request),
            None => self.client.send(request),
        }
    }

    /// A client that sends the session and a confirmation of this action. Further calls use the
    /// same confirmation.
    #[track_caller]
    pub fn confirmed(&self, action: &str) -> Client {
        let mut all = self.confirmations.lock().unwrap_or_else(PoisonError::into_inner);
        let token = all.entry(action.to_owned()).or_insert_with(|| self.confirm(action)).clone();
        self.client.clone().with("X-Confirmation-Token", &token)
    }

    /// Drops the cached confirmations, as if their five minutes were over.
    pub fn forget_confirmations(&self) {
        self.confirmations.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Sends a request of this method with a JSON body.
    #[track_caller]
    pub fn send(&self, method: &str, path: &str, body: &Value) -> Response {
        let request = Request::new(method, path).header("Content-Type", "application/json");
        self.request(request.body(body.to_string()))
    }

    /// PATCH with a JSON body.
    #[track_caller]
    pub fn patch(&self, path: &str, body: &Value) -> Response {
        self.send("PATCH", path, body)
    }

    /// Sends a request without a body.
    #[track_caller]
    pub fn call(&self, method: &str, path: &str) -> Response {
        self.request(Request::new(method, path))
    }

    /// Confirms one action with the member's password; returns the confirmation's token.
    #[track_caller]
    pub fn confirm(&self, action: &str) -> String {
        let answer =
            self.post("/v1/confirmations", &json!({"action": action, "password": self.password})).expect(201);
        answer.field("confirmation_token")
    }

    /// Creates a hosted Maven repository with these settings; returns its id.
    #[track_caller]
    pub fn create_maven(&self, name: &str, settings: &Value) -> String {
        let body = json!({"name": name, "format": "maven", "kind": "hosted", "settings": settings});
        self.post("/v1/repositories", &body).expect(201).field("id")
    }

    /// Creates a proxy repository of this format for this upstream; returns its id.
    #[track_caller]
    pub fn create_proxy(&self, name: &str, format: &str, upstream: &str, settings: &Value) -> String {
        let body = json!({
            "name": name, "format": format, "kind": "proxy", "upstream": {"url": upstream}, "settings": settings,
        });
        self.post("/v1/repositories", &body).expect(201).field("id")
    }

    /// Creates a token of the owner with this scope for these repositories. `expires_at` is in ms;
    /// `None` means never.
    #[track_caller]
    pub fn create_token(&self, repositories: &[&str], scope: &[&str], expires_at: Option<u64>) -> Token {
        let body = json!({
            "name": "a test's", "scope": scope, "format": "generic", "repositories": repositories,
            "expires_at": expires_at, "confirmation_token": self.confirm("create_token"),
        });
        let answer = self.post("/v1/tokens", &body).expect(201);
        Token { id: answer.field("id"), secret: answer.field("secret") }
    }

    /// Creates an API token for 30 days. `owner` is `me` or the id of a service account, and
    /// `sensitive` names the actions that the token does without a confirmation.
    #[track_caller]
    pub fn create_api_token(&self, owner: &str, scopes: &[&str], sensitive: &[&str]) -> ApiToken {
        let body = json!({
            "name": "a test's", "owner": owner, "scopes": scopes, "sensitive": sensitive,
            "expires_at": days_ahead(30),
        });
        let answer = self.post("/v1/api-tokens", &body).expect(201);
        ApiToken::new(self.client.address(), &answer.field("id"), &answer.field("secret"))
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
    /// A client that sends the token.
    pub client: Client,
}

impl MavenRepository {
    /// Creates a repository of this name with default settings.
    #[track_caller]
    pub fn create(server: &Server, name: &str) -> Self {
        Self::create_with(server, name, &json!({}))
    }

    /// Creates a repository with these settings.
    #[track_caller]
    pub fn create_with(server: &Server, name: &str, settings: &Value) -> Self {
        let api = Api::sign_in(server);
        let id = api.create_maven(name, settings);
        let token = api.create_token(&[&id], &["read", "write"], None);
        let client = server.anonymous().basic(OWNER, &token.secret);
        Self { name: name.into(), id, token, client }
    }

    /// The path of a file in the repository.
    pub fn path(&self, file: &str) -> String {
        format!("/repositories/{}/{file}", self.name)
    }

    /// The repository's URL, as clients write it.
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
