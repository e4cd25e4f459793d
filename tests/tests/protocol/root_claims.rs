//! The server's own work for a format with its own root path. The tests cover paths with and
//! without a repository, groups, bearers and their scopes, and errors in a registry's form. The
//! format is a test guest, so the rules of real formats do not interfere.

use packhouse_tests::api::Token;
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, Request, Response, Server, checkout, database};
use serde_json::{Value, json};
use tempfile::TempDir;

struct Depot {
    server: Server,
    api: Api,
    _plugins: TempDir,
}

impl Depot {
    fn start() -> Self {
        let plugins = tempfile::tempdir().unwrap();
        for file in ["guests/depot.wasm", "plugins/maven.wasm"] {
            let from = checkout().join("target/release").join(file);
            std::fs::copy(&from, plugins.path().join(from.file_name().unwrap()))
                .unwrap_or_else(|error| panic!("{}: {error}; run `just plugins guests`", from.display()));
        }
        let server = Server::with().arg("--plugins").arg(plugins.path().to_str().unwrap()).start();
        let api = Api::sign_in(&server);
        Self { server, api, _plugins: plugins }
    }

    fn make(&self, name: &str, kind: &str, more: &Value) -> String {
        let mut body = json!({"name": name, "format": "depot", "kind": kind});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.api.post("/v1/repositories", &body).expect(201).field("id")
    }

    fn hosted(&self, name: &str) -> String {
        self.make(name, "hosted", &json!({}))
    }

    fn token(&self, ids: &[&str], scope: &[&str]) -> Token {
        self.api.create_token(ids, scope, None)
    }

    fn basic(&self, token: &Token) -> Client {
        self.server.anonymous().basic("anyone", &token.secret)
    }

    fn bearer(&self, bearer: &str) -> Client {
        self.server.anonymous().with("Authorization", &format!("Bearer {bearer}"))
    }

    /// Requests a bearer for these scopes from the token service. Returns a client with the bearer,
    /// and the scopes that the service granted.
    fn ask(&self, client: &Client, scopes: &[&str]) -> (Client, String) {
        let query: Vec<String> = scopes.iter().map(|scope| format!("scope={scope}")).collect();
        let answer = client.get(&format!("/depot/token?service=x&{}", query.join("&"))).expect(200);
        let body = answer.json();
        assert_eq!(body["token"], body["access_token"]);
        assert!((60..=300).contains(&body["expires_in"].as_u64().unwrap()));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        (self.bearer(body["token"].as_str().unwrap()), answer.field("scope"))
    }
}

/// Checks an error in a registry's form: status, and code and message of the first problem.
#[track_caller]
fn refused(answer: &Response, status: u16, code: &str, message: &str) {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let body = answer.json();
    assert_eq!(
        (body["errors"][0]["code"].as_str(), body["errors"][0]["message"].as_str()),
        (Some(code), Some(message))
    );
    assert_eq!(answer.header("www-authenticate").is_some(), status == 401);
}

#[track_caller]
fn challenge(answer: &Response, ending: &str) {
    refused(answer, 401, "UNAUTHORIZED", "authentication required");
    let challenge = answer.header("www-authenticate").unwrap();
    let (start, rest) = challenge.split_once("/depot/token\"").unwrap_or_else(|| panic!("{challenge}"));
    assert!(start.starts_with("Bearer realm=\"http://127.0.0.1:"), "{challenge}");
    assert_eq!(rest, format!(",service=\"127.0.0.1\"{ending}"), "{challenge}");
}

fn path(repository: &str, thing: &str) -> String {
    format!("/depot/in/{repository}/{thing}")
}

#[test]
fn a_claim_without_a_repository_only_needs_a_credential() {
    let depot = Depot::start();
    let id = depot.hosted("mine");
    let anonymous = depot.server.anonymous();
    let client = depot.basic(&depot.token(&[&id], &["read"]));
    for target in ["/depot/", "/depot", "/depot/list", "/depot/a/b/c", "/depot/in/mine/", "/depot/in/"] {
        challenge(&anonymous.get(target), "");
        challenge(&depot.server.anonymous().basic("anyone", "pkh_wrong").get(target), "");
    }
    assert_eq!(client.get("/depot/").expect(200).text(), "a depot");
    assert_eq!(client.get("/depot").expect(200).text(), "a depot");
    assert_eq!(depot.server.anonymous().basic(OWNER, PASSWORD).get("/depot/").status, 200);
    assert_eq!(anonymous.get("/depot/open").expect(200).text(), "for anyone");
    refused(&client.get("/depot/list"), 405, "UNSUPPORTED", "no list");
    refused(&client.get("/depot/a/b/c"), 400, "NAME_INVALID", "no such name");
    refused(&client.send(Request::new("PATCH", "/depot/a")), 405, "UNSUPPORTED", "method not allowed");
    assert_eq!(anonymous.get("/elsewhere").status, 401);
}

