//! Secrets, which the program must never write down. The test sends planted secrets through every
//! interface while the server logs as much as possible. It then searches for the secrets in the
//! log, the database, the metrics and every error body.

#[allow(dead_code, reason = "shared with the tests of sign-in by a provider")]
use crate::sso::browser;
mod formats;
#[allow(dead_code, reason = "shared with the tests of sign-in by a provider")]
use crate::sso::provider;

use browser::{Browser, query};
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::smtp::Sink;
use packhouse_tests::{Api, Client, Request, Response, Server, database};
use provider::{CLIENT, Provider, SECRET, Twist, User};
use serde_json::{Value, json};

/// Log settings for everything except the compiler's own messages, which are hundreds of megabytes.
const ALL: &str =
    "trace,cranelift_codegen=off,cranelift_frontend=off,wasmtime_internal_cranelift=off,regalloc2=off";
const SEALING_KEY: &str = "planted-sealing-key-0123456789";
const SMTP_PASSWORD: &str = "planted-smtp-password";
const FILE: &str = "/repositories/planted/org/example/a/1.0/a-1.0.jar";

/// The planted secrets with their descriptions, and the texts of all error responses.
#[derive(Default)]
struct Planted {
    secrets: Vec<(String, String)>,
    errors: Vec<String>,
}

impl Planted {
    fn plant(&mut self, what: &str, secret: impl Into<String>) -> String {
        let secret = secret.into();
        assert!(secret.len() >= 8, "{what}: {secret:?} is too short to be looked for");
        self.secrets.push((what.to_owned(), secret.clone()));
        secret
    }

    /// Records an error response. Panics if the response is not an error.
    #[track_caller]
    fn error(&mut self, answer: Response) {
        assert!(answer.status >= 400, "{} is not an error: {}", answer.status, answer.text());
        self.errors.push(format!("{:?}\n{}", answer.headers, answer.text()));
    }
}

fn post(client: &Client, path: &str, body: &Value) -> Response {
    client.send(Request::new("POST", path).header("Content-Type", "application/json").body(body.to_string()))
}

