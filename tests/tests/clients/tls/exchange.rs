//! Certificates that the operator replaces while clients send requests.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use packhouse_tests::server::eventually;
use packhouse_tests::{Api, Server};
use serde_json::json;

use super::{LOCAL, authority, packages_with};

/// Script that runs 64 clients: half keep their connection, half open a new connection for each
/// request. When it reads a line of input, it prints how often each certificate was served, and the
/// failures.
const CLIENTS: &str = r#"
import collections, http.client, ssl, sys, threading
host, port, ca, path, secret, expected = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5], sys.argv[6].encode()
context = ssl.create_default_context(cafile=ca)
stop, lock, seen, failed = threading.Event(), threading.Lock(), collections.Counter(), []
def client(keeps):
    connection = None
    while not stop.is_set():
        try:
            if connection is None:
                connection = http.client.HTTPSConnection(host, port, context=context, timeout=30)
                connection.connect()
                serial = connection.sock.getpeercert()['serialNumber']
            connection.request('GET', path, headers={'Authorization': secret})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200 or body != expected:
                raise Exception(f'{answer.status} {body[:80]}')
            with lock:
                seen[serial] += 1
            if not keeps:
                connection.close()
                connection = None
        except Exception as error:
            with lock:
                failed.append(repr(error))
            connection = None
threads = [threading.Thread(target=client, args=(number % 2 == 0,)) for number in range(64)]
for thread in threads: thread.start()
print('started', flush=True)
for line in sys.stdin:
    with lock:
        print(sum(seen.values()), len(seen), len(failed), ' '.join(failed[:3]), flush=True)
stop.set()
for thread in threads: thread.join()
"#;

/// The serial number of the certificate that the server uses now.
fn serial(server: &Server) -> String {
    let script = format!(
        "openssl s_client -connect {} </dev/null 2>/dev/null | openssl x509 -noout -serial",
        server.packages()
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn certificates_change_under_load_without_a_failed_request() {
    let Some(authority) = authority("certificates under load") else { return };
    let [cert, key] = authority.issue("served", &LOCAL);
    let server = packages_with(&[cert.clone(), key.clone()]).start();
    let api = Api::sign_in(&server);
    let id = api.create_maven("maven", &json!({}));
    let token = api.create_token(&[&id], &["read", "write"], None);
    let path = "/repositories/maven/org/example/a/1.0/a-1.0.txt";
    let base = format!("https://localhost:{}", server.packages().port());
    let user = format!("{}:{}", packhouse_tests::server::OWNER, token.secret);
    let put = [
        "--fail",
        "--user",
        &user,
        "--request",
        "PUT",
        "--data-binary",
        "the very bytes",
        &format!("{base}{path}"),
    ];
    super::curl(&authority, &put).success();

    let mut clients = Command::new("python3");
    clients.args(["-c", CLIENTS, "localhost", &server.packages().port().to_string()]).arg(authority.ca());
    clients.args([path, &format!("Bearer {}", token.secret), "the very bytes"]);
    let mut clients = clients.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
    let mut input = clients.stdin.take().unwrap();
    let mut output = BufReader::new(clients.stdout.take().unwrap()).lines();
    assert_eq!(output.next().unwrap().unwrap(), "started");

    let mut known = serial(&server);
    for round in 1..=3 {
        // The test writes a new certificate first and then its key, as `certbot` and `kubelet` do.
        let [new_cert, new_key] = authority.issue(&format!("new{round}"), &LOCAL);
        std::fs::copy(new_cert, &cert).unwrap();
        std::fs::copy(new_key, &key).unwrap();
        let written = Instant::now();
        known =
            eventually("the new certificate is served", || Some(serial(&server)).filter(|now| *now != known));
        assert!(written.elapsed() < Duration::from_secs(10), "it took {:?}", written.elapsed());
    }
    // If a file is invalid, the server keeps the earlier certificate and reports the error.
    std::fs::write(&key, "nonsense").unwrap();
    let degraded = eventually("the error is reported", || {
        let ready = packhouse_tests::Client::new(server.api()).get("/readyz").expect(200).text();
        ready.contains("\"certificate\"").then_some(ready)
    });
    assert!(degraded.contains("no private key"), "{degraded}");
    assert_eq!(serial(&server), known);

    writeln!(input, "report").unwrap();
    let report = output.next().unwrap().unwrap();
    drop(input);
    clients.wait().unwrap();
    let mut words = report.split(' ');
    let mut number = || words.next().unwrap().parse::<u64>().unwrap();
    let (requests, certificates, failed) = (number(), number(), number());
    assert_eq!(failed, 0, "{report}");
    assert!(requests > 500 && certificates >= 4, "{report}");
}
