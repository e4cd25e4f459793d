//! A format beside the first four needs no change of the host. Its description determines errors,
//! challenges, forms of credentials, user names, limits and root paths. The guest `odd` uses each
//! option differently from the four formats. The guest `crates` has the part of a crate registry
//! that cargo needs.

use packhouse_sdk::Format as _;
use packhouse_tests::api::Token;
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, Request, Response, Server, checkout};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A server with the plugin of one guest, and a Maven repository beside it.
struct FormatServer {
    server: Server,
    api: Api,
    format: &'static str,
    _plugins: TempDir,
}

impl FormatServer {
    fn start(format: &'static str) -> Self {
        let plugins = tempfile::tempdir().unwrap();
        for file in [format!("guests/{format}.wasm"), "plugins/maven.wasm".to_owned()] {
            let from = checkout().join("target/release").join(file);
            std::fs::copy(&from, plugins.path().join(from.file_name().unwrap()))
                .unwrap_or_else(|error| panic!("{}: {error}; run `just plugins guests`", from.display()));
        }
        let server = Server::with().arg("--plugins").arg(plugins.path().to_str().unwrap()).start();
        let api = Api::sign_in(&server);
        Self { server, api, format, _plugins: plugins }
    }

    fn make(&self, name: &str, kind: &str, more: &Value) -> String {
        let mut body = json!({"name": name, "format": self.format, "kind": kind});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.api.post("/v1/repositories", &body).expect(201).field("id")
    }

    fn hosted(&self, name: &str) -> String {
        self.make(name, "hosted", &json!({}))
    }

    fn proxy(&self, name: &str) -> String {
        self.make(name, "proxy", &json!({"upstream": {"url": "https://example.com"}}))
    }

    fn token(&self, ids: &[&str], scope: &[&str]) -> Token {
        self.api.create_token(ids, scope, None)
    }

    /// A client that sends this value in `Authorization`.
    fn sends(&self, authorization: &str) -> Client {
        self.server.anonymous().with("Authorization", authorization)
    }
}

/// Asserts an error in the form that `odd` describes. The body contains the status, the code in
/// upper case, the sentence `words`, and the members of `more`.
#[track_caller]
fn odd(answer: &Response, status: u16, title: &str, code: &str, words: &str, more: &Value) {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/vnd.odd+json"));
    let id = answer.header("x-request-id").unwrap();
    let mut expected = json!({
        "trouble": {"number": status, "words": words, "list": [[code, words]]},
        "at": format!("{title} ({id})"),
    });
    expected.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    assert_eq!(answer.json(), expected);
    assert_eq!(answer.header("www-authenticate").is_some(), status == 401);
}

/// Asserts a 401 of `odd` with its challenge.
#[track_caller]
fn odd_challenge(fifth: &FormatServer, answer: &Response) {
    odd(answer, 401, "Unauthorized", "WHO", "Who are you?", &json!({"host": "who"}));
    let base = fifth.server.packages();
    let expected = format!("Odd-Key of=\"127.0.0.1\",ask=\"http://{base}/odd/help\"");
    assert_eq!(answer.header("www-authenticate"), Some(expected.as_str()));
}

/// Asserts a refusal that reveals nothing of the format. Unauthenticated callers get it at a
/// repository's own address.
#[track_caller]
fn unknown_to_all(answer: &Response) {
    assert_eq!(answer.status, 401, "{}", answer.text());
    assert_eq!(answer.header("www-authenticate"), Some("Basic realm=\"127.0.0.1\""));
    assert_eq!(answer.field("error"), "unauthorized");
}

#[test]
fn a_401_has_the_formats_body_and_challenge_if_the_path_identifies_the_format() {
    let fifth = FormatServer::start("odd");
    fifth.hosted("mine");
    let anonymous = fifth.server.anonymous();
    for path in ["/odd/in/mine/page", "/odd/in/absent/page", "/odd/ping/closed"] {
        odd_challenge(&fifth, &anonymous.get(path));
    }
    odd_challenge(&fifth, &anonymous.put("/odd/in/mine/page", "x"));
    unknown_to_all(&anonymous.get("/repositories/mine/page"));
    unknown_to_all(&anonymous.get("/repositories/absent/page"));
    assert_eq!(anonymous.get("/odd/ping/").expect(200).text(), "pong");
}

