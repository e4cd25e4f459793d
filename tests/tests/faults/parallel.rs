//! Many concurrent calls: exactly the allowed number of them succeeds. A revoked credential does
//! not work for one more request.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use packhouse_tests::database::Postgres;
use packhouse_tests::race::at_once;
use packhouse_tests::server::{OWNER, PASSWORD, eventually};
use packhouse_tests::{Api, Client, MavenRepository, Request, Response, Server};
use serde_json::json;

const FILE: &str = "org/example/a/1.0/a-1.0.jar";

/// Makes `count` concurrent calls; returns how many of them got each pair of status and code.
fn answers_at_once(count: usize, call: impl Fn(usize) -> Response + Sync) -> BTreeMap<(u16, String), usize> {
    let mut counted = BTreeMap::new();
    for answer in at_once(count, call) {
        let code = if answer.status < 400 { String::new() } else { answer.field("error") };
        *counted.entry((answer.status, code)).or_default() += 1;
    }
    counted
}

fn counted(expected: &[(u16, &str, usize)]) -> BTreeMap<(u16, String), usize> {
    expected.iter().map(|(status, code, count)| ((*status, (*code).to_owned()), *count)).collect()
}

/// Starts a server on each kind of database: SQLite and PostgreSQL.
fn servers() -> Vec<(Server, Option<Postgres>)> {
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let shared = Server::with().arg("--database-url").arg(&postgres.url()).start();
    vec![(Server::start(), None), (shared, Some(postgres))]
}

#[test]
fn one_of_fifty_rotations_without_overlap_succeeds() {
    for (server, _database) in servers() {
        let api = Api::sign_in(&server);
        let repository = MavenRepository::create(&server, "rotated");
        let path = format!("/v1/tokens/{}/rotation", repository.token.id);
        let confirmations: Vec<String> = (0..50).map(|_| api.confirm("rotate_token")).collect();
        let answers = answers_at_once(50, |number| {
            api.post(&path, &json!({"overlap_hours": 0, "confirmation_token": confirmations[number]}))
        });
        assert_eq!(answers, counted(&[(201, "", 1), (409, "token_revoked", 49)]));
        repository.get(FILE).expect(401);
    }
}

#[test]
fn fifty_rotations_with_an_overlap_never_prolong_it() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let repository = MavenRepository::create(&server, "overlapping");
    let path = format!("/v1/tokens/{}/rotation", repository.token.id);
    let confirmations: Vec<String> = (0..50).map(|_| api.confirm("rotate_token")).collect();
    let answers =
        answers_at_once(50, |number| api.post(&path, &json!({"confirmation_token": confirmations[number]})));
    let made = answers.get(&(201, String::new())).copied().unwrap_or_default();
    let late = answers.get(&(400, "overlap_exceeds_scheduled_end".to_owned())).copied().unwrap_or_default();
    // Several rotations may succeed in the same millisecond: they request the same end of the
    // overlap, so they do not prolong it.
    assert!(made >= 1 && made + late == 50, "{answers:?}");
    let listed = api.call("GET", "/v1/tokens?limit=200").expect(200).json();
    let states: Vec<&str> =
        listed["items"].as_array().unwrap().iter().map(|token| token["state"].as_str().unwrap()).collect();
    assert_eq!(states.iter().filter(|state| **state == "rotating").count(), 1);
    assert_eq!(states.iter().filter(|state| **state == "active").count(), made);
}

#[test]
fn one_of_twenty_uses_of_a_confirmation_succeeds() {
    for (server, _database) in servers() {
        let api = Api::sign_in(&server);
        let repository = MavenRepository::create(&server, "confirmed");
        let body = json!({"name": "ci", "scope": ["read"], "format": "generic", "repositories": [repository.id],
            "expires_at": null, "confirmation_token": api.confirm("create_token")});
        let answers = answers_at_once(20, |_| api.post("/v1/tokens", &body));
        assert_eq!(answers, counted(&[(201, "", 1), (401, "step_up_required", 19)]));
    }
}

