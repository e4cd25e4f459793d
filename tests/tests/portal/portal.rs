//! The portal over plain HTTP: refusals, response headers, and hostile names. `portal_browser.rs`
//! and `portal_pages.rs` test the portal in a browser.

use packhouse_tests::person::{Person, form, hidden, inside};
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, Request, Response, Server, database};
use serde_json::json;

/// Pages that the portal serves only to a person with a session.
const PAGES: [&str; 29] = [
    "/home",
    "/repositories",
    "/repositories/new",
    "/repositories/lib",
    "/repositories/lib/connection",
    "/repositories/lib/settings",
    "/search",
    "/search?q=x",
    "/tokens",
    "/service-keys",
    "/subscribers",
    "/subscriber-groups",
    "/api-tokens",
    "/members",
    "/teams",
    "/service-accounts",
    "/access",
    "/settings/sign-in",
    "/formats",
    "/audit",
    "/jobs",
    "/backups",
    "/organization",
    "/settings",
    "/retention",
    "/policies",
    "/webhooks",
    "/trusted-publishers",
    "/repositories/lib/trash",
];

struct PortalFixture {
    server: Server,
    api: Api,
    repository: String,
}

fn world() -> PortalFixture {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let repository = api.create_maven("lib", &json!({}));
    PortalFixture { server, api, repository }
}

fn tokens(world: &PortalFixture) -> usize {
    world.api.call("GET", "/v1/tokens").expect(200).json()["items"].as_array().unwrap().len()
}

/// The fields of the form for a new token.
fn token_fields(repository: &str) -> Vec<(&str, &str)> {
    vec![
        ("do", "create"),
        ("name", "ci"),
        ("scope", "read"),
        ("repositories", repository),
        ("format", "generic"),
        ("never", "yes"),
    ]
}

#[test]
fn a_client_without_a_session_is_redirected_to_the_sign_in_and_back() {
    let world = world();
    let mut visitor = Person::new(&world.server);
    for page in PAGES.into_iter().chain(["/", "/account", "/npm-login/x", "/sign-out", "/repositories/none"])
    {
        let answer = visitor.get(page).expect(303);
        let there = answer.header("location").unwrap();
        assert!(there.starts_with("/sign-in?return_to=%2F"), "{page}: {there}");
    }
    let path = "/sign-in?return_to=%2Fsearch%3Fq%3Da%2520b";
    let page = visitor.get(path).expect(200).text();
    assert_eq!(hidden(&page, "return_to").unwrap(), "/search?q=a%20b");
    let csrf = hidden(&page, "csrf").unwrap();
    let wrong = [
        ("csrf", csrf.as_str()),
        ("email", OWNER),
        ("password", "no-such-one"),
        ("return_to", "/search?q=a"),
    ];
    let refused = visitor.post("/sign-in", &wrong).expect(401).text();
    assert!(
        refused.contains("role=\"alert\"") && refused.contains(OWNER) && !refused.contains("no-such-one"),
        "{refused}"
    );
    let right =
        [("csrf", csrf.as_str()), ("email", OWNER), ("password", PASSWORD), ("return_to", "/search?q=a")];
    let answer = visitor.post("/sign-in", &right).expect(303);
    assert_eq!(answer.header("location"), Some("/search?q=a"));
    assert_eq!(visitor.get("/").expect(303).header("location"), Some("/home"));
    assert_eq!(visitor.get("/sign-in").expect(303).header("location"), Some("/repositories"));
}

#[test]
fn a_return_to_that_is_not_a_page_of_this_host_is_ignored() {
    let world = world();
    for evil in [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "javascript:alert(1)",
        "/sign-out",
        "/v1/me",
        "",
    ] {
        let mut person = Person::new(&world.server);
        let fields = [("email", OWNER), ("password", PASSWORD), ("return_to", evil)];
        let answer = person.send_form("/sign-in", &fields).expect(303);
        assert_eq!(answer.header("location"), Some("/repositories"), "{evil}");
        let encoded: String = evil.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = person.get(&format!("/sign-in?return_to={encoded}")).expect(303);
        assert_eq!(answer.header("location"), Some("/repositories"), "{evil}");
    }
}

