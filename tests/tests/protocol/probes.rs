//! Requests that no client sends: malformed, ambiguous and oversized heads. Each probe consists of
//! exact bytes and the expected status.

use std::time::Duration;

use packhouse_tests::{Connection, MavenRepository, Server, database, http};

/// Placeholders for the credential and for the host in the probes below.
const CREDENTIAL: &str = "{credential}";
const HOST: &str = "{host}";

/// Time limit for a response. It is shorter than the server's idle timeout, so that the test
/// detects a connection that the server only leaves open.
const PATIENCE: Duration = Duration::from_secs(20);

struct Probe {
    name: &'static str,
    bytes: Vec<u8>,
    status: u16,
}

fn probe(name: &'static str, status: u16, lines: &[&str], body: &str) -> Probe {
    let head = lines.join("\r\n");
    Probe { name, bytes: format!("{head}\r\n\r\n{body}").into_bytes(), status }
}

/// Returns a PUT that would store its body, with these headers and the headers for the host and the
/// credential.
fn put(name: &'static str, status: u16, headers: &[&str], body: &str) -> Probe {
    let mut lines = vec!["PUT /repositories/probes/org/example/a/1.0/a-1.0.jar HTTP/1.1", HOST, CREDENTIAL];
    lines.extend(headers);
    probe(name, status, &lines, body)
}

fn table() -> Vec<Probe> {
    let many: Vec<String> = (0..150).map(|number| format!("X-{number}: 1")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let long = format!("GET /repositories/probes/{} HTTP/1.1", "a".repeat(64 * 1024));
    let te = "Transfer-Encoding: chunked";
    vec![
        put("Content-Length beside Transfer-Encoding", 400, &["Content-Length: 5", te], "0\r\n\r\n"),
        put("the same, the other way round", 400, &[te, "Content-Length: 5"], "0\r\n\r\n"),
        put("two different Content-Length", 400, &["Content-Length: 5", "Content-Length: 6"], "hello!"),
        put("two in one Content-Length", 400, &["Content-Length: 5, 6"], "hello!"),
        put("a Content-Length with a sign", 400, &["Content-Length: +5"], "hello"),
        put("a negative Content-Length", 400, &["Content-Length: -5"], "hello"),
        put("a Content-Length in hex", 400, &["Content-Length: 0x5"], "hello"),
        put("space before the colon", 400, &["Transfer-Encoding : chunked"], "0\r\n\r\n"),
        put("a transfer encoding that is not known", 400, &["Transfer-Encoding: xchunked"], "0\r\n\r\n"),
        put("chunked that is not last", 400, &["Transfer-Encoding: chunked, identity"], "0\r\n\r\n"),
        put("a chunk size with 0x", 400, &[te], "0x5\r\nhello\r\n0\r\n\r\n"),
        put("a chunk size with a sign", 400, &[te], "+5\r\nhello\r\n0\r\n\r\n"),
        put("a chunk size over 64 bits", 400, &[te], "fffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
        put("a chunk without its line end", 400, &[te], "5\r\nhelloX\r\n0\r\n\r\n"),
        put("a folded header", 400, &["X-Folded: one", " two", "Content-Length: 0"], ""),
        put("NUL in a header", 400, &["X-Nul: a\0b", "Content-Length: 0"], ""),
        put("a control character in a header's name", 400, &["X-\x01: a", "Content-Length: 0"], ""),
        put("a bare CR in a header", 400, &["X-Cr: a\rb", "Content-Length: 0"], ""),
        put("more than 100 headers", 431, &many, ""),
        probe("a target of 64 KiB", 414, &[&long, HOST], ""),
        probe("two Host lines", 400, &["GET / HTTP/1.1", HOST, "Host: elsewhere.example"], ""),
        probe("a space in the target", 400, &["GET /a b HTTP/1.1", HOST], ""),
        probe("no version", 400, &["GET /"], ""),
        probe("a version of the future", 400, &["GET / HTTP/9.9", HOST], ""),
        probe("no HTTP at all", 400, &["\u{16}\u{3}\u{1}"], ""),
        probe(
            "HTTP/1.0 with Transfer-Encoding",
            400,
            &["PUT /repositories/probes/x HTTP/1.0", HOST, te],
            "0\r\n\r\n",
        ),
        probe(
            "absolute form with another host than that of the field",
            400,
            &["GET http://elsewhere.example/nowhere HTTP/1.1", HOST],
            "",
        ),
        probe(
            "absolute form: the URI's path counts",
            401,
            &["GET http://localhost/nowhere HTTP/1.1", "Host: localhost"],
            "",
        ),
        Probe { name: "bare LF", bytes: b"GET /nowhere HTTP/1.1\nHost: localhost\n\n".to_vec(), status: 400 },
    ]
}

#[test]
fn each_probe_gets_its_status_and_stores_nothing() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "probes");
    let credential = format!("Authorization: {}", http::basic("owner@example.com", &repository.token.secret));
    let host = format!("Host: {}", server.packages());
    let before = database::fingerprint(&server);

    let mut wrong = Vec::new();
    for probe in table() {
        let bytes = replace(&replace(&probe.bytes, CREDENTIAL, &credential), HOST, &host);
        let mut connection = Connection::open_within(server.packages(), PATIENCE).unwrap();
        // The server may close the connection while the client still sends the probe. Only the
        // response matters.
        let _ = connection.send(&bytes);
        match connection.read_response(false) {
            Ok(answer) if answer.status == probe.status => {
                let stays = probe.status == 400 && answer.interim.is_empty() && !connection.closed();
                if stays {
                    wrong.push(format!("{}: the connection stays open", probe.name));
                }
            }
            Ok(answer) => {
                wrong.push(format!("{}: {} instead of {}", probe.name, answer.status, probe.status))
            }
            Err(error) => wrong.push(format!("{}: {error} instead of {}", probe.name, probe.status)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(database::fingerprint(&server), before, "something was stored");
    repository.put("org/example/a/1.0/a-1.0.jar", "a valid request works afterwards").expect(201);
}

fn replace(bytes: &[u8], what: &str, with: &str) -> Vec<u8> {
    let Some(at) = bytes.windows(what.len()).position(|window| window == what.as_bytes()) else {
        return bytes.to_vec();
    };
    [&bytes[..at], with.as_bytes(), &bytes[at + what.len()..]].concat()
}
