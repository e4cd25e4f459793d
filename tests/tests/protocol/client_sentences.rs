//! Sentences of refusals. The server puts each sentence where the client displays it: in the body,
//! and for some clients also in the reason phrase or a header. Some clients get the body as plain
//! text. The sentence names what is wrong with a credential.

use packhouse_tests::person::Person;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Client, Request, Response, Server, database, http};
use serde_json::json;

const JAR: &str = "org/example/a/1.0/a-1.0.jar";

fn hosted(server: &Server, format: &str) -> FormatRepository {
    FormatRepository::hosted(server, format, &format!("our-{format}"), &json!({}))
}

fn get(client: &Client, path: &str, headers: &[(&str, &str)]) -> Response {
    let request = Request::new("GET", path);
    client.send(headers.iter().fold(request, |request, (name, value)| request.header(name, value)))
}

fn as_bearer(server: &Server, secret: &str) -> Client {
    server.anonymous().with("Authorization", &format!("Bearer {secret}"))
}

#[test]
fn the_reason_phrase_is_standard_and_the_sentence_is_in_the_body() {
    let server = Server::start();
    for (format, path) in
        [("npm", "absent"), ("maven", JAR), ("python", "simple/absent/"), ("helm", "a-1.0.0.tgz")]
    {
        let repository = hosted(&server, format);
        let answer =
            get(&repository.client, &repository.path(path), &[("User-Agent", "npm/10.8.2 node/v22")]);
        let answer = answer.expect(404);
        assert_eq!(answer.reason, "Not Found", "{format}");
        assert!(answer.json()["message"].as_str().unwrap().len() > 10, "{format}");
        assert_eq!(
            answer.header("npm-notice"),
            None,
            "{format}: for this client a missing file may be normal"
        );
    }
}

#[test]
fn a_format_whose_clients_only_show_the_reason_phrase_has_the_sentence_there() {
    let server = Server::start();
    let repository = hosted(&server, "maven");
    repository.put(JAR, "one").expect(201);
    let again = repository.put(JAR, "two").expect(409);
    assert_eq!(again.reason, again.field("message"));
    let repository = hosted(&server, "generic");
    repository.put("tool", "one").expect(201);
    assert_eq!(repository.put("tool", "two").expect(409).reason, "Conflict");
}

