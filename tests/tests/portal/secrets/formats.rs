//! The credentials of package clients and of upstreams: access keys, npm sign-in, bearers of the
//! token service, and a proxy's credentials for its upstream.

use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Client, Request, Server, http};
use serde_json::{Value, json};

use super::Planted;

/// Plants each of these credentials as a secret.
pub(super) fn plant(server: &Server, planted: &mut Planted) {
    let api = Api::sign_in(server);
    planted.plant("a session", &api.session);
    access_keys(server, &api, planted);
    sign_in(server, &api, planted);
    bearers(server, &api, planted);
    upstreams(server, &api, planted);
}

/// Returns a new confirmation token and plants it as a secret.
fn confirm(api: &Api, planted: &mut Planted, action: &str) -> String {
    planted.plant("a confirmation", api.confirm(action))
}

fn create(api: &Api, name: &str, format: &str) -> String {
    let body = json!({"name": name, "format": format, "kind": "hosted"});
    api.post("/v1/repositories", &body).expect(201).field("id")
}

fn bearer(server: &Server, secret: &str) -> Client {
    server.anonymous().with("Authorization", &format!("Bearer {secret}"))
}

/// Returns the header value of a Basic credential and plants it as a secret.
fn basic(planted: &mut Planted, username: &str, secret: &str) -> String {
    let header = http::basic(username, secret);
    planted.plant("a Basic credential", &header["Basic ".len()..]);
    header
}

fn access_keys(server: &Server, api: &Api, planted: &mut Planted) {
    let repository = create(api, "keyed", "maven");
    let subscriber = json!({"name": "planted", "repositories": [repository]});
    let id = api.post("/v1/subscribers", &subscriber).expect(201).field("id");
    let keys = format!("/v1/subscribers/{id}/access-keys");
    let mut body =
        json!({"expires_at": null, "confirmation_token": confirm(api, planted, "manage_access_keys")});
    let made = api.post(&keys, &body).expect(201);
    let secret = planted.plant("an access key", made.field("secret"));
    planted.error(api.post(&keys, &body));
    let rotation = format!("{keys}/{}/rotation", made.field("id"));
    body = json!({"confirmation_token": confirm(api, planted, "manage_access_keys")});
    let next = planted
        .plant("an access key that was rotated", api.post(&rotation, &body).expect(201).field("secret"));
    let file = "/repositories/keyed/org/example/a/1.0/a-1.0.jar";
    for sent in [&secret, &next] {
        let header = basic(planted, "whoever", sent);
        let client = server.anonymous().with("Authorization", &header);
        planted.error(client.get(file));
        planted.error(client.put(file, "x"));
        planted.error(bearer(server, sent).put(file, "x"));
    }
}

/// Signs in as npm does with a browser. npm then uses the token as `_authToken`.
fn sign_in(server: &Server, api: &Api, planted: &mut Planted) {
    create(api, "js", "npm");
    let json = |path: &str, body: &Value| {
        Request::new("POST", path).header("Content-Type", "application/json").body(body.to_string())
    };
    let begun = server.anonymous().send(json("/repositories/js/-/v1/login", &json!({}))).expect(200);
    let (page, done) = (begun.field("loginUrl"), begun.field("doneUrl"));
    let last = |url: &str| url.rsplit(['/', '=']).next().unwrap().to_owned();
    planted.plant("the secret that fetches the token of a sign-in", last(&done));
    let done = done.strip_prefix(&server.base_url()).expect("the path is on the packages' host").to_owned();
    let finish = format!("/v1/npm-logins/{}/finish", last(&page));
    let wrong = json!({"confirmation_token": confirm(api, planted, "create_token")});
    planted.error(api.post(&finish, &wrong));
    let right = json!({"confirmation_token": confirm(api, planted, "finish_npm_login")});
    api.post(&finish, &right).expect(200);
    planted.error(api.post(&finish, &right));
    let token = server.anonymous().get(&done).expect(200).field("token");
    planted.plant("a token of a sign-in", &token);
    planted.error(server.anonymous().get(&done));
    bearer(server, &token).get("/repositories/js/-/whoami").expect(200);
    planted.error(bearer(server, &token).get("/repositories/js/nothing"));
    planted.error(bearer(server, &token).get(&format!("/repositories/js/{token}")));
    let legacy =
        json!({"name": OWNER, "password": planted.plant("a legacy password", "planted-legacy-password")});
    let path = format!("/repositories/js/-/user/org.couchdb.user:{OWNER}");
    let request = Request::new("PUT", &path).header("Content-Type", "application/json");
    planted.error(server.anonymous().send(request.body(legacy.to_string())));
}