#[test]
fn the_format_determines_the_forms_of_authorization() {
    let fifth = FormatServer::start("odd");
    let (mine, maven) = (fifth.hosted("mine"), fifth.api.create_maven("files", &json!({})));
    let open = fifth.make("open", "hosted", &json!({"settings": {"public": true}}));
    let token = fifth.token(&[&mine, &maven, &open], &["read", "write"]).secret;
    let bare = fifth.sends(&token);
    let bearer = fifth.sends(&format!("Bearer {token}"));
    for path in ["/odd/in/mine/free", "/repositories/mine/free"] {
        bare.put(path, "text").expect(201);
        assert_eq!(bare.get(path).expect(200).text(), "text");
    }
    bare.get("/odd/ping/closed").expect(200);

    // Other formats accept a bearer token. This one refuses it, even where it allows anonymous
    // reads.
    odd_challenge(&fifth, &bearer.get("/odd/in/mine/free"));
    odd_challenge(&fifth, &bearer.put("/odd/in/mine/free", "x"));
    odd_challenge(&fifth, &bearer.get("/odd/ping/closed"));
    unknown_to_all(&bearer.get("/repositories/mine/free"));
    odd_challenge(&fifth, &bearer.get("/repositories/open/free"));
    bearer.put("/repositories/files/org/a/1/a-1.jar", "jar").expect(201);

    // This format accepts a token without a scheme; the paths of other formats refuse it.
    unknown_to_all(&bare.get("/repositories/files/org/a/1/a-1.jar"));
    unknown_to_all(&bare.get("/repositories/absent/x"));
    unknown_to_all(&bare.get("/repositories/"));
    for nothing in ["Basic", "Bearer", "pkh_wrong", "Digest x"] {
        odd_challenge(&fifth, &fifth.sends(nothing).get("/odd/in/mine/free"));
        unknown_to_all(&fifth.sends(nothing).get("/repositories/mine/free"));
    }
}

#[test]
fn the_format_determines_the_user_names_for_tokens() {
    let fifth = FormatServer::start("odd");
    let (mine, maven) = (fifth.hosted("mine"), fifth.api.create_maven("files", &json!({})));
    let token = fifth.token(&[&mine, &maven], &["read", "write"]).secret;
    let named = |user: &str| fifth.server.anonymous().basic(user, &token);
    for user in ["robot", "machine", OWNER] {
        named(user).put("/odd/in/mine/free", user).expect(201);
        assert_eq!(named(user).get("/repositories/mine/free").expect(200).text(), user);
    }
    for user in ["__token__", "Robot", "anyone", ""] {
        odd_challenge(&fifth, &named(user).get("/odd/in/mine/free"));
        odd_challenge(&fifth, &named(user).get("/repositories/mine/free"));
    }
    fifth.server.anonymous().basic(OWNER, PASSWORD).get("/odd/in/mine/free").expect(200);
    // Maven's description lists other user names.
    assert_eq!(named("__token__").get("/repositories/files/org/a/1/a-1.jar").status, 404);
    assert_eq!(named("robot").get("/repositories/files/org/a/1/a-1.jar").status, 401);
}