#[test]
fn clients_that_only_show_the_status_line_find_the_sentence_in_it() {
    let server = Server::start();
    let images = hosted(&server, "docker");
    // `skopeo sync` requests the tags of any path that a person gives it. This path names a
    // repository, not an image.
    let path = "/v2/repositories/our-docker/tags/list";
    let tags = |user_agent: &str| get(&images.client, path, &[("User-Agent", user_agent)]).expect(400);
    for user_agent in
        ["skopeo/1.9.3", "containers/5.23.1 (github.com/containers/image)", "libpod/4.3.1", "Buildah/1.28.2"]
    {
        let answer = tags(user_agent);
        assert!(answer.reason.contains("require at least two segments"), "{user_agent}: {}", answer.reason);
        assert_eq!(answer.json()["errors"][0]["message"], answer.reason, "{user_agent}");
    }
    assert_eq!(tags("docker/27.3.1 go/go1.22.7").reason, "Bad Request", "this client shows the body");

    let npm = hosted(&server, "npm");
    let login = |user_agent: &str| {
        let path = npm.path("-/user/org.couchdb.user:ann");
        let request = Request::new("PUT", &path).header("User-Agent", user_agent);
        npm.client.send(request.body(r#"{"name": "ann", "password": "a password"}"#)).expect(410)
    };
    for user_agent in [
        "yarn/1.22.22 npm/? node/v20.20.2 linux x64",
        "got (https://github.com/sindresorhus/got)",
        "pnpm/10.34.8 npm/? node/v20.20.2 linux x64",
        "Bun/1.4.5",
    ] {
        let answer = login(user_agent);
        assert!(answer.reason.contains("create a token in the portal"), "{user_agent}: {}", answer.reason);
        assert_eq!(answer.reason, answer.field("message"), "{user_agent}: the whole sentence");
        let absent = get(&npm.client, &npm.path("absent"), &[("User-Agent", user_agent)]).expect(404);
        assert_eq!(absent.reason, "Not Found", "{user_agent}: for this client a missing file may be normal");
    }
    assert_eq!(login("npm/10.8.2 node/v22").reason, "Gone", "this client shows a header");
}

#[test]
fn a_refused_credential_gets_the_reason() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let repository = hosted(&server, "maven");
    let token = || api.create_token(&[&repository.id], &["read"], None);
    let (revoked, expired) = (token(), token());
    api.call("DELETE", &format!("/v1/tokens/{}", revoked.id)).expect(204);
    database::sqlite(&server, &format!("update tokens set expires_at = 1000 where id = {}", expired.id));
    let unknown = "pkh_0000000000000000000000000000000000000000000";
    for name in ["our-maven", "absent"] {
        let path = format!("/repositories/{name}/{JAR}");
        for (secret, words) in
            [(unknown, "is not accepted"), (&revoked.secret, "was revoked"), (&expired.secret, "has expired")]
        {
            let answer = server.anonymous().basic(OWNER, secret).get(&path).expect(401);
            assert_eq!(answer.field("error"), "unauthorized");
            assert!(answer.field("message").contains(words), "{name}: {}", answer.text());
            let maven = server.anonymous().basic(OWNER, secret);
            let maven = get(&maven, &path, &[("User-Agent", "Apache-Maven/3.9.9 (Java 21)")]).expect(401);
            assert_eq!(maven.reason, maven.field("message"), "{name}");
        }
        let nothing = server.anonymous().get(&path).expect(401);
        assert_eq!(nothing.field("message"), "Authentication is required.");
        assert_eq!(nothing.reason, "Unauthorized");
    }
}

#[test]
fn a_valid_token_with_another_user_name_gets_the_valid_names() {
    let server = Server::start();
    for (format, path) in [("maven", JAR), ("python", "simple/")] {
        let repository = hosted(&server, format);
        let secret = &repository.token.secret;
        let answer = server.anonymous().basic("ci", secret).get(&repository.path(path)).expect(401);
        let sentence = answer.field("message");
        assert!(sentence.contains("not with this user name"), "{sentence}");
        assert!(sentence.contains("`__token__`") && sentence.contains("e-mail address"), "{sentence}");
        let status = server.anonymous().basic("__token__", secret).get(&repository.path(path)).status;
        assert_ne!(status, 401, "{format}");
    }
    hosted(&server, "npm");
    let mut person = Person::owner(&server);
    for (format, is_explained) in [("maven", true), ("python", true), ("npm", false)] {
        let page = person.get(&format!("/repositories/our-{format}/connection")).expect(200).text();
        assert_eq!(page.contains("refuses a token with a user name"), is_explained, "{format}");
        assert_eq!(page.contains("<code>__token__</code>"), is_explained, "{format}");
    }
}

#[test]
fn a_bearer_that_is_refused_is_an_invalid_token_in_the_challenge() {
    let server = Server::start();
    let answer = as_bearer(&server, "wrong").get("/v2/").expect(401);
    let challenge = answer.header("www-authenticate").unwrap();
    assert!(
        challenge.starts_with("Bearer ") && challenge.ends_with("error=\"invalid_token\""),
        "{challenge}"
    );
    let nothing = server.anonymous().get("/v2/").expect(401);
    assert!(!nothing.header("www-authenticate").unwrap().contains("error="));
}

#[test]
fn npm_prints_that_a_token_is_not_accepted() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let repository = hosted(&server, "npm");
    let npm = [("User-Agent", "npm/10.8.2 node/v22.11.0 linux x64 workspaces/false")];
    let answer = get(&as_bearer(&server, "wrong"), &repository.path("-/whoami"), &npm).expect(404);
    assert_eq!((answer.reason.as_str(), answer.field("error").as_str()), ("Not Found", "not_found"));
    assert!(answer.header("npm-notice").unwrap().contains("is not accepted"));
    let expired = api.create_token(&[&repository.id], &["read"], None);
    database::sqlite(&server, &format!("update tokens set expires_at = 1000 where id = {}", expired.id));
    let public = json!({"settings": {"public": true}});
    api.patch(&format!("/v1/repositories/{}", repository.id), &public).expect(200);
    let answer = get(&as_bearer(&server, &expired.secret), &repository.path("absent"), &npm).expect(404);
    assert!(answer.header("npm-notice").unwrap().contains("has expired"));
    assert!(answer.field("message").contains("has expired"));
}

