//! Webhooks: the store records each event with its data, for the webhooks that subscribe to it. One
//! server claims a webhook's queue and delivers it in order.

use packhouse_store::{
    CatalogChange, Commit, Delivery, DeliveryState, DueDelivery, EventKind, Expectation, NewWebhook,
    QueueBounds, Reported, RepositoryId, Sha256, Store, TagRecord, Tags, Try, Version, VersionFile,
    WebhookChange, WebhookId,
};
use serde_json::{Value, json};

use crate::support::{World, applied, in_both, put};

in_both! {
    a_publish_runs_no_more_statements_without_a_webhook, a_commits_events_go_to_subscribed_webhooks,
    each_lane_delivers_one_event_at_a_time, one_server_holds_a_claim,
    old_deliveries_are_removed_and_a_full_queue_accepts_no_more,
}

const LASTS: i64 = 60_000;

fn version(name: &str, number: &str, content: &str, state: &str) -> CatalogChange {
    let file = VersionFile {
        path: format!("{name}-{number}.jar"),
        digest: Sha256::of(content.as_bytes()).digest(),
        size: content.len() as u64,
    };
    CatalogChange::Show(Version {
        name: name.to_owned(),
        version: number.to_owned(),
        files: vec![file],
        state: state.to_owned(),
        ..Version::default()
    })
}

async fn publish(store: &Store, repository: RepositoryId, catalog: Vec<CatalogChange>) -> u64 {
    let changes = vec![put("key", "value", Expectation::Anything)];
    let commit = Commit { changes, catalog, publishes: true, ..Commit::default() };
    applied(store.commit(repository, commit).await.unwrap())
}

async fn hook(world: &World, events: &[EventKind], repositories: Option<Vec<RepositoryId>>) -> WebhookId {
    let id = world.store.new_webhook_id();
    let new = NewWebhook {
        url: "https://hooks.example/".to_owned(),
        events: events.to_vec(),
        repositories,
        created_by: "owner@localhost".to_owned(),
    };
    let made =
        world.store.create_webhook(world.organization, id, new, "sealed", None).await.unwrap().unwrap();
    assert_eq!((made.id, made.active, made.events.as_slice()), (id, true, events));
    id
}

async fn kinds(store: &Store, hook: WebhookId) -> Vec<String> {
    let listed = store.list_deliveries(hook, None, 100).await.unwrap();
    listed.into_iter().rev().map(|delivery| delivery.kind).collect()
}

/// Takes all due deliveries, one at a time, until none is left; returns kinds and data in order of
/// delivery.
async fn take_all(store: &Store, hook: WebhookId) -> Vec<(String, Value)> {
    let mut taken = Vec::new();
    assert!(store.claim_webhook(hook, 1, LASTS).await.unwrap());
    loop {
        let due = store.due_deliveries(hook, i64::MIN, 10).await.unwrap();
        if due.is_empty() {
            return taken;
        }
        let reported: Vec<Reported> = due.iter().map(|due| reported(due, true, None)).collect();
        assert!(store.report_tries(hook, 1, LASTS, &reported).await.unwrap());
        taken.extend(due.into_iter().map(|due| (due.kind, serde_json::from_str(&due.data).unwrap())));
    }
}

fn reported(due: &DueDelivery, delivered: bool, again_at: Option<i64>) -> Reported {
    let of_try = Try { at: 1, status: Some(200), answer: Some("done".to_owned()), error: None };
    Reported { id: due.id, tries: due.tries, of_try, delivered, again_at }
}

async fn a_publish_runs_no_more_statements_without_a_webhook(world: &World) {
    let store = &world.store;
    // Take the smallest cost of several publishes, because the counter also includes the store's
    // own occasional statements.
    let cost = async |number: u32| {
        let mut least = u64::MAX;
        for again in 0..4 {
            let before = store.statements();
            let number = format!("{number}.{again}");
            publish(store, world.repository, vec![version("lib", &number, "a", "")]).await;
            least = least.min(store.statements() - before);
        }
        least
    };
    cost(0).await;
    let without = cost(1).await;
    let id = hook(world, &[EventKind::PackagePublished], None).await;
    assert!(cost(2).await > without);
    assert_eq!(kinds(store, id).await, ["package.published"; 4]);
    assert!(store.delete_webhook(world.organization, id, None).await.unwrap());
    assert!(!store.delete_webhook(world.organization, id, None).await.unwrap());
    assert_eq!(cost(3).await, without);
}