/// Uses sessions, confirmations, tokens and members, and provokes their errors.
fn accounts(server: &Server, planted: &mut Planted) {
    let (client, packages) = (Client::new(server.api()), server.anonymous());
    let sign_in = |password: &str| json!({"email": OWNER, "password": password});
    let wrong = planted.plant("a wrong password", "planted-wrong-password");
    planted.error(post(&client, "/v1/sessions", &sign_in(&wrong)));
    let odd = planted.plant("a password of a wrong type", "planted-in-a-list");
    planted.error(post(&client, "/v1/sessions", &json!({"email": OWNER, "password": [odd]})));
    let field = planted.plant("a password in a wrong place", "planted-as-a-field");
    planted.error(post(
        &client,
        "/v1/sessions",
        &json!({"email": field.clone() + "@example.com", "password": "x"}),
    ));
    let malformed = planted.plant("a password in invalid JSON", "planted-in-no-json");
    let broken = Request::new("POST", "/v1/sessions").header("Content-Type", "application/json");
    planted.error(client.send(broken.body(format!("{{\"password\": \"{malformed}"))));
    planted.plant("the owner's password", PASSWORD);

    let session = post(&client, "/v1/sessions", &sign_in(PASSWORD)).expect(201).field("session");
    planted.plant("a session", &session);
    let owner = client.clone().with("Authorization", &format!("Bearer {session}"));
    let confirm = |planted: &mut Planted, action: &str| {
        let body = json!({"action": action, "password": PASSWORD});
        let token = post(&owner, "/v1/confirmations", &body).expect(201).field("confirmation_token");
        planted.plant("a confirmation", token)
    };
    let repository = json!({"name": "planted", "format": "maven", "kind": "hosted"});
    let id = post(&owner, "/v1/repositories", &repository).expect(201).field("id");
    let token = |confirmation: &str| {
        json!({"name": "planted", "scope": ["read", "write"], "format": "generic",
        "repositories": [id], "expires_at": null, "confirmation_token": confirmation})
    };
    let unspent = confirm(planted, "rotate_token");
    planted.error(post(&owner, "/v1/tokens", &token(&unspent)));
    let confirmation = confirm(planted, "create_token");
    let made = post(&owner, "/v1/tokens", &token(&confirmation)).expect(201);
    let secret = planted.plant("a token", made.field("secret"));
    planted.error(post(&owner, "/v1/tokens", &token(&confirmation)));
    let path = format!("/v1/tokens/{}/rotation", made.field("id"));
    let rotation = json!({"confirmation_token": confirm(planted, "rotate_token")});
    let next = post(&owner, &path, &rotation).expect(201).field("secret");
    planted.plant("a token that was rotated", &next);

    let basic = |secret: &str| packages.clone().basic(OWNER, secret);
    for sent in [&secret, PASSWORD] {
        planted.plant(
            "a Basic credential",
            packhouse_tests::http::basic(OWNER, sent)["Basic ".len()..].to_owned(),
        );
    }
    basic(&secret).put(FILE, "hello").expect(201);
    basic(PASSWORD).get(FILE).expect(200);
    planted.error(basic(&secret).put(FILE, "hello"));
    let unknown = planted.plant("an unknown token", "pkh_planted-unknown-token");
    planted.error(basic(&unknown).get(FILE));
    planted.error(packages.clone().with("Authorization", &format!("Bearer {unknown}")).get(FILE));
    planted.error(packages.clone().with("Authorization", &format!("Odd {unknown}")).get(FILE));
    planted.error(basic(&wrong).get(FILE));
    let cookie = planted.plant("a cookie for the wrong host", "planted-cookie");
    planted.error(packages.clone().with("Cookie", &format!("packhouse_session={cookie}")).get(FILE));

    let invited = json!({"email": "new@example.com", "permissions": {"repositories": []}});
    let code =
        planted.plant("an invitation", post(&owner, "/v1/invitations", &invited).expect(201).field("code"));
    let theirs = planted.plant("a member's password", "planted-password-of-a-member");
    let accept = format!("/v1/invitations/{code}/accept");
    let member = post(&client, &accept, &json!({"password": theirs})).expect(201).field("id");
    planted.error(post(&client, &accept, &json!({"password": theirs})));
    let confirmed = json!({"confirmation_token": confirm(planted, "manage_members")});
    let reset = post(&owner, &format!("/v1/members/{member}/password-reset"), &confirmed).expect(201);
    let code = planted.plant("a password reset", reset.field("reset_code"));
    let changed = planted.plant("a changed password", "planted-changed-password");
    let complete = format!("/v1/password-resets/{code}");
    post(&client, &complete, &json!({"password": changed})).expect(204);
    planted.error(post(&client, &complete, &json!({"password": changed})));

    let credentials = json!({"email": OWNER, "password": PASSWORD, "cookie": true});
    let answer = post(&client, "/v1/sessions", &credentials).expect(201);
    let csrf = planted.plant("a CSRF token", answer.field("csrf_token"));
    let set = answer.header("set-cookie").unwrap();
    let cookie = set.split(';').next().unwrap().to_owned();
    planted.plant("a session in a cookie", cookie.split_once('=').unwrap().1);
    let browser = client.with("Cookie", &cookie);
    planted.error(
        browser
            .clone()
            .with("X-CSRF-Token", &format!("{csrf}x"))
            .send(Request::new("DELETE", "/v1/sessions/current")),
    );
    browser.with("X-CSRF-Token", &csrf).send(Request::new("DELETE", "/v1/sessions/current")).expect(204);
}

