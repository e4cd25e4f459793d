//! A proxy whose upstream fails in every way: responses to clients, and the cache.

use packhouse_tests::proxy::{JAR, METADATA, World, metadata};
use packhouse_tests::upstream::{Answer, Gate, Upstream};
use packhouse_tests::{Response, Server, payload};
use serde_json::json;
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

#[test]
fn wrong_content_is_truncated_and_not_cached() {
    let world = World::new(&json!({}));
    for size in [1000, 2_000_000] {
        let bytes = payload::bytes(1, size);
        let path = format!("org/example/a/1.{size}/a-1.{size}.jar");
        world.offer(&path, Answer::ok(bytes.clone()), b"something else");
        match size < 100_000 {
            true => drop(world.get(&path).expect(502)),
            false => world.broken(&path),
        }
        // The upstream has recovered.
        world.offer(&path, Answer::ok(bytes.clone()), &bytes);
        assert!(
            !world.cached_paths().iter().any(|file| file.ends_with(".jar")),
            "{:?}",
            world.cached_paths()
        );
    }
}

#[test]
fn an_interrupted_download_is_not_cached_and_fetched_again() {
    let world = World::new(&json!({}));
    let bytes = payload::bytes(2, 2_000_000);
    for cut in [0, 1000, 1_999_999] {
        world.offer(JAR, Answer::ok(bytes.clone()).cut(cut), &bytes);
        world.broken(JAR);
    }
    world.offer(JAR, Answer::ok(bytes.clone()), &bytes);
    assert_eq!(world.get(JAR).expect(200).body.len(), bytes.len());
    let small = "org/example/a/2.0/a-2.0.pom";
    world.offer(small, Answer::ok("<project/>").cut(3), b"<project/>");
    world.get(small).expect(502);
    world.offer(small, Answer::ok("<project/>"), b"<project/>");
    world.get(small).expect(200);
}

#[test]
fn a_stalled_upstream_times_out() {
    let world = World::new(&json!({}));
    let (gate, bytes) = (Gate::new(), payload::bytes(3, 2_000_000));
    world.offer(JAR, Answer::ok(bytes.clone()).silent(&gate), &bytes);
    world.get(JAR).expect(502);
    world.offer(JAR, Answer::ok(bytes.clone()).gated(1_000_000, &gate), &bytes);
    world.broken(JAR);
    gate.open();
    assert!(!world.cached_paths().iter().any(|file| file.ends_with(".jar")));
}

#[test]
fn a_failing_upstream_is_distinguished_from_a_missing_file() {
    let world = World::new(&json!({"negative_ttl_s": 3600}));
    for (number, status, expected) in
        [(1, 404, 404), (2, 410, 404), (3, 500, 502), (4, 403, 404), (5, 429, 429), (6, 204, 502)]
    {
        let path = format!("org/example/a/{number}/a-{number}.jar");
        world.upstream.on(&format!("/{path}"), Answer::new(status, "no"));
        let answer = world.get(&path).expect(expected);
        let code = match expected {
            404 => "not_found",
            429 => "rate_limited",
            _ => "upstream_unavailable",
        };
        assert_eq!(answer.field("error"), code);
        world.get(&path).expect(expected);
        // The proxy caches an absence, and does not cache a failure.
        let requests = world.upstream.count(&format!("/{path}"));
        assert_eq!(requests, if expected == 404 { 1 } else { 2 }, "{status}");
    }
    assert!(world.cached_paths().is_empty());
}

#[test]
fn a_rate_limited_upstream_is_paused() {
    let world = World::new(&json!({}));
    world.upstream.on(&format!("/{JAR}"), Answer::new(429, "").header("Retry-After", "60"));
    assert_eq!(world.get(JAR).expect(429).header("retry-after"), Some("60"));
    let before = world.upstream.requests().len();
    for number in 0..3 {
        world.get(&format!("org/example/b/{number}/b-{number}.jar")).expect(429);
    }
    assert_eq!(world.upstream.requests().len(), before);
}

