//! Certificates by ACME, against Pebble: ordered, renewed, refused, and shared by two servers.

use std::path::Path;
use std::process::Command;

use packhouse_tests::authority::Authority;
use packhouse_tests::clients::run;
use packhouse_tests::database::Postgres;
use packhouse_tests::pebble::{self, Pebble, Terms};
use packhouse_tests::server::{eventually, free_port};
use packhouse_tests::{Client, Server, ServerBuilder, cli, skip};

const NAME: &str = "packages.test";

/// An authority that issues the certificates of the API and of Pebble, which the server does not
/// order by ACME. `None`, with a printed reason, if Pebble is not installed.
fn authority(test: &str) -> Option<Authority> {
    match pebble::programs().and_then(|_| Authority::new()) {
        Ok(authority) => Some(authority),
        Err(reason) => {
            skip(test, &reason);
            None
        }
    }
}

/// Settings of a server that orders a certificate for its repository host from a Pebble that does
/// not run yet. The metrics have a port of their own.
struct Ordering {
    authority: Authority,
    directory: u16,
    metrics: u16,
}

impl Ordering {
    fn new(authority: Authority) -> Self {
        Self { authority, directory: free_port(), metrics: free_port() }
    }

    fn settings(&self, metrics: u16) -> Vec<(String, String)> {
        let [cert, key] = self.authority.issue("api", &["DNS:localhost", "IP:127.0.0.1"]);
        let text = |path: &Path| path.to_string_lossy().into_owned();
        [
            ("TLS_API_CERT", text(&cert)),
            ("TLS_API_KEY", text(&key)),
            ("TLS_ACME_ENABLED", "true".to_owned()),
            ("TLS_ACME_DOMAINS", NAME.to_owned()),
            ("TLS_ACME_EMAIL", "ops@example.com".to_owned()),
            ("TLS_ACME_DIRECTORY", format!("https://localhost:{}/dir", self.directory)),
            ("TLS_ACME_CA", text(&self.authority.ca())),
            ("METRICS_LISTEN", format!("127.0.0.1:{metrics}")),
        ]
        .map(|(name, value)| (format!("PACKHOUSE_{name}"), value))
        .to_vec()
    }

    fn builder(&self, metrics: u16) -> ServerBuilder {
        let settings = self.settings(metrics);
        let builder = settings.iter().fold(Server::with(), |builder, (name, value)| builder.env(name, value));
        builder.secured(&self.authority.ca())
    }

    fn pebble(&self, terms: Terms<'_>) -> Pebble {
        Pebble::start(&self.authority, self.directory, terms).unwrap()
    }
}

const NOTHING_REFUSED: Terms<'static> =
    Terms { tls_port: 1, http_port: 1, validity_s: 90 * 24 * 3600, refused: "refused.test" };

fn counted(metrics: u16, outcome: &str) -> u64 {
    let text = Client::new(([127, 0, 0, 1], metrics).into()).get("/metrics").expect(200).text();
    let name = format!("packhouse_acme_orders_total{{outcome=\"{outcome}\"}} ");
    text.lines()
        .find_map(|line| line.strip_prefix(&name))
        .unwrap_or_else(|| panic!("no {name}"))
        .parse()
        .unwrap()
}

