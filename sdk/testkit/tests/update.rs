//! Tests of SDK features that use the host: retries of changes, and reads from the members of a
//! group.

#![allow(clippy::unwrap_used, reason = "tests must fail loudly")]

use packhouse_sdk::{
    Applied, Context, Description, Expectation, Failure, Format, Outcome, Params, Plan, Repository, Request,
    Response, Router, Step,
};
use packhouse_testkit::{Answer, MemoryHost};
use serde_json::json;

/// Format with a counter in the record `count`, which concurrent callers raise, and with files in
/// the members of a group.
struct Counter;

impl Format for Counter {
    fn describe() -> Description {
        Description::new("counter", "1").kinds(&["hosted", "proxy", "group"])
    }

    fn routes(router: &mut Router) {
        router.put("/raced/{times}", Plan::publish, raced);
        router.put("/reset", Plan::publish, reset);
        router.put("/file/{name}", Plan::publish, put_file);
        router.get("/first/{name}", Plan::read_many, first);
        router.get("/all/{name}", Plan::read_many, all);
    }
}

fn raise(repository: &Repository) -> Result<Applied<u64>, Failure> {
    repository.update(busy, |change| {
        let before = repository.get_json::<u64>("count")?;
        let next = before.as_ref().map_or(1, |entry| entry.value + 1);
        change.put_json("count", &next, Expectation::unchanged(before.as_ref()), &[])?;
        Ok(next)
    })
}

fn busy() -> Failure {
    Failure::busy("the same counter")
}

/// Raises the counter, while another caller raises it too during each of the first `times`
/// attempts.
fn raced(cx: &Context, _request: &Request, params: &Params) -> Result<Response, Failure> {
    let (repository, times) = (cx.target()?, params.segment("times").parse::<usize>().unwrap());
    let mut attempts = 0;
    let applied = repository.update(busy, |change| {
        let stale = change.previous().is_some_and(|outcome| matches!(outcome, Outcome::Stale(_)));
        assert_eq!((stale, change.stale_key()), (attempts > 0, (attempts > 0).then_some("count")));
        attempts += 1;
        let before = repository.get_json::<u64>("count")?;
        if attempts <= times {
            raise(repository)?;
        }
        let next = before.as_ref().map_or(1, |entry| entry.value + 1);
        change.put_json("count", &next, Expectation::unchanged(before.as_ref()), &[])?;
        Ok(next)
    })?;
    assert_eq!(repository.get("count")?.unwrap().revision, applied.revision);
    Ok(Response::text(format!("{} after {attempts}", applied.value)))
}

/// Removes the counter if it exists.
fn reset(cx: &Context, _request: &Request, _params: &Params) -> Result<Response, Failure> {
    let repository = cx.target()?;
    let was_there = repository.update_if_needed(busy, |change| {
        if repository.get("count")?.is_none() {
            return Ok(Step::Done(false));
        }
        change.remove("count", Expectation::Present);
        Ok(Step::Commit(true))
    })?;
    Ok(Response::text(was_there.to_string()))
}

fn put_file(cx: &Context, _request: &Request, params: &Params) -> Result<Response, Failure> {
    let mut change = cx.target()?.begin()?;
    change.put(params.segment("name"), b"here", Expectation::Anything, &[]);
    assert!(matches!(change.commit()?, Outcome::Applied(_)));
    Ok(Response::created())
}

/// Returns the name of the repository if it has the file. For a proxy, fails as if the upstream
/// could not be reached.
fn find(repository: &Repository, name: &str) -> Result<Option<String>, Failure> {
    if repository.is_proxy() {
        return Err(Failure::new(502, "upstream_unavailable", "down"));
    }
    Ok(repository.get(name)?.map(|_| repository.name()))
}

fn first(cx: &Context, _request: &Request, params: &Params) -> Result<Response, Failure> {
    respond(cx.first(|repository| find(repository, params.segment("name")))?)
}

fn all(cx: &Context, _request: &Request, params: &Params) -> Result<Response, Failure> {
    let found = cx.all(|repository| find(repository, params.segment("name")))?;
    respond((!found.is_empty()).then(|| found.join(" ")))
}

fn respond(found: Option<String>) -> Result<Response, Failure> {
    found.map(Response::text).ok_or_else(|| Failure::not_found("nowhere"))
}

#[test]
fn a_change_is_retried_after_a_lost_race() {
    let counter = MemoryHost::new().mount::<Counter>("counter", "hosted", json!({}));
    let raced = |times: u32| counter.put(&format!("/raced/{times}")).send();
    assert_eq!(raced(0).expect(200).text(), "1 after 1");
    assert_eq!(raced(3).expect(200).text(), "5 after 4");
    let refused = raced(100).expect(503);
    assert_eq!(refused.header("retry-after"), Some("1"));
}

#[test]
fn a_change_may_turn_out_not_to_be_needed() {
    let counter = MemoryHost::new().mount::<Counter>("counter", "hosted", json!({}));
    counter.put("/raced/0").send().expect(200);
    for expected in ["true", "false"] {
        assert_eq!(counter.put("/reset").send().expect(200).text(), expected);
    }
}

#[test]
fn members_are_queried_in_order() {
    let host = MemoryHost::new();
    let (one, two) = (
        host.mount::<Counter>("one", "hosted", json!({})),
        host.mount::<Counter>("two", "hosted", json!({})),
    );
    host.mount::<Counter>("proxy", "proxy", json!({}));
    one.put("/file/both").send().expect(201);
    two.put("/file/both").send().expect(201);
    two.put("/file/last").send().expect(201);
    let group = host.mount::<Counter>("all", "group", json!({})).members(&["one", "proxy", "two"]);
    let get = |target: &str, status: u16| -> Answer { group.get(target).send().expect(status) };
    assert_eq!(get("/first/both", 200).text(), "one");
    assert!(host.left_out().is_empty());
    // A proxy whose upstream fails is left out, and the host gets the reason.
    assert_eq!(get("/first/last", 200).text(), "two");
    assert_eq!(host.left_out(), [("proxy".to_owned(), "down".to_owned())]);
    assert_eq!(get("/all/both", 200).text(), "one two");
    // If no other member has the file, the result is the proxy's failure, because the proxy may
    // have the file.
    for path in ["/first/none", "/all/none"] {
        get(path, 502);
        one.get(path).send().expect(404);
    }
}