#[test]
fn a_403_with_a_rate_limit_is_not_a_refusal() {
    let spent = || Answer::new(403, "").header("X-RateLimit-Remaining", "0");
    let reset = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 3600;
    for (answer, longest) in [
        (spent().header("X-RateLimit-Reset", &reset.to_string()), 3600),
        (Answer::new(403, "").header("Retry-After", "60"), 60),
    ] {
        let world = World::new(&json!({"metadata_ttl_s": 0}));
        world.offer_metadata(&["1.0"], |answer| answer);
        let first = world.get(METADATA).expect(200).text();
        world.upstream.on(&format!("/{JAR}"), answer);
        let limited = world.get(JAR).expect(429);
        let wait = limited.header("retry-after").unwrap().parse::<u64>().unwrap();
        assert!((1..=longest).contains(&wait), "{wait}");
        let before = world.upstream.requests().len();
        assert_eq!(world.get(METADATA).expect(200).text(), first);
        assert_eq!(world.upstream.requests().len(), before, "the upstream is paused");
    }
    let world = World::new(&json!({}));
    world.upstream.on(&format!("/{JAR}"), spent());
    world.get(JAR).expect(429);
    world.upstream.on(&format!("/{JAR}"), Answer::new(403, "").header("X-RateLimit-Remaining", "7"));
    world.get(JAR).expect(404);
}

#[test]
fn stale_metadata_is_served_until_new_metadata_is_complete() {
    let world = World::new(&json!({"metadata_ttl_s": 0}));
    world.offer_metadata(&["1.0"], |answer| answer.header("ETag", "\"1\""));
    let first = world.get(METADATA).expect(200).text();
    assert_eq!(world.get(METADATA).expect(200).text(), first);
    assert_eq!(world.upstream.requests()[1].header("if-none-match"), Some("\"1\""));
    let cache_status = |answer: &Response| answer.header("cache-status").map(str::to_owned);
    assert_eq!(cache_status(&world.get(METADATA)), None);
    let gate = Gate::new();
    let failures: [&dyn Fn(Answer) -> Answer; 5] = [
        &|_| Answer::new(500, ""),
        &|answer| answer.cut(20),
        &|_| Answer::new(403, "no"),
        &|answer| answer.header("Content-Encoding", "gzip"),
        &|answer| answer.silent(&gate),
    ];
    for failure in failures {
        world.offer_metadata(&["1.0", "2.0"], failure);
        let stale = world.get(METADATA).expect(200);
        assert_eq!(stale.text(), first);
        assert_eq!(cache_status(&stale).as_deref(), Some("Packhouse; hit; detail=stale"));
    }
    world.upstream.down(true);
    assert_eq!(world.get(METADATA).expect(200).text(), first);
    gate.open();
}

#[test]
fn a_paused_upstream_is_reported() {
    let world = World::new(&json!({"metadata_ttl_s": 0}));
    world.offer_metadata(&["1.0"], |answer| answer);
    let first = world.get(METADATA).expect(200).text();
    world.offer_metadata(&["1.0", "2.0"], |_| Answer::new(429, "").header("Retry-After", "60"));
    for _ in 0..2 {
        let stale = world.get(METADATA).expect(200);
        assert_eq!(stale.text(), first);
        assert_eq!(stale.header("cache-status"), Some("Packhouse; hit; detail=stale"));
    }
}

#[test]
fn a_page_for_people_is_not_served_as_metadata() {
    let world = World::new(&json!({"metadata_ttl_s": 0}));
    let page = Answer::ok("<html>Sign in!</html>").header("Content-Type", "text/html; charset=utf-8");
    world.upstream.on(&format!("/{METADATA}"), page.clone());
    world.get(METADATA).expect(502);
    world.offer_metadata(&["1.0"], |answer| answer);
    let good = world.get(METADATA).expect(200).text();
    world.upstream.on(&format!("/{METADATA}"), page);
    assert_eq!(world.get(METADATA).expect(200).text(), good);
}

#[test]
fn an_endless_body_and_a_decompression_bomb_stop_at_the_limit() {
    let world = World::new(&json!({}));
    world.upstream.on(&format!("/{METADATA}"), Answer::ok(payload::bytes(4, 1 << 20)).endless());
    let too_large = |answer: Response| {
        let text = answer.expect(502).text();
        assert!(text.contains(&format!("for /{METADATA} is over the limit of 16777216 bytes")), "{text}");
    };
    too_large(world.get(METADATA));
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..64 {
        bomb.write_all(&vec![b' '; 1 << 20]).unwrap();
    }
    let packed = bomb.finish().unwrap();
    world.server.forget_peak();
    let before = world.server.rss();
    world.upstream.on(&format!("/{METADATA}"), Answer::ok(packed).header("Content-Encoding", "gzip"));
    too_large(world.get(METADATA));
    let grown = world.server.peak_rss().saturating_sub(before);
    assert!(grown < 64 << 20, "the bomb took {grown} bytes of memory");
    assert!(world.cached_paths().is_empty());
}