/// The certificate of the repository host, as `openssl x509` prints it; empty if the server has
/// none yet.
fn served(server: &Server, fields: &str) -> String {
    let script = format!(
        "openssl s_client -connect {} -servername {NAME} </dev/null 2>/dev/null | openssl x509 -noout {fields} 2>/dev/null",
        server.packages()
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn fetched(root: &Path, server: &Server) -> bool {
    let port = server.packages().port();
    let mut command = Command::new("curl");
    command
        .args(["--silent", "--fail", "--cacert"])
        .arg(root)
        .args(["--resolve", &format!("{NAME}:{port}:127.0.0.1")]);
    run(command.arg(format!("https://{NAME}:{port}/"))).success
}

/// At first Pebble does not run: the server reports the failure, and repeats the order at once when
/// the operator requests it. Then the server orders a certificate by a TLS challenge, and renews it
/// before it expires.
#[test]
fn a_certificate_is_ordered_and_renewed() {
    let Some(authority) = authority("ACME: order and renew") else { return };
    let ordering = Ordering::new(authority);
    let server = ordering.builder(ordering.metrics).start();
    eventually("the failure is counted", || (counted(ordering.metrics, "failed") == 1).then_some(()));
    assert!(server.log().contains("ordering a certificate failed"), "{}", server.log());
    let words: Vec<(String, String)> = ordering.settings(ordering.metrics);
    let words: Vec<(&str, String)> =
        words.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let doctor = cli::packhouse_with(server.data(), &["doctor"], &words);
    assert!(!doctor.success && doctor.text.contains("no certificate could be ordered"), "{}", doctor.text);

    let pebble =
        ordering.pebble(Terms { tls_port: server.packages().port(), validity_s: 30, ..NOTHING_REFUSED });
    server.signal("-HUP");
    let first = eventually("a certificate is served", || {
        Some(served(&server, "-serial")).filter(|one| !one.is_empty())
    });
    assert_eq!(counted(ordering.metrics, "ok"), 1);
    assert!(served(&server, "-ext subjectAltName").contains(NAME));
    assert!(fetched(&pebble.root(&ordering.authority), &server));
    let second = eventually("it is renewed", || {
        Some(served(&server, "-serial")).filter(|one| !one.is_empty() && *one != first)
    });
    assert_ne!(first, second);
    // Neither the account's key nor the certificate's key is in the database unencrypted.
    let dump =
        packhouse_tests::database::sqlite(&server, "SELECT group_concat(sealed, ' ') FROM acme_values");
    assert!(dump.contains("v1.") && !dump.contains("PRIVATE") && !dump.contains("key_pkcs8"), "{dump}");
}

#[test]
fn names_are_proven_over_plain_http_too() {
    let Some(authority) = authority("ACME: HTTP-01") else { return };
    let ordering = Ordering::new(authority);
    let plain = free_port();
    let pebble = ordering.pebble(Terms { http_port: plain, ..NOTHING_REFUSED });
    let server = ordering.builder(ordering.metrics).env("PACKHOUSE_TLS_ACME_CHALLENGE", "http-01");
    let server = server.env("PACKHOUSE_TLS_REDIRECT_LISTEN", &format!("127.0.0.1:{plain}")).start();
    eventually("a certificate is served", || Some(served(&server, "-serial")).filter(|one| !one.is_empty()));
    assert!(fetched(&pebble.root(&ordering.authority), &server));
}

#[test]
fn a_refusal_of_the_authority_is_reported_with_its_words() {
    let Some(authority) = authority("ACME: refusal") else { return };
    let ordering = Ordering::new(authority);
    let _pebble = ordering.pebble(Terms { refused: NAME, ..NOTHING_REFUSED });
    let server = ordering.builder(ordering.metrics).env("PACKHOUSE_READINESS_INTERVAL_MS", "200").start();
    eventually("the failure is counted", || (counted(ordering.metrics, "failed") >= 1).then_some(()));
    let ready = eventually("the failure is logged", || {
        let mut command = Command::new("curl");
        command
            .args(["--silent", "--cacert"])
            .arg(ordering.authority.ca())
            .arg(format!("https://{}/readyz", server.api()));
        Some(run(&mut command).text).filter(|text| text.contains("could be ordered"))
    });
    assert!(ready.contains("degraded") && ready.contains("policy"), "{ready}");
    assert!(served(&server, "-serial").is_empty());
    // The server waits before it orders from the authority again, so it has failed only once.
    assert_eq!(counted(ordering.metrics, "failed"), 1);
}

#[test]
fn two_servers_order_once_and_serve_the_same() {
    let Some(authority) = authority("ACME: two servers") else { return };
    let database = match Postgres::start() {
        Ok(database) => database,
        Err(reason) => return skip("ACME: two servers", &reason),
    };
    let ordering = Ordering::new(authority);
    let shared = tempfile::TempDir::new().unwrap();
    let metrics = [free_port(), free_port()];
    let servers = metrics.map(|metrics| {
        let builder =
            ordering.builder(metrics).data(shared.path()).env("PACKHOUSE_DATABASE_URL", &database.url());
        builder.env("PACKHOUSE_SEALING_KEY", "the same for both servers").start()
    });
    eventually("neither server reaches the directory", || {
        let failed: u64 = metrics.iter().map(|metrics| counted(*metrics, "failed")).sum();
        (failed >= 1).then_some(())
    });
    // The authority checks the challenge at the first server, even if the second server orders.
    let pebble = ordering.pebble(Terms { tls_port: servers[0].packages().port(), ..NOTHING_REFUSED });
    servers.iter().for_each(|server| server.signal("-HUP"));
    let serial = |server| {
        eventually("a certificate is served", || {
            Some(served(server, "-serial")).filter(|one| !one.is_empty())
        })
    };
    assert_eq!(serial(&servers[0]), serial(&servers[1]));
    assert_eq!(metrics.iter().map(|metrics| counted(*metrics, "ok")).sum::<u64>(), 1);
    let root = pebble.root(&ordering.authority);
    assert!(servers.iter().all(|server| fetched(&root, server)));
}
