//! Order of checks. The server checks a right that does not depend on an object before it looks the
//! object up. So a caller without the right learns nothing about existing objects.

use packhouse_tests::{Api, Response, Server};
use serde_json::{Value, json};

use super::{is, member, permissions, signed_in};

/// Checks that a caller without the right gets the same response for existing and missing objects.
fn assert_same_refusal(call: impl Fn(&str) -> Response, known: &str, unknown: &[&str], code: &str) {
    for id in [known].iter().chain(unknown) {
        let answer = call(id);
        assert_eq!((answer.status, answer.field("error").as_str()), (403, code), "{id}: {}", answer.text());
    }
}

#[test]
fn members_are_hidden_from_callers_without_the_right() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let other = member(&owner, "other@example.com", &permissions(&[], "*", &[]));
    let dev = signed_in(&server, "dev@example.com", &permissions(&["manage-repositories"], "*", &["read"]));
    let tokens = |email: &str| dev.call("GET", &format!("/v1/tokens?member={email}"));
    assert_same_refusal(
        tokens,
        "other@example.com",
        &["nobody@example.com", "nonsense"],
        "insufficient_permissions",
    );
    // Members may list their own tokens, however they spell their address.
    dev.call("GET", "/v1/tokens?member=dev@example.com").expect(200);
    dev.call("GET", "/v1/tokens?member=Dev@Example.com").expect(200);
    is(&dev.call("GET", "/v1/tokens?member=%20"), 400, "invalid_user_id");
    is(&owner.call("GET", "/v1/tokens?member=nobody@example.com"), 404, "user_not_found");

    let unknown = ["12345", "x"];
    let at = |id: &str, rest: &str| format!("/v1/members/{id}{rest}");
    assert_same_refusal(|id| dev.call("GET", &at(id, "")), &other, &unknown, "insufficient_permissions");
    assert_same_refusal(|id| dev.call("DELETE", &at(id, "")), &other, &unknown, "role_mismatch");
    assert_same_refusal(|id| dev.call("POST", &at(id, "/password-reset")), &other, &unknown, "role_mismatch");
    let none = json!({"permissions": {"organization": [], "repositories": []}});
    assert_same_refusal(
        |id| dev.send("PUT", &at(id, "/permissions"), &none),
        &other,
        &unknown,
        "role_mismatch",
    );
    // This member may not reset any password. So the refusal is the same whether or not the account
    // exists.
    let reader = signed_in(&server, "reader@example.com", &permissions(&["manage-members"], "*", &["read"]));
    assert_same_refusal(
        |id| reader.call("POST", &at(id, "/password-reset")),
        &other,
        &unknown,
        "role_mismatch",
    );
    reader.call("DELETE", &at("12345", "")).expect(404);
    let own = dev.call("GET", "/v1/me").expect(200).field("id");
    dev.call("GET", &at(&own, "")).expect(200);
    for (method, path) in
        [("GET", at("12345", "")), ("DELETE", at("x", "")), ("POST", at("12345", "/password-reset"))]
    {
        owner.call(method, &path).expect(404);
    }
}