#[test]
fn the_credential_is_checked_before_the_names() {
    let depot = Depot::start();
    let id = depot.hosted("mine");
    let maven = depot.api.create_maven("other", &json!({}));
    let anonymous = depot.server.anonymous();
    let client = depot.basic(&depot.token(&[&id, &maven], &["read", "write"]));
    // Existing and missing repositories give an unauthenticated client the same response.
    for name in ["mine", "absent", "other"] {
        challenge(&anonymous.get(&path(name, "b/t")), &format!(",scope=\"box:in/{name}/b:fetch\""));
        challenge(&anonymous.put(&path(name, "b/t"), "x"), &format!(",scope=\"box:in/{name}/b:fetch,add\""));
        challenge(&anonymous.get(&path(name, "alone")), "");
    }
    challenge(&anonymous.get(&path("Bad_", "b/t")), ",scope=\"box:in/Bad_/b:fetch\"");
    refused(&client.get(&path("absent", "b/t")), 404, "NAME_UNKNOWN", "repository not found");
    refused(&client.get(&path("other", "b/t")), 404, "NAME_UNKNOWN", "repository not found");
    refused(&client.get(&path("Bad_", "b/t")), 400, "NAME_INVALID", "invalid repository name");
    refused(&client.get(&path("absent", "alone")), 400, "NAME_INVALID", "no such name");
    refused(&client.get(&path("mine", "alone")), 400, "NAME_INVALID", "no such name");
    refused(&client.get("/depot/in/mine/%zz"), 400, "NAME_INVALID", "Invalid OCI path");
    refused(&client.get("/depot/in/mine/a%2fb/t"), 400, "NAME_INVALID", "Invalid OCI path");
    refused(
        &client.get(&format!("/depot/{}", "a".repeat(9000))),
        414,
        "URI_TOO_LONG",
        "The URL is too long.",
    );
}

#[test]
fn refusals_of_the_host_have_the_form_of_a_registry() {
    let depot = Depot::start();
    let (mine, other) = (depot.hosted("mine"), depot.hosted("other"));
    let proxy = depot.make("proxy", "proxy", &json!({"upstream": {"url": "https://example.com"}}));
    let group = depot.make("group", "group", &json!({"members": [other]}));
    let empty = depot.make("empty", "group", &json!({"members": []}));
    let all = [mine.as_str(), &proxy, &group, &empty];
    let client = depot.basic(&depot.token(&all, &["read", "write"]));
    let read = depot.basic(&depot.token(&[&mine], &["read"]));
    let write = depot.basic(&depot.token(&[&mine], &["write"]));
    client.put(&path("mine", "b/t"), "x").expect(201);

    refused(&client.get(&path("other", "b/t")), 403, "DENIED", "insufficient permissions");
    assert_eq!(client.get(&path("other", "b/t")).field("reason_code"), "scope_mismatch_repo");
    refused(&read.put(&path("mine", "b/t"), "x"), 403, "DENIED", "insufficient permissions");
    refused(&write.get(&path("mine", "b/t")), 403, "DENIED", "insufficient permissions");
    write.get(&path("mine", "b/t?before=add")).expect(200);
    refused(&client.put(&path("proxy", "b/t"), "x"), 405, "UNSUPPORTED", "method not allowed");
    assert_eq!(client.put(&path("proxy", "b/t"), "x").field("code"), "writes_not_permitted_on_proxy");
    refused(&read.get(&path("proxy", "b/t")), 404, "NAME_UNKNOWN", "repository not found");
    for method in ["PUT", "POST", "DELETE"] {
        let answer = client.send(Request::new(method, &path("group", "b/t?from=mine")));
        refused(&answer, 405, "UNSUPPORTED", "Writes are not permitted to group repositories");
    }
    for name in ["group", "empty"] {
        refused(&client.get(&path(name, "b/t")), 404, "NAME_UNKNOWN", "group repository has no members");
    }
    let long = client.put(&path("mine", "b/t"), "x".repeat(101));
    refused(&long, 400, "SIZE_INVALID", "provided length did not match content length");
    depot.api.patch("/v1/formats/depot", &json!({"enabled": false})).expect(200);
    let off = client.get(&path("mine", "b/t"));
    refused(&off, 503, "UNAVAILABLE", "service unavailable");
    assert_eq!(off.header("retry-after"), Some("5"));
}

