//! Webhooks. The server delivers each event with its content, signed, and in order for each
//! package. Any live server retries failed deliveries. A slow, dead or unreachable receiver does
//! not affect other receivers.

use crate::release;

mod delivery;
mod events;
mod killed;
mod order;
mod pages;
mod receiver;
mod rights;

use packhouse_tests::server::{ServerBuilder, eventually};
use packhouse_tests::{Api, Server};
use serde_json::{Value, json};

const WEBHOOKS: &str = "/v1/webhooks";

const ALL: [&str; 12] = [
    "package.published",
    "package.deleted",
    "package.state_changed",
    "tag.moved",
    "repository.created",
    "repository.deleted",
    "token.created",
    "token.revoked",
    "member.invited",
    "policy.denied",
    "plugin.activated",
    "blob.corrupt",
];

/// Configures a server that may call webhooks on loopback addresses.
fn allowing() -> ServerBuilder {
    Server::with().arg("--upstream-allow-networks").arg("127.0.0.0/8")
}

/// A webhook.
struct Hook {
    id: String,
    secret: String,
}

impl Hook {
    #[track_caller]
    fn create(api: &Api, url: &str, events: &[&str], repositories: Value) -> Hook {
        let body = json!({"url": url, "events": events, "repositories": repositories});
        let made = api.post(WEBHOOKS, &body).expect(201);
        assert_eq!(made.field("state"), "active");
        Hook { id: made.field("id"), secret: made.field("secret") }
    }

    fn path(&self) -> String {
        format!("{WEBHOOKS}/{}", self.id)
    }

    fn details(&self, api: &Api) -> Value {
        api.call("GET", &self.path()).expect(200).json()
    }

    /// The deliveries of the hook, newest first.
    fn deliveries(&self, api: &Api) -> Vec<Value> {
        let listed = api.call("GET", &format!("{}/deliveries?limit=200", self.path())).expect(200).json();
        listed["items"].as_array().unwrap().clone()
    }

    /// Waits until no delivery is pending. Returns all deliveries.
    #[track_caller]
    fn drained(&self, api: &Api) -> Vec<Value> {
        eventually("everything is delivered", || {
            let deliveries = self.deliveries(api);
            deliveries.iter().all(|one| one["state"] != "pending").then_some(deliveries)
        })
    }
}
