//! Previews, runs and recordings of policies contain no package names from repositories that the
//! caller may not read.

use packhouse_tests::database::sqlite;
use packhouse_tests::person::Person;
use packhouse_tests::server::{OWNER, PASSWORD, eventually};
use packhouse_tests::{Api, MavenRepository, Server};
use serde_json::{Value, json};

const RETENTION: &str = "/v1/retention-policies";
const POLICIES: &str = "/v1/policies";
const MANAGER: &str = "m@example.com";

/// Two repositories with one version each, and a repository manager who may read only the first.
struct PreviewFixture {
    owner: Api,
    manager: Api,
    open: MavenRepository,
    secret: MavenRepository,
    server: Server,
}

impl PreviewFixture {
    fn start() -> PreviewFixture {
        let server = Server::start();
        let owner = Api::sign_in(&server);
        let open = MavenRepository::create(&server, "open");
        let secret = MavenRepository::create(&server, "secret");
        open.put("org/example/known/1.0/known-1.0.jar", "x").expect(201);
        secret.put("org/example/hidden/1.0/hidden-1.0.jar", "x").expect(201);
        let permissions = json!({
            "organization": ["manage-repositories"],
            "repositories": [{"repository": open.id, "actions": ["read"]}],
        });
        let member = json!({"email": MANAGER, "password": PASSWORD, "permissions": permissions});
        owner.post("/v1/members", &member).expect(201);
        let manager = Api::sign_in_as(&server, MANAGER, PASSWORD);
        PreviewFixture { owner, manager, open, secret, server }
    }
}

/// Returns the packages that a preview names, and the number of packages that it leaves out.
fn named_packages(preview: &Value) -> (Vec<String>, u64) {
    let items = preview["items"].as_array().unwrap().iter();
    let names = items.map(|item| item["package"].as_str().unwrap().to_owned()).collect();
    (names, preview["hidden"].as_u64().unwrap())
}

fn both() -> Vec<String> {
    ["org.example:known", "org.example:hidden"].map(str::to_owned).to_vec()
}

#[test]
fn a_preview_of_retention_names_only_what_the_caller_may_read() {
    let world = PreviewFixture::start();
    let body = json!({
        "name": "all", "repositories": "*", "delete": {"published_before_days": 0}, "max_deletes": 1000,
    });
    let id = world.owner.post(RETENTION, &body).expect(201).field("id");
    let path = format!("{RETENTION}/{id}/preview");
    let preview = world.manager.call("POST", &path).expect(200).json();
    assert_eq!(named_packages(&preview), (vec!["org.example:known".to_owned()], 1));
    assert_eq!(preview["versions"], 2, "the unnamed version is still counted");
    assert!(!preview.to_string().contains("hidden-1.0") && !preview.to_string().contains("example:hidden"));
    let (mut names, hidden) = named_packages(&world.owner.call("POST", &path).expect(200).json());
    names.sort();
    let mut expected = both();
    expected.sort();
    assert_eq!((names, hidden), (expected, 0));
}

#[test]
fn the_report_of_a_run_names_only_what_the_caller_may_read() {
    let world = PreviewFixture::start();
    let body = json!({
        "name": "nothing", "repositories": "*", "match": {"packages": ["nothing*"]},
        "delete": {"published_before_days": 0}, "max_deletes": 1000,
    });
    let id = world.owner.post(RETENTION, &body).expect(201).field("id");
    let policy = format!("{RETENTION}/{id}");
    world.owner.call("POST", &format!("{policy}/preview")).expect(200);
    world.owner.patch(&policy, &json!({"mode": "enforced"})).expect(200);
    let path = format!("{policy}/runs");
    world.owner.call("POST", &path).expect(202);
    let last = |api: &Api| api.call("GET", &path).expect(200).json()["items"][0].clone();
    eventually("the run has ended", || last(&world.owner)["ended_at"].is_i64().then_some(()));
    // A run skips only versions that another request changes at that very moment. So the test
    // itself writes a report with skipped versions.
    let skipped = |repository: &MavenRepository, package: &str| {
        json!({
            "repository": repository.id, "package": package, "version": "1.0", "published_at": 1,
            "last_downloaded_at": null, "bytes": 1, "because": "It was deleted in the meantime.",
        })
    };
    let [known, hidden] = ["org.example:known", "org.example:hidden"];
    let report = json!([skipped(&world.open, known), skipped(&world.secret, hidden)]);
    sqlite(&world.server, &format!("update retention_runs set skipped = '{report}'"));

    for (api, email, expected) in
        [(&world.owner, OWNER, &[known, hidden][..]), (&world.manager, MANAGER, &[known])]
    {
        let run = last(api);
        let packages: Vec<&str> =
            run["skipped"].as_array().unwrap().iter().map(|one| one["package"].as_str().unwrap()).collect();
        assert_eq!(packages, expected, "{email}");
        let page = format!("/retention/{id}");
        let page = Person::signed_in(&world.server, email, PASSWORD).get(&page).expect(200).text();
        assert!(page.contains(known), "{email}: {page}");
        assert_eq!(page.contains(hidden), expected.contains(&hidden), "{email}: {page}");
    }
}

#[test]
fn a_preview_of_a_policy_names_only_what_the_caller_may_read() {
    let world = PreviewFixture::start();
    let body = json!({
        "name": "ours", "component": "names", "settings": {"publish": ["acme:*"]}, "repositories": "*",
    });
    let id = world.owner.post(POLICIES, &body).expect(201).field("id");
    let path = format!("{POLICIES}/{id}/preview");
    let preview = world.manager.call("POST", &path).expect(200).json();
    assert_eq!(named_packages(&preview), (vec!["org.example:known".to_owned()], 1));
    assert_eq!((&preview["versions"], &preview["denied"]), (&json!(2), &json!(2)));
    assert_eq!(named_packages(&world.owner.call("POST", &path).expect(200).json()).0.len(), 2);
}

#[test]
fn a_recording_of_a_policy_needs_read_access_to_its_repository() {
    let world = PreviewFixture::start();
    let body = json!({
        "name": "ours", "component": "licences", "settings": {"allow": ["MIT"], "unknown": "deny"},
        "repositories": [world.secret.id],
    });
    let id = world.owner.post(POLICIES, &body).expect(201).field("id");
    world.owner.call("POST", &format!("{POLICIES}/{id}/preview")).expect(200);
    world.owner.patch(&format!("{POLICIES}/{id}"), &json!({"mode": "enforced"})).expect(200);
    let path = format!("{POLICIES}/{id}/recordings");
    world.owner.post(&path, &json!({"count": 1})).expect(201);
    world.secret.put("org/example/hidden/2.0/hidden-2.0.jar", "x").expect(403);
    let recording = eventually("the call is recorded", || {
        let listed = world.owner.call("GET", &path).expect(200).json();
        listed["items"].get(0).map(|item| item["id"].as_str().unwrap().to_owned())
    });
    let file = format!("{path}/{recording}");
    let refused = world.manager.call("GET", &file).expect(403);
    assert_eq!(refused.field("error"), "repo_access_denied");
    assert!(!refused.text().contains("hidden"));
    assert!(world.owner.call("GET", &file).expect(200).text().contains("org.example:hidden"));
}
