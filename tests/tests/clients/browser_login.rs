//! A package client's sign-in through a browser: the client's requests, the person's page and
//! decision, and the resulting token. Also tests signatures by the host's key, and npm's token
//! commands.

use packhouse_tests::person::{Person, form};
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, Request, Response, Server, database};
use serde_json::{Value, json};

struct Login {
    server: Server,
    api: Api,
    repository: String,
    page: String,
    done: String,
}

impl Login {
    fn begin() -> Self {
        let server = Server::start();
        let api = Api::sign_in(&server);
        let body = json!({"name": "js", "format": "npm", "kind": "hosted"});
        let repository = api.post("/v1/repositories", &body).expect(201).field("id");
        let (page, done) = begin(&server);
        Self { server, api, repository, page, done }
    }

    fn id(&self) -> &str {
        self.page.rsplit('/').next().unwrap()
    }

    fn poll(&self) -> Response {
        self.server.anonymous().get(&self.done)
    }

    fn finish(&self, body: &mut Value) -> Response {
        body["confirmation_token"] = json!(self.api.confirm("finish_npm_login"));
        self.api.post(&format!("/v1/npm-logins/{}/finish", self.id()), body)
    }
}

/// Begins a sign-in as a client does. Returns the URL paths of the person's page and of the
/// client's polling.
fn begin(server: &Server) -> (String, String) {
    let request =
        Request::new("POST", "/repositories/js/-/v1/login").header("Content-Type", "application/json");
    let answer = server.anonymous().send(request.body("{}")).expect(200);
    let path = |field: &str, host: &str| {
        let url = answer.field(field);
        url.strip_prefix(&format!("http://{host}"))
            .unwrap_or_else(|| panic!("{url} is not on {host}"))
            .to_owned()
    };
    (path("loginUrl", &server.api().to_string()), path("doneUrl", &server.packages().to_string()))
}

#[test]
fn a_sign_in_makes_a_token_that_is_fetched_once() {
    let login = Login::begin();
    let waiting = login.poll().expect(202);
    assert!(waiting.header("retry-after").is_some());
    let offered = login.api.call("GET", &format!("/v1/npm-logins/{}", login.id())).expect(200).json();
    assert_eq!((&offered["repository"], &offered["name"]), (&json!(login.repository), &json!("js")));
    assert_eq!(offered["scope"], json!(["read", "write"]));
    assert!(offered["expires_at"].as_u64().unwrap() > 0);

    // Only a confirmed request finishes the sign-in, and only once.
    let path = format!("/v1/npm-logins/{}/finish", login.id());
    assert_eq!(login.api.post(&path, &json!({})).expect(401).field("error"), "step_up_required");
    let wrong = json!({"confirmation_token": login.api.confirm("create_token")});
    assert_eq!(login.api.post(&path, &wrong).expect(401).field("error"), "step_up_required");
    assert_eq!(login.finish(&mut json!({"expires_at": 5})).expect(400).field("error"), "expires_at_in_past");
    login.poll().expect(202);
    let finished = login.finish(&mut json!({})).expect(200).json();
    assert!(finished["expires_at"].as_u64().unwrap() > 0, "{finished}");
    assert_eq!(login.finish(&mut json!({})).expect(409).field("error"), "already_finished");

    // The id that opens the page cannot fetch the token.
    login.server.anonymous().get(&format!("/repositories/js/-/v1/login/{}", login.id())).expect(404);
    let token = login.poll().expect(200).field("token");
    assert!(token.starts_with("pkh_"), "{token}");
    login.poll().expect(404);
    let bearer = login.server.anonymous().with("Authorization", &format!("Bearer {token}"));
    assert_eq!(bearer.get("/repositories/js/-/whoami").expect(200).field("username"), OWNER);
    let dump = database::sqlite(&login.server, ".dump");
    assert!(!dump.contains(&token) && !login.server.log().contains(&token));

    // The requests of the client's token commands; their paths contain a token id.
    let listed = bearer.get("/repositories/js/-/npm/v1/tokens").expect(200).json();
    let keys: Vec<&str> =
        listed["objects"].as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap()).collect();
    assert_eq!(keys, [finished["id"].as_str().unwrap()]);
    let log_out = Request::new("DELETE", &format!("/repositories/js/-/user/token/{token}"));
    bearer.send(log_out).expect(200);
    bearer.get("/repositories/js/-/whoami").expect(404);
    assert!(!login.server.log().contains(&token), "a token is in the log");
}

#[test]
fn a_sign_in_grants_only_the_persons_own_rights() {
    let login = Login::begin();
    let permissions =
        json!({"organization": [], "repositories": [{"repository": login.repository, "actions": ["read"]}]});
    let member = json!({"email": "reader@example.com", "password": PASSWORD, "permissions": permissions});
    login.api.post("/v1/members", &member).expect(201);
    let outsider = json!({"email": "stranger@example.com", "password": PASSWORD,
        "permissions": {"organization": [], "repositories": []}});
    login.api.post("/v1/members", &outsider).expect(201);
    let show = |email: &str| {
        let client = Client::new(login.server.api());
        let body = json!({"email": email, "password": PASSWORD}).to_string();
        let request =
            Request::new("POST", "/v1/sessions").header("Content-Type", "application/json").body(body);
        let session = client.send(request).expect(201).field("session");
        client
            .with("Authorization", &format!("Bearer {session}"))
            .get(&format!("/v1/npm-logins/{}", login.id()))
    };
    assert_eq!(show("reader@example.com").expect(200).json()["scope"], json!(["read"]));
    assert_eq!(show("stranger@example.com").expect(403).field("error"), "repo_access_denied");
    assert_eq!(login.api.call("GET", "/v1/npm-logins/unknown").expect(404).field("error"), "not_found");
    database::sqlite(&login.server, "update logins set expires_at = 1");
    assert_eq!(login.finish(&mut json!({})).expect(404).field("error"), "not_found");
    login.poll().expect(404);
}

