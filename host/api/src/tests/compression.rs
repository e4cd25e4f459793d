//! Which answers are compressed.

use super::*;

async fn sent(world: &World, method: &str, path: &str, accepted: &str, body: Value) -> Said {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("accept-encoding", accepted).header("content-type", "application/json");
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    world.send(request.body(body).unwrap()).await
}

#[tokio::test]
async fn documents_are_compressed_for_those_who_accept_it() {
    let world = World::new().await;
    for (accepted, coding) in
        [("gzip", Some("gzip")), ("zstd", Some("zstd")), ("gzip;q=0", None), ("identity", None), ("br", None)]
    {
        let said = sent(&world, "GET", "/v1/openapi.json", accepted, Value::Null).await;
        let stated = said.headers.get("content-encoding").map(|value| value.to_str().unwrap());
        assert_eq!((said.status, stated), (200, coding), "{accepted}");
        let vary = said.headers["vary"].to_str().unwrap().to_ascii_lowercase();
        assert!(vary.contains("accept-encoding"), "{vary}");
        assert_eq!(said.body.is_object(), coding.is_none(), "{accepted}");
    }
}

#[tokio::test]
async fn what_hands_out_a_secret_is_not_compressed() {
    let world = World::new().await;
    let body = json!({"email": "owner@example.com", "password": PASSWORD});
    let said = sent(&world, "POST", "/v1/sessions", "gzip", body).await;
    assert!(!said.headers.contains_key("content-encoding"));
    assert!(said.ok(201)["session"].is_string());
}

#[tokio::test]
async fn an_operator_may_want_none() {
    let world = World::with(&[("PACKHOUSE_RESPONSES_COMPRESSION", "false")]).await;
    let said = sent(&world, "GET", "/v1/openapi.json", "gzip", Value::Null).await;
    assert!(!said.headers.contains_key("content-encoding") && said.body.is_object());
}
