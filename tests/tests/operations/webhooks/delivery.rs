//! Recorded attempts of deliveries, retries, and webhooks that fail permanently.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use packhouse_tests::Api;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::{OWNER, Server, eventually, free_port};
use packhouse_tests::smtp::Sink;
use serde_json::{Value, json};

use super::receiver::{Receiver, ok};
use super::{Hook, WEBHOOKS, allowing};

fn maven(server: &Server) -> FormatRepository {
    FormatRepository::hosted(server, "maven", "releases", &json!({}))
}

fn publish(repository: &FormatRepository, name: &str, version: usize) {
    let path = format!("org/a/{name}/{version}/{name}-{version}.jar");
    repository.put(&path, format!("{name} {version}")).expect(201);
}

#[test]
fn a_failed_delivery_is_retried_and_each_attempt_is_recorded() {
    let server = allowing().start();
    let (api, repository) = (Api::sign_in(&server), maven(&server));
    let long = "x".repeat(3000);
    let body = long.clone();
    let receiver = Receiver::answering(move |number, _| match number {
        0 => (500, String::new(), format!("no\0{body}").into_bytes(), Duration::ZERO),
        1 => (302, "Location: http://127.0.0.1:1/other\r\n".to_owned(), b"there".to_vec(), Duration::ZERO),
        _ => ok(),
    });
    let hook = Hook::create(&api, &receiver.url(), &["package.published"], json!("*"));
    publish(&repository, "lib", 1);
    let deliveries = hook.drained(&api);
    let [delivery] = deliveries.as_slice() else { panic!("{deliveries:?}") };
    assert_eq!((&delivery["type"], &delivery["state"]), (&json!("package.published"), &json!("delivered")));
    let tries = delivery["tries"].as_array().unwrap();
    let statuses: Vec<u64> = tries.iter().map(|one| one["status"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [500, 302, 200]);
    assert_eq!(tries[0]["answer"].as_str().unwrap(), format!("no\u{fffd}{}", &long[..1021]));
    assert_eq!(tries[1]["answer"], "there");
    assert!(tries[1]["error"].as_str().unwrap().contains("redirect"), "{}", tries[1]);
    let at = |number: usize| tries[number]["at"].as_i64().unwrap();
    assert!(at(1) - at(0) >= 1000 && at(2) - at(1) >= 2000, "{tries:?}");
    // Each attempt sends the same message with a new signature.
    let messages = receiver.messages();
    assert_eq!(messages.len(), 3);
    assert!(messages.iter().all(|message| message.body == messages[0].body));
    assert!(messages.iter().all(|message| message.is_signed_with(&hook.secret)));
    assert!(
        messages.iter().all(|message| message.header("webhook-id") == delivery["event_id"].as_str().unwrap())
    );

    // The API requests a redelivery.
    let again = format!("{}/deliveries/{}/redelivery", hook.path(), delivery["id"].as_str().unwrap());
    assert_eq!(api.call("POST", &again).expect(202).field("state"), "pending");
    eventually("the redelivery arrived", || (receiver.messages().len() == 4).then_some(()));
    assert_eq!(hook.drained(&api)[0]["tries"].as_array().unwrap().len(), 4);

    // A paused webhook still receives test deliveries, but no events.
    api.patch(&hook.path(), &json!({"state": "paused"})).expect(200);
    publish(&repository, "lib", 2);
    let test = api.call("POST", &format!("{}/test", hook.path())).expect(202);
    assert_eq!(test.field("type"), "webhook.test");
    let came = receiver.expect("webhook.test", &hook.id);
    assert!(came.is_signed_with(&hook.secret));
    assert_eq!(came.header("webhook-id"), test.field("event_id"));
    assert_eq!(receiver.of_kind("package.published").len(), 4, "the hook is paused, so nothing arrives");
    api.patch(&hook.path(), &json!({"state": "active"})).expect(200);
    receiver.expect("package.published", "lib/2");
}

#[test]
fn a_failing_hook_is_paused_and_its_owner_notified() {
    let mail = Sink::start();
    let server = allowing()
        .env("PACKHOUSE_WEBHOOKS_RETRY_FOR_MS", "1500")
        .env("PACKHOUSE_SMTP_URL", &mail.url("secret"))
        .start();
    let (api, repository) = (Api::sign_in(&server), maven(&server));
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/hook");
    let hook = Hook::create(&api, &url, &["package.published"], json!("*"));
    let begun = Instant::now();
    publish(&repository, "lib", 1);
    eventually("the hook is paused", || (hook.details(&api)["state"] == "paused").then_some(()));
    assert!(begun.elapsed() >= Duration::from_millis(1500));
    let details = hook.details(&api);
    assert!(details["paused_at"].is_i64() && details["paused_because"].is_string(), "{details}");
    let letter = eventually("the owner has a mail", || mail.letters().into_iter().next());
    assert!(letter.envelope.iter().any(|line| line.contains(OWNER)), "{letter:?}");
    assert!(letter.text.contains(&hook.id), "{letter:?}");
    assert!(!letter.text.contains(&hook.secret));
    let delivery = hook.deliveries(&api).remove(0);
    assert_eq!(delivery["state"], "pending");
    let error = delivery["tries"][0]["error"].as_str().unwrap().to_owned();
    assert!(delivery["tries"][0]["status"].is_null() && !error.is_empty());
    // Once the webhook is active again, the server delivers the events that waited and the new
    // ones.
    publish(&repository, "lib", 2);
    let receiver =
        Receiver::on(TcpListener::bind(("127.0.0.1", port)).unwrap(), std::sync::Arc::new(|_, _| ok()));
    let active = api.patch(&hook.path(), &json!({"state": "active"})).expect(200).json();
    assert_eq!((&active["state"], &active["paused_at"]), (&json!("active"), &Value::Null));
    receiver.expect("package.published", "lib/1");
    receiver.expect("package.published", "lib/2");
}

#[test]
fn a_slow_receiver_does_not_delay_others() {
    let server = allowing().env("PACKHOUSE_WEBHOOKS_TIMEOUT_MS", "3000").start();
    let (api, repository) = (Api::sign_in(&server), maven(&server));
    let slow = Receiver::answering(|_, _| (200, String::new(), Vec::new(), Duration::from_secs(30)));
    let endless = Receiver::answering(|_, _| (200, String::new(), vec![b'x'; 50_000_000], Duration::ZERO));
    let quick = Receiver::start();
    for url in [slow.url(), endless.url()] {
        for _ in 0..3 {
            Hook::create(&api, &url, &["package.published"], json!("*"));
        }
    }
    let hook = Hook::create(&api, &quick.url(), &["package.published"], json!("*"));
    let (begun, before) = (Instant::now(), server.rss());
    for number in 0..20 {
        publish(&repository, &format!("lib{number}"), 1);
    }
    let published = begun.elapsed();
    hook.drained(&api);
    assert_eq!(quick.messages().len(), 20);
    assert!(begun.elapsed() < published + Duration::from_secs(8), "{:?} {published:?}", begun.elapsed());
    let late = eventually("the slow delivery times out", || {
        let deliveries = slow_deliveries(&api, &slow.url());
        deliveries.iter().find_map(|one| one["tries"][0]["error"].as_str().map(str::to_owned))
    });
    assert!(late.contains("did not answer in time"), "{late}");
    assert!(server.rss() < before + 100_000_000, "{before} {}", server.rss());
}

fn slow_deliveries(api: &Api, url: &str) -> Vec<Value> {
    let hooks = api.call("GET", WEBHOOKS).expect(200).json();
    let hook = hooks["items"].as_array().unwrap().iter().find(|hook| hook["url"] == url).unwrap().clone();
    let hook = Hook { id: hook["id"].as_str().unwrap().to_owned(), secret: String::new() };
    hook.deliveries(api)
}

#[test]
fn an_address_that_is_not_allowed_is_refused_and_never_connected_to() {
    let server = Server::start();
    let (api, repository) = (Api::sign_in(&server), maven(&server));
    for url in ["http://127.0.0.1:9/", "http://10.0.0.1/", "https://169.254.169.254/", "http://[::1]/"] {
        let body = json!({"url": url, "events": ["package.published"], "repositories": "*"});
        assert_eq!(api.post(WEBHOOKS, &body).expect(400).field("error"), "invalid_request", "{url}");
    }
    // The server accepts a host name and checks its address when it connects.
    let receiver = Receiver::start();
    let url = receiver.url().replace("127.0.0.1", "localhost");
    let hook = Hook::create(&api, &url, &["package.published"], json!("*"));
    publish(&repository, "lib", 1);
    api.call("POST", &format!("{}/test", hook.path())).expect(202);
    let errors = eventually("both were attempted", || {
        let deliveries = hook.deliveries(&api);
        let errors: Vec<String> =
            deliveries.iter().filter_map(|one| Some(one["tries"][0]["error"].as_str()?.to_owned())).collect();
        (errors.len() == 2).then_some(errors)
    });
    for error in errors {
        assert!(error.contains("localhost") && error.contains("allow_networks"), "{error}");
        assert!(
            !error.contains("127.0.0.1") && !error.contains("::1"),
            "the error contains the resolved address: {error}"
        );
    }
    assert!(receiver.messages().is_empty());
}
