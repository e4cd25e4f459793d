//! Tests of how the SDK handles upstream responses. A response that is too large is the upstream's
//! fault, in each way of reading it. Unreadable parts of a response are reported in the log.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use packhouse_sdk::{
    Blob, Context, Description, Error, Failure, Format, Intent, Params, Plan, ReadAt, Request, Response,
    Router,
};
use packhouse_testkit::MemoryHost;
use serde_json::json;

/// Upstream response: `hello` in base64; 4 bytes are allowed.
const BYTES: &str = "aGVsbG8=";
const LIMIT: u64 = 4;
const TARGET: &str = "/docs/large?token=secret";

/// Ways to read the response. `fetched` sets a limit on the fetch, and is not used for bodies of
/// clients.
const WAYS: [&str; 5] = ["fetched", "whole", "text", "decoded", "cut"];

struct Reader;

impl Format for Reader {
    fn describe() -> Description {
        Description::new("reader", "1").kinds(&["hosted", "proxy", "group"])
    }

    fn routes(router: &mut Router) {
        router.get("/left-out/{count}", Plan::read_many, left_out);
        router.get("/{way}", Plan::read_many, get);
        router.put("/{way}", plan_put, put);
    }
}

fn read(way: &str, blob: &Blob) -> Result<(), Error> {
    match way {
        "whole" => blob.read_all(LIMIT).map(drop),
        "text" => blob.text(LIMIT).map(drop),
        "decoded" => blob.decode("base64", LIMIT, &[]).map(drop),
        "cut" => blob.slice(0, LIMIT + 1)?.read_all(LIMIT).map(drop),
        _ => Ok(()),
    }
}

/// Returns the result of the first source; a hosted source always has a result.
fn get(cx: &Context, _request: &Request, params: &Params) -> Result<Response, Failure> {
    let way = params.segment("way");
    let found = cx.first(|source| {
        if !source.is_proxy() {
            return Ok(Some("stored"));
        }
        let fetch = cx.upstream("GET", TARGET).metadata();
        let fetch = if way == "fetched" { fetch.limit(LIMIT) } else { fetch };
        let Some(reply) = fetch.start(source)?.found()? else { return Ok(None) };
        read(way, &reply.body()?)?;
        Ok(Some("fetched"))
    })?;
    found.map(Response::text).ok_or_else(|| Failure::not_found("nowhere"))
}

fn plan_put(_request: &Request, params: &Params) -> Result<Intent, Failure> {
    Ok(Intent::publish().subject(params.segment("way")).body(1 << 10))
}

fn put(_cx: &Context, request: &Request, params: &Params) -> Result<Response, Failure> {
    read(params.segment("way"), &request.planned_body()?)?;
    Ok(Response::created())
}

fn left_out(cx: &Context, _request: &Request, params: &Params) -> Result<Response, Failure> {
    cx.log().left_out("lib", "versions", params.segment("count").parse().unwrap());
    Ok(Response::text("logged"))
}

#[test]
fn an_upstreams_answer_that_is_too_large_is_the_upstreams_fault() {
    let host = MemoryHost::new();
    let proxy = host.mount::<Reader>("proxy", "proxy", json!({"upstream": "https://upstream.test"}));
    host.mount::<Reader>("own", "hosted", json!({}));
    let group = host.mount::<Reader>("all", "group", json!({})).members(&["proxy", "own"]);
    host.answer_upstream("GET", TARGET, 200, &[], BYTES.as_bytes());
    for way in WAYS {
        let failed = proxy.get(&format!("/{way}")).send().expect(502);
        assert_eq!(failed.code(), "upstream_unavailable", "{way}");
        let why = failed.text();
        for part in ["for /docs/large is", "limit of 4 bytes", "check the proxy's upstream address"] {
            assert!(why.contains(part), "{way}: {why}");
        }
        assert!(!why.contains("secret"), "{way}: {why}");
        assert_eq!(group.get(&format!("/{way}")).send().expect(200).text(), "stored", "{way}");
        assert_eq!(host.left_out().last(), Some(&("proxy".to_owned(), why)), "{way}");
    }
    assert_eq!(proxy.get("/not-at-all").send().expect(200).text(), "fetched");
}

#[test]
fn a_clients_body_that_is_too_large_is_the_clients_fault() {
    let own = MemoryHost::new().mount::<Reader>("own", "hosted", json!({}));
    for way in WAYS.into_iter().filter(|way| *way != "fetched") {
        let refused = own.put(&format!("/{way}")).body(BYTES).send().expect(413);
        assert_eq!(refused.code(), "file_too_large", "{way}");
    }
}

#[test]
fn unreadable_items_are_logged() {
    let host = MemoryHost::new();
    let own = host.mount::<Reader>("own", "hosted", json!({}));
    own.get("/left-out/0").send().expect(200);
    assert!(host.log().is_empty());
    own.get("/left-out/2").send().expect(200);
    let line = host.log().remove(0);
    assert_eq!((line.level.as_str(), line.message.as_str()), ("info", "unreadable versions left out"));
    let fields = [("package", "lib"), ("versions", "2")];
    assert_eq!(line.fields, fields.map(|(name, value)| (name.to_owned(), value.to_owned())));
}