#[test]
fn a_forged_form_changes_nothing() {
    let world = world();
    let mut owner = Person::owner(&world.server);
    let csrf = owner.csrf("/tokens");
    let mut fields = token_fields(&world.repository);
    fields.extend([("confirm", "yes"), ("password", PASSWORD)]);
    let with = |csrf: &str| {
        let mut all = fields.clone();
        all.push(("csrf", csrf));
        form("/tokens", &all.iter().map(|(name, value)| (*name, *value)).collect::<Vec<_>>())
    };
    let own = format!("http://{}", world.server.api());
    for (what, request) in [
        ("no token", form("/tokens", &fields)),
        ("another's token", with("0000")),
        ("another origin", with(&csrf).header("Origin", "http://evil.example")),
        ("not an origin", with(&csrf).header("Origin", "null")),
        ("another site", with(&csrf).header("Sec-Fetch-Site", "cross-site")),
        ("a host beside it", with(&csrf).header("Sec-Fetch-Site", "same-site")),
        ("an origin in the referer", with(&csrf).header("Sec-Fetch-Site", "none")),
    ] {
        let answer = owner.send(request);
        assert_eq!(answer.status, 403, "{what}: {}", answer.text());
        assert!(answer.text().contains("role=\"alert\""), "{what}");
    }
    assert_eq!(tokens(&world), 0);
    // The request succeeds with the right form token and origin.
    let right = with(&csrf).header("Origin", &own).header("Sec-Fetch-Site", "same-origin");
    let made = owner.send(right).expect(201).text();
    assert!(inside(&made, "data-secret").unwrap().starts_with("pkh_"), "{made}");
    assert_eq!(tokens(&world), 1);
}

#[test]
fn a_forged_sign_in_or_sign_out_is_refused() {
    let world = world();
    let mut victim = Person::new(&world.server);
    let fields = [("email", OWNER), ("password", PASSWORD)];
    victim.post("/sign-in", &fields).expect(403);
    victim.get("/sign-in").expect(200);
    victim.post("/sign-in", &fields).expect(403);
    let csrf = victim.csrf("/sign-in");
    let forged =
        form("/sign-in", &[("csrf", &csrf), fields[0], fields[1]]).header("Origin", "http://evil.example");
    victim.send(forged).expect(403);
    assert_eq!(victim.cookie("packhouse_session"), None);

    let mut owner = Person::owner(&world.server);
    let session = owner.cookie("packhouse_session").unwrap().to_owned();
    owner.get("/sign-out").expect(200);
    owner.post("/sign-out", &[]).expect(403);
    owner.get("/repositories").expect(200);
    owner.send_form("/sign-out", &[]).expect(303);
    assert_eq!(owner.cookie("packhouse_session"), None, "the session cookie is removed");
    let old = Request::new("GET", "/repositories").header("Cookie", &format!("packhouse_session={session}"));
    Client::new(world.server.api()).send(old).expect(303);
}

#[test]
fn every_page_has_its_headers_and_its_layout() {
    let world = world();
    let mut owner = Person::owner(&world.server);
    let mut visitor = Person::new(&world.server);
    let mut answers: Vec<(&str, Response)> = PAGES
        .into_iter()
        .chain(["/account", "/repositories/none", "/npm-login/none", "/sign-out"])
        .map(|page| (page, owner.get(page)))
        .collect();
    for page in ["/sign-in", "/invitations/none", "/password-resets/none"] {
        answers.push((page, visitor.get(page)));
    }
    for (page, answer) in &answers {
        let has =
            |name: &str, expected: &str| assert_eq!(answer.header(name), Some(expected), "{page}: {name}");
        assert!([200, 404].contains(&answer.status), "{page}: {} {}", answer.status, answer.text());
        has("cache-control", "no-store");
        has("x-content-type-options", "nosniff");
        has("referrer-policy", "same-origin");
        has("x-frame-options", "DENY");
        has("content-type", "text/html; charset=utf-8");
        has(
            "content-security-policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
            connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        );
        let text = answer.text();
        assert_eq!(text.matches("<h1").count(), 1, "{page}");
        for part in ["<html lang=\"en\"", "<title>", "href=\"#main\"", "id=\"main\"", "name=\"viewport\""] {
            assert!(text.contains(part), "{page} lacks {part}");
        }
        assert!(!text.contains("style=") && !text.contains("onclick") && !text.contains("<style"), "{page}");
        assert!(!text.contains("http-equiv"), "{page}");
    }
}

