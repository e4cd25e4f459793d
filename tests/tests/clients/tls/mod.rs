//! TLS for clients and attackers. The tests use real clients that trust the test's authority,
//! several hosts, and certificates that change under load. They also use handshakes that never end,
//! and proxies that pass on the client's address.

mod clients;
mod exchange;
mod proxies;
mod strangers;

use std::path::PathBuf;
use std::process::Command;

use packhouse_tests::authority::Authority;
use packhouse_tests::clients::{ProgramOutput, run};
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Server, ServerBuilder, skip};
use serde_json::{Value, json};

/// An authority; `None`, with a printed reason, if there is no openssl.
fn authority(test: &str) -> Option<Authority> {
    Authority::new().map_err(|reason| skip(test, &reason)).ok()
}

/// A server whose repository host has this certificate. The API uses plain HTTP, so that the test
/// can easily call it.
fn packages_with([cert, key]: &[PathBuf; 2]) -> ServerBuilder {
    let [cert, key] = [cert, key].map(|path| path.to_string_lossy().into_owned());
    Server::with().env("PACKHOUSE_TLS_PACKAGES_CERT", &cert).env("PACKHOUSE_TLS_PACKAGES_KEY", &key)
}

/// Host names for clients on this machine.
const LOCAL: [&str; 2] = ["DNS:localhost", "IP:127.0.0.1"];

/// curl that trusts only this authority.
fn curl(authority: &Authority, arguments: &[&str]) -> ProgramOutput {
    run(Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "20", "--cacert"])
        .arg(authority.ca())
        .args(arguments))
}

#[test]
fn both_hosts_use_tls_and_https_links() {
    let Some(authority) = authority("both hosts") else { return };
    let [cert, key] = authority.issue("both", &LOCAL).map(|path| path.to_string_lossy().into_owned());
    let server = Server::with().env("PACKHOUSE_TLS_CERT", &cert).env("PACKHOUSE_TLS_KEY", &key);
    let server = server.secured(&authority.ca()).start();
    let (packages, api) = (server.packages().port(), server.api().port());
    let call = |path: &str, more: &[&str]| -> Value {
        let url = format!("https://localhost:{api}{path}");
        let output =
            curl(&authority, &[&["--header", "Content-Type: application/json", &url], more].concat());
        serde_json::from_str(&output.success().text).unwrap()
    };
    let who = json!({"email": OWNER, "password": PASSWORD}).to_string();
    let session = call("/v1/sessions", &["--data", &who]);
    let bearer = format!("Authorization: Bearer {}", session["session"].as_str().unwrap());
    let me = call("/v1/me", &["--header", &bearer]);
    assert_eq!(me["organization"]["base_url"], format!("https://localhost:{packages}"));
    // The server supports TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1, and no older version of TLS.
    for (arguments, expected) in [
        (&["--tlsv1.3", "--http2"][..], "2 200"),
        (&["--tlsv1.2", "--tls-max", "1.2", "--http2"], "2 200"),
        (&["--http1.1"], "1.1 200"),
    ] {
        let url = format!("https://localhost:{packages}/");
        let more = ["--output", "/dev/null", "--write-out", "%{http_version} %{http_code}", &url];
        let output = curl(&authority, &[arguments, &more].concat()).success().text;
        assert_eq!(output, expected, "{arguments:?}");
    }
    let old = ["--tlsv1.0", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"];
    let url = format!("https://localhost:{packages}/");
    assert!(!curl(&authority, &[&old[..], &[&url]].concat()).success, "TLS 1.1 is spoken");
    // Browsers get HSTS for a host name, but not for an IP address or `localhost`.
    let named = ["--resolve", &format!("packages.test:{packages}:127.0.0.1"), "--insecure", "--head"];
    let url = format!("https://packages.test:{packages}/");
    let head = curl(&authority, &[&named[..], &[&url]].concat()).success().text.to_lowercase();
    assert!(head.contains("strict-transport-security: max-age=31536000"), "{head}");
    let head = curl(&authority, &["--head", &format!("https://localhost:{packages}/")])
        .success()
        .text
        .to_lowercase();
    assert!(!head.contains("strict-transport-security"), "{head}");
    // A client that does not know the authority refuses the certificate.
    let url = format!("https://localhost:{packages}/");
    assert!(!run(Command::new("curl").args(["--silent", &url])).success);
}

#[test]
fn a_host_gets_the_certificate_of_its_name() {
    let Some(authority) = authority("two hosts") else { return };
    let one = authority.issue("one", &["DNS:one.test"]);
    let two = authority.issue("two", &["DNS:*.two.test", "IP:127.0.0.1"]);
    let both = [0, 1].map(|at| PathBuf::from(format!("{},{}", one[at].display(), two[at].display())));
    let server = packages_with(&both).start();
    let port = server.packages().port();
    for (host, served) in
        [("one.test", true), ("a.two.test", true), ("two.test", false), ("three.test", false)]
    {
        let resolve = format!("{host}:{port}:127.0.0.1");
        let output = curl(&authority, &["--resolve", &resolve, &format!("https://{host}:{port}/")]);
        assert_eq!(output.success, served, "{host}: {}", output.text);
    }
}

#[test]
fn a_plain_listener_redirects_to_https() {
    let Some(authority) = authority("the redirect") else { return };
    let pair = authority.issue("redirect", &LOCAL);
    let port = packhouse_tests::server::free_port();
    let server =
        packages_with(&pair).env("PACKHOUSE_TLS_REDIRECT_LISTEN", &format!("127.0.0.1:{port}")).start();
    let packages = server.packages().port();
    let url = format!("http://localhost:{port}/repositories/x/y?z=1");
    let output =
        curl(&authority, &["--output", "/dev/null", "--write-out", "%{http_code} %{redirect_url}", &url])
            .success()
            .text;
    assert_eq!(output, format!("308 https://localhost:{packages}/repositories/x/y?z=1"));
    let output = curl(&authority, &["--location", &format!("http://localhost:{port}/")]).success().text;
    assert!(output.contains("Packhouse"), "{output}");
    // The server does not redirect clients to a host name that it does not serve.
    let elsewhere = ["--header", "Host: elsewhere.example", "--output", "/dev/null", "--write-out"];
    let url = format!("http://localhost:{port}/");
    let output =
        curl(&authority, &[&elsewhere[..], &["%{http_code}%{redirect_url}", &url]].concat()).success().text;
    assert_eq!(output, "421");
    // Without a pending ACME order, the server has no challenge response.
    let url = format!("http://localhost:{port}/.well-known/acme-challenge/abc");
    let output =
        curl(&authority, &["--output", "/dev/null", "--write-out", "%{http_code}", &url]).success().text;
    assert_eq!(output, "404");
}