#[test]
fn problem_details_are_sent_where_accept_names_them() {
    let server = Server::start();
    let repository = hosted(&server, "maven");
    let path = repository.path(JAR);
    let problem =
        get(&repository.client, &path, &[("Accept", "application/problem+json, */*;q=0.5")]).expect(404);
    assert_eq!(problem.header("content-type"), Some("application/problem+json"));
    assert_eq!(
        (problem.json()["status"].clone(), problem.field("title")),
        (json!(404), "Not Found".to_owned())
    );
    let usual = get(&repository.client, &path, &[("Accept", "*/*")]).expect(404);
    assert_eq!(usual.header("content-type"), Some("application/json"));
    let images = get(&server.anonymous(), "/v2/", &[("Accept", "application/problem+json")]).expect(401);
    assert_eq!(images.header("content-type"), Some("application/json"), "a registry error has other fields");
}

#[test]
fn clients_that_show_the_body_get_plain_text() {
    let server = Server::start();
    for (format, user_agent) in
        [("rubygems", "RubyGems/3.6.2 x86_64-linux Ruby/3.4.1"), ("go", "Go-http-client/1.1")]
    {
        let repository = hosted(&server, format);
        let client = server.anonymous().with("Authorization", &http::basic(OWNER, "pkh_wrong"));
        for name in [repository.name.as_str(), "absent"] {
            let path = format!("/repositories/{name}/versions");
            let answer = get(&client, &path, &[("User-Agent", user_agent)]).expect(401);
            assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"), "{format}");
            assert!(answer.text().starts_with("The credential that was sent is not accepted"), "{format}");
        }
    }
    let repository = FormatRepository::hosted(&server, "rubygems", "gems", &json!({}));
    let push = |user_agent: &str| {
        let request = Request::new("POST", &repository.path("api/v1/gems")).header("User-Agent", user_agent);
        repository.client.send(request.body("no gem")).expect(422)
    };
    assert!(push("RubyGems/3.6.2").text().starts_with("This is not a valid gem"));
    assert_eq!(push("curl/8.0").header("content-type"), Some("application/json"));
}

#[test]
fn unsupported_npm_commands_name_the_alternative() {
    let server = Server::start();
    let repository = hosted(&server, "npm");
    for (method, path, words) in [
        ("GET", "-/org/acme/package", "npm access"),
        ("PUT", "-/team/acme/devs/package", "npm access"),
        ("GET", "-/team/acme/devs/user", "npm team"),
        ("PUT", "-/org/acme/user", "npm org"),
        ("POST", "-/npm/v1/user", "npm profile"),
        ("GET", "-/elsewhere", "in the portal"),
    ] {
        let request = Request::new(method, &repository.path(path));
        let request = request.header("User-Agent", "npm/10.8.2 node/v22");
        let request = if method == "GET" { request } else { request.body("{}") };
        let answer = repository.client.send(request).expect(404);
        assert_eq!(answer.field("error"), "not_supported", "{method} {path}");
        assert!(answer.header("npm-notice").unwrap().contains(words), "{method} {path}: {}", answer.text());
    }
    let user = repository.get("-/user/org.couchdb.user:ann@example.com").expect(200);
    assert_eq!(user.field("name"), "ann@example.com");
}
