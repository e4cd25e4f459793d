//! Attacks of a hostile plugin: each attack fails only its own request. The host logs the attack,
//! storage stays unchanged, and the next request on the same plugin works.

use super::sandbox;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use packhouse_runtime::{
    CallError, Content, Fetch, Limits, Reply, RepositoryView, ServiceError, ServiceFuture, UpstreamService,
};
use packhouse_store::{Arriving, Digest};
use sandbox::{SECRET, World, content, sha256, tight};
use tokio::sync::Notify;

/// A body that no other test sends.
const BODY: &[u8] = b"a body of the sandbox tests";

/// Sends the attack. Asserts its outcome, that the log states it, that storage is unchanged, and
/// that the plugin still answers.
async fn attack(path: &str, kind: &str) -> (World, CallError) {
    let world = World::new(tight()).await;
    world.still_answers().await;
    let before = world.stored().await;
    let outcome = world.put(path, BODY).await;
    let error = outcome.map(|answer| answer.map(|answer| answer.status)).expect_err("the call fails");
    assert_eq!(error.kind(), kind, "{error}");
    world.log.has(&["ERROR", "plugin call failed", "hostile", kind, &format!("request-{path}")]);
    assert_eq!(world.stored().await, before);
    world.still_answers().await;
    (world, error)
}

#[tokio::test]
async fn an_endless_loop_ends_at_the_deadline() {
    attack("loop", "deadline").await;
}

#[tokio::test]
async fn an_endless_loop_in_route_ends_at_the_deadline() {
    attack("loop-in-route", "deadline").await;
}

#[tokio::test]
async fn endless_recursion_ends_at_the_end_of_the_stack() {
    let (_, error) = attack("recurse", "trap").await;
    assert!(error.to_string().contains("stack"), "{error}");
    attack("recurse-with-frames", "trap").await;
}

#[tokio::test]
async fn memory_ends_at_the_limit() {
    let (world, _) = attack("grow", "memory").await;
    world.log.has(&["WARN", "plugin memory limit reached", "hostile", &(64 << 20).to_string()]);
}

#[tokio::test]
async fn leaked_handles_end_at_the_limit() {
    attack("leak-handles", "handles").await;
}

#[tokio::test]
async fn a_forged_handle_is_invalid() {
    attack("forge-handle", "trap").await;
}

#[tokio::test]
async fn a_huge_list_is_not_copied() {
    attack("huge-list", "hostcall_bytes").await;
}

#[tokio::test]
async fn inline_content_is_bounded() {
    attack("big-inline", "bad_answer").await;
}

#[tokio::test]
async fn an_invalid_status_is_refused() {
    attack("bad-status", "bad_answer").await;
}

#[tokio::test]
async fn a_header_value_cannot_smuggle_another() {
    attack("bad-headers", "bad_answer").await;
}

#[tokio::test]
async fn a_header_name_is_a_token() {
    attack("bad-header-name", "bad_answer").await;
}

#[tokio::test]
async fn headers_are_bounded() {
    attack("many-headers", "bad_answer").await;
}

#[tokio::test]
async fn invalid_utf8_is_refused() {
    attack("invalid-utf8", "trap").await;
}

#[tokio::test]
async fn a_failure_without_a_problem_is_refused() {
    attack("empty-failure", "bad_answer").await;
}

#[tokio::test]
async fn an_unknown_action_is_refused() {
    attack("bad-intent", "bad_answer").await;
}

#[tokio::test]
async fn an_unknown_digest_is_refused() {
    attack("bad-digest", "bad_answer").await;
}

#[tokio::test]
async fn a_trap_half_way_through_a_publish_leaves_nothing() {
    let (world, _) = attack("trap-mid-publish", "trap").await;
    let mut stager = world.store.stage(&[], 1 << 20);
    stager.write(bytes::Bytes::from_static(BODY)).await.expect("bytes can be staged");
    let body = stager.finish().await.expect("the blob can be made");
    let held = world.store.blob(world.repository.id, body.sha256().await.expect("it has a digest")).await;
    assert!(held.expect("the store works").is_none());
}