#[test]
fn objects_are_hidden_from_callers_without_the_right_to_manage_them() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let repository = owner.create_proxy("hub", "docker", "https://upstream.example/", &json!({}));
    let new = json!({"name": "ACME", "repositories": [repository]});
    let subscriber = owner.post("/v1/subscribers", &new).expect(201).field("id");
    let group = owner.post("/v1/subscriber-groups", &new).expect(201).field("id");
    // This member may read the repository and so knows that it exists.
    let dev =
        signed_in(&server, "dev@example.com", &permissions(&["manage-members"], &repository, &["read"]));
    let lacks = "insufficient_permissions";
    let unknown = ["12345", "x"];

    let at = |id: &str, rest: &str| format!("/v1/repositories/{id}{rest}");
    assert_same_refusal(|id| dev.patch(&at(id, ""), &json!({"settings": {}})), &repository, &unknown, lacks);
    assert_same_refusal(|id| dev.call("DELETE", &at(id, "")), &repository, &unknown, lacks);
    assert_same_refusal(|id| dev.call("GET", &at(id, "/cache")), &repository, &unknown, lacks);
    assert_same_refusal(|id| dev.call("DELETE", &at(id, "/cache")), &repository, &unknown, lacks);
    let credentials = |id: &str| {
        let body = json!({"username": "u", "password": "p",
            "confirmation_token": dev.confirm("set_upstream_credentials")});
        dev.send("PUT", &at(id, "/upstream-credentials"), &body)
    };
    assert_same_refusal(credentials, &repository, &unknown, lacks);
    assert_same_refusal(
        |name| dev.patch(&format!("/v1/formats/{name}"), &json!({"enabled": true})),
        "maven",
        &["none"],
        lacks,
    );

    for (kind, known) in [("subscribers", &subscriber), ("subscriber-groups", &group)] {
        let at = |id: &str, rest: &str| format!("/v1/{kind}/{id}{rest}");
        assert_same_refusal(|id| dev.call("GET", &at(id, "")), known, &unknown, lacks);
        assert_same_refusal(|id| dev.call("DELETE", &at(id, "")), known, &unknown, lacks);
        assert_same_refusal(|id| dev.patch(&at(id, ""), &json!({"name": "b"})), known, &unknown, lacks);
        assert_same_refusal(|id| dev.call("GET", &at(id, "/access-keys")), known, &unknown, lacks);
        let confirmed = |method: &str, path: String, mut body: Value| {
            body["confirmation_token"] = json!(dev.confirm("manage_access_keys"));
            dev.send(method, &path, &body)
        };
        let expiry = json!({"expires_at": null, "expected_expires_at": null});
        assert_same_refusal(
            |id| confirmed("POST", at(id, "/access-keys"), json!({"expires_at": null})),
            known,
            &unknown,
            lacks,
        );
        assert_same_refusal(
            |id| confirmed("PATCH", at(id, "/access-keys/1"), expiry.clone()),
            known,
            &unknown,
            lacks,
        );
        assert_same_refusal(
            |id| confirmed("DELETE", at(id, "/access-keys/1"), json!({})),
            known,
            &unknown,
            lacks,
        );
        assert_same_refusal(
            |id| confirmed("POST", at(id, "/access-keys/1/rotation"), json!({})),
            known,
            &unknown,
            lacks,
        );
    }
    // The server checks the confirmation before anything else.
    is(&dev.post("/v1/subscribers/x/access-keys", &json!({"expires_at": null})), 403, "step_up_required");
    let manager = signed_in(&server, "manager@example.com", &permissions(&["manage-repositories"], "*", &[]));
    is(&manager.patch(&at("12345", ""), &json!({"settings": {}})), 404, "not_found");
}

#[test]
fn packages_are_hidden_from_callers_who_may_not_read() {
    let server = Server::start();
    let repository = packhouse_tests::MavenRepository::create(&server, "secret");
    repository.put("org/example/a/1.0/a-1.0.jar", "hello").expect(201);
    let path = |name: &str| format!("/v1/repositories/{}/packages/{name}", repository.id);
    let names = ["org.example%3Aa", "org.example%3Anone"];
    let manager =
        signed_in(&server, "manager@example.com", &permissions(&["manage-repositories"], "*", &["publish"]));
    for name in names {
        is(&manager.call("DELETE", &path(name)), 404, "not_found");
        is(&manager.call("GET", &format!("{}/versions", path(name))), 403, "role_mismatch");
    }
    let reader = signed_in(&server, "reader@example.com", &permissions(&[], "*", &["read"]));
    is(&reader.call("DELETE", &path(names[0])), 403, "role_mismatch");
    is(&reader.call("DELETE", &path(names[1])), 404, "not_found");
    repository.get("org/example/a/1.0/a-1.0.jar").expect(200);
}
