//! Second factors: a code follows the password at sign-ins and confirmations, each code counts
//! once, and guesses are delayed. An organization can require a second factor.

use packhouse_tests::cli::packhouse;
use packhouse_tests::race::at_once;
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::totp::{Authenticator, secret_of, wrong_code};
use packhouse_tests::{Api, Client, MavenRepository, Request, Response, Server};
use serde_json::{Value, json};

const DEV: &str = "dev@example.com";
const FILE: &str = "org/example/a/1.0/a-1.0.jar";

fn start(app: &Authenticator) -> Server {
    Server::with().clock(app.clock()).start()
}

#[track_caller]
fn is(answer: &Response, status: u16, code: &str) {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.field("error"), code, "{}", answer.text());
}

/// Creates a member with PASSWORD as the owner, and returns its id.
#[track_caller]
fn member(owner: &Api, email: &str, organization: &[&str]) -> String {
    let read = json!({"repository": "*", "actions": ["read"]});
    let permissions = json!({"organization": organization, "repositories": [read]});
    let new = json!({"email": email, "password": PASSWORD, "permissions": permissions});
    owner.post("/v1/members", &new).expect(201).field("id")
}

/// Sets up a second factor; returns its secret and its recovery codes.
#[track_caller]
fn set_up(api: &Api, app: &Authenticator) -> (String, Vec<String>) {
    let secret = secret_of(&api.call("POST", "/v1/me/totp").expect(201).field("otpauth_url"));
    let code = json!({"code": app.next_code(&secret)});
    let confirmed = api.post("/v1/me/totp/confirm", &code).expect(200).json();
    let codes = confirmed["recovery_codes"].as_array().unwrap();
    (secret, codes.iter().map(|code| code.as_str().unwrap().to_owned()).collect())
}

/// Signs in with this code, or without one.
#[track_caller]
fn sign_in(server: &Server, email: &str, password: &str, code: Option<&str>) -> Response {
    let mut body = json!({"email": email, "password": password});
    if let Some(code) = code {
        body["code"] = json!(code);
    }
    let request = Request::new("POST", "/v1/sessions").header("Content-Type", "application/json");
    Client::new(server.api()).send(request.body(body.to_string()))
}

#[test]
fn a_confirmed_second_factor_is_needed_to_sign_in() {
    let app = Authenticator::new();
    let server = start(&app);
    let api = Api::sign_in(&server);
    let begun = api.call("POST", "/v1/me/totp").expect(201).json();
    let secret = begun["secret"].as_str().unwrap();
    let url = begun["otpauth_url"].as_str().unwrap();
    assert_eq!(secret_of(url), secret);
    assert!(url.starts_with("otpauth://totp/") && url.contains("owner%40example.com"), "{url}");
    sign_in(&server, OWNER, PASSWORD, None).expect(201);
    let confirm = |code: &str| api.post("/v1/me/totp/confirm", &json!({"code": code}));
    is(&confirm(&wrong_code(&app, secret)), 400, "invalid_code");
    is(&confirm("no code"), 400, "invalid_code");
    let codes = confirm(&app.next_code(secret)).expect(200).json();
    assert_eq!(codes["recovery_codes"].as_array().unwrap().len(), 10);
    is(&confirm(&app.next_code(secret)), 409, "second_factor_already_set_up");
    is(&api.call("POST", "/v1/me/totp"), 409, "second_factor_already_set_up");
    let state = api.call("GET", "/v1/me/totp").expect(200).json();
    assert_eq!((&state["state"], &state["recovery_codes"]), (&json!("confirmed"), &json!(10)));

    let code = app.next_code(secret);
    is(&sign_in(&server, OWNER, PASSWORD, None), 401, "second_factor_required");
    // A wrong password is refused as before, and uses up no code.
    for code in [None, Some(code.as_str())] {
        is(&sign_in(&server, OWNER, "a wrong password", code), 401, "invalid_credentials");
        is(&sign_in(&server, "nobody@example.com", PASSWORD, code), 401, "invalid_credentials");
    }
    is(&sign_in(&server, OWNER, PASSWORD, Some(&wrong_code(&app, secret))), 401, "invalid_credentials");
    sign_in(&server, OWNER, PASSWORD, Some(&code)).expect(201);
    is(&sign_in(&server, OWNER, PASSWORD, Some(&code)), 401, "invalid_credentials");

    let events = api.call("GET", "/v1/audit-events?limit=200").expect(200).text();
    assert!(events.contains("set_up_second_factor"), "{events}");
    assert!(!events.contains(secret), "the log has the secret");
}