#[test]
fn compressed_metadata_is_cached_decompressed() {
    let world = World::new(&json!({}));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(metadata(&["1.0"]).as_bytes()).unwrap();
    let answer = Answer::ok(packed.finish().unwrap()).header("Content-Encoding", "gzip");
    world.upstream.on(&format!("/{METADATA}"), answer);
    assert_eq!(world.get(METADATA).expect(200).text(), metadata(&["1.0"]));
    assert_eq!(world.upstream.requests()[0].header("accept-encoding"), Some("gzip"));
}

#[test]
fn redirects_are_followed_up_to_a_limit_and_only_to_allowed_addresses() {
    let world = World::new(&json!({}));
    let (bytes, other) = (payload::bytes(5, 1000), Upstream::start());
    other.on("/far.jar", Answer::ok(bytes.clone()));
    world.offer(JAR, Answer::redirect(&format!("{}/far.jar", other.url())), &bytes);
    assert_eq!(world.get(JAR).expect(200).body, bytes);
    for (number, to) in
        ["http://169.254.169.254/latest", "http://10.0.0.1/x", "http://[::1]:1/x", "file:///etc/passwd"]
            .iter()
            .enumerate()
    {
        let path = format!("org/example/evil/{number}/evil-{number}.jar");
        world.offer(&path, Answer::redirect(to), b"");
        world.get(&path).expect(502);
    }
    let path = "org/example/loop/1/loop-1.jar";
    world.offer(path, Answer::redirect(&format!("/{path}")), b"");
    world.get(path).expect(502);
    assert_eq!(world.upstream.count(&format!("/{path}")), 6);
}

