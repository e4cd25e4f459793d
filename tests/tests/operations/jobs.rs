//! The background jobs of a server, as its operators see them.

use packhouse_tests::person::Person;
use packhouse_tests::{Api, Client, Server};
use serde_json::{Value, json};

const PASSWORD: &str = "correct horse battery staple";

fn jobs(api: &Api) -> Vec<Value> {
    api.call("GET", "/v1/jobs?limit=200").expect(200).json()["items"].as_array().unwrap().clone()
}

#[test]
fn every_job_says_what_it_does_and_when() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let jobs = jobs(&api);
    let names: Vec<&str> = jobs.iter().map(|job| job["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted(), "{names:?}");
    for expected in
        ["check-dependencies", "collect-garbage", "empty-trash", "follow-plugins", "run-retention"]
    {
        assert!(names.contains(&expected), "{expected} of {names:?}");
    }
    for job in &jobs {
        assert!(job["period_s"].as_u64().unwrap() >= 1, "{job}");
        assert!(["idle", "running"].contains(&job["state"].as_str().unwrap()), "{job}");
        assert!(job["last_error"].is_null(), "{job}");
        assert_eq!(job["next_at"].is_null(), job["state"] == "running", "{job}");
    }
    let metrics = Client::new(server.api()).get("/metrics").expect(200).text();
    for name in names {
        assert!(metrics.contains(&format!("packhouse_job_runs_total{{job=\"{name}\"")), "{name}");
    }
}

#[test]
fn the_list_comes_in_pages() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let all: Vec<Value> = jobs(&api).iter().map(|job| job["name"].clone()).collect();
    let mut after = String::new();
    let mut listed = Vec::new();
    loop {
        let page = api.call("GET", &format!("/v1/jobs?limit=5{after}")).expect(200).json();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 5, "{page}");
        listed.extend(items.iter().map(|job| job["name"].clone()));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(listed, all);
}

#[test]
fn only_operators_of_the_server_see_its_jobs() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let member = json!({
        "email": "some@example.com", "password": PASSWORD,
        "permissions": {"organization": ["manage-members", "manage-repositories"]},
    });
    owner.post("/v1/members", &member).expect(201);
    let member = Api::sign_in_as(&server, "some@example.com", PASSWORD);
    assert_eq!(member.call("GET", "/v1/jobs").expect(403).field("error"), "insufficient_permissions");
    Client::new(server.api()).get("/v1/jobs").expect(401);
}

#[test]
fn the_page_lists_the_jobs() {
    let server = Server::start();
    let mut person = Person::owner(&server);
    let page = person.get("/jobs").expect(200).text();
    assert!(
        page.contains("collect-garbage") && page.contains("No background job of this server fails."),
        "{page}"
    );
}