#[test]
fn a_code_of_the_steps_around_the_present_one_is_accepted_once() {
    let app = Authenticator::new();
    let server = start(&app);
    let (secret, _) = set_up(&Api::sign_in(&server), &app);
    app.next_code(&secret);
    app.next_code(&secret);
    let [before, now, after] = [-1, 0, 1].map(|steps| app.code(&secret, steps));
    sign_in(&server, OWNER, PASSWORD, Some(&before)).expect(201);
    sign_in(&server, OWNER, PASSWORD, Some(&after)).expect(201);
    is(&sign_in(&server, OWNER, PASSWORD, Some(&now)), 401, "invalid_credentials");
    is(&sign_in(&server, OWNER, PASSWORD, Some(&app.code(&secret, 9))), 401, "invalid_credentials");
}

#[test]
fn one_of_several_concurrent_sign_ins_with_one_code_succeeds() {
    let app = Authenticator::new();
    let server = start(&app);
    let (secret, recovery) = set_up(&Api::sign_in(&server), &app);
    for code in [app.next_code(&secret), recovery[0].clone()] {
        let answers = at_once(4, |_| sign_in(&server, OWNER, PASSWORD, Some(&code)).status);
        assert_eq!(answers.iter().filter(|status| **status == 201).count(), 1, "{answers:?}");
    }
}

#[test]
fn guesses_of_codes_are_delayed_like_guesses_of_passwords() {
    let app = Authenticator::new();
    let server = start(&app);
    let api = Api::sign_in(&server);
    let (secret, _) = set_up(&api, &app);
    let code = app.next_code(&secret);
    let guess = wrong_code(&app, &secret);
    let mut checked = 0;
    // Each wrong code makes the next delay longer. More than two seconds outlast the next requests.
    let delay = (0..100_000).find_map(|_| {
        let answer = sign_in(&server, OWNER, PASSWORD, Some(&guess));
        match answer.status {
            401 => checked += 1,
            _ => is(&answer, 429, "too_many_attempts"),
        }
        let delay = answer.header("retry-after")?.parse::<u64>().unwrap();
        (delay > 2).then_some(delay)
    });
    assert!(delay.is_some() && checked <= 8, "{checked} codes were checked");
    is(&sign_in(&server, OWNER, PASSWORD, Some(&code)), 429, "too_many_attempts");
    let confirmation = json!({"action": "create_token", "password": PASSWORD, "code": code});
    is(&api.post("/v1/confirmations", &confirmation), 429, "too_many_attempts");
}

#[test]
fn a_sign_in_to_another_organization_clears_no_wrong_codes() {
    let app = Authenticator::new();
    let server = Server::with().clock(app.clock()).arg("--base-url").arg("http://one.example").start();
    let (secret, _) = set_up(&Api::sign_in(&server), &app);
    packhouse(server.data(), &["org", "create", "second", "--base-url", "https://two.example/"], "")
        .success();
    let create = ["member", "create", "--org", "second", "--owner", "--password-stdin", OWNER];
    packhouse(server.data(), &create, "another password").success();
    let guess = wrong_code(&app, &secret);
    let answers = (0..20).map(|_| {
        sign_in(&server, OWNER, "another password", None).expect(201);
        sign_in(&server, OWNER, PASSWORD, Some(&guess)).status
    });
    let checked = answers.take_while(|status| *status == 401).count();
    assert!(checked < 20, "all codes were checked");
}

#[test]
fn each_recovery_code_signs_in_once() {
    let app = Authenticator::new();
    let server = start(&app);
    let api = Api::sign_in(&server);
    let (_, codes) = set_up(&api, &app);
    sign_in(&server, OWNER, PASSWORD, Some(&codes[0])).expect(201);
    is(&sign_in(&server, OWNER, PASSWORD, Some(&codes[0])), 401, "invalid_credentials");
    let typed = codes[1].to_lowercase().replace('-', " ");
    sign_in(&server, OWNER, PASSWORD, Some(&typed)).expect(201);
    assert_eq!(api.call("GET", "/v1/me/totp").expect(200).json()["recovery_codes"], 8);
    let events = api.call("GET", "/v1/audit-events?limit=200").expect(200).text();
    assert_eq!(events.matches("use_recovery_code").count(), 2, "{events}");
}