#[test]
fn the_hosts_refusals_use_the_formats_words() {
    let fifth = FormatServer::start("odd");
    let (mine, proxy) = (fifth.hosted("mine"), fifth.proxy("proxy"));
    fifth.hosted("other");
    let group = fifth.make("group", "group", &json!({"members": [mine]}));
    let client = fifth.sends(&fifth.token(&[&mine, &proxy, &group], &["read", "write"]).secret);
    for root in ["/odd/in", "/repositories"] {
        let at = |name: &str| format!("{root}/{name}/page");
        let not_reached = "This credential does not reach this repository. 2242";
        let reason = json!({
            "host_reason": "scope_mismatch_repo", "reason": "scope_mismatch_repo", "said": not_reached,
        });
        odd(&client.get(&at("other")), 403, "Forbidden", "SCOPE_MISMATCH_REPO", not_reached, &reason);
        let no_writes =
            "A proxy repository contains only packages that it fetched; clients cannot write to it.";
        let code = json!({"host_code": "WRITES_NOT_PERMITTED_ON_PROXY"});
        let answer = client.put(&at("proxy"), "x");
        odd(&answer, 405, "Method Not Allowed", "WRITES_NOT_PERMITTED_ON_PROXY", no_writes, &code);
        let no_storage = "A group repository has no storage of its own; write to one of its members.";
        let code = json!({"host_code": "WRITES_NOT_PERMITTED_ON_GROUP", "group": true});
        let answer = client.put(&at("group"), "x");
        odd(&answer, 405, "Method Not Allowed", "WRITES_NOT_PERMITTED_ON_GROUP-HERE", no_storage, &code);
    }
    let nothing = client.get("/odd/in/absent/page");
    odd(&nothing, 404, "Not Found", "NOTHING", "Nothing of this kind.", &json!({"host": "nothing"}));

    fifth.api.patch("/v1/formats/odd", &json!({"enabled": false})).expect(200);
    let off = client.get("/odd/in/mine/page");
    let later = "Later. This format is currently disabled.";
    odd(&off, 503, "Service Unavailable", "LATER", later, &json!({"host": "later"}));
    assert_eq!(off.header("retry-after"), Some("5"));
}

#[test]
fn a_formats_own_codes_are_where_it_describes_them() {
    let fifth = FormatServer::start("odd");
    let mine = fifth.hosted("mine");
    let client = fifth.sends(&fifth.token(&[&mine], &["read", "write"]).secret);
    let none = "There is no such leaflet.";
    for root in ["/odd/in/mine", "/repositories/mine"] {
        let missing = client.get(&format!("{root}/page"));
        odd(&missing, 404, "Not Found", "NO_LEAFLET", none, &json!({"own": "no_leaflet"}));
        let withdrawn = client.get(&format!("{root}/withdrawn"));
        let more = json!({"reason": "Odd_Reason", "said": "It was withdrawn."});
        odd(&withdrawn, 410, "Gone", "ODD_REASON", "It was withdrawn.", &more);
        let post = client.send(Request::new("POST", &format!("{root}/page")));
        let more = json!({"own": "own_code", "more": {"a": 1}});
        odd(&post, 418, "I'm a teapot", "OWN_CODE", "No posts.", &more);
    }
}

#[test]
fn a_body_is_under_the_limit_that_the_intent_names() {
    let fifth = FormatServer::start("odd");
    let mine = fifth.hosted("mine");
    let client = fifth.sends(&fifth.token(&[&mine], &["read", "write"]).secret);
    let put = |name: &str, bytes: usize| client.put(&format!("/odd/in/mine/{name}"), "x".repeat(bytes));
    put("page", 10).expect(201);
    put("plain", 20).expect(201);
    put("small", 5).expect(201);
    put("free", 1000).expect(201);
    let over = |limit: u32| format!("The file exceeds the limit of {limit} bytes.");
    for (name, bytes, limit) in [("page", 11, 10), ("small", 6, 5)] {
        let words = format!("{} Fold it.", over(limit));
        let more = json!({"host": "too-long"});
        odd(&put(name, bytes), 422, "Unprocessable Entity", "TOO-LONG", &words, &more);
    }
    // `plain` is under a limit without a message of its own. `free` is under no described limit,
    // only under the size that its intent states. Both get the general message for large bodies.
    for (name, bytes, limit) in [("plain", 21, 20), ("free", 1001, 1000)] {
        let more = json!({"host": "file_too_large"});
        odd(&put(name, bytes), 413, "Payload Too Large", "FILE_TOO_LARGE", &over(limit), &more);
    }
    // A body without a stated length is refused when it exceeds the limit.
    let chunked = Request::new("PUT", "/odd/in/mine/page").header("Transfer-Encoding", "chunked");
    let answer = client.send(chunked.body("b\r\n01234567890\r\n0\r\n\r\n"));
    assert_eq!(answer.status, 422, "{}", answer.text());

    let wrong = put("wrong", 1);
    let failed = "Later. Internal error. See the server log for this request id.";
    odd(&wrong, 500, "Internal Server Error", "LATER", failed, &json!({"host": "later"}));
    assert!(fifth.server.log().contains("nobody-described-it"));
}

