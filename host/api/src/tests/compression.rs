//! Tests of the compression of responses.

use super::*;

async fn sent(api: &TestApi, method: &str, path: &str, accepted: &str, body: Value) -> TestResponse {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("accept-encoding", accepted).header("content-type", "application/json");
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    api.send(request.body(body).unwrap()).await
}

#[tokio::test]
async fn documents_are_compressed_for_those_who_accept_it() {
    let api = TestApi::new().await;
    for (accepted, coding) in
        [("gzip", Some("gzip")), ("zstd", Some("zstd")), ("gzip;q=0", None), ("identity", None), ("br", None)]
    {
        let response = sent(&api, "GET", "/v1/openapi.json", accepted, Value::Null).await;
        let stated = response.headers.get("content-encoding").map(|value| value.to_str().unwrap());
        assert_eq!((response.status, stated), (200, coding), "{accepted}");
        let vary = response.headers["vary"].to_str().unwrap().to_ascii_lowercase();
        assert!(vary.contains("accept-encoding"), "{vary}");
        assert_eq!(response.body.is_object(), coding.is_none(), "{accepted}");
    }
}

#[tokio::test]
async fn a_response_with_a_secret_is_not_compressed() {
    let api = TestApi::new().await;
    let body = json!({"email": "owner@example.com", "password": PASSWORD});
    let response = sent(&api, "POST", "/v1/sessions", "gzip", body).await;
    assert!(!response.headers.contains_key("content-encoding"));
    assert!(response.ok(201)["session"].is_string());
}

#[tokio::test]
async fn an_operator_can_disable_compression() {
    let api = TestApi::with(&[("PACKHOUSE_RESPONSES_COMPRESSION", "false")]).await;
    let response = sent(&api, "GET", "/v1/openapi.json", "gzip", Value::Null).await;
    assert!(!response.headers.contains_key("content-encoding") && response.body.is_object());
}