#[test]
fn a_confirmation_by_password_needs_a_code() {
    let app = Authenticator::new();
    let server = start(&app);
    let repository = MavenRepository::create(&server, "libs");
    let api = Api::sign_in(&server);
    let (secret, _) = set_up(&api, &app);
    let mut confirmation = json!({"action": "create_token", "password": PASSWORD});
    is(&api.post("/v1/confirmations", &confirmation), 401, "second_factor_required");
    confirmation["code"] = json!(app.next_code(&secret));
    let token = api.post("/v1/confirmations", &confirmation).expect(201).field("confirmation_token");
    is(&api.post("/v1/confirmations", &confirmation), 401, "invalid_credentials");
    let body = json!({"name": "ci", "scope": ["read"], "format": "generic", "repositories": [repository.id],
        "expires_at": null, "confirmation_token": token});
    api.post("/v1/tokens", &body).expect(201);
}

#[test]
fn a_new_password_keeps_the_second_factor() {
    let app = Authenticator::new();
    let server = start(&app);
    let owner = Api::sign_in(&server);
    let id = member(&owner, DEV, &[]);
    let dev = Api::sign_in_as(&server, DEV, PASSWORD);
    let (secret, _) = set_up(&dev, &app);
    let change = json!({"password": "another long password", "current_password": PASSWORD});
    dev.patch("/v1/me", &change).expect(200);
    is(&sign_in(&server, DEV, "another long password", None), 401, "second_factor_required");
    let reset = owner.post(&format!("/v1/members/{id}/password-reset"), &json!({})).expect(201);
    let path = format!("/v1/password-resets/{}", reset.field("reset_code"));
    owner.post(&path, &json!({"password": "a third long password"})).expect(204);
    is(&sign_in(&server, DEV, "a third long password", None), 401, "second_factor_required");
    sign_in(&server, DEV, "a third long password", Some(&app.next_code(&secret))).expect(201);
}

#[test]
fn members_remove_their_own_second_factor_with_password_and_code() {
    let app = Authenticator::new();
    let server = start(&app);
    let api = Api::sign_in(&server);
    let remove = |body: &Value| api.send("DELETE", "/v1/me/totp", body);
    is(&remove(&json!({"password": PASSWORD})), 404, "not_found");
    let (secret, _) = set_up(&api, &app);
    is(&remove(&json!({"password": PASSWORD})), 401, "second_factor_required");
    let code = app.next_code(&secret);
    is(&remove(&json!({"password": "a wrong password", "code": code})), 401, "invalid_credentials");
    remove(&json!({"password": PASSWORD, "code": code})).expect(204);
    sign_in(&server, OWNER, PASSWORD, None).expect(201);
    is(&api.post("/v1/me/totp/confirm", &json!({"code": app.next_code(&secret)})), 404, "not_found");
}

#[test]
fn a_member_without_the_required_second_factor_can_only_set_one_up() {
    let app = Authenticator::new();
    let server = start(&app);
    let repository = MavenRepository::create(&server, "libs");
    repository.put(FILE, "hello").expect(201);
    let owner = Api::sign_in(&server);
    let id = member(&owner, DEV, &["manage-members"]);
    let automation = owner.create_api_token("me", &["read"], &[]);
    let require = |required: bool| {
        let body = json!({"require_second_factor": required});
        owner.patch("/v1/organization", &body).expect(200).json()["require_second_factor"] == required
    };
    assert!(require(true));
    is(&owner.call("GET", "/v1/repositories"), 403, "second_factor_required");
    // Tokens stay valid.
    automation.client.get("/v1/repositories").expect(200);
    repository.get(FILE).expect(200);
    set_up(&owner, &app);
    owner.call("GET", "/v1/repositories").expect(200);

    let dev = Api::sign_in_as(&server, DEV, PASSWORD);
    for (method, path) in [("GET", "/v1/members"), ("GET", "/v1/sessions"), ("GET", "/v1/search?q=a")] {
        is(&dev.call(method, path), 403, "second_factor_required");
    }
    let confirmation = json!({"action": "manage_members", "password": PASSWORD});
    is(&dev.post("/v1/confirmations", &confirmation), 403, "second_factor_required");
    dev.call("GET", "/v1/me").expect(200);
    is(&dev.patch("/v1/me", &json!({"name": "Dev"})), 403, "second_factor_required");
    let by_password = || server.anonymous().basic(DEV, PASSWORD).get(&repository.path(FILE));
    let refused = by_password().expect(401);
    assert!(refused.field("message").contains("make a token"), "{}", refused.text());
    Api::sign_in_as(&server, DEV, PASSWORD).call("DELETE", "/v1/sessions/current").expect(204);
    let (secret, _) = set_up(&dev, &app);
    dev.call("GET", "/v1/members").expect(200);
    let body = json!({"password": PASSWORD, "code": app.next_code(&secret)});
    is(&dev.send("DELETE", "/v1/me/totp", &body), 409, "second_factor_required");
    let code = app.next_code(&secret);
    let confirmation = json!({"action": "manage_members", "password": PASSWORD, "code": code});
    let token = dev.post("/v1/confirmations", &confirmation).expect(201).field("confirmation_token");
    let own = Request::new("DELETE", &format!("/v1/members/{id}/totp"));
    is(&dev.request(own.header("X-Confirmation-Token", &token)), 409, "second_factor_required");

    assert!(require(false));
    let body = json!({"password": PASSWORD, "code": app.next_code(&secret)});
    dev.send("DELETE", "/v1/me/totp", &body).expect(204);
    dev.call("GET", "/v1/members").expect(200);
    by_password().expect(200);
}

