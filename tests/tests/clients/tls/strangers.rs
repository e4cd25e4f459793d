//! Attacks of unauthenticated clients on a TLS listener.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use packhouse_tests::{Api, Server};

use super::{LOCAL, authority, curl, packages_with};

/// Number of handshakes with this outcome, from the server's metrics.
fn handshakes(server: &Server, outcome: &str) -> u64 {
    let text = packhouse_tests::Client::new(server.api()).get("/metrics").expect(200).text();
    let name = format!("packhouse_tls_handshakes_total{{outcome=\"{outcome}\"}} ");
    let value =
        text.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or_else(|| panic!("no {name}: {text}"));
    value.parse().unwrap()
}

#[test]
fn a_handshake_that_does_not_end_is_given_up() {
    let Some(authority) = authority("slow handshakes") else { return };
    let pair = authority.issue("slow", &LOCAL);
    let server = packages_with(&pair).env("PACKHOUSE_LIMITS_HANDSHAKE_MS", "1000").start();
    // Three clients connect. One sends nothing, one sends only the beginning of a record, and one
    // sends a record byte by byte.
    let mut silent = TcpStream::connect(server.packages()).unwrap();
    let mut begun = TcpStream::connect(server.packages()).unwrap();
    begun.write_all(&[22, 3, 1, 2, 0, 1]).unwrap();
    let mut dripping = TcpStream::connect(server.packages()).unwrap();
    dripping.write_all(&[22, 3, 1, 2, 0, 1, 0, 1]).unwrap();
    let start = Instant::now();
    dripping.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let ended = loop {
        let sent = dripping.write_all(&[0]);
        let read = dripping.read(&mut [0; 16]);
        if sent.is_err()
            || matches!(read, Ok(0))
            || read.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
        {
            break start.elapsed();
        }
        assert!(start.elapsed() < Duration::from_secs(20), "a slow handshake never times out");
    };
    assert!(ended >= Duration::from_millis(800), "{ended:?}");
    for stream in [&mut silent, &mut begun] {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(start.elapsed() < Duration::from_secs(20));
    }
    assert!(handshakes(&server, "timeout") >= 2);
    // Afterwards, another client can still complete a handshake.
    curl(&authority, &[&format!("https://localhost:{}/", server.packages().port())]).success();
    assert!(handshakes(&server, "ok") >= 1);
}

#[test]
fn plain_http_gets_an_error_that_names_tls() {
    let Some(authority) = authority("plain HTTP") else { return };
    let server = packages_with(&authority.issue("plain", &LOCAL)).start();
    let mut stream = TcpStream::connect(server.packages()).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("HTTPS"), "{answer}");
    assert_eq!(handshakes(&server, "plain"), 1);
}

/// Sends exact bytes over TLS, through `openssl s_client`. Returns everything that the server sends
/// before it closes the connection.
fn exchange(server: &Server, bytes: &[u8]) -> String {
    let mut command = Command::new("openssl");
    command.args([
        "s_client",
        "-quiet",
        "-no_ign_eof",
        "-alpn",
        "http/1.1",
        "-connect",
        &server.packages().to_string(),
    ]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("openssl");
    let mut input = child.stdin.take().unwrap();
    input.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut answer).unwrap();
    drop(input);
    let _ = child.wait();
    String::from_utf8_lossy(&answer).into_owned()
}

/// The check of request heads also works over TLS. The server refuses an ambiguous request and
/// answers nothing after it.
#[test]
fn ambiguous_heads_are_refused_over_tls_too() {
    let Some(authority) = authority("ambiguous heads") else { return };
    let server = packages_with(&authority.issue("heads", &LOCAL)).start();
    let smuggled = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    for head in [
        &b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"[..],
        b"PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
    ] {
        let answer = exchange(&server, &[head, smuggled].concat());
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    }
    let well = exchange(&server, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert!(well.starts_with("HTTP/1.1 200"), "{well}");
}

#[test]
fn an_invalid_certificate_stops_the_start_with_a_reason() {
    let Some(authority) = authority("wrong certificates") else { return };
    let one = authority.issue("one", &LOCAL);
    let two = authority.issue("two", &LOCAL);
    let absent = authority.folder().join("absent.pem");
    for (pair, words) in [
        ([one[0].clone(), two[1].clone()], "does not belong to the certificate"),
        ([absent, one[1].clone()], "cannot be read"),
        ([one[1].clone(), one[1].clone()], "no certificate"),
        ([one[0].clone(), one[0].clone()], "no private key"),
    ] {
        let (status, output) = packages_with(&pair).start_refused();
        assert!(!status.success() && output.contains(words), "{words}: {output}");
        assert!(output.contains("tls.packages_") && output.contains("PACKHOUSE_TLS_PACKAGES_"), "{output}");
    }
    // A matching pair works, so the wrong files caused the refusals above.
    let server = packages_with(&one).start();
    Api::sign_in(&server);
}