#[test]
fn one_of_fifty_acceptances_of_an_invitation_succeeds() {
    for (server, _database) in servers() {
        let api = Api::sign_in(&server);
        let permissions = json!({"organization": [], "repositories": []});
        let invite = |email: &str| {
            let body = json!({"email": email, "permissions": permissions});
            format!("/v1/invitations/{}/accept", api.post("/v1/invitations", &body).expect(201).field("code"))
        };
        let accept = |path: &str| {
            let request = Request::new("POST", path).header("Content-Type", "application/json");
            let body = json!({"password": "a long enough password"});
            Client::new(server.api()).send(request.body(body.to_string()))
        };
        let path = invite("new@example.com");
        let answers = answers_at_once(50, |_| accept(&path));
        assert_eq!(answers, counted(&[(201, "", 1), (404, "not_found", 49)]));
        let taken = invite(OWNER);
        let answers = answers_at_once(10, |_| accept(&taken));
        assert_eq!(answers, counted(&[(404, "not_found", 9), (409, "user_already_exists", 1)]));
    }
}

#[test]
fn one_of_nine_owners_demoted_at_once_remains() {
    for (server, _database) in servers() {
        let api = Api::sign_in(&server);
        let me = api.call("GET", "/v1/me").expect(200).json();
        let ids: Vec<String> = (0..8)
            .map(|number| {
                let body = json!({"email": format!("o{number}@example.com"), "password": PASSWORD,
                    "permissions": me["permissions"]});
                api.post("/v1/members", &body).expect(201).field("id")
            })
            .chain([me["id"].as_str().unwrap().to_owned()])
            .collect();
        let body = json!({"permissions": {"organization": ["manage-members"], "repositories": []}});
        let answers = answers_at_once(ids.len(), |number| {
            api.send("PUT", &format!("/v1/members/{}/permissions", ids[number]), &body)
        });
        let listed = api.call("GET", "/v1/members").expect(200).json();
        let owners = listed["items"].as_array().unwrap().iter().filter(|member| {
            member["permissions"]["organization"].as_array().unwrap().contains(&json!("manage-owner-account"))
        });
        assert!(owners.count() >= 1, "the account has no owner any more: {answers:?}");
    }
}

#[test]
fn a_revoked_token_is_refused_at_once_on_every_node() {
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let blobs = tempfile::tempdir().unwrap();
    let node = || Server::with().data(blobs.path()).arg("--database-url").arg(&postgres.url()).start();
    let (one, other) = (node(), node());
    let repository = MavenRepository::create(&one, "shared");
    repository.put(FILE, "hello").expect(201);
    let api = Api::sign_in(&one);
    let elsewhere = Client::new(other.packages()).basic(OWNER, &repository.token.secret);
    let stop = AtomicBool::new(false);
    let revoked = AtomicBool::new(false);
    let began = AtomicUsize::new(0);
    thread::scope(|scope| {
        let looping = |client: Client| {
            let (stop, revoked, began, path) = (&stop, &revoked, &began, repository.path(FILE));
            move || {
                let mut counts = [0_u32; 2];
                loop {
                    // The client reads the flag before it sends the request. If the revocation was
                    // answered by then, the server must refuse the request.
                    let (over, last) = (revoked.load(Ordering::SeqCst), stop.load(Ordering::SeqCst));
                    let status = client.get(&path).status;
                    match (status, over) {
                        (200, false) => {
                            if counts[0] == 0 {
                                began.fetch_add(1, Ordering::SeqCst);
                            }
                            counts[0] += 1;
                        }
                        (401, _) => counts[1] += 1,
                        other => panic!("{other:?}"),
                    }
                    if last && counts[1] > 0 {
                        return counts;
                    }
                }
            }
        };
        let clients =
            [repository.client.clone(), elsewhere.clone(), elsewhere.clone(), repository.client.clone()];
        let clients = clients.map(|client| scope.spawn(looping(client)));
        eventually("each client was served once", || {
            (began.load(Ordering::SeqCst) == clients.len()).then_some(())
        });
        api.call("DELETE", &format!("/v1/tokens/{}", repository.token.id)).expect(204);
        revoked.store(true, Ordering::SeqCst);
        elsewhere.get(&repository.path(FILE)).expect(401);
        stop.store(true, Ordering::SeqCst);
        for client in clients {
            let [before, after] = client.join().unwrap();
            assert!(before > 0 && after > 0, "{before} before, {after} after");
        }
    });
}