#[test]
fn a_member_who_manages_members_removes_a_lost_second_factor() {
    let app = Authenticator::new();
    let server = start(&app);
    let owner = Api::sign_in(&server);
    let id = member(&owner, DEV, &[]);
    member(&owner, "admin@example.com", &["manage-members"]);
    let admin = Api::sign_in_as(&server, "admin@example.com", PASSWORD);
    set_up(&Api::sign_in_as(&server, DEV, PASSWORD), &app);
    let path = format!("/v1/members/{id}/totp");
    is(&admin.call("DELETE", &path), 403, "step_up_required");
    let remove = |api: &Api, path: &str| api.confirmed("manage_members").send(Request::new("DELETE", path));
    remove(&admin, &path).expect(204);
    sign_in(&server, DEV, PASSWORD, None).expect(201);
    is(&remove(&admin, &path), 404, "not_found");
    let all = owner.call("GET", "/v1/members").expect(200).json();
    let of_owner = all["items"].as_array().unwrap().iter().find(|one| one["email"] == OWNER).unwrap();
    let path = format!("/v1/members/{}/totp", of_owner["id"].as_str().unwrap());
    is(&remove(&admin, &path), 403, "role_mismatch");
    let dev = Api::sign_in_as(&server, DEV, PASSWORD);
    is(&remove(&dev, &path), 403, "role_mismatch");
}

#[test]
fn a_password_with_a_second_factor_opens_nothing_on_the_repository_host() {
    let app = Authenticator::new();
    let server = start(&app);
    let repository = MavenRepository::create(&server, "libs");
    repository.put(FILE, "hello").expect(201);
    let by_password = server.anonymous().basic(OWNER, PASSWORD);
    by_password.get(&repository.path(FILE)).expect(200);
    let api = Api::sign_in(&server);
    let (secret, _) = set_up(&api, &app);
    let refused = by_password.get(&repository.path(FILE)).expect(401);
    assert!(refused.field("message").contains("make a token"), "{}", refused.text());
    by_password.put(&repository.path("org/example/a/2.0/a-2.0.jar"), "hello").expect(401);
    let with_code = format!("{PASSWORD}{}", app.next_code(&secret));
    for wrong in ["a wrong password", with_code.as_str()] {
        let refused = server.anonymous().basic(OWNER, wrong).get(&repository.path(FILE)).expect(401);
        assert!(!refused.text().contains("second factor"), "{}", refused.text());
    }
    repository.get(FILE).expect(200);
}

#[test]
fn an_operator_removes_the_second_factor_of_an_owner() {
    let app = Authenticator::new();
    let server = start(&app);
    set_up(&Api::sign_in(&server), &app);
    let words = ["member", "remove-second-factor", OWNER];
    packhouse(server.data(), &words, "").success();
    let api = Api::sign_in(&server);
    packhouse(server.data(), &words, "").refused("has no second factor");
    let events = api.call("GET", "/v1/audit-events?actor=command%20line").expect(200).text();
    assert!(events.contains("remove_second_factor"), "{events}");
}
