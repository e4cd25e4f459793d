//! A right that no object decides is judged before it is looked whether there is such an object: who does not hold it learns nothing
//! of what there is.

use packhouse_tests::{Api, Response, Server};
use serde_json::{Value, json};

use super::{is, member, permissions, signed_in};

/// What one path answers to whoever lacks the right: the same for what is there and for what is not.
fn alike(call: impl Fn(&str) -> Response, known: &str, unknown: &[&str], code: &str) {
    for id in [known].iter().chain(unknown) {
        let answer = call(id);
        assert_eq!((answer.status, answer.field("error").as_str()), (403, code), "{id}: {}", answer.text());
    }
}

#[test]
fn nobody_learns_who_is_a_member() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let other = member(&owner, "other@example.com", &permissions(&[], "*", &[]));
    let dev = signed_in(&server, "dev@example.com", &permissions(&["manage-repositories"], "*", &["read"]));
    let tokens = |email: &str| dev.call("GET", &format!("/v1/tokens?member={email}"));
    alike(tokens, "other@example.com", &["nobody@example.com", "nonsense"], "insufficient_permissions");
    // Their own, however it is written, and blank as before.
    dev.call("GET", "/v1/tokens?member=dev@example.com").expect(200);
    dev.call("GET", "/v1/tokens?member=Dev@Example.com").expect(200);
    is(&dev.call("GET", "/v1/tokens?member=%20"), 400, "invalid_user_id");
    is(&owner.call("GET", "/v1/tokens?member=nobody@example.com"), 404, "user_not_found");

    let unknown = ["12345", "x"];
    let at = |id: &str, rest: &str| format!("/v1/members/{id}{rest}");
    alike(|id| dev.call("GET", &at(id, "")), &other, &unknown, "insufficient_permissions");
    alike(|id| dev.call("DELETE", &at(id, "")), &other, &unknown, "role_mismatch");
    alike(|id| dev.call("POST", &at(id, "/password-reset")), &other, &unknown, "role_mismatch");
    let none = json!({"permissions": {"organization": [], "repositories": []}});
    alike(|id| dev.send("PUT", &at(id, "/permissions"), &none), &other, &unknown, "role_mismatch");
    // A read-only member resets nobody's password, whoever it is.
    let reader = signed_in(&server, "reader@example.com", &permissions(&["manage-members"], "*", &["read"]));
    alike(|id| reader.call("POST", &at(id, "/password-reset")), &other, &unknown, "role_mismatch");
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
fn nobody_learns_what_is_there_without_the_right_to_manage_it() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let repository = owner.create_proxy("hub", "docker", "https://upstream.example/", &json!({}));
    let new = json!({"name": "ACME", "repositories": [repository]});
    let subscriber = owner.post("/v1/subscribers", &new).expect(201).field("id");
    let group = owner.post("/v1/subscriber-groups", &new).expect(201).field("id");
    // May read the repository, and so knows of it.
    let dev =
        signed_in(&server, "dev@example.com", &permissions(&["manage-members"], &repository, &["read"]));
    let lacks = "insufficient_permissions";
    let unknown = ["12345", "x"];

    let at = |id: &str, rest: &str| format!("/v1/repositories/{id}{rest}");
    alike(|id| dev.patch(&at(id, ""), &json!({"settings": {}})), &repository, &unknown, lacks);
    alike(|id| dev.call("DELETE", &at(id, "")), &repository, &unknown, lacks);
    alike(|id| dev.call("GET", &at(id, "/cache")), &repository, &unknown, lacks);
    alike(|id| dev.call("DELETE", &at(id, "/cache")), &repository, &unknown, lacks);
    let credentials = |id: &str| {
        let body = json!({"username": "u", "password": "p",
            "confirmation_token": dev.confirm("set_upstream_credentials")});
        dev.send("PUT", &at(id, "/upstream-credentials"), &body)
    };
    alike(credentials, &repository, &unknown, lacks);
    alike(
        |name| dev.patch(&format!("/v1/formats/{name}"), &json!({"enabled": true})),
        "maven",
        &["none"],
        lacks,
    );

    for (kind, known) in [("subscribers", &subscriber), ("subscriber-groups", &group)] {
        let at = |id: &str, rest: &str| format!("/v1/{kind}/{id}{rest}");
        alike(|id| dev.call("GET", &at(id, "")), known, &unknown, lacks);
        alike(|id| dev.call("DELETE", &at(id, "")), known, &unknown, lacks);
        alike(|id| dev.patch(&at(id, ""), &json!({"name": "b"})), known, &unknown, lacks);
        alike(|id| dev.call("GET", &at(id, "/access-keys")), known, &unknown, lacks);
        let confirmed = |method: &str, path: String, mut body: Value| {
            body["confirmation_token"] = json!(dev.confirm("manage_access_keys"));
            dev.send(method, &path, &body)
        };
        let expiry = json!({"expires_at": null, "expected_expires_at": null});
        alike(
            |id| confirmed("POST", at(id, "/access-keys"), json!({"expires_at": null})),
            known,
            &unknown,
            lacks,
        );
        alike(|id| confirmed("PATCH", at(id, "/access-keys/1"), expiry.clone()), known, &unknown, lacks);
        alike(|id| confirmed("DELETE", at(id, "/access-keys/1"), json!({})), known, &unknown, lacks);
        alike(|id| confirmed("POST", at(id, "/access-keys/1/rotation"), json!({})), known, &unknown, lacks);
    }
    // A confirmation stands before, as ever.
    is(&dev.post("/v1/subscribers/x/access-keys", &json!({"expires_at": null})), 403, "step_up_required");
    let manager = signed_in(&server, "manager@example.com", &permissions(&["manage-repositories"], "*", &[]));
    is(&manager.patch(&at("12345", ""), &json!({"settings": {}})), 404, "not_found");
}

#[test]
fn nobody_learns_which_packages_there_are_where_they_may_not_read() {
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
