//! Tests of the router: the row that handles a request, and the errors if no row matches.

use packhouse_sdk::host::{HostBlob, HostPart, HostRequest, Pairs};
use packhouse_sdk::{
    Action, BodyPlan, Context, Description, Failure, Format, Intent, Params, Plan, Request, Response, Router,
    call,
};

struct NoRequest;

impl HostRequest for NoRequest {
    fn query(&self) -> Pairs {
        Vec::new()
    }

    fn headers(&self) -> Pairs {
        Vec::new()
    }

    fn address(&self) -> String {
        "https://packhouse.test/repositories/r".to_owned()
    }

    fn caller(&self) -> Option<String> {
        None
    }

    fn is_moved(&self) -> bool {
        false
    }

    fn take_body(&self) -> Option<Box<dyn HostBlob>> {
        None
    }

    fn take_parts(&self) -> Vec<HostPart> {
        Vec::new()
    }
}

struct Table;

impl Format for Table {
    fn describe() -> Description {
        Description::new("table", "1.0.0")
    }

    fn routes(router: &mut Router) {
        router.get("/", Plan::open, answer);
        router.below("api", |router| {
            router.get("/", Plan::read_for_publish, answer);
            router.delete("/{path..}", Plan::delete, answer);
        });
        router.get("/{path..}", Plan::read, answer);
        router.put("/{path..}", plan_put, answer).check(check);
        router.row("LIST", "/{path..}", Plan::read_for_publish, answer);
        router.claim("registry", |router| {
            router.post("/{name..}/uploads/", Plan::publish, answer);
            router.delete("/{name..}/uploads/{id}", Plan::delete, answer);
        });
    }
}

fn plan_put(_: &Request, params: &Params) -> Result<Intent, Failure> {
    Ok(Intent::publish().subject(params.joined("path")).body(10).digests(&["sha1"]))
}

fn answer(_: &Context, _: &Request, _: &Params) -> Result<Response, Failure> {
    Ok(Response::ok())
}

fn check(_: &Context, _: &Request, _: &Params) -> Result<(), Failure> {
    Ok(())
}

fn plan(claim: Option<&str>, method: &str, path: &[&str]) -> Result<Intent, Failure> {
    let path = path.iter().map(|&segment| segment.to_owned()).collect();
    let request =
        Request::new("hosted".to_owned(), method.to_owned(), claim.map(str::to_owned), path, &NoRequest);
    call::route::<Table>(&request)
}

#[test]
fn a_request_gets_the_first_row_that_fits() {
    let open = plan(None, "GET", &[]).unwrap();
    assert_eq!((open.action, open.subject), (Action::Open, None));
    let read = plan(None, "GET", &["a", "b"]).unwrap();
    assert_eq!((read.action, read.subject.as_deref(), read.check), (Action::Read, Some("a/b"), false));
    let put = plan(None, "PUT", &["a"]).unwrap();
    assert_eq!((put.action, put.body, put.check), (Action::Publish, BodyPlan::Body { limit: 10 }, true));
    assert_eq!(put.digests, ["sha1"]);
    assert!(plan(None, "LIST", &["a"]).unwrap().for_publish);
}

#[test]
fn head_goes_to_the_rows_of_get() {
    assert_eq!(plan(None, "HEAD", &["a"]), plan(None, "GET", &["a"]));
}

#[test]
fn a_claim_has_rows_of_its_own() {
    assert_eq!(plan(Some("registry"), "POST", &["a", "uploads", ""]).unwrap().subject.as_deref(), Some("a"));
    assert_eq!(plan(Some("registry"), "DELETE", &["a", "uploads", "1"]).unwrap().action, Action::Delete);
    assert_eq!(plan(Some("registry"), "GET", &["a"]).unwrap_err().status, 404);
    assert_eq!(plan(Some("other"), "GET", &["a"]).unwrap_err().status, 404);
    assert_eq!(plan(None, "POST", &["a", "uploads", ""]).unwrap_err().status, 405);
}

#[test]
fn rows_below_a_segment_describe_what_follows_it() {
    for path in [&["api"][..], &["api", ""]] {
        assert!(plan(None, "GET", path).unwrap().for_publish, "{path:?}");
    }
    let delete = plan(None, "DELETE", &["api", "a", "b"]).unwrap();
    assert_eq!((delete.action, delete.subject.as_deref()), (Action::Delete, Some("a/b")));
    // Other paths and methods reach the rows outside of `below`.
    assert_eq!(plan(None, "DELETE", &["a", "api"]).unwrap_err().status, 405);
    assert_eq!(plan(None, "GET", &["api", "a"]).unwrap().subject.as_deref(), Some("api/a"));
}

#[test]
fn a_wrong_method_gets_the_allowed_ones() {
    let failure = plan(None, "PATCH", &["a"]).unwrap_err();
    assert_eq!((failure.status, failure.problems[0].code.as_str()), (405, "method_not_allowed"));
    assert_eq!(failure.headers, [("allow".to_owned(), "GET, HEAD, LIST, PUT".to_owned())]);
    let failure = plan(None, "PUT", &[]).unwrap_err();
    assert_eq!(failure.headers, [("allow".to_owned(), "GET, HEAD".to_owned())]);
}
