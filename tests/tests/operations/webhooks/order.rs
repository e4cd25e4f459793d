//! Delivery by several servers of one database. Each publish is delivered at least once, and the
//! publishes of a package arrive in order.

use std::collections::BTreeMap;
use std::time::Duration;

use packhouse_tests::database::Postgres;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::{Api, Server};
use serde_json::{Value, json};

use super::receiver::{Message, Receiver};
use super::{Hook, allowing};

/// Publishes consecutive versions of these packages, one thread for each package. The threads use
/// these repositories, and thereby their servers, in turn.
fn publish(repositories: &[FormatRepository], packages: usize, versions: usize) {
    std::thread::scope(|scope| {
        for package in 0..packages {
            scope.spawn(move || {
                for version in 0..versions {
                    let repository = &repositories[(package + version) % repositories.len()];
                    let path = format!("org/a/lib{package}/{version}/lib{package}-{version}.jar");
                    repository.put(&path, format!("{package} {version}")).expect(201);
                }
            });
        }
    });
}

/// Checks that the messages contain each version of each package at least once, in order. A
/// repeated message must come directly after the first one.
#[track_caller]
pub(crate) fn in_order(messages: &[Message], packages: usize, versions: usize) {
    let mut delivered: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for message in messages.iter().filter(|message| message.status == 200) {
        let data = message.json()["data"].clone();
        let version: usize = data["version"].as_str().unwrap().parse().unwrap();
        delivered.entry(data["package"].as_str().unwrap().to_owned()).or_default().push(version);
    }
    assert_eq!(delivered.len(), packages);
    for (package, mut delivered) in delivered {
        delivered.dedup();
        assert_eq!(delivered, (0..versions).collect::<Vec<_>>(), "{package}");
    }
}

/// Waits until no delivery is pending. Allows enough time for many deliveries.
pub(crate) fn hook_drained(api: &Api, hook: &Hook) {
    let begun = std::time::Instant::now();
    loop {
        let waiting = api.call("GET", &format!("{}/deliveries?limit=200", hook.path())).expect(200).json();
        let all: Vec<Value> = waiting["items"].as_array().unwrap().clone();
        if all.iter().all(|one| one["state"] == "delivered") && is_all_delivered(api, hook) {
            return;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(600),
            "not delivered in ten minutes: {:?}",
            all.first()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn is_all_delivered(api: &Api, hook: &Hook) -> bool {
    let mut after = String::new();
    loop {
        let page =
            api.call("GET", &format!("{}/deliveries?limit=200{after}", hook.path())).expect(200).json();
        if page["items"].as_array().unwrap().iter().any(|one| one["state"] != "delivered") {
            return false;
        }
        let Some(next) = page["next"].as_str() else { return true };
        after = format!("&after={next}");
    }
}

#[test]
fn servers_of_one_database_deliver_once_and_take_over_from_a_dead_one() {
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let data = tempfile::tempdir().unwrap();
    let start = || -> Server {
        allowing()
            .data(data.path())
            .arg("--database-url")
            .arg(&postgres.url())
            .env("PACKHOUSE_WEBHOOKS_TIMEOUT_MS", "1000")
            .start()
    };
    let (mut one, two) = (start(), start());
    let api = Api::sign_in(&two);
    let repository = FormatRepository::hosted(&one, "maven", "releases", &json!({}));
    let receiver = Receiver::start();
    // A webhook that one server creates takes effect on the other server immediately.
    let hook = Hook::create(&Api::sign_in(&one), &receiver.url(), &["package.published"], json!("*"));
    let both = [repository.on(&two), repository.clone()];
    publish(&both, 8, 10);
    hook_drained(&api, &hook);
    in_order(&receiver.messages(), 8, 10);
    assert_eq!(receiver.messages().len(), 80, "no server died, so each event is delivered once");

    // The test kills the server that delivers. Another server delivers the rest once the killed
    // server's claim on the webhook has expired.
    let slow = Receiver::answering(|number, _| {
        let pause = if number < 20 { Duration::from_millis(100) } else { Duration::ZERO };
        (200, String::new(), Vec::new(), pause)
    });
    let url = json!({"url": slow.url()});
    api.patch(&hook.path(), &url).expect(200);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for version in 10..30 {
                let path = format!("org/a/lib0/{version}/lib0-{version}.jar");
                repository.put(&path, "more").expect(201);
            }
        });
    });
    one.kill9();
    hook_drained(&api, &hook);
    let mut delivered: Vec<usize> = slow
        .messages()
        .iter()
        .map(|message| message.json()["data"]["version"].as_str().unwrap().parse().unwrap())
        .collect();
    delivered.dedup();
    assert_eq!(delivered, (10..30).collect::<Vec<_>>());
}