async fn a_commits_events_go_to_subscribed_webhooks(world: &World) {
    let (store, repository) = (&world.store, world.repository);
    let other = world.another("other").await;
    let all = hook(world, EventKind::ALL, Some(vec![repository])).await;
    let deletions = hook(world, &[EventKind::PackageDeleted], None).await;
    publish(store, other, vec![version("lib", "1", "a", "")]).await;
    publish(store, repository, vec![version("lib", "1", "a", "")]).await;
    // A publish that changes nothing is not an event.
    publish(store, repository, vec![version("lib", "1", "a", "")]).await;
    publish(store, repository, vec![version("lib", "1", "b", "")]).await;
    publish(store, repository, vec![version("lib", "1", "b", "yanked")]).await;
    // A version that is hidden and published again in one commit is not reported as deleted.
    let hide = || CatalogChange::Hide { name: "lib".to_owned(), version: "1".to_owned() };
    publish(store, repository, vec![hide(), version("lib", "1", "c", "yanked")]).await;
    publish(store, repository, vec![hide()]).await;
    publish(store, repository, vec![hide()]).await;
    let taken = take_all(store, all).await;
    let sent: Vec<&str> = taken.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        sent,
        [
            "package.published",
            "package.published",
            "package.state_changed",
            "package.published",
            "package.deleted"
        ]
    );
    let digest = |content: &str| Sha256::of(content.as_bytes()).digest().to_string();
    let file = |content: &str| json!([{"path": "lib-1.jar", "size": 1, "digest": digest(content)}]);
    assert_eq!(taken[0].1["files"], file("a"));
    assert_eq!(taken[1].1["files"], file("b"));
    assert_eq!(taken[3].1["files"], file("c"));
    assert_eq!(taken[0].1["repository"]["name"], "main");
    assert_eq!((&taken[2].1["state"], &taken[2].1["before"]), (&json!("yanked"), &json!("")));
    assert_eq!(take_all(store, deletions).await.len(), 1);

    // Publishes a tag as a format does, in a record.
    let tagged = async |value: &str| {
        let record = TagRecord {
            key: "p/lib".to_owned(),
            package: "lib".to_owned(),
            tags: Tags::All("tags".to_owned()),
        };
        let changes = vec![put("p/lib", value, Expectation::Anything)];
        let commit = Commit { changes, tags: vec![record], ..Commit::default() };
        applied(store.commit(repository, commit).await.unwrap());
    };
    tagged(r#"{"tags": {"latest": "1"}}"#).await;
    tagged(r#"{"tags": {"latest": "2", "next": "3"}}"#).await;
    tagged(r#"{"tags": {"latest": "2"}}"#).await;
    let moved: Vec<(String, Value, Value)> = take_all(store, all)
        .await
        .into_iter()
        .map(|(kind, data)| {
            assert_eq!(kind, "tag.moved");
            (data["tag"].as_str().unwrap().to_owned(), data["from"].clone(), data["to"].clone())
        })
        .collect();
    let null = Value::Null;
    assert_eq!(
        moved,
        [
            ("latest".to_owned(), null.clone(), json!("1")),
            ("latest".to_owned(), json!("1"), json!("2")),
            ("next".to_owned(), null.clone(), json!("3")),
            ("next".to_owned(), json!("3"), null),
        ]
    );

    // Events of repositories are reported too, but only of repositories that the webhook names.
    world.another("third").await;
    assert!(store.delete_repository(world.organization, other, None).await.unwrap());
    assert!(store.delete_repository(world.organization, repository, None).await.unwrap());
    let taken = take_all(store, all).await;
    assert_eq!(taken.len(), 1);
    assert_eq!(
        (taken[0].0.as_str(), &taken[0].1["repository"]["name"]),
        ("repository.deleted", &json!("main"))
    );
}

async fn each_lane_delivers_one_event_at_a_time(world: &World) {
    let (store, id) = (&world.store, hook(world, &[EventKind::PackagePublished], None).await);
    for number in 0..5 {
        for name in ["a", "b", "c"] {
            publish(store, world.repository, vec![version(name, &number.to_string(), "x", "")]).await;
        }
    }
    assert!(store.claim_webhook(id, 1, LASTS).await.unwrap());
    let first = store.due_deliveries(id, i64::MIN, 10).await.unwrap();
    assert_eq!(first.len(), 3, "one of each package");
    let numbers = |due: &[DueDelivery]| -> Vec<Value> {
        due.iter().map(|due| serde_json::from_str::<Value>(&due.data).unwrap()["version"].clone()).collect()
    };
    assert_eq!(numbers(&first), ["0", "0", "0"]);
    // The store returns due deliveries in the order of their lanes, from the given lane on.
    let behind = store.due_deliveries(id, first[0].lane, 10).await.unwrap();
    assert_eq!(behind.len(), 2);
    assert_eq!(store.due_deliveries(id, i64::MIN, 2).await.unwrap().len(), 2);
    // A failing delivery holds up its own package alone.
    let later = store.now_ms() + 50_000;
    let reports = [
        reported(&first[0], false, Some(later)),
        reported(&first[1], true, None),
        reported(&first[2], true, None),
    ];
    assert!(store.report_tries(id, 1, LASTS, &reports).await.unwrap());
    let next = store.due_deliveries(id, i64::MIN, 10).await.unwrap();
    assert_eq!(numbers(&next), ["1", "1"]);
    assert!(next.iter().all(|due| due.lane != first[0].lane));
    let failed = store.find_delivery(id, first[0].id).await.unwrap().unwrap();
    assert_eq!((failed.state, failed.tries.len()), (DeliveryState::Pending, 1));
    // A requested redelivery is due immediately.
    store.redeliver(id, first[0].id, None).await.unwrap().unwrap();
    assert_eq!(store.due_deliveries(id, i64::MIN, 10).await.unwrap().len(), 3);
    store.redeliver(id, first[1].id, None).await.unwrap().unwrap();
    let requested = store.requested_deliveries(id, 10).await.unwrap();
    assert_eq!((requested.len(), requested[0].id, requested[0].once), (1, first[1].id, true));
    assert!(store.redeliver(id, packhouse_store::DeliveryId(1), None).await.unwrap().is_none());
}

async fn one_server_holds_a_claim(world: &World) {
    let (store, id) = (&world.store, hook(world, &[EventKind::PackagePublished], None).await);
    assert!(store.webhooks_waiting().await.unwrap().is_empty());
    publish(store, world.repository, vec![version("a", "1", "x", "")]).await;
    assert_eq!(store.notified_webhooks().await, [id]);
    assert_eq!(store.webhooks_waiting().await.unwrap(), [id]);
    assert!(store.claim_webhook(id, 1, LASTS).await.unwrap());
    assert!(!store.claim_webhook(id, 2, LASTS).await.unwrap());
    assert!(store.claim_webhook(id, 1, LASTS).await.unwrap(), "renewed");
    assert!(store.webhooks_waiting().await.unwrap().is_empty());
    let due = store.due_deliveries(id, i64::MIN, 10).await.unwrap();
    assert!(store.claimed_webhook(id, 1).await.unwrap().is_some());
    assert!(store.claimed_webhook(id, 2).await.unwrap().is_none());
    assert!(!store.report_tries(id, 2, LASTS, &[reported(&due[0], true, None)]).await.unwrap());
    assert_eq!(store.list_deliveries(id, None, 10).await.unwrap()[0].state, DeliveryState::Pending);
    // A server can claim the queue after the claim expired or its holder gave it back.
    assert!(store.claim_webhook(id, 1, -1).await.unwrap());
    assert!(store.claim_webhook(id, 2, LASTS).await.unwrap());
    store.leave_webhook(id, 1).await.unwrap();
    assert!(!store.claim_webhook(id, 1, LASTS).await.unwrap());
    store.leave_webhook(id, 2).await.unwrap();
    assert!(store.claim_webhook(id, 1, LASTS).await.unwrap());
    store.leave_webhook(id, 1).await.unwrap();
    // A paused webhook only gets requested deliveries.
    assert!(store.pause_webhook(id, "It did not answer.").await.unwrap());
    assert!(!store.pause_webhook(id, "It did not answer.").await.unwrap());
    assert!(store.webhooks_waiting().await.unwrap().is_empty());
    let test: Delivery = store.test_webhook(id, "x".to_owned(), &json!({}), None).await.unwrap().unwrap();
    assert_eq!((test.kind.as_str(), test.state), ("webhook.test", DeliveryState::Pending));
    assert_eq!(store.webhooks_waiting().await.unwrap(), [id]);
    let active = WebhookChange { active: Some(true), ..WebhookChange::default() };
    let row = store.change_webhook(world.organization, id, active, None).await.unwrap().unwrap();
    assert!(row.active && row.paused_because.is_none());
}

async fn old_deliveries_are_removed_and_a_full_queue_accepts_no_more(world: &World) {
    let (store, id) = (&world.store, hook(world, &[EventKind::PackagePublished], None).await);
    let bounds = |before: i64| QueueBounds { before, most: 4 };
    for number in 0..4 {
        publish(store, world.repository, vec![version("a", &number.to_string(), "x", "")]).await;
    }
    assert_eq!(store.judge_queues(bounds(0)).await.unwrap(), [(id, true)]);
    publish(store, world.repository, vec![version("a", "9", "x", "")]).await;
    assert_eq!(store.list_deliveries(id, None, 10).await.unwrap().len(), 4);
    assert!(store.judge_queues(bounds(0)).await.unwrap().is_empty());
    assert_eq!(take_all(store, id).await.len(), 4);
    assert_eq!(store.judge_queues(bounds(0)).await.unwrap(), [(id, false)]);
    publish(store, world.repository, vec![version("a", "10", "x", "")]).await;
    // Delivered entries are removed, waiting ones stay.
    assert!(!store.shorten_deliveries(bounds(store.now_ms() + 10_000)).await.unwrap());
    let left = store.list_deliveries(id, None, 10).await.unwrap();
    assert_eq!((left.len(), left[0].state), (1, DeliveryState::Pending));
    assert!(store.delete_webhook(world.organization, id, None).await.unwrap());
    store.shorten_deliveries(bounds(0)).await.unwrap();
    assert!(store.list_deliveries(id, None, 10).await.unwrap().is_empty());
}
