//! Sessions in cookies: what a browser sends, and what another site can make it send.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use super::world::*;

/// A browser's session: the cookie as it is sent back, and the CSRF token.
async fn browser(world: &World) -> (String, String) {
    let body = json!({"email": "owner@example.com", "password": PASSWORD, "cookie": true});
    let said = world.call("", "POST", "/v1/sessions", body).await;
    let set = said.headers["set-cookie"].to_str().unwrap().to_owned();
    let csrf = said.body["csrf_token"].as_str().unwrap().to_owned();
    assert!(!said.body.to_string().contains("pkh_"), "a script must not see the session: {}", said.body);
    assert!(
        set.contains("; HttpOnly") && set.contains("; SameSite=Lax") && set.contains("; Path=/"),
        "{set}"
    );
    said.ok(201);
    (set.split(';').next().unwrap().to_owned(), csrf)
}

async fn send(world: &World, method: &str, path: &str, fields: &[(&str, &str)]) -> Said {
    let mut request = Request::builder().method(method).uri(path).header("host", "portal.example");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    world.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn a_cookie_is_a_session_and_changes_nothing_without_its_csrf_token() {
    let world = World::new().await;
    let (cookie, csrf) = browser(&world).await;
    let cookie = ("cookie", cookie.as_str());
    let seen = send(&world, "GET", "/v1/me", &[cookie]).await;
    assert_eq!(seen.headers["x-csrf-token"], csrf.as_str(), "a page that was loaded anew asks for it");
    seen.ok(200);
    let end = async |fields: &[(&str, &str)]| {
        let all: Vec<_> = [&[cookie], fields].concat();
        send(&world, "DELETE", "/v1/sessions/current", &all).await
    };
    let right = ("x-csrf-token", csrf.as_str());
    end(&[]).await.is(403, "csrf_refused");
    end(&[("x-csrf-token", "")]).await.is(403, "csrf_refused");
    end(&[("x-csrf-token", &csrf[1..])]).await.is(403, "csrf_refused");
    end(&[right, ("origin", "https://evil.example")]).await.is(403, "csrf_refused");
    end(&[right, ("origin", "null")]).await.is(403, "csrf_refused");
    end(&[right, ("sec-fetch-site", "same-site")]).await.is(403, "csrf_refused");
    end(&[right, ("sec-fetch-site", "cross-site")]).await.is(403, "csrf_refused");
    send(&world, "GET", "/v1/me", &[cookie]).await.ok(200);
    let ended = end(&[right, ("origin", "http://portal.example"), ("sec-fetch-site", "same-origin")]).await;
    assert!(ended.headers["set-cookie"].to_str().unwrap().contains("Max-Age=0"));
    ended.ok(204);
    send(&world, "GET", "/v1/me", &[cookie]).await.is(401, "not_signed_in");
}

#[tokio::test]
async fn a_cookie_that_another_put_there_or_beside_a_bearer_does_not_count() {
    let world = World::new().await;
    let (cookie, _) = browser(&world).await;
    let twice = format!("{cookie}; packhouse_session=pkh_other");
    send(&world, "GET", "/v1/me", &[("cookie", &twice)]).await.is(401, "not_signed_in");
    let beside = [("cookie", cookie.as_str()), ("authorization", "Bearer wrong")];
    send(&world, "GET", "/v1/me", &beside).await.is(401, "not_signed_in");
    let other = format!("x=1; {cookie}; y=2");
    send(&world, "GET", "/v1/me", &[("cookie", &other)]).await.ok(200);
    // Two sessions, two CSRF tokens: that of one is no good with the other.
    let (_, csrf) = browser(&world).await;
    let mixed = [("cookie", cookie.as_str()), ("x-csrf-token", csrf.as_str())];
    send(&world, "DELETE", "/v1/sessions/current", &mixed).await.is(403, "csrf_refused");
}

#[tokio::test]
async fn over_tls_the_cookie_is_of_this_host_alone() {
    let world = World::with(&[("PACKHOUSE_API_URL", "https://portal.example")]).await;
    let (cookie, csrf) = browser(&world).await;
    assert!(cookie.starts_with("__Host-packhouse_session=pkh_"));
    let fields =
        [("cookie", cookie.as_str()), ("x-csrf-token", csrf.as_str()), ("origin", "http://portal.example")];
    send(&world, "DELETE", "/v1/sessions/current", &fields).await.is(403, "csrf_refused");
    let plain = cookie.trim_start_matches("__Host-").to_owned();
    send(&world, "GET", "/v1/me", &[("cookie", &plain)]).await.is(401, "not_signed_in");
    let fields =
        [("cookie", cookie.as_str()), ("x-csrf-token", csrf.as_str()), ("origin", "https://portal.example")];
    send(&world, "DELETE", "/v1/sessions/current", &fields).await.ok(204);
}

#[tokio::test]
async fn another_site_signs_nobody_in() {
    let world = World::new().await;
    let body = json!({"email": "owner@example.com", "password": PASSWORD, "cookie": true});
    let request = Request::post("/v1/sessions").header("content-type", "application/json");
    let request = request.header("host", "portal.example").header("origin", "https://evil.example");
    world.send(request.body(Body::from(body.to_string())).unwrap()).await.is(403, "csrf_refused");
    let request = Request::post("/v1/sessions").header("content-type", "text/plain");
    world.send(request.body(Body::from(body.to_string())).unwrap()).await.is(415, "unsupported_media_type");
    // A program gets a bearer and no cookie.
    let body = json!({"email": "owner@example.com", "password": PASSWORD});
    let said = world.call("", "POST", "/v1/sessions", body).await;
    assert!(!said.headers.contains_key("set-cookie"));
    assert_eq!(said.ok(201)["csrf_token"], Value::Null);
}
