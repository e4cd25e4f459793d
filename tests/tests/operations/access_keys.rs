//! Access keys as clients use them: the content that a key can read, and its revocation, rotation
//! and expiry.

use packhouse_tests::{Api, Client, MavenRepository, Request, Server, database};
use serde_json::{Value, json};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";

/// Creates an owner of access keys, such as a subscriber or a group, and returns its API path.
fn owner_of_keys(api: &Api, kind: &str, body: &Value) -> String {
    format!("/v1/{kind}/{}", api.post(&format!("/v1/{kind}"), body).expect(201).field("id"))
}

fn confirmed(api: &Api, mut body: Value) -> Value {
    body["confirmation_token"] = json!(api.confirm("manage_access_keys"));
    body
}

/// Creates a key of this owner and returns its id and its secret.
fn key(api: &Api, owner: &str, expires_at: Option<u64>) -> (String, String) {
    let body = confirmed(api, json!({"name": "ci", "expires_at": expires_at}));
    let made = api.post(&format!("{owner}/access-keys"), &body).expect(201);
    (made.field("id"), made.field("secret"))
}

fn client(server: &Server, secret: &str) -> Client {
    server.anonymous().basic("whoever", secret)
}

#[test]
fn a_key_reads_what_its_owner_was_given_and_nothing_else() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let [given, by_group, other] = ["given", "by-group", "other"].map(|name| {
        let repository = MavenRepository::create(&server, name);
        repository.put(FILE, name).expect(201);
        repository
    });
    let subscriber = owner_of_keys(&api, "subscribers", &json!({"name": "ACME", "repositories": [given.id]}));
    let id = subscriber.rsplit('/').next().unwrap();
    let group = json!({"name": "All", "subscribers": [id], "repositories": [by_group.id]});
    let group = owner_of_keys(&api, "subscriber-groups", &group);
    let (subscribers, groups) = (key(&api, &subscriber, None).1, key(&api, &group, None).1);
    assert!(subscribers.starts_with("pkh_"));

    let read = |secret: &str, repository: &MavenRepository| {
        let answer = client(&server, secret).get(&repository.path(FILE));
        (answer.status, answer.text())
    };
    assert_eq!(read(&subscribers, &given), (200, "given".to_owned()));
    assert_eq!(read(&subscribers, &by_group), (200, "by-group".to_owned()));
    assert_eq!(read(&groups, &by_group), (200, "by-group".to_owned()));
    for (secret, repository) in [(&subscribers, &other), (&groups, &given), (&groups, &other)] {
        let refused = client(&server, secret).get(&repository.path(FILE)).expect(403);
        assert_eq!(refused.field("reason_code"), "scope_mismatch_repo");
        assert!(refused.field("error").ends_with("2242"));
    }
    for method in ["PUT", "DELETE"] {
        let request = Request::new(method, &given.path("org/example/a/2.0/a-2.0.jar")).body("x");
        let refused = client(&server, &subscribers).send(request).expect(403);
        assert_eq!(refused.field("reason_code"), "scope_mismatch_repo");
    }
    let anonymous = server.anonymous();
    for authenticated in [
        anonymous.clone().basic("", &subscribers),
        anonymous.clone().basic("__token__", &subscribers),
        anonymous.with("Authorization", &format!("Bearer {subscribers}")),
    ] {
        authenticated.get(&given.path(FILE)).expect(200);
    }
    // When a subscriber or a group loses access to a repository, its keys lose access at the next
    // request.
    api.patch(&group, &json!({"subscribers": []})).expect(200);
    assert_eq!(read(&subscribers, &by_group).0, 403);
    api.patch(&subscriber, &json!({"repositories": [other.id]})).expect(200);
    assert_eq!((read(&subscribers, &given).0, read(&subscribers, &other).0), (403, 200));
    api.call("DELETE", &subscriber).expect(204);
    assert_eq!(read(&subscribers, &other).0, 401);
    // An access key is not a session.
    let bearer = Client::new(server.api()).with("Authorization", &format!("Bearer {groups}"));
    bearer.get("/v1/me").expect(401);
}

#[test]
fn a_key_that_was_revoked_rotated_or_has_expired_is_401() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let repository = MavenRepository::create(&server, "ended");
    repository.put(FILE, "hello").expect(201);
    let owner = owner_of_keys(&api, "subscribers", &json!({"name": "ACME", "repositories": [repository.id]}));
    let status = |secret: &str| client(&server, secret).get(&repository.path(FILE)).status;

    let (id, secret) = key(&api, &owner, None);
    let path = format!("{owner}/access-keys/{id}");
    assert_eq!(status(&secret), 200);
    let rotate = |hours: u32| {
        api.post(&format!("{path}/rotation"), &confirmed(&api, json!({"overlap_hours": hours}))).expect(201)
    };
    let successor = rotate(1).field("secret");
    assert_eq!((status(&secret), status(&successor)), (200, 200));
    rotate(0);
    assert_eq!((status(&secret), status(&successor)), (401, 200));

    let (id, secret) = key(&api, &owner, None);
    assert_eq!(status(&secret), 200);
    let revoke = confirmed(&api, json!({}));
    api.send("DELETE", &format!("{owner}/access-keys/{id}"), &revoke).expect(204);
    assert_eq!(status(&secret), 401);

    let (_, secret) = key(&api, &owner, Some(4_000_000_000_000));
    assert_eq!(status(&secret), 200);
    // The test changes the database directly, as another node would. The server must notice the
    // change at the very next request.
    database::sqlite(
        &server,
        "update access_keys set expires_at = 1000 where id = (select max(id) from access_keys)",
    );
    assert_eq!(status(&secret), 401);
    let dump = database::sqlite(&server, ".dump");
    assert!(!dump.contains(&secret) && !dump.contains(&successor), "the database contains a secret");
}