#[test]
fn a_group_shows_only_members_that_the_caller_may_read() {
    let depot = Depot::start();
    let (one, two) = (depot.hosted("one"), depot.hosted("two"));
    let open = depot.make("open", "hosted", &json!({"settings": {"public": true}}));
    let group =
        depot.make("group", "group", &json!({"members": [one, two, open], "settings": {"public": true}}));
    let writer = depot.basic(&depot.token(&[&one, &two, &open], &["read", "write"]));
    for (name, thing) in [("one", "b/both"), ("two", "b/both"), ("two", "b/second"), ("open", "b/open")] {
        writer.put(&path(name, thing), format!("{name} {thing}")).expect(201);
    }
    let through = |client: &Client, thing: &str| {
        let answer = client.get(&path("group", thing));
        (answer.status, answer.text())
    };
    let all = depot.basic(&depot.token(&[&one, &two, &open, &group], &["read"]));
    let second = depot.basic(&depot.token(&[&two, &group], &["read"]));
    let anonymous = depot.server.anonymous();
    // The test requests everything twice, because the server must not serve one caller's cached
    // response to another caller.
    for _ in 0..2 {
        assert_eq!(through(&all, "b/both"), (200, "one b/both".to_owned()));
        assert_eq!(through(&second, "b/both"), (200, "two b/both".to_owned()));
        assert_eq!(through(&second, "b/second"), (200, "two b/second".to_owned()));
        assert_eq!(through(&anonymous, "b/both").0, 404);
        assert_eq!(through(&anonymous, "b/open"), (200, "open b/open".to_owned()));
    }
    writer.put(&path("one", "b/both"), "changed").expect(201);
    assert_eq!(through(&all, "b/both"), (200, "changed".to_owned()));
    writer.send(Request::new("DELETE", &path("one", "b/both"))).expect(202);
    assert_eq!(through(&all, "b/both"), (200, "two b/both".to_owned()));
    depot.api.send("PATCH", &format!("/v1/repositories/{group}"), &json!({"members": [one]})).expect(200);
    assert_eq!(through(&all, "b/second").0, 404);
}

#[test]
fn a_copy_needs_read_access_to_its_source() {
    let depot = Depot::start();
    let (source, target) = (depot.hosted("source"), depot.hosted("target"));
    let maven = depot.api.create_maven("files", &json!({}));
    let both = depot.token(&[&source, &target, &maven], &["read", "write"]);
    depot.basic(&both).put(&path("source", "b/t"), "x").expect(201);
    let copy = |client: &Client, from: &str| {
        client.send(Request::new("POST", &path("target", &format!("b/t?from={from}")))).status
    };
    let target_alone = depot.basic(&depot.token(&[&target], &["read", "write"]));
    let write_alone = depot.basic(&depot.token(&[&source, &target], &["write"]));
    for (client, from) in [
        (&target_alone, "source"),
        (&write_alone, "source"),
        (&target_alone, "absent"),
        (&target_alone, "files"),
    ] {
        assert_eq!(copy(client, from), 202, "{from}");
    }
    target_alone.get(&path("target", "b/t")).expect(404);
    // A bearer for the target alone reads no other repository, even if the credential behind the
    // bearer may.
    let (narrow, _) = depot.ask(&depot.basic(&both), &["box:in/target/b:fetch,add"]);
    assert_eq!(copy(&narrow, "source"), 202);
    let (wide, _) = depot.ask(&depot.basic(&both), &["box:in/target/b:fetch,add", "box:in/source/b:fetch"]);
    assert_eq!(copy(&wide, "source"), 201);
    assert_eq!(target_alone.get(&path("target", "b/t")).expect(200).text(), "x");
}

