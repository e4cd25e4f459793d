//! Proxies that only pass on bytes: the server reads the PROXY protocol before TLS and before plain
//! HTTP.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use packhouse_tests::server::eventually;
use packhouse_tests::{Server, skip};

use super::{LOCAL, authority, packages_with};

fn second(source: [u8; 4]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    header.extend([&source[..], &[127, 0, 0, 1], &[0x1f, 0x90], &[0, 80]].concat());
    header
}

fn answer(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.packages()).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

const GET: &str = "GET /repositories/who HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

#[test]
fn the_log_contains_the_client_that_a_proxy_names() {
    let server = Server::with()
        .env("PACKHOUSE_PROXY_PROTOCOL", "true")
        .env("PACKHOUSE_TRUSTED_PROXIES", "127.0.0.0/8")
        .arg("--log=info");
    let server = proxied(server);
    for (header, client) in [
        (b"PROXY TCP4 192.0.2.7 127.0.0.1 1000 80\r\n".to_vec(), "192.0.2.7"),
        (second([192, 0, 2, 8]), "192.0.2.8"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1"),
    ] {
        let got = answer(&server, &[&header[..], GET.as_bytes()].concat());
        assert!(got.starts_with("HTTP/1.1 401"), "{got}");
        eventually("the client is in the log", || {
            let log = server.log();
            let line = log.lines().rfind(|line| line.contains("/repositories/who"))?.to_owned();
            line.contains(&format!("\"{client}\"")).then_some(())
        });
    }
    // Without the header, the server closes the connection without an answer, because it expects
    // the header before HTTP.
    assert_eq!(answer(&server, GET.as_bytes()), "");
}

/// Starts a server that expects the PROXY header on all listeners. While it waits for readiness,
/// the builder also sends the header.
fn proxied(builder: packhouse_tests::ServerBuilder) -> Server {
    builder.speaking_for_proxies().start()
}

#[test]
fn the_header_precedes_the_handshake() {
    let Some(authority) = authority("PROXY before TLS") else { return };
    if !packhouse_tests::clients::has("python3") {
        return skip("PROXY before TLS", "no python3");
    }
    let pair = authority.issue("proxied", &LOCAL);
    let builder = packages_with(&pair)
        .env("PACKHOUSE_PROXY_PROTOCOL", "true")
        .env("PACKHOUSE_TRUSTED_PROXIES", "127.0.0.0/8");
    let server = proxied(builder);
    let script = "import socket, ssl, sys\n\
        raw = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n\
        raw.sendall(b'PROXY TCP4 192.0.2.9 127.0.0.1 1000 443\\r\\n')\n\
        tls = ssl.create_default_context(cafile=sys.argv[2]).wrap_socket(raw, server_hostname='localhost')\n\
        tls.sendall(b'GET /repositories/tls HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n')\n\
        print(tls.recv(100).decode())\n";
    let mut command = std::process::Command::new("python3");
    command.args(["-c", script, &server.packages().port().to_string()]).arg(authority.ca());
    let output = packhouse_tests::clients::run(&mut command).success().text;
    assert!(output.starts_with("HTTP/1.1 401"), "{output}");
    eventually("the client is in the log", || {
        let log = server.log();
        let line = log.lines().rfind(|line| line.contains("/repositories/tls"))?.to_owned();
        line.contains("\"192.0.2.9\"").then_some(())
    });
}