/// Signs in by a provider, with and without success.
fn provider(server: &Server, planted: &mut Planted) {
    let (api, provider) = (Api::sign_in(server), Provider::start());
    planted.plant("the client's secret", SECRET);
    let put = |body: &Value| {
        let request = Request::new("PUT", "/v1/sso").header("Content-Type", "application/json");
        api.request(request.body(body.to_string()))
    };
    let settings = json!({"issuer": provider.issuer, "client_id": CLIENT, "client_secret": SECRET,
        "email_domains": ["example.com"], "permissions": {}});
    put(&settings).expect(200);
    let mut wrong = settings.clone();
    wrong["client_secret"] = json!(planted.plant("an invalid client secret", "planted secret with spaces"));
    planted.error(put(&wrong));
    let user = User { subject: "planted".to_owned(), email: "planted@example.com".to_owned() };
    for twist in [Twist::AnotherKey, Twist::Nonce, Twist::Nonsense, Twist::UserinfoOfAnother, Twist::NoEmail]
    {
        provider.twist(twist);
        let mut browser = Browser::default();
        let there = browser.get(&format!("http://{}/v1/sso/start", server.api())).expect(303);
        let parameters = query(there.header("location").unwrap());
        for name in ["state", "nonce"] {
            planted.plant(name, &parameters[name]);
        }
        planted.plant("a sign-in's cookie", browser.cookie(server.api(), "packhouse_sso").unwrap());
        let code = planted.plant("a code", provider.sign_in(&parameters, &user));
        let back =
            format!("http://{}/v1/sso/callback?code={code}&state={}", server.api(), parameters["state"]);
        let answer = browser.get(&back);
        if twist == Twist::NoEmail {
            planted
                .plant("a session by a provider", browser.cookie(server.api(), "packhouse_session").unwrap());
            planted.plant("its CSRF token", answer.expect(201).field("csrf_token"));
        } else {
            planted.error(answer);
        }
    }
    for secret in provider.issued_secrets() {
        planted.plant("a secret issued by the provider", secret);
    }
    let parameters = json!({"action": "create_token", "sso": true});
    let url = api.post("/v1/confirmations", &parameters).expect(202).field("sign_in_url");
    planted.plant("a ticket", url.split_once("ticket=").unwrap().1);
    Browser::default().get(&url).expect(303);
}

#[test]
fn no_planted_secret_is_found_anywhere() {
    let sink = Sink::start();
    let server = Server::with()
        .env("PACKHOUSE_LOG", ALL)
        .env("PACKHOUSE_SEALING_KEY", SEALING_KEY)
        .env("PACKHOUSE_SMTP_URL", &sink.url(SMTP_PASSWORD))
        .env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*")
        .start();
    let mut planted = Planted::default();
    planted.plant("the sealing key", SEALING_KEY);
    planted.plant("the mail server's password", SMTP_PASSWORD);
    accounts(&server, &mut planted);
    provider(&server, &mut planted);
    formats::plant(&server, &mut planted);
    assert!(sink.letters().len() >= 2, "mails were sent");

    let log = server.log();
    assert!(log.contains("TRACE") && log.len() > 100_000, "the log is at its most verbose level");
    let metrics = Client::new(server.api()).get("/metrics").expect(200).text();
    let dump = database::sqlite(&server, ".dump");
    assert!(dump.contains("sso_settings") && dump.contains("planted@example.com"));
    let mut files = Vec::new();
    for name in ["packhouse.db", "packhouse.db-wal"] {
        files.extend(std::fs::read(server.data().join(name)).unwrap_or_default());
    }
    assert!(files.len() > 10_000, "the database was not found");
    let errors = planted.errors.join("\n");
    assert!(planted.errors.len() >= 45 && planted.secrets.len() >= 70);
    for (what, secret) in &planted.secrets {
        for (place, text) in [("log", &log), ("metrics", &metrics), ("dump", &dump), ("errors", &errors)] {
            if let Some(at) = text.find(secret.as_str()) {
                let from = text[..at].rfind('\n').map_or(0, |line| line + 1);
                let line: String =
                    text[from..].lines().next().unwrap_or_default().chars().take(600).collect();
                panic!("{what} stands in the {place}: {line}");
            }
        }
        let found = files.windows(secret.len()).any(|bytes| bytes == secret.as_bytes());
        assert!(!found, "{what} stands in the database's file");
    }
}