#[test]
fn assets_are_named_by_their_digests_and_cached() {
    let world = world();
    let page = Person::new(&world.server).get("/sign-in").text();
    let mut found = 0;
    for piece in page.split("\"/assets/").skip(1) {
        let path = format!("/assets/{}", piece.split('"').next().unwrap());
        let answer = Client::new(world.server.api()).get(&path).expect(200);
        assert_eq!(answer.header("cache-control"), Some("public, max-age=31536000, immutable"), "{path}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        let digest = packhouse_tests::digests::sha256(&answer.body);
        assert!(path.contains(&digest[..16]), "{path} is {digest}");
        found += 1;
    }
    assert!(found >= 3, "{page}");
    Client::new(world.server.api()).get("/assets/portal-0000000000000000.css").expect(404);
}

#[test]
fn a_call_of_the_api_answers_json_and_a_page_html() {
    let world = world();
    let html = |path: &str| Request::new("GET", path).header("Accept", "text/html");
    let answer = Client::new(world.server.api()).send(html("/v1/me")).expect(401);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let answer = Client::new(world.server.api()).send(html("/nowhere/at/all")).expect(404);
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(answer.text().contains("<h1>Not found</h1>"), "{}", answer.text());
    for request in [
        html("/v1/nowhere"),
        Request::new("GET", "/nowhere"),
        Request::new("POST", "/nowhere").header("Accept", "text/html"),
    ] {
        let answer = Client::new(world.server.api()).send(request).expect(404);
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    let answer = Client::new(world.server.api()).send(Request::new("PUT", "/tokens")).expect(405);
    assert_eq!(answer.header("content-type"), Some("application/json"));
}

/// The portal shows a member only the links and pages that the member's rights permit. A refused
/// page contains the API's message.
#[test]
fn a_member_with_few_rights_sees_only_permitted_pages() {
    let world = world();
    let hidden = world.api.create_maven("hidden", &json!({}));
    let rights =
        json!({"organization": [], "repositories": [{"repository": world.repository, "actions": ["read"]}]});
    let body = json!({"email": "reader@example.com", "password": PASSWORD, "permissions": rights});
    world.api.post("/v1/members", &body).expect(201);
    let mut reader = Person::signed_in(&world.server, "reader@example.com", PASSWORD);
    let api = Api::sign_in_as(&world.server, "reader@example.com", PASSWORD);
    let list = reader.get("/repositories").expect(200).text();
    assert!(list.contains(">lib<") && !list.contains(">hidden<"), "{list}");
    for way in [
        "/service-keys",
        "/subscribers",
        "/subscriber-groups",
        "/members",
        "/teams",
        "/service-accounts",
        "/formats",
        "/audit",
        "/settings",
        "/policies",
        "/retention",
        "/webhooks",
        "/trusted-publishers",
        "/repositories/new",
    ] {
        assert!(!list.contains(&format!("href=\"{way}\"")), "{way} in {list}");
    }
    for (page, status, call) in [
        ("/repositories/hidden", 404, format!("/v1/repositories/{hidden}")),
        ("/repositories/hidden/connection", 404, format!("/v1/repositories/{hidden}/connection")),
        ("/repositories/lib/cache", 403, format!("/v1/repositories/{}/cache", world.repository)),
        ("/members", 403, "/v1/members".to_owned()),
        ("/formats", 403, "/v1/formats".to_owned()),
        ("/retention", 403, "/v1/retention-policies".to_owned()),
        ("/policies", 403, "/v1/policies".to_owned()),
        ("/webhooks", 403, "/v1/webhooks".to_owned()),
        ("/trusted-publishers", 403, "/v1/trusted-publishers".to_owned()),
        ("/repositories/lib/trash", 403, format!("/v1/repositories/{}/trash", world.repository)),
        ("/audit", 403, "/v1/audit-events".to_owned()),
        ("/jobs", 403, "/v1/jobs".to_owned()),
        ("/settings/sign-in", 403, "/v1/sso".to_owned()),
        ("/audit?as=csv", 403, "/v1/audit-events".to_owned()),
        ("/subscribers", 403, "/v1/subscribers".to_owned()),
        ("/tokens?member=owner%40example.com", 403, "/v1/tokens?member=owner@example.com".to_owned()),
    ] {
        let sentence = api.call("GET", &call).expect(status).field("message");
        let page_text = reader.get(page).expect(status).text();
        let escaped =
            sentence.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
        assert!(
            page_text.contains("role=\"alert\"") && page_text.contains(&escaped),
            "{page}: {sentence} in {page_text}"
        );
    }
    reader.get("/repositories/new").expect(403);
    reader.get("/repositories/lib/settings").expect(403);
    reader.send_form("/tokens", &[("do", "revoke"), ("id", "1")]).expect(404);
    let csrf = reader.csrf("/tokens");
    reader.post("/repositories/lib/settings", &[("csrf", &csrf), ("do", "delete")]).expect(403);
    reader.post("/formats", &[("csrf", &csrf), ("format", "maven"), ("to", "off")]).expect(403);
    world.api.call("GET", &format!("/v1/repositories/{}", world.repository)).expect(200);
}

/// A form keeps its values after a refusal, and after the session has ended.
#[test]
fn form_values_survive_errors() {
    let world = world();
    let mut owner = Person::owner(&world.server);
    let mut fields = token_fields(&world.repository);
    fields.retain(|(name, _)| *name != "scope");
    fields[1] = ("name", "My <b>long</b> name");
    let again = owner.send_form("/tokens", &fields).expect(400).text();
    assert!(
        again.contains("role=\"alert\"") && again.contains("value=\"My &lt;b&gt;long&lt;/b&gt; name\""),
        "{again}"
    );
    assert!(again.contains(&format!("value=\"{}\" checked", world.repository)), "{again}");

    // The confirmation page contains the form's values, also after a wrong password.
    fields.push(("scope", "read"));
    let confirmation = owner.send_form("/tokens", &fields).expect(200).text();
    assert!(
        confirmation.contains("type=\"password\"") && confirmation.contains(">Confirm<"),
        "{confirmation}"
    );
    assert_eq!(hidden(&confirmation, "name").unwrap(), "My <b>long</b> name");
    fields.extend([("confirm", "yes"), ("password", "no-such-one")]);
    let refused = owner.send_form("/tokens", &fields).expect(401).text();
    assert_eq!(hidden(&refused, "name").unwrap(), "My <b>long</b> name");
    assert!(!refused.contains("no-such-one"), "{refused}");

    // The session ends before the member submits the form.
    let csrf = owner.csrf("/tokens");
    database::sqlite(&world.server, "delete from sessions");
    fields.retain(|(name, _)| !["confirm", "password"].contains(name));
    fields.push(("csrf", &csrf));
    let away = owner.post("/tokens", &fields).expect(303);
    assert_eq!(away.header("location"), Some("/sign-in?return_to=%2Ftokens%3Fdraft%3D1"));
    owner
        .send_form("/sign-in", &[("email", OWNER), ("password", PASSWORD), ("return_to", "/tokens?draft=1")])
        .expect(303);
    let back = owner.get("/tokens?draft=1").expect(200).text();
    assert!(back.contains("value=\"My &lt;b&gt;long&lt;/b&gt; name\""), "{back}");
}

#[test]
fn a_form_that_is_sent_twice_is_applied_once() {
    let world = world();
    let mut owner = Person::owner(&world.server);
    let page = owner.get("/tokens").text();
    let (csrf, once) = (hidden(&page, "csrf").unwrap(), hidden(&page, "once").unwrap());
    let mut fields = token_fields(&world.repository);
    fields.extend([("confirm", "yes"), ("password", PASSWORD), ("csrf", &csrf), ("once", &once)]);
    let answers: Vec<String> = std::thread::scope(|scope| {
        let send = || {
            let (mut person, fields) = (owner.clone(), fields.clone());
            scope.spawn(move || person.post("/tokens", &fields).expect(201).text())
        };
        let threads: Vec<_> = (0..4).map(|_| send()).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let secret = inside(&answers[0], "data-secret").unwrap();
    assert!(answers.iter().all(|answer| inside(answer, "data-secret").as_ref() == Some(&secret)));
    assert_eq!(tokens(&world), 1);
}

/// The portal renders names that people and clients choose as text everywhere.
#[test]
fn hostile_names_are_text() {
    let world = world();
    let mut owner = Person::owner(&world.server);
    let name = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>";
    let body = json!({"name": name, "repositories": [world.repository]});
    let id = world.api.post("/v1/subscribers", &body).expect(201).field("id");
    let body = json!({"email": "m@example.com", "name": name, "password": PASSWORD,
        "permissions": {"organization": [], "repositories": []}});
    world.api.post("/v1/members", &body).expect(201);
    let token = json!({"name": name, "scope": ["read"], "format": "generic", "repositories": [world.repository],
        "expires_at": null, "confirmation_token": world.api.confirm("create_token")});
    world.api.post("/v1/tokens", &token).expect(201);
    for page in [
        "/subscribers",
        &format!("/subscribers/{id}"),
        "/members",
        "/tokens",
        "/audit",
        "/subscriber-groups",
        "/search?q=%3Cscript%3Ealert(1)%3C/script%3E",
        "/repositories/lib?q=%22%3E%3Cimg%20src%3Dx%3E",
        "/audit?actor=%22%3E%3Cimg%20src%3Dx%3E",
    ] {
        let text = owner.get(page).expect(200).text();
        assert!(!text.contains("<script>") && !text.contains("<img src=x"), "{page}: {text}");
    }
    // A character that changes the text direction stays within its element. The page's title does
    // not contain the character.
    let turned = owner.get("/repositories/none%E2%80%AEgnp.exe").expect(404).text();
    assert!(!turned.contains('\u{202e}'), "{turned}");
}

#[test]
fn the_audit_log_is_exported_as_csv_without_formulas() {
    let world = world();
    let mut owner = Person::owner(&world.server);
    let body = json!({"name": "=HYPERLINK(\"http://evil.example\")", "repositories": []});
    world.api.post("/v1/subscribers", &body).expect(201);
    let page = owner.get("/audit").expect(200).text();
    assert!(page.contains(">CSV<") && page.contains(">JSON lines<"), "{page}");
    let csv = owner.get("/audit?as=csv").expect(200);
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    assert!(csv.header("content-disposition").unwrap().starts_with("attachment"));
    let text = csv.text();
    assert!(text.starts_with("id,at,actor,credential,action,subject"), "{text}");
    assert!(text.contains("\"'=HYPERLINK(\"\"http://evil.example\"\")\""), "{text}");
    let lines = owner.get("/audit?as=jsonl&action=create_subscriber").expect(200).text();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let listed = world.api.call("GET", "/v1/audit-events?action=create_subscriber").expect(200).json();
    assert_eq!(lines[0], listed["items"][0], "as the API returns it");
}

#[test]
fn an_invitation_and_a_password_reset_are_pages_that_need_the_code() {
    let world = world();
    let mut owner = Person::owner(&world.server);
    let invited = owner
        .send_form("/members", &[("do", "invite"), ("email", "new@example.com"), ("all", "read")])
        .expect(201)
        .text();
    let address = inside(&invited, "data-secret").unwrap();
    let path = address.strip_prefix(&format!("http://{}", world.server.api())).unwrap();
    let mut new = Person::new(&world.server);
    new.get("/invitations/pkh_wrong").expect(404);
    assert!(new.get(path).expect(200).text().contains("new@example.com"));
    new.post(path, &[("password", PASSWORD)]).expect(403);
    let short = new.send_form(path, &[("password", "short"), ("name", "New")]).expect(400).text();
    assert!(short.contains("role=\"alert\"") && short.contains("value=\"New\""), "{short}");
    new.send_form(path, &[("password", PASSWORD), ("name", "New")]).expect(201);
    new.get(path).expect(404);
    let mut member = Person::signed_in(&world.server, "new@example.com", PASSWORD);
    assert!(member.get("/repositories").text().contains(">lib<"));

    let members = world.api.call("GET", "/v1/members").json();
    let id = members["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["email"] == "new@example.com")
        .unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let code = owner
        .confirm_form(&format!("/members?member={id}"), &[("do", "reset"), ("id", &id)])
        .expect(201)
        .text();
    let address = inside(&code, "data-secret").unwrap();
    let path = address.strip_prefix(&format!("http://{}", world.server.api())).unwrap();
    new.send_form(path, &[("password", "another long password")]).expect(200);
    new.get(path).expect(404);
    member.get("/repositories").expect(303);
    Person::signed_in(&world.server, "new@example.com", "another long password");
}
