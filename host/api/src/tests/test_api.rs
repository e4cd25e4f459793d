//! Server without sockets for the tests of the API.

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Request};
use http_body_util::BodyExt;
use packhouse_runtime::Runtime;
use packhouse_store::{NewMember, NewRepository, OrganizationId, RepositoryId, Store};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::super::*;
use packhouse_config::{Config, Inputs};
use packhouse_identity::Secret;
use packhouse_identity::permissions::Permissions;

pub(super) const PASSWORD: &str = "correct horse battery";

/// Response to a test request.
pub(super) struct TestResponse {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl TestResponse {
    #[track_caller]
    pub(super) fn is(self, status: u16, code: &str) -> TestResponse {
        assert_eq!((self.status, self.body["error"].as_str()), (status, Some(code)), "{}", self.body);
        assert_eq!(self.headers["x-request-id"], self.body["request_id"].as_str().unwrap());
        assert!(!self.body["message"].as_str().unwrap().is_empty());
        self
    }

    #[track_caller]
    pub(super) fn ok(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.body);
        self.body
    }
}

/// API server that tests call without sockets.
pub(super) struct TestApi {
    pub(super) app: Arc<App>,
    pub(super) router: Router,
    pub(super) organization: OrganizationId,
    _folder: tempfile::TempDir,
}

impl TestApi {
    pub(super) async fn new() -> TestApi {
        TestApi::with(&[]).await
    }

    pub(super) async fn with(settings: &[(&str, &str)]) -> TestApi {
        let folder = tempfile::tempdir().unwrap();
        let plugins = folder.path().join("plugins");
        std::fs::create_dir(&plugins).unwrap();
        let own = [
            ("PACKHOUSE_DATA", folder.path().to_str().unwrap()),
            ("PACKHOUSE_PLUGINS", plugins.to_str().unwrap()),
        ];
        let environment =
            own.iter().chain(settings).map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let inputs = Inputs { environment: environment.collect(), ..Inputs::default() };
        let (config, _) = Config::load(&inputs, folder.path()).unwrap();
        let mail = packhouse_app::mail::Mail::new(&config).unwrap();
        let store = Store::open(config.store.clone()).await.unwrap();
        let runtime = Runtime::load(config.runtime.clone(), store.clone()).await.unwrap();
        let app = Arc::new(App::new(config, store, runtime, mail));
        let owner = member(&app, "owner@example.com", &Permissions::everything()).await;
        let organization =
            packhouse_store::NewOrganization { name: "default".to_owned(), base_url: None, host: None };
        let (organization, _) = app.store.bootstrap(organization, owner).await.unwrap().unwrap();
        let router = router(Arc::clone(&app), Router::new()).unwrap();
        TestApi { app, router, organization: organization.id, _folder: folder }
    }

    pub(super) async fn send(&self, mut request: Request<Body>) -> TestResponse {
        let host = http::HeaderValue::from_static("127.0.0.1:8081");
        request.headers_mut().entry("host").or_insert(host);
        let answer = self.router.clone().oneshot(request).await.unwrap();
        let (parts, mut body) = answer.into_parts();
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            bytes.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        TestResponse { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub(super) async fn call(&self, session: &str, method: &str, path: &str, body: Value) -> TestResponse {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(action) = confirmed_action(method, path).filter(|_| !session.is_empty()) {
            let body_text = json!({"action": action, "password": PASSWORD}).to_string();
            let confirm = Request::builder().method("POST").uri("/v1/confirmations");
            let confirm = confirm.header("authorization", format!("Bearer {session}"));
            let confirm = confirm.header("content-type", "application/json");
            let given = self.send(confirm.body(Body::from(body_text)).unwrap()).await;
            if let Some(token) = given.body["confirmation_token"].as_str() {
                request = request.header("x-confirmation-token", token);
            }
        }
        if !session.is_empty() {
            request = request.header("authorization", format!("Bearer {session}"));
        }
        if body.is_null() {
            return self.send(request.body(Body::empty()).unwrap()).await;
        }
        let request = request.header("content-type", "application/json");
        self.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    pub(super) async fn get(&self, session: &str, path: &str) -> TestResponse {
        self.call(session, "GET", path, Value::Null).await
    }

    pub(super) async fn sign_in(&self, email: &str) -> String {
        let body = json!({"email": email, "password": PASSWORD});
        let response = self.call("", "POST", "/v1/sessions", body).await.ok(201);
        response["session"].as_str().unwrap().to_owned()
    }

    pub(super) async fn owner(&self) -> String {
        self.sign_in("owner@example.com").await
    }

    pub(super) async fn confirm(&self, session: &str, action: &str) -> Value {
        let body = json!({"action": action, "password": PASSWORD});
        self.call(session, "POST", "/v1/confirmations", body).await.ok(201)["confirmation_token"].clone()
    }

    pub(super) async fn repository(
        &self,
        name: &str,
        kind: &str,
        members: Vec<RepositoryId>,
    ) -> RepositoryId {
        let new = NewRepository {
            name: name.to_owned(),
            format: "fifth".to_owned(),
            kind: kind.to_owned(),
            public: false,
            settings: "{}".to_owned(),
            upstream: None,
            members,
        };
        self.app.store.create_repository(self.organization, new, None).await.unwrap().unwrap().id
    }

    pub(super) async fn member(&self, email: &str, permissions: Value) {
        let new = member(&self.app, email, &serde_json::from_value(permissions).unwrap()).await;
        self.app.store.create_member(self.organization, new, None).await.unwrap().unwrap();
    }

    pub(super) async fn create_token(&self, session: &str, change: Value) -> TestResponse {
        let mut body = json!({"name": "ci", "scope": ["read"], "format": "generic", "expires_at": null});
        body["confirmation_token"] = self.confirm(session, "create_token").await;
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        self.call(session, "POST", "/v1/tokens", body).await
    }
}

/// Action for which a call needs a confirmation that can be used repeatedly.
fn confirmed_action(method: &str, path: &str) -> Option<&'static str> {
    match (method, path) {
        ("POST", "/v1/members") => Some("manage_members"),
        ("POST", path) if path.ends_with("/password-reset") => Some("manage_members"),
        ("PUT" | "DELETE", "/v1/sso") => Some("change_sign_in"),
        ("POST", "/v1/webhooks") => Some("manage_webhooks"),
        ("POST", "/v1/trusted-publishers") => Some("manage_publishers"),
        _ => None,
    }
}

pub(super) async fn member(app: &App, email: &str, permissions: &Permissions) -> NewMember {
    NewMember {
        email: email.to_owned(),
        name: String::new(),
        password_hash: app.passwords.hash(Secret::new(PASSWORD)).await.unwrap(),
        permissions: serde_json::to_string(permissions).unwrap(),
    }
}
