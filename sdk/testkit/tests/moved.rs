//! Test that only a publish can move a file from another server.

use packhouse_sdk::{Context, Description, Failure, Format, Params, Plan, Request, Response, Router};
use packhouse_testkit::MemoryHost;
use serde_json::json;

struct Movable;

impl Format for Movable {
    fn describe() -> Description {
        Description::new("movable", "1")
    }

    fn routes(router: &mut Router) {
        router.get("/file", Plan::read, answer);
        router.put("/file", Plan::publish, answer);
    }
}

fn answer(_cx: &Context, request: &Request, _params: &Params) -> Result<Response, Failure> {
    Ok(Response::text(request.is_moved().to_string()))
}

#[test]
fn only_a_publish_is_a_move() {
    let mount = MemoryHost::new().mount::<Movable>("own", "hosted", json!({}));
    let moved = "packhouse-published-at";
    assert_eq!(mount.put("/file").header(moved, "unknown").send().expect(200).text(), "true");
    assert_eq!(mount.put("/file").send().expect(200).text(), "false");
    assert_eq!(mount.get("/file").header(moved, "unknown").send().expect(200).text(), "false");
}