#[test]
fn a_bearer_grants_its_scopes_and_ends_with_its_credential() {
    let depot = Depot::start();
    let id = depot.hosted("mine");
    let token = depot.token(&[&id], &["read", "write"]);
    let basic = depot.basic(&token);
    let (write, granted) = depot.ask(&basic, &["box:in/mine/b:fetch,add"]);
    assert_eq!(granted, "box:in/mine/b:fetch,add");
    write.get("/depot/").expect(200);
    write.put(&path("mine", "b/t"), "x").expect(201);
    assert_eq!(write.get(&path("mine", "b/t")).expect(200).text(), "x");
    // The bearer does not cover another action or another box.
    let drop = write.send(Request::new("DELETE", &path("mine", "b/t")));
    challenge(&drop, ",scope=\"box:in/mine/b:fetch,drop\",error=\"insufficient_scope\"");
    let elsewhere = write.get(&path("mine", "c/t"));
    challenge(&elsewhere, ",scope=\"box:in/mine/c:fetch\",error=\"insufficient_scope\"");
    let (nothing, granted) = depot.ask(&basic, &[]);
    assert_eq!(granted, "");
    nothing.get("/depot/").expect(200);
    challenge(
        &nothing.get(&path("mine", "b/t")),
        ",scope=\"box:in/mine/b:fetch\",error=\"insufficient_scope\"",
    );
    // A star requests all actions. One parameter may contain several scopes. Unknown scopes request
    // nothing.
    let (all, granted) = depot.ask(&basic, &["box:in/mine/b:*%20box:in/mine/c:drop,fly%20catalog:x:*"]);
    assert_eq!(granted, "box:in/mine/b:fetch,add,drop box:in/mine/c:drop");
    all.send(Request::new("DELETE", &path("mine", "b/t"))).expect(202);

    // A bearer is also valid at the own address of a repository of its format. At the addresses of
    // other repositories it discloses nothing.
    depot.api.create_maven("files", &json!({}));
    assert_eq!(all.get("/repositories/mine/x").status, 404);
    let (nobody, _) = depot.ask(&depot.server.anonymous(), &["box:in/mine/b:fetch"]);
    for (bearer, names) in [(&all, &["files", "absent"][..]), (&nobody, &["mine", "files", "absent"][..])] {
        for name in names {
            let answer = bearer.get(&format!("/repositories/{name}/x")).expect(401);
            assert_eq!(answer.header("www-authenticate"), Some("Basic realm=\"127.0.0.1\""), "{name}");
        }
    }
    depot.api.call("DELETE", &format!("/v1/tokens/{}", token.id)).expect(204);
    challenge(&all.get("/depot/"), ",error=\"invalid_token\"");
    challenge(&all.get(&path("mine", "b/t")), ",scope=\"box:in/mine/b:fetch\",error=\"invalid_token\"");
    assert_eq!(basic.get("/depot/token").status, 401);
}

#[test]
fn missing_rights_reduce_the_grant() {
    let depot = Depot::start();
    let (mine, other) = (depot.hosted("mine"), depot.hosted("other"));
    let open = depot.make("open", "hosted", &json!({"settings": {"public": true}}));
    let group = depot.make("group", "group", &json!({"members": [mine]}));
    depot.api.create_maven("files", &json!({"public": true}));
    let writer = depot.basic(&depot.token(&[&mine, &open], &["read", "write"]));
    writer.put(&path("open", "b/t"), "open").expect(201);
    let read = depot.basic(&depot.token(&[&mine, &group], &["read"]));
    let write = depot.basic(&depot.token(&[&mine], &["write"]));
    let scope =
        "box:in/mine/b:fetch,add box:in/other/b:fetch,add box:in/group/b:fetch,add box:in/files/b:fetch"
            .replace(' ', "&scope=");
    let (bearer, granted) = depot.ask(&read, &[&scope]);
    assert_eq!(granted, "box:in/mine/b:fetch box:in/group/b:fetch");
    refused(&bearer.put(&path("mine", "b/t"), "x"), 403, "DENIED", "insufficient permissions");
    refused(&bearer.get(&path("other", "b/t")), 403, "DENIED", "insufficient permissions");
    let (bearer, granted) = depot.ask(&write, &["box:in/mine/b:fetch,add"]);
    assert_eq!(granted, "box:in/mine/b:add");
    bearer.put(&path("mine", "b/t"), "x").expect(201);
    bearer.get(&path("mine", "b/t?before=add")).expect(200);

    // A client without a credential gets a bearer for everything public.
    let anonymous = depot.server.anonymous();
    let empty = anonymous.clone().with("Authorization", "Basic Og==");
    for client in [&anonymous, &empty] {
        let (bearer, granted) = depot.ask(client, &["box:in/open/b:fetch,add", "box:in/mine/b:fetch"]);
        assert_eq!(granted, "box:in/open/b:fetch");
        assert_eq!(bearer.get(&path("open", "b/t")).expect(200).text(), "open");
        assert_eq!(bearer.put(&path("open", "b/t"), "x").status, 401);
        assert_eq!(bearer.get(&path("mine", "b/t")).status, 401);
        assert_eq!(bearer.get("/depot/").status, 401);
    }
    assert!(!other.is_empty());
}