#[test]
fn too_many_open_sign_ins_are_refused() {
    let login = Login::begin();
    for _ in 0..19 {
        begin(&login.server);
    }
    let request =
        Request::new("POST", "/repositories/js/-/v1/login").header("Content-Type", "application/json");
    let refused = login.server.anonymous().send(request.body("{}")).expect(429);
    assert_eq!(refused.field("error"), "too_many_attempts");
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=300).contains(&wait), "{wait} s");
    assert!(!login.server.log().contains("plugin call failed"), "an unauthenticated client fills the log");
    // A finished sign-in is no longer open.
    login.finish(&mut json!({})).expect(200);
    begin(&login.server);
}

/// A client that opens very many sign-ins does not prevent others from signing in: the server drops
/// the oldest open sign-ins.
#[test]
fn the_oldest_open_sign_ins_make_room() {
    let login = Login::begin();
    let (page, done) = begin(&login.server);
    let finished = login.finish(&mut json!({})).expect(200).json();
    assert!(finished["id"].is_string());
    // The database gets sign-ins as if from 2,000 addresses, all newer than the first.
    let others = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000) \
                  insert into logins select cast('poll' || i as blob), cast('page' || i as blob), organization, repository, name, \
                  'address ' || i, null, null, created_at + 1, expires_at from n, (select * from logins where token is null)";
    database::sqlite(&login.server, others);
    let (_, newest) = begin(&login.server);
    let poll = |path: &str| login.server.anonymous().get(path).status;
    assert_eq!(poll(&newest), 202);
    assert_eq!(poll(&done), 404, "the oldest is still there");
    let path = format!("/v1/npm-logins/{}", page.rsplit('/').next().unwrap());
    assert_eq!(login.api.call("GET", &path).expect(404).field("error"), "not_found");
    assert_eq!(login.poll().status, 200, "a finished sign-in can be fetched, however old it is");
    let open = database::sqlite(&login.server, "select count(*) from logins where token is null");
    assert_eq!(open.trim(), "2000");
}

#[test]
fn the_page_works_without_a_script() {
    let login = Login::begin();
    let mut person = Person::new(&login.server);
    let away = person.get(&login.page).expect(303);
    let away = away.header("location").unwrap().to_owned();
    assert_eq!(away, format!("/sign-in?return_to={}", login.page.replace('/', "%2F")));
    let away_page = person.get(&away).expect(200);
    let policies = away_page.headers.iter().filter(|(name, _)| name == "content-security-policy");
    assert_eq!(policies.count(), 1, "a browser enforces all policies, so there must be only one");
    assert!(!away_page.text().contains(">js<"), "an unauthenticated client learns the repository");
    let right = [("email", OWNER), ("password", PASSWORD), ("return_to", login.page.as_str())];
    let csrf = person.csrf(&away);
    let elsewhere = form("/sign-in", &[&[("csrf", csrf.as_str())], &right[..]].concat());
    person.send(elsewhere.header("Sec-Fetch-Site", "cross-site")).expect(403);
    let signed_in = person.send_form("/sign-in", &right).expect(303);
    assert_eq!(signed_in.header("location"), Some(login.page.as_str()));
    let cookie = signed_in.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");

    let page_text = person.get(&login.page).expect(200).text();
    for words in ["<dd>js</dd>", "<dd>read, publish and delete packages</dd>", OWNER, "90 days"] {
        assert!(page_text.contains(words), "{words} in {page_text}");
    }
    let csrf = person.csrf(&login.page);
    let mut post = |csrf: &str, days: &str, password: &str| {
        person.post(&login.page, &[("csrf", csrf), ("days", days), ("password", password)])
    };
    post("forged", "90", PASSWORD).expect(403);
    post(&csrf, "90", "wrong").expect(401);
    post(&csrf, "9999", PASSWORD).expect(400);
    login.poll().expect(202);
    let done = post(&csrf, "30", PASSWORD);
    assert_eq!(done.status, 200, "{}", done.text());
    assert!(done.text().contains("role=\"status\""), "{}", done.text());
    assert!(login.poll().expect(200).field("token").starts_with("pkh_"));
    person.get(&login.page).expect(409);
    person.get("/npm-login/unknown").expect(404);
}

#[test]
fn published_packages_are_signed_by_the_hosts_key() {
    let login = Login::begin();
    let token = login.api.create_token(&[&login.repository], &["read"], None);
    let client = login.server.anonymous().with("Authorization", &format!("Bearer {}", token.secret));
    let keys = client.get("/repositories/js/-/npm/v1/keys").expect(200).json();
    let key = &keys["keys"][0];
    assert_eq!(key["keytype"], "ecdsa-sha2-nistp256");
    assert!(key["keyid"].as_str().unwrap().starts_with("SHA256:"), "{key}");
    assert_eq!(client.get("/repositories/js/-/npm/v1/keys").json(), keys, "the key stays the same");
}