#[test]
fn a_private_upstream_is_refused_unless_the_operator_allows_it() {
    let world = World::with(&[("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "10.0.0.0/8")], &json!({}));
    world.offer(JAR, Answer::ok("x"), b"x");
    world.get(JAR).expect(502);
    assert!(world.upstream.requests().is_empty());
}

#[test]
fn the_address_of_a_forbidden_host_name_is_not_disclosed() {
    let upstream = Upstream::start();
    let named = upstream.url().replace("127.0.0.1", "localhost");
    let allowed = [("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "10.0.0.0/8")];
    let world = World::before(upstream, Some(&named), &allowed, &json!({}));
    let answer = world.get(JAR).expect(502).text();
    let repository = world.api.call("GET", &format!("/v1/repositories/{}", world.id)).expect(200).json();
    let detail = repository["health"]["detail"].as_str().unwrap();
    assert!(detail.contains("localhost is not an address"), "{detail}");
    for text in [answer.as_str(), detail] {
        assert!(!text.contains("127.0.0.1") && !text.contains("::1"), "{text}");
    }
    assert!(world.upstream.requests().is_empty());
}

#[test]
fn an_offline_proxy_sends_no_requests() {
    let world = World::new(&json!({"metadata_ttl_s": 0}));
    world.offer_metadata(&["1.0"], |answer| answer);
    world.get(METADATA).expect(200);
    world.set(&json!({"offline": true}));
    let before = world.upstream.requests().len();
    world.get(METADATA).expect(200);
    world.get(JAR).expect(502);
    assert_eq!(world.upstream.requests().len(), before);
}

#[test]
fn a_purge_frees_room_for_new_content() {
    let world = World::new(&json!({}));
    world.offer_metadata(&["1.0"], |answer| answer);
    world.get(METADATA).expect(200);
    world.offer_metadata(&["1.0", "2.0"], |answer| answer);
    assert!(!world.get(METADATA).expect(200).text().contains("2.0"));
    let purge = format!("/v1/repositories/{}/cache?path=/org/example/a/", world.id);
    world.api.call("DELETE", &purge).expect(204);
    assert!(world.get(METADATA).expect(200).text().contains("2.0"));
    let view = world.api.call("GET", &format!("/v1/repositories/{}/cache", world.id)).expect(200).json();
    assert_eq!((view["counts"]["hits"].as_u64(), view["counts"]["misses"].as_u64()), (Some(1), Some(2)));
    assert_eq!(view["entries"], 1);
}

#[test]
fn the_cache_stays_within_its_limit() {
    let world = World::new(&json!({"cache_max_bytes": 250_000}));
    for number in 0..4 {
        let (path, bytes) =
            (format!("org/example/a/{number}/a-{number}.jar"), payload::bytes(number, 100_000));
        world.offer(&path, Answer::ok(bytes.clone()), &bytes);
        world.get(&path).expect(200);
    }
    packhouse_tests::server::eventually("the cache shrinks", || {
        let jars = world.cached_paths().into_iter().filter(|file| file.ends_with(".jar")).collect::<Vec<_>>();
        (jars.len() == 2).then_some(())
    });
}

#[test]
fn versions_that_vanish_upstream_are_withdrawn() {
    let world = World::new(&json!({"metadata_ttl_s": 0}));
    let bytes = payload::bytes(6, 1000);
    world.offer(JAR, Answer::ok(bytes.clone()), &bytes);
    world.offer_metadata(&["1.0", "2.0"], |answer| answer);
    world.get(METADATA).expect(200);
    world.get(JAR).expect(200);
    world.offer_metadata(&["2.0"], |answer| answer);
    assert!(!world.get(METADATA).expect(200).text().contains("1.0"));
    world.get(JAR).expect(404);
    let versions = format!("/v1/repositories/{}/packages/org.example%3Aa/versions", world.id);
    assert_eq!(world.api.call("GET", &versions).expect(200).json()["items"][0]["state"], "withdrawn");
    world.set(&json!({"keep_withdrawn": true}));
    world.get(JAR).expect(200);
    assert!(world.get(METADATA).expect(200).text().contains("<version>1.0</version>"));
}

#[test]
fn too_young_maven_releases_are_withheld() {
    let world = World::new(&json!({"min_release_age_s": 86_400 * 365, "metadata_ttl_s": 0}));
    let now = httpdate_now();
    for (version, date) in [("1.0", "Mon, 05 Jan 2015 10:00:00 GMT"), ("2.0", now.as_str())] {
        for end in ["jar", "pom"] {
            let path = format!("org/example/a/{version}/a-{version}.{end}");
            world.offer(&path, Answer::ok(version).header("Last-Modified", date), version.as_bytes());
        }
    }
    let recent = metadata(&["1.0", "2.0"]).replace("20260101000000", "99990101000000");
    world.upstream.on(&format!("/{METADATA}"), Answer::ok(recent));
    let offered = world.get(METADATA).expect(200).text();
    assert!(offered.contains("<version>1.0</version>") && !offered.contains("2.0"), "{offered}");
    world.get("org/example/a/1.0/a-1.0.jar").expect(200);
    world.get("org/example/a/2.0/a-2.0.jar").expect(404);
    world.set(&json!({"min_release_age_except": ["org.example:*"]}));
    world.get("org/example/a/2.0/a-2.0.jar").expect(200);
    assert!(world.get(METADATA).expect(200).text().contains("2.0"));
}

/// Returns the `Date` header of a server's current response.
fn httpdate_now() -> String {
    let server = Server::start();
    server.anonymous().get("/").header("date").expect("a date").to_owned()
}

#[test]
fn a_format_without_upstream_credentials_refuses_them() {
    let world = World::new(&json!({}));
    let path = format!("/v1/repositories/{}/upstream-credentials", world.id);
    let mut body = json!({"username": "robot", "password": "secret"});
    let refused = world.api.send("PUT", &path, &body).expect(403);
    assert_eq!(refused.field("error"), "step_up_required");
    body["confirmation_token"] = json!(world.api.confirm("set_upstream_credentials"));
    let refused = world.api.send("PUT", &path, &body).expect(400);
    assert_eq!(refused.field("error"), "upstream_credentials_not_supported");
}

#[test]
fn a_write_is_refused_and_no_credential_is_sent_upstream() {
    let world = World::new(&json!({}));
    let token = world.api.create_token(&[&world.id], &["read", "write"], None);
    let writer = world.server.anonymous().basic(packhouse_tests::server::OWNER, &token.secret);
    let refused = writer.put(&format!("/repositories/proxy/{JAR}"), "x").expect(405);
    assert_eq!(refused.field("code"), "writes_not_permitted_on_proxy");
    world
        .upstream
        .on(&format!("/{JAR}"), Answer::new(401, "").header("WWW-Authenticate", "Basic realm=\"x\""));
    world.get(JAR).expect(404);
    assert!(world.upstream.requests().iter().all(|request| request.header("authorization").is_none()));
}
