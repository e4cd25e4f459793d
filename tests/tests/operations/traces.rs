//! Traces of requests, as an OpenTelemetry collector receives them. Spans have the right parents,
//! and trusted clients continue their own traces. Spans contain no secrets. Without the setting the
//! server sends no traces. Without a collector requests still succeed.

use packhouse_tests::otlp::{Collector, Span};
use packhouse_tests::server::{PASSWORD, free_port};
use packhouse_tests::{Api, MavenRepository, Request, Server, payload};
use std::time::{Duration, Instant};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// Adds the header of a sampled trace.
fn traced(request: Request) -> Request {
    request.header("traceparent", &format!("00-{TRACE}-{PARENT}-01"))
}

/// Publishes and reads on a server with these settings, both with a `traceparent`. Returns the
/// spans, the collector, and the secret of the token.
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
fn a_publish_and_a_read_are_traced_from_request_to_plugin_to_store() {
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
    // API calls have traces as well, with the route instead of the path.
    let routes: Vec<&str> =
        spans.iter().filter_map(|span| span.attributes.get("http.route").map(String::as_str)).collect();
    assert!(routes.contains(&"/v1/tokens") && routes.contains(&"/v1/sessions"), "{routes:?}");
}

#[test]
fn the_trace_of_an_untrusted_client_is_ignored() {
    let (spans, ..) = publish_and_read(&[]);
    assert!(spans.iter().any(|span| span.name == "request" && span.parent.is_empty()), "{spans:#?}");
    assert!(spans.iter().all(|span| span.trace != TRACE), "{spans:#?}");
}

#[test]
fn a_ratio_of_zero_records_only_traces_of_trusted_clients() {
    let (spans, ..) = publish_and_read(&[("PACKHOUSE_TRACING_SAMPLING_RATIO", "0")]);
    assert!(spans.is_empty(), "{spans:#?}");
    let settings = [("PACKHOUSE_TRACING_SAMPLING_RATIO", "0"), ("PACKHOUSE_TRUSTED_PROXIES", "127.0.0.0/8")];
    let (spans, ..) = publish_and_read(&settings);
    assert!(!spans.is_empty() && spans.iter().all(|span| span.trace == TRACE), "{spans:#?}");
}

/// Requests succeed without a collector. The stop takes no longer than the last attempt to send.
#[test]
fn an_unreachable_collector_delays_no_request() {
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