#[tokio::test]
async fn route_calls_no_import() {
    for (path, import) in [
        ("import-in-route", "host.now"),
        ("options-in-route", "http.[constructor]response-options"),
        ("writer-in-route", "blobs.[constructor]writer"),
    ] {
        let (_, error) = attack(path, "trap").await;
        let message = format!("route called {import}, which cannot be called from there");
        assert!(error.to_string().contains(&message), "{error}");
    }
}

#[tokio::test]
async fn a_wait_in_the_host_ends_at_the_deadline() {
    let limits = Limits { host_work_timeout: Duration::from_secs(1), ..tight() };
    let mut world = World::new(limits).await;
    world.services.upstream = Arc::new(Upstream(None));
    let error = world.get("upstream").await.map(|answer| answer.is_ok()).expect_err("nothing ever comes");
    assert_eq!(error.kind(), "deadline", "{error}");
    world.still_answers().await;
}

#[tokio::test]
async fn a_full_plugin_is_busy_and_then_answers_again() {
    let limits = Limits { concurrency: 1, queue_timeout: Duration::from_millis(20), ..Limits::default() };
    let mut world = World::new(limits).await;
    let gate = Arc::new(Gate::default());
    world.services.upstream = Arc::new(Upstream(Some(Arc::clone(&gate))));
    let waiting = world.get("upstream");
    let busy = async {
        gate.reached.notified().await;
        let refused = world.get("ok").await.map(|answer| answer.is_ok());
        gate.open.notify_one();
        refused
    };
    let (answered, refused) = tokio::join!(waiting, busy);
    let refused = refused.expect_err("the only slot is taken");
    assert_eq!((refused.kind(), refused.is_temporary()), ("busy", true));
    assert_eq!(answered.expect("it answers").expect("the plugin did not refuse").status, 200);
    world.still_answers().await;
}

#[tokio::test]
async fn another_repositorys_blob_is_not_found() {
    let world = World::new(tight()).await;
    let entry =
        world.store.get(world.other.id, "secret").await.expect("the store works").expect("it is there");
    let digest = format!("sha256:{}", String::from_utf8_lossy(&entry.value));
    let before = world.stored().await;
    assert_eq!(refusal(&world, &format!("other-blob/{digest}")).await, (404, "not_found".to_owned()));
    assert_eq!(world.stored().await, before);
    // A PUT of the same bytes does not reveal that another repository has them. It only stores them
    // in this repository.
    let answer = world.put("put/mine", SECRET).await.expect("it answers").expect("the plugin did not refuse");
    assert_eq!(answer.status, 201);
    assert_eq!(world.text("get/mine").await.as_bytes(), SECRET);
}

#[tokio::test]
async fn another_repositorys_record_is_not_found() {
    let world = World::new(tight()).await;
    assert_eq!(refusal(&world, "other-record/secret").await, (404, "not_found".to_owned()));
}

#[tokio::test]
async fn a_read_cannot_write() {
    let world = World::new(tight()).await;
    let before = world.stored().await;
    assert_eq!(world.text("write-on-read").await, "begin denied, keep denied, upload denied");
    assert_eq!(world.stored().await, before);
}

#[tokio::test]
async fn a_call_writes_no_more_than_its_limit() {
    // This call writes 20 MiB before it fails. On a busy disk this may take longer than the timeout
    // of the other tests, one second.
    let limits = Limits { call_timeout: Duration::from_secs(30), ..tight() };
    let world = World::new(limits).await;
    let before = world.stored().await;
    assert_eq!(refusal(&world, "flood-writer").await, (413, "too_large".to_owned()));
    assert_eq!(refusal(&world, "flood-parts").await, (413, "too_large".to_owned()));
    assert_eq!(refusal(&world, "flood-transaction").await, (400, "invalid".to_owned()));
    assert_eq!(world.stored().await, before);
}

