//! Tests of sessions in cookies: requests of browsers, and requests that other sites forge.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use super::test_api::*;

/// Signs in as a browser. Returns the cookie to send, and the CSRF token.
async fn browser(api: &TestApi) -> (String, String) {
    let body = json!({"email": "owner@example.com", "password": PASSWORD, "cookie": true});
    let response = api.call("", "POST", "/v1/sessions", body).await;
    let set = response.headers["set-cookie"].to_str().unwrap().to_owned();
    let csrf = response.body["csrf_token"].as_str().unwrap().to_owned();
    assert!(
        !response.body.to_string().contains("pkh_"),
        "a script must not see the session: {}",
        response.body
    );
    assert!(
        set.contains("; HttpOnly") && set.contains("; SameSite=Lax") && set.contains("; Path=/"),
        "{set}"
    );
    response.ok(201);
    (set.split(';').next().unwrap().to_owned(), csrf)
}

async fn send(api: &TestApi, method: &str, path: &str, fields: &[(&str, &str)]) -> TestResponse {
    let mut request = Request::builder().method(method).uri(path).header("host", "portal.example");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    api.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_cookie_is_a_session_and_changes_nothing_without_its_csrf_token() {
    let api = TestApi::new().await;
    let (cookie, csrf) = browser(&api).await;
    let cookie = ("cookie", cookie.as_str());
    let response = send(&api, "GET", "/v1/me", &[cookie]).await;
    assert_eq!(
        response.headers["x-csrf-token"],
        csrf.as_str(),
        "a reloaded page reads the token from this header"
    );
    response.ok(200);
    let end = async |fields: &[(&str, &str)]| {
        let all: Vec<_> = [&[cookie], fields].concat();
        send(&api, "DELETE", "/v1/sessions/current", &all).await
    };
    let right = ("x-csrf-token", csrf.as_str());
    end(&[]).await.is(403, "csrf_refused");
    end(&[("x-csrf-token", "")]).await.is(403, "csrf_refused");
    end(&[("x-csrf-token", &csrf[1..])]).await.is(403, "csrf_refused");
    end(&[right, ("origin", "https://evil.example")]).await.is(403, "csrf_refused");
    end(&[right, ("origin", "null")]).await.is(403, "csrf_refused");
    end(&[right, ("sec-fetch-site", "same-site")]).await.is(403, "csrf_refused");
    end(&[right, ("sec-fetch-site", "cross-site")]).await.is(403, "csrf_refused");
    send(&api, "GET", "/v1/me", &[cookie]).await.ok(200);
    let ended = end(&[right, ("origin", "http://portal.example"), ("sec-fetch-site", "same-origin")]).await;
    assert!(ended.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    ended.ok(204);
    send(&api, "GET", "/v1/me", &[cookie]).await.is(401, "not_signed_in");
}

#[tokio::test]
async fn a_duplicate_cookie_or_one_beside_a_bearer_token_is_ignored() {
    let api = TestApi::new().await;
    let (cookie, _) = browser(&api).await;
    let twice = format!("{cookie}; packhouse_session=pkh_other");
    send(&api, "GET", "/v1/me", &[("cookie", &twice)]).await.is(401, "not_signed_in");
    let beside = [("cookie", cookie.as_str()), ("authorization", "Bearer wrong")];
    send(&api, "GET", "/v1/me", &beside).await.is(401, "not_signed_in");
    let other = format!("x=1; {cookie}; y=2");
    send(&api, "GET", "/v1/me", &[("cookie", &other)]).await.ok(200);
    // Each session has its own CSRF token, which other sessions do not accept.
    let (_, csrf) = browser(&api).await;
    let mixed = [("cookie", cookie.as_str()), ("x-csrf-token", csrf.as_str())];
    send(&api, "DELETE", "/v1/sessions/current", &mixed).await.is(403, "csrf_refused");
}

#[tokio::test]
async fn over_tls_the_cookie_is_limited_to_this_host() {
    let api = TestApi::with(&[("PACKHOUSE_API_URL", "https://portal.example")]).await;
    let (cookie, csrf) = browser(&api).await;
    assert!(cookie.starts_with("__Host-packhouse_session=pkh_"));
    let fields =
        [("cookie", cookie.as_str()), ("x-csrf-token", csrf.as_str()), ("origin", "http://portal.example")];
    send(&api, "DELETE", "/v1/sessions/current", &fields).await.is(403, "csrf_refused");
    let plain = cookie.trim_start_matches("__Host-").to_owned();
    send(&api, "GET", "/v1/me", &[("cookie", &plain)]).await.is(401, "not_signed_in");
    let fields =
        [("cookie", cookie.as_str()), ("x-csrf-token", csrf.as_str()), ("origin", "https://portal.example")];
    send(&api, "DELETE", "/v1/sessions/current", &fields).await.ok(204);
}

#[tokio::test]
async fn another_site_cannot_sign_anyone_in() {
    let api = TestApi::new().await;
    let body = json!({"email": "owner@example.com", "password": PASSWORD, "cookie": true});
    let request = Request::post("/v1/sessions").header("content-type", "application/json");
    let request = request.header("host", "portal.example").header("origin", "https://evil.example");
    api.send(request.body(Body::from(body.to_string())).unwrap()).await.is(403, "csrf_refused");
    let request = Request::post("/v1/sessions").header("content-type", "text/plain");
    api.send(request.body(Body::from(body.to_string())).unwrap()).await.is(415, "unsupported_media_type");
    // A program gets a bearer session without a cookie.
    let body = json!({"email": "owner@example.com", "password": PASSWORD});
    let response = api.call("", "POST", "/v1/sessions", body).await;
    assert!(!response.headers.contains_key("set-cookie"));
    assert_eq!(response.ok(201)["csrf_token"], Value::Null);
}