#[test]
fn identities_are_exchanged_at_the_formats_path() {
    let fifth = FormatServer::start("odd");
    let anonymous = fifth.server.anonymous();
    for path in ["/odd-exchange/audience", "/odd-exchange/a/b"] {
        assert_eq!(anonymous.get(path).expect(404).field("error"), "not_enabled");
    }
    // This server loads neither the Python plugin nor the npm plugin, so their exchange paths do
    // not exist.
    for path in ["/odd-exchange", "/_/oidc/audience", "/-/npm/v1/oidc/token/exchange/package/p"] {
        unknown_to_all(&anonymous.get(path));
    }
}

#[test]
fn a_format_that_declares_tokens_has_them() {
    let fifth = FormatServer::start("odd");
    let (mine, maven) = (fifth.hosted("mine"), fifth.api.create_maven("files", &json!({})));
    let make = |format: &str| {
        let body = json!({
            "name": "a test's", "scope": ["read", "write"], "format": format, "repositories": [mine, maven],
            "expires_at": null, "confirmation_token": fifth.api.confirm("create_token"),
        });
        fifth.api.post("/v1/tokens", &body)
    };
    assert_eq!(make("maven").expect(400).field("error"), "invalid_token_format");
    let token = make("odd").expect(201).field("secret");
    fifth.sends(&token).put("/odd/in/mine/free", "x").expect(201);
    let elsewhere = fifth.sends(&format!("Bearer {token}")).get("/repositories/files/org/a/1/a-1.jar");
    assert_eq!(elsewhere.expect(403).field("reason_code"), "scope_mismatch_repo");
}

/// Asserts that an error has exactly the body that cargo reads.
#[track_caller]
fn cargo_reads(answer: &Response, status: u16, detail: &str) {
    assert_eq!(answer.status, status, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.json(), json!({"errors": [{"detail": detail}]}));
    assert_eq!(answer.header("www-authenticate").is_some(), status == 401);
}

/// The body of `cargo publish`.
fn published(version: &str, bytes: &[u8]) -> Vec<u8> {
    let metadata = json!({"name": "hello", "vers": version, "deps": [], "features": {}}).to_string();
    let mut body = u32::try_from(metadata.len()).unwrap().to_le_bytes().to_vec();
    body.extend(metadata.as_bytes());
    body.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
    body.extend(bytes);
    body
}

const NEW: &str = "api/v1/crates/new";

