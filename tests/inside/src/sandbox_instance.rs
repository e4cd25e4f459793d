//! Tests of plugin instances: only `route` and `handle` of the same read share one.

#[allow(dead_code, reason = "shared with tests that use the rest")]
use super::sandbox;

use std::time::Duration;

use packhouse_runtime::{Action, Limits, Routed};
use sandbox::{World, content, head, tight};

#[tokio::test]
async fn only_a_read_continues_in_the_instance_of_its_route() {
    let world = World::new(tight()).await;
    for _ in 0..3 {
        assert_eq!(world.text("routed-here").await, "1");
    }
}

#[tokio::test]
async fn a_publish_has_an_instance_for_each_call() {
    let world = World::new(tight()).await;
    let answer = world.put("routed-here-publish", b"a body").await.expect("it answers").expect("no refusal");
    assert_eq!(content(answer).await, b"0");
}

#[tokio::test]
async fn a_call_without_an_instance_gets_a_fresh_one() {
    let world = World::new(tight()).await;
    let head = head("GET", "routed-here");
    world.plugin.route("hosted", &head).await.expect("it answers").expect("the plugin did not refuse");
    let answer = world.plugin.handle(world.call(&head, Action::Read)).await.expect("it answers");
    assert_eq!(content(answer.expect("the plugin did not refuse")).await, b"0");
}

#[tokio::test]
async fn a_retained_instance_holds_its_slot_until_it_is_dropped() {
    let limits = Limits { concurrency: 1, queue_timeout: Duration::from_millis(20), ..Limits::default() };
    let world = World::new(limits).await;
    let head = head("GET", "ok");
    let routed = world.plugin.route_to_handle("hosted", &head).await.expect("it answers");
    let Routed { instance, .. } =
        routed.map_err(|refused| refused.status).expect("the plugin did not refuse");
    assert!(instance.is_some());
    let busy = world.get("ok").await.map(|answer| answer.is_ok()).expect_err("the only slot is taken");
    assert_eq!(busy.kind(), "busy");
    drop(instance);
    assert_eq!(world.plugin.calls_now(), (0, 0));
    world.still_answers().await;
}

#[tokio::test]
async fn data_read_by_route_counts_for_the_answer() {
    let world = World::new(tight()).await;
    let answer = world.get("known-alone").await.expect("it answers").expect("the plugin did not refuse");
    assert!(!answer.cacheable, "`route` may have read who is asking, and `handle` may know it");
}

#[tokio::test]
async fn a_trap_in_the_second_call_fails_only_its_request() {
    let world = World::new(tight()).await;
    let failed = world.get("recurse").await.map(|answer| answer.is_ok()).expect_err("it traps");
    assert_eq!(failed.kind(), "trap");
    assert_eq!(world.plugin.calls_now(), (0, 0));
    assert_eq!(world.text("routed-here").await, "1");
}
