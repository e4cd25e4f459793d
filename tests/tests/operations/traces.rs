//! Traces of requests, as a collector of OpenTelemetry gets them: parents and children are right, whoever is trusted goes on with a
//! trace of its own, and nothing secret is in them. Without the setting there are none; without the collector requests are served.

use packhouse_tests::otlp::{Collector, Span};
use packhouse_tests::server::{PASSWORD, free_port};
use packhouse_tests::{Api, MavenRepository, Request, Server, payload};
use std::time::{Duration, Instant};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// Begins a trace that is to be recorded.
fn traced(request: Request) -> Request {
    request.header("traceparent", &format!("00-{TRACE}-{PARENT}-01"))
}

/// What a server with these settings tells of a publish and a read, both with a `traceparent`; and the secret they were made with.
fn publish_and_read(settings: &[(&str, &str)]) -> (Vec<Span>, Collector, String) {
    let collector = Collector::default();
    let mut builder = Server::with().env("PACKHOUSE_TRACING_OTLP_ENDPOINT", &collector.url());
    for (name, value) in settings {
        builder = builder.env(name, value);
    }
    let mut server = builder.start();
    let repository = MavenRepository::create(&server, "traced");
    let publish = Request::new("PUT", &repository.path(FILE)).body(payload::bytes(1, 100_000));
    repository.client.send(traced(publish)).expect(201);
    repository.client.send(traced(Request::new("GET", &repository.path(FILE)))).expect(200);
    let code = Api::sign_in(&server).session;
    server.terminate();
    assert!(server.wait().success(), "{}", server.log());
    let bytes = collector.bytes();
    for secret in [repository.token.secret.as_str(), PASSWORD, &code] {
        let there = bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!there, "a secret is in a span");
    }
    (collector.spans(), collector, repository.token.secret)
}

fn of<'a>(spans: &'a [Span], name: &str, parent: &Span) -> Vec<&'a Span> {
    spans.iter().filter(|span| span.name == name && span.parent == parent.id).collect()
}

#[test]
fn a_publish_and_a_read_are_told_from_request_to_plugin_to_store() {
    let (spans, ..) = publish_and_read(&[("PACKHOUSE_TRUSTED_PROXIES", "127.0.0.0/8")]);
    let requests: Vec<&Span> =
        spans.iter().filter(|span| span.trace == TRACE && span.parent == PARENT).collect();
    assert_eq!(requests.len(), 2, "{spans:#?}");
    for request in &requests {
        assert_eq!(request.name, "request");
        assert_eq!(request.attributes["url.path"], format!("/repositories/traced/{FILE}"));
        let calls = of(&spans, "plugin.call", request);
        assert!(calls.iter().any(|call| call.attributes["function"] == "handle"), "{spans:#?}");
        for call in &calls {
            assert_eq!(call.attributes["plugin"], "maven");
            assert!(call.time.0 >= request.time.0 && call.time.1 <= request.time.1, "{call:?} {request:?}");
        }
    }
    let method = |name: &str| {
        let found = requests.iter().find(|request| request.attributes["http.request.method"] == name);
        *found.unwrap_or_else(|| panic!("no {name} in {requests:#?}"))
    };
    let (publish, read) = (method("PUT"), method("GET"));
    assert_eq!(publish.attributes["http.response.status_code"], "201");
    assert_eq!(read.attributes["http.response.status_code"], "200");
    let commits = |request: &Span| {
        let mut inside = of(&spans, "plugin.call", request);
        inside.push(request);
        inside.iter().map(|parent| of(&spans, "store.commit", parent).len()).sum::<usize>()
    };
    assert_eq!((commits(publish), commits(read)), (1, 0), "{spans:#?}");
    // Calls of the API have traces as well, with the route in the place of the path.
    let routes: Vec<&str> =
        spans.iter().filter_map(|span| span.attributes.get("http.route").map(String::as_str)).collect();
    assert!(routes.contains(&"/v1/tokens") && routes.contains(&"/v1/sessions"), "{routes:?}");
}

#[test]
fn a_trace_of_somebody_who_is_not_trusted_does_not_count() {
    let (spans, ..) = publish_and_read(&[]);
    assert!(spans.iter().any(|span| span.name == "request" && span.parent.is_empty()), "{spans:#?}");
    assert!(spans.iter().all(|span| span.trace != TRACE), "{spans:#?}");
}

#[test]
fn a_ratio_of_none_makes_none_but_of_traces_that_were_begun_elsewhere() {
    let (spans, ..) = publish_and_read(&[("PACKHOUSE_TRACING_SAMPLING_RATIO", "0")]);
    assert!(spans.is_empty(), "{spans:#?}");
    let settings = [("PACKHOUSE_TRACING_SAMPLING_RATIO", "0"), ("PACKHOUSE_TRUSTED_PROXIES", "127.0.0.0/8")];
    let (spans, ..) = publish_and_read(&settings);
    assert!(!spans.is_empty() && spans.iter().all(|span| span.trace == TRACE), "{spans:#?}");
}

/// Requests are served, and the stop takes no longer than the last try to send.
#[test]
fn a_collector_that_is_away_holds_nobody_up() {
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let mut server = Server::with().env("PACKHOUSE_TRACING_OTLP_ENDPOINT", &nobody).start();
    let repository = MavenRepository::create(&server, "traced");
    repository.put(FILE, "here").expect(201);
    for _ in 0..50 {
        repository.get(FILE).expect(200);
    }
    server.terminate();
    let began = Instant::now();
    assert!(server.wait().success(), "{}", server.log());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}