#[test]
fn cargo_learns_where_to_get_a_token_and_sends_it_without_a_scheme() {
    let fifth = FormatServer::start("crates");
    let mine = fifth.hosted("mine");
    let login = format!("Cargo login_url=\"http://{}/tokens\"", fifth.server.api());
    let anonymous = fifth.server.anonymous();
    let required = "Authentication is required.";
    let refused =
        "The credential that was sent is not accepted: the token or password is wrong, or it was deleted.";
    for (client, sentence) in [
        (&anonymous, required),
        (&fifth.sends("pkh_wrong"), refused),
        (&fifth.sends("Bearer pkh_wrong"), refused),
    ] {
        for answer in [
            client.get("/crates/mine/config.json"),
            client.get("/crates/absent/config.json"),
            client.put(&format!("/crates/mine/{NEW}"), published("1.0.0", b"crate")),
        ] {
            cargo_reads(&answer, 401, sentence);
            assert_eq!(answer.header("www-authenticate"), Some(login.as_str()));
        }
    }
    let cargo = fifth.sends(&fifth.token(&[&mine], &["read", "write"]).secret);
    let config = cargo.get("/crates/mine/config.json").expect(200).json();
    let address = format!("http://{}/crates/mine", fifth.server.packages());
    assert_eq!(
        config,
        json!({"dl": format!("{address}/api/v1/crates"), "api": address, "auth-required": true})
    );
    let answer = cargo.put(&format!("/crates/mine/{NEW}"), published("1.0.0", b"crate")).expect(200);
    assert!(answer.json()["warnings"].is_object());
    let line: Value =
        serde_json::from_str(&cargo.get("/crates/mine/he/ll/hello").expect(200).text()).unwrap();
    assert_eq!((line["name"].as_str(), line["vers"].as_str()), (Some("hello"), Some("1.0.0")));
    assert_eq!(line["cksum"], packhouse_tests::digests::sha256(b"crate"));
    let download = cargo.get("/crates/mine/api/v1/crates/hello/1.0.0/download").expect(200);
    assert_eq!(download.text(), "crate");
}

#[test]
fn cargo_can_read_every_refusal_including_the_hosts() {
    let fifth = FormatServer::start("crates");
    let (mine, proxy) = (fifth.hosted("mine"), fifth.proxy("proxy"));
    fifth.hosted("other");
    let cargo = fifth.sends(&fifth.token(&[&mine, &proxy], &["read", "write"]).secret);
    let reader = fifth.sends(&fifth.token(&[&mine], &["read"]).secret);
    let publish =
        |client: &Client, name: &str, body: Vec<u8>| client.put(&format!("/crates/{name}/{NEW}"), body);
    let body = || published("1.0.0", b"crate");

    publish(&cargo, "mine", body()).expect(200);
    let again = publish(&cargo, "mine", body());
    cargo_reads(&again, 409, "crate version `1.0.0` is already uploaded");
    let no_write = "This credential may not do this here: [write]";
    cargo_reads(&publish(&reader, "mine", body()), 403, no_write);
    let not_reached = "This credential does not reach this repository. 2242";
    cargo_reads(&cargo.get("/crates/other/config.json"), 403, not_reached);
    let no_storage = "A proxy repository contains only packages that it fetched; clients cannot write to it.";
    cargo_reads(&publish(&cargo, "proxy", body()), 405, no_storage);
    let large = publish(&cargo, "mine", vec![0; (1 << 20) + 1]);
    cargo_reads(&large, 413, "The file exceeds the limit of 1048576 bytes.");
    cargo_reads(&cargo.get("/crates/absent/config.json"), 404, "Not found.");
    cargo_reads(&cargo.get("/crates/mine/no/ne/none"), 404, "There is no such crate");
    let malformed = cargo.get("/crates/mine/%zz");
    assert_eq!(malformed.status, 400);
    let errors = malformed.json();
    assert!(errors["errors"][0]["detail"].as_str().unwrap().starts_with("The URL is malformed"), "{errors}");

    // At the repository's own address the format is known as soon as the caller is authenticated.
    cargo_reads(&cargo.get("/repositories/other/config.json"), 403, not_reached);
}

#[test]
fn the_released_keyword_for_registries_equals_the_description_of_images() {
    let text = checkout().join("host/runtime/src/description/registry.json");
    let word: Value = serde_json::from_str(&std::fs::read_to_string(text).unwrap()).unwrap();
    let described: Value = serde_json::from_str(&packhouse_oci::Oci::describe().to_json()).unwrap();
    assert_eq!(described["errors"], word["errors"]);
    let limits = &described["limits"];
    assert_eq!(limits["named"]["manifest"]["excess"], word["manifest"]);
    assert_eq!(limits["named"]["manifest"]["max_bytes"], limits["max_manifest_bytes"]);
}