/// Requests bearers from the token service in both ways, and sends the bearers whole and truncated.
fn bearers(server: &Server, api: &Api, planted: &mut Planted) {
    let repository = create(api, "images", "docker");
    let token = api.create_token(&[&repository], &["read"], None).secret;
    planted.plant("a token of images", &token);
    let token_request = "/v2/token?service=x&scope=repository:repositories/images/app:pull,push";
    let header = basic(planted, OWNER, &token);
    let client = server.anonymous().with("Authorization", &header);
    let given = planted.plant("a bearer", client.get(token_request).expect(200).field("token"));
    let form = format!("grant_type=password&service=x&username=planted&password={token}");
    let post = |form: &str| {
        let request = Request::new("POST", "/v2/token");
        server
            .anonymous()
            .send(request.header("Content-Type", "application/x-www-form-urlencoded").body(form))
    };
    planted.plant("a bearer from a form request", post(&form).expect(200).field("access_token"));
    planted.error(post(&form.replace("grant_type=password", "grant_type=refresh_token")));
    let wrong = planted.plant("a wrong password in a form", "planted-wrong-in-a-form");
    planted.error(post(&form.replace(&token, &wrong)));
    let cut = planted.plant("a truncated bearer", &given[..given.len() - 9]);
    for sent in [&given, &cut] {
        planted.error(bearer(server, sent).get("/v2/repositories/images/app/manifests/1"));
        let push = Request::new("POST", "/v2/repositories/images/app/blobs/uploads/");
        planted.error(bearer(server, sent).send(push));
    }
    let by_session =
        Request::new("GET", token_request).header("Authorization", &format!("Bearer {}", api.session));
    server.anonymous().send(by_session);
}

/// Sets credentials that an upstream accepts directly (Basic) or through its token service. Also
/// sends secrets in fields that must not contain secrets.
fn upstreams(server: &Server, api: &Api, planted: &mut Planted) {
    for (name, challenge) in
        [("by-basic", "Basic realm=\"planted\""), ("by-token", "Bearer realm=\"URL/token\"")]
    {
        let upstream = Upstream::start();
        let manifest = "/v2/library/app/manifests/1";
        let challenge = challenge.replace("URL", &upstream.url());
        upstream.on(manifest, Answer::new(401, "").header("WWW-Authenticate", &challenge));
        let given = planted.plant("a token of an upstream", format!("planted-token-of-the-upstream-{name}"));
        let answer = json!({"token": given, "expires_in": 300}).to_string();
        upstream.on("/token", Answer::ok(answer));
        let id = api.create_proxy(name, "docker", &upstream.url(), &json!({}));
        let path = format!("/v1/repositories/{id}/upstream-credentials");
        let password =
            planted.plant("an upstream's password", format!("planted-password-of-the-upstream-{name}"));
        let mut body = json!({"username": "robot", "password": password, "confirmation_token": "planted-no-confirmation"});
        planted.error(api.send("PUT", &path, &body));
        let confirmation = confirm(api, planted, "set_upstream_credentials");
        body["confirmation_token"] = json!(confirmation);
        api.send("PUT", &path, &body).expect(204);
        body["username"] = json!("ro:bot");
        planted.error(api.send("PUT", &path, &body));
        let header = basic(planted, "robot", &password);
        let reader = server.anonymous().with("Authorization", &http::basic(OWNER, PASSWORD));
        planted.error(reader.get(&format!("/v2/repositories/{name}/library/app/manifests/1")));
        let requests = upstream.requests();
        let received =
            |expected: &str| requests.iter().any(|request| request.header("authorization") == Some(expected));
        assert!(received(&header), "{name}: the upstream received no password: {requests:?}");
        assert!(name == "by-basic" || received(&format!("Bearer {given}")), "{name}: no token: {requests:?}");
    }
    for (field, what) in [("upstream", "an upstream's address"), ("egress_proxy", "a proxy's address")] {
        let secret = planted.plant(what, format!("planted-in-{field}"));
        let url = format!("http://robot:{secret}@127.0.0.1:9/");
        let mut body = json!({"name": "odd", "format": "maven", "kind": "proxy",
            "upstream": {"url": "http://127.0.0.1:9/"}, "settings": {}});
        match field {
            "upstream" => body["upstream"]["url"] = json!(url),
            _ => body["settings"][field] = json!(url),
        }
        planted.error(api.post("/v1/repositories", &body));
    }
}