#[tokio::test]
async fn parts_and_pieces_are_checked() {
    let world = World::new(tight()).await;
    assert_eq!(world.text("wrong-parts").await, "invalid invalid invalid invalid bc-a");
    assert_eq!(world.text("wrong-pieces").await, "invalid invalid invalid 1000");
    assert_eq!(refusal(&world, "flood-notes").await, (413, "too_large".to_owned()));
}

#[tokio::test]
async fn a_flood_of_log_lines_is_cut() {
    let world = World::new(tight()).await;
    assert_eq!(world.text("flood-log").await, "flooded");
    let log = world.log.text();
    assert_eq!(log.lines().filter(|line| line.contains("flood ")).count(), 100, "{log}");
    world.log.has(&["WARN", "more than 100 log lines"]);
}

#[tokio::test]
async fn the_hosts_own_headers_are_left_out() {
    let world = World::new(tight()).await;
    let answer = world.get("own-headers").await.expect("it answers").expect("the plugin did not refuse");
    assert!(answer.headers.is_empty());
}

#[tokio::test]
async fn a_file_can_be_read_after_it_is_put_and_put_only_once() {
    let world = World::new(tight()).await;
    let answer = world.put("put/a", BODY).await.expect("it answers").expect("the plugin did not refuse");
    assert_eq!(answer.status, 201);
    let answer = world.get("get/a").await.expect("it answers").expect("the plugin did not refuse");
    assert!(answer.cacheable);
    assert_eq!(content(answer).await, BODY);
    let before = world.stored().await;
    let refused =
        world.put("put/a", b"other bytes").await.expect("it answers").map(|_| ()).expect_err("a refusal");
    assert_eq!((refused.status, refused.problems[0].message.as_str()), (409, "file/a"));
    // The refused body's file may stay until garbage collection, but no record refers to it.
    let records =
        |stored: Vec<String>| stored.into_iter().filter(|line| line.contains(" Entry")).collect::<Vec<_>>();
    assert_eq!(records(world.stored().await), records(before));
}

#[tokio::test]
async fn a_stored_blob_is_held_exactly_when_the_call_answers() {
    let world = World::new(tight()).await;
    let answer = world.put("keep", BODY).await.expect("it answers").expect("the plugin did not refuse");
    let blob_digest = sha256(std::str::from_utf8(&content(answer).await).expect("it is text"));
    assert!(world.store.blob(world.repository.id, blob_digest).await.expect("the store works").is_some());
    let refused = world.put("keep-refuse", b"other bytes").await.expect("it answers").map(|_| ());
    let dropped = sha256(&refused.expect_err("it is a refusal").problems[0].message);
    assert!(world.store.blob(world.repository.id, dropped).await.expect("the store works").is_none());
}

#[tokio::test]
async fn an_answer_that_read_the_clock_or_the_caller_is_not_cached() {
    let world = World::new(tight()).await;
    for (path, cacheable) in
        [("ok", true), ("modified", true), ("clock", false), ("caller", false), ("member/secret", true)]
    {
        let answer = world.get(path).await.expect("it answers").expect("the plugin did not refuse");
        assert_eq!(answer.cacheable, cacheable, "{path}");
    }
}

#[tokio::test]
async fn options_and_headers_reach_the_answer() {
    let world = World::new(tight()).await;
    let answer = world.get("modified").await.expect("it answers").expect("the plugin did not refuse");
    assert_eq!(answer.modified, Some(1_000));
    assert_eq!((answer.headers[0].0.as_str(), answer.headers[0].1.as_bytes()), ("x-kind", b"dated".as_ref()));
}