#[test]
fn wrong_credentials_and_forged_bearers_are_401() {
    let depot = Depot::start();
    let id = depot.hosted("mine");
    let token = depot.token(&[&id], &["read"]);
    let anonymous = depot.server.anonymous();
    for client in [
        depot.server.anonymous().basic("anyone", "pkh_wrong"),
        depot.server.anonymous().basic(OWNER, "wrong"),
        anonymous.clone().with("Authorization", "Negotiate abc"),
    ] {
        let answer = client.get("/depot/token");
        refused(&answer, 401, "UNAUTHORIZED", "authentication required");
        assert_eq!(answer.header("www-authenticate"), Some("Basic realm=\"127.0.0.1\""));
    }
    let answer = depot.basic(&token).get("/depot/token?scope=box:in/mine/b:fetch").expect(200);
    let bearer = answer.field("token");
    let (body, mac) = bearer.split_once('.').unwrap();
    let other = format!("{}{}", &mac[..mac.len() - 1], if mac.ends_with('A') { 'B' } else { 'A' });
    for forged in [
        body.to_owned(),
        format!("{body}."),
        format!("{body}.{other}"),
        format!("{body}x.{mac}"),
        "pkb_e30.".to_owned(),
        "eyJhbGciOiJub25lIn0.e30.".to_owned(),
    ] {
        let answer = depot.bearer(&forged).get("/depot/");
        refused(&answer, 401, "UNAUTHORIZED", "authentication required");
    }
    // The other server has another signing key, so it refuses the bearer.
    let elsewhere = Depot::start();
    elsewhere.hosted("mine");
    challenge(&elsewhere.bearer(&bearer).get("/depot/"), ",error=\"invalid_token\"");
    // The bearer works on its own server. Neither the database nor the log contains the bearer.
    depot.bearer(&bearer).get("/depot/").expect(200);
    assert!(!database::sqlite(&depot.server, ".dump").contains(&bearer));
    assert!(!depot.server.log().contains(mac), "a bearer is in the log");
}

#[test]
fn the_token_service_supports_oauth_requests() {
    let depot = Depot::start();
    let id = depot.hosted("mine");
    let token = depot.token(&[&id], &["read"]);
    let anonymous = depot.server.anonymous();
    let post = |form: String| {
        let request = Request::new("POST", "/depot/token")
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(form);
        anonymous.send(request)
    };
    let right = |password: &str| {
        format!(
            "grant_type=password&username=me%40example.com&password={password}&service=s&client_id=c&scope=box:in/mine/b:fetch"
        )
    };
    let answer = post(right(&token.secret)).expect(200);
    assert_eq!(answer.field("scope"), "box:in/mine/b:fetch");
    depot.bearer(&answer.field("access_token")).get(&path("mine", "b/t")).expect(404);
    refused(&post(right("pkh_wrong")), 401, "UNAUTHORIZED", "authentication required");
    assert_eq!(post("grant_type=refresh_token&refresh_token=x".to_owned()).status, 400);
    assert_eq!(post("x".repeat(20_000)).status, 400);
    assert_eq!(anonymous.send(Request::new("POST", "/depot/token").body("{}")).status, 400);
    assert_eq!(anonymous.send(Request::new("DELETE", "/depot/token")).status, 405);
    // A bearer for a member's password works until the password changes.
    let member = depot.server.anonymous().basic(OWNER, PASSWORD);
    let (bearer, granted) = depot.ask(&member, &["box:in/mine/b:fetch,add"]);
    assert_eq!(granted, "box:in/mine/b:fetch,add");
    bearer.put(&path("mine", "b/t"), "x").expect(201);
    database::sqlite(&depot.server, "update members set password_hash = 'x'");
    challenge(&bearer.get("/depot/"), ",error=\"invalid_token\"");
}
