//! Publishing from a build service without a stored secret. uv and npm exchange the ID token
//! themselves; other clients send it as a password. Also tests every way in which an ID token may
//! be invalid.

mod clients;
mod codes;
pub(crate) mod issuer;
mod refused;
use crate::wheel;

use issuer::{Issuer, now, unique};
use packhouse_tests::http::Response;
use packhouse_tests::{Api, Client, Request, Server, ServerBuilder};
use serde_json::{Value, json};

/// A server that reaches the issuer, with a session of the API.
struct World {
    server: Server,
    api: Api,
    issuer: Issuer,
}

impl World {
    fn start() -> World {
        World::of(Server::with())
    }

    fn of(server: ServerBuilder) -> World {
        let server = server.arg("--upstream-allow-networks").arg("127.0.0.0/8").start();
        let api = Api::sign_in(&server);
        World { server, api, issuer: Issuer::start() }
    }

    /// Creates a hosted repository; returns its id.
    fn repository(&self, format: &str, name: &str) -> String {
        let body = json!({"name": name, "format": format, "kind": "hosted"});
        self.api.post("/v1/repositories", &body).expect(201).field("id")
    }

    fn try_trust(&self, more: &Value) -> Response {
        let mut body = json!({
            "provider": "github", "issuer": self.issuer.url, "packages": ["*"], "scope": ["read", "write"],
            "claims": {"repository_owner": "octo-org", "repository": "octo-repo", "workflow": "release.yml", "environment": "release"},
        });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        self.api.post("/v1/trusted-publishers", &body)
    }

    /// Trusts the workflow of [`World::github`] in this repository, with the fields of `more`;
    /// returns the publisher's id.
    #[track_caller]
    fn trust(&self, repository: &str, more: &Value) -> String {
        let mut more = more.clone();
        more["repository"] = json!(repository);
        self.try_trust(&more).expect(201).field("id")
    }

    /// The audience that ID tokens for the server must have.
    fn audience(&self) -> String {
        self.server.packages().to_string()
    }

    /// The claims of GitHub's tokens, as documented.
    fn github(&self) -> Value {
        let workflow = "octo-org/octo-repo/.github/workflows/release.yml@refs/heads/main";
        json!({
            "jti": unique(), "sub": "repo:octo-org/octo-repo:environment:release", "environment": "release",
            "aud": self.audience(), "ref": "refs/heads/main", "sha": "0123456789abcdef0123456789abcdef01234567",
            "repository": "octo-org/octo-repo", "repository_owner": "octo-org", "actor_id": "12",
            "repository_visibility": "private", "repository_id": "74", "repository_owner_id": "65",
            "run_id": "1658821493", "run_number": "10", "run_attempt": "2", "runner_environment": "github-hosted",
            "actor": "octocat", "workflow": "release", "head_ref": "", "base_ref": "", "event_name": "release",
            "ref_type": "branch", "ref_protected": "false", "workflow_ref": workflow,
            "workflow_sha": "0123456789abcdef0123456789abcdef01234567", "job_workflow_ref": workflow,
            "job_workflow_sha": "0123456789abcdef0123456789abcdef01234567", "iss": self.issuer.url,
            "nbf": now() - 300, "exp": now() + 300, "iat": now(),
        })
    }

    /// The claims of GitLab's tokens, as documented.
    fn gitlab(&self) -> Value {
        let host = self.issuer.url.trim_start_matches("http://");
        json!({
            "namespace_id": "72", "namespace_path": "my-group", "project_id": "20", "project_path": "my-group/my-project",
            "user_id": "1", "user_login": "sample-user", "user_email": "sample-user@example.com", "user_access_level": "owner",
            "pipeline_id": "574", "pipeline_source": "push", "job_id": "302", "ref": "v1", "ref_type": "tag",
            "ref_path": "refs/tags/v1", "ref_protected": "true", "groups_direct": ["my-group"],
            "environment": "production", "environment_protected": "false", "deployment_tier": "production",
            "deployment_action": "start", "runner_id": 1, "runner_environment": "self-hosted",
            "sha": "714a629c0b401fdce83e847fc9589983fc6f46bc", "project_visibility": "public",
            "ci_config_ref_uri": format!("{host}/my-group/my-project//.gitlab-ci.yml@refs/tags/v1"),
            "ci_config_sha": "714a629c0b401fdce83e847fc9589983fc6f46bc", "jti": unique(), "iss": self.issuer.url,
            "iat": now(), "nbf": now() - 5, "exp": now() + 3600, "sub": "project_path:my-group/my-project:ref_type:tag:ref:v1",
            "aud": self.audience(),
        })
    }

    /// The claims of [`World::github`], changed by these.
    fn github_but(&self, others: &Value) -> Value {
        let mut claims = self.github();
        for (name, value) in others.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    }

    /// Requests a token as uv does.
    fn mint(&self, id_token: &str) -> Response {
        mint(&self.server, id_token)
    }

    fn client_as(&self, user: &str, secret: &str) -> Client {
        self.server.anonymous().basic(user, secret)
    }

    /// Requests a token by RFC 8693.
    fn exchange(&self, id_token: &str, repository: &str, more: &[(&str, &str)]) -> Response {
        let resource = format!("{}/repositories/{repository}", self.server.base_url());
        let mut fields = vec![
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("subject_token", id_token),
            ("subject_token_type", "urn:ietf:params:oauth:token-type:jwt"),
            ("resource", resource.as_str()),
        ];
        for (name, value) in more {
            fields.retain(|(known, _)| known != name);
            fields.push((*name, *value));
        }
        let escaped =
            |text: &str| text.replace('%', "%25").replace(':', "%3A").replace('/', "%2F").replace('+', "%2B");
        let pairs = fields.iter().filter(|(_, value)| !value.is_empty());
        let form: Vec<String> = pairs.map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        let request = Request::new("POST", "/v1/token-exchange")
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(form.join("&"));
        Client::new(self.server.api()).send(request)
    }

    /// Audit events with this action, the latest first.
    fn events(&self, action: &str) -> Vec<Value> {
        let answer = self.api.call("GET", &format!("/v1/audit-events?action={action}")).expect(200).json();
        answer["items"].as_array().unwrap().clone()
    }
}

/// Requests a token from a server as uv does.
fn mint(server: &Server, id_token: &str) -> Response {
    let request = Request::new("POST", "/_/oidc/mint-token").header("Content-Type", "application/json");
    server.anonymous().send(request.body(json!({"token": id_token}).to_string()))
}