#[tokio::test]
async fn bytes_written_by_a_plugin_are_an_answers_content() {
    let world = World::new(tight()).await;
    let answer = world.get("large").await.expect("it answers").expect("the plugin did not refuse");
    assert!(matches!(answer.content, Content::Blob(_)));
    assert_eq!(content(answer).await, vec![7; 4 << 20]);
}

#[tokio::test]
async fn bodies_are_decoded_within_their_limit() {
    let world = World::new(tight()).await;
    let answer = world
        .put("decode/base64", b"aGVs\nbG8=")
        .await
        .expect("it answers")
        .expect("the plugin did not refuse");
    assert_eq!(content(answer).await, b"hello");
    for (encoding, body, status) in [
        ("base64", &b"!"[..], 400),
        ("gzip", b"not gzip", 400),
        ("deflate", b"not deflate", 400),
        ("zstd", b"not zstd", 400),
        ("brotli", b"", 400),
    ] {
        let refused = world.put(&format!("decode/{encoding}"), body).await.expect("it answers").map(|_| ());
        assert_eq!(refused.expect_err("it is a refusal").status, status, "{encoding}");
    }
}

#[tokio::test]
async fn a_bomb_is_too_large() {
    let world = World::new(tight()).await;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&vec![0; 1 << 20]).expect("memory");
    let fits = packed.finish().expect("memory");
    let answer =
        world.put("decode/gzip", &fits).await.expect("it answers").expect("the plugin did not refuse");
    assert_eq!(content(answer).await.len(), 1 << 20);
    let bomb = [fits.as_slice(), fits.as_slice()].concat();
    let refused = world.put("decode/gzip", &bomb).await.expect("it answers").map(|_| ());
    assert_eq!(refused.expect_err("it is a refusal").status, 413);
}

#[tokio::test]
async fn unrequested_digests_are_computed() {
    let world = World::new(tight()).await;
    let answer =
        world.put("digest/sha1", b"abc").await.expect("it answers").expect("the plugin did not refuse");
    assert_eq!(content(answer).await, b"sha1:a9993e364706816aba3e25717850c26c9cd0d89d");
    let refused = world.put("digest/crc32", b"abc").await.expect("it answers").map(|_| ());
    assert_eq!(refused.expect_err("it is a refusal").problems[0].code, "invalid");
}

#[tokio::test]
async fn missing_services_are_reported() {
    let world = World::new(tight()).await;
    assert_eq!(refusal(&world, "upstream").await, (502, "unavailable".to_owned()));
}

/// The status and code of the refusal of a PUT.
async fn refusal(world: &World, path: &str) -> (u16, String) {
    let failure = world.put(path, BODY).await.expect("it answers").map(|_| ()).expect_err("it is a refusal");
    (failure.status, failure.problems[0].code.clone())
}

/// An upstream that replies when the gate opens, or never if it has no gate.
struct Upstream(Option<Arc<Gate>>);

#[derive(Default)]
struct Gate {
    reached: Notify,
    open: Notify,
}

impl UpstreamService for Upstream {
    fn fetch(&self, _proxy: &RepositoryView, _fetch: Fetch) -> Result<Box<dyn Reply>, ServiceError> {
        Ok(Box::new(Late(self.0.clone())))
    }
}

struct Late(Option<Arc<Gate>>);

impl Reply for Late {
    fn status(&self) -> ServiceFuture<'_, u16> {
        Box::pin(async {
            let Some(gate) = &self.0 else { return std::future::pending().await };
            gate.reached.notify_one();
            gate.open.notified().await;
            Ok(200)
        })
    }

    fn headers(&self) -> ServiceFuture<'_, Vec<(String, String)>> {
        Box::pin(std::future::pending())
    }

    fn address(&self) -> ServiceFuture<'_, String> {
        Box::pin(std::future::pending())
    }

    fn expect(&mut self, _digest: Digest) {}

    fn body(self: Box<Self>) -> ServiceFuture<'static, Arriving> {
        Box::pin(std::future::pending())
    }
}
