//! Webhooks in the portal, without scripts. A person creates a webhook, sees its secret once, and
//! tests, pauses and deletes it. Also redeliveries.

use packhouse_tests::Api;
use packhouse_tests::person::{Person, inside};
use packhouse_tests::server::eventually;
use serde_json::json;

use super::receiver::Receiver;
use super::{Hook, WEBHOOKS, allowing};

const PATH: &str = "/webhooks";

#[test]
fn a_webhook_is_created_tested_paused_and_deleted_in_the_portal() {
    let server = allowing().start();
    let (api, receiver, mut person) = (Api::sign_in(&server), Receiver::start(), Person::owner(&server));
    assert!(person.get("/home").text().contains(PATH), "the navigation leads to webhooks");
    let url = receiver.url();
    let wrong = person
        .send_form(PATH, &[("sent", "yes"), ("url", "ftp://x"), ("events", "tag.moved"), ("every", "yes")]);
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("role=\"alert\""), "{}", wrong.text());
    let fields = [("sent", "yes"), ("url", url.as_str()), ("events", "package.published"), ("every", "yes")];
    let page = person.confirm_form(PATH, &fields).expect(200).text();
    let secret = inside(&page, "data-secret").unwrap();
    assert!(secret.starts_with("whsec_"), "{secret}");
    let made = api.call("GET", WEBHOOKS).expect(200).json()["items"][0].clone();
    assert_eq!(
        (&made["url"], &made["events"], &made["repositories"]),
        (&json!(url), &json!(["package.published"]), &json!("*"))
    );
    let hook = Hook { id: made["id"].as_str().unwrap().to_owned(), secret };
    let own = format!("{PATH}/{}", hook.id);
    for page in [PATH, &own, "/settings"] {
        let page = person.get(page).expect(200).text();
        assert!(!page.contains(&hook.secret) && page.len() <= 60 * 1024);
    }

    person.send_form(&own, &[("do", "test")]).expect(303);
    assert!(receiver.expect("webhook.test", &hook.id).is_signed_with(&hook.secret));
    let delivery = eventually("the page shows the delivery", || {
        let page = person.get(&own).text();
        (page.contains("delivered") && page.contains("webhook.test")).then(|| hook.deliveries(&api).remove(0))
    });
    let id = delivery["id"].as_str().unwrap();
    person.send_form(&own, &[("do", "again"), ("delivery", id)]).expect(303);
    eventually("the redelivery arrived", || (receiver.messages().len() == 2).then_some(()));

    person.send_form(&own, &[("do", "pause")]).expect(303);
    assert_eq!(hook.details(&api)["state"], "paused");
    person.send_form(&own, &[("do", "resume")]).expect(303);
    assert_eq!(hook.details(&api)["state"], "active");
    let fields =
        [("do", "save"), ("sent", "yes"), ("url", url.as_str()), ("events", "tag.moved"), ("every", "yes")];
    person.send_form(&own, &fields).expect(303);
    assert_eq!(hook.details(&api)["events"], json!(["tag.moved"]));

    // Without the session's form token nothing changes.
    assert_eq!(person.post(&own, &[("do", "delete")]).status, 403);
    person.send_form(&own, &[("do", "delete")]).expect(303);
    assert_eq!(person.get(&own).status, 404);
    assert_eq!(person.get(&format!("{PATH}/x")).status, 404);
}
