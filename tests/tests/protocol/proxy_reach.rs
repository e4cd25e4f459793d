//! A proxy's connection to its upstream: through the operator's egress proxy, and with certificates
//! of private authorities.

use packhouse_tests::egress::Egress;
use packhouse_tests::proxy::{JAR, World};
use packhouse_tests::tls::{self, TlsUpstream};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{digests, payload, server, skip};
use serde_json::json;

/// Creates a proxy that connects through `egress` and requests `address`.
fn behind(egress: &Egress, upstream: Upstream, address: &str, environment: &[(&str, &str)]) -> World {
    World::before(upstream, Some(address), environment, &json!({"egress_proxy": egress.url()}))
}

#[test]
fn requests_use_the_operators_proxy_which_resolves_names() {
    let upstream = Upstream::start();
    let egress = Egress::start(upstream.address());
    let world = behind(&egress, upstream, "http://repo.example.invalid:8080/files", &[]);
    let bytes = payload::bytes(1, 300_000);
    world.offer(&format!("files/{JAR}"), Answer::ok(bytes.clone()), &bytes);
    assert_eq!(world.get(JAR).expect(200).body, bytes);
    assert_eq!(egress.lines()[0], format!("GET http://repo.example.invalid:8080/files/{JAR} HTTP/1.1"));
    assert_eq!(egress.lines().len(), world.upstream.requests().len(), "no request bypasses the egress proxy");
    let host = world.upstream.requests()[0].header("host").map(str::to_owned);
    assert_eq!(host.as_deref(), Some("repo.example.invalid:8080"));
}

#[test]
fn the_address_rules_apply_behind_an_egress_proxy() {
    let upstream = Upstream::start();
    let egress = Egress::start(upstream.address());
    let world = behind(&egress, upstream, "http://repo.example.invalid/", &[]);
    for (number, to) in [
        "http://169.254.169.254/latest",
        "http://10.0.0.1/x",
        "http://[fd00:ec2::254]/",
        "file:///etc/passwd",
    ]
    .iter()
    .enumerate()
    {
        let path = format!("org/example/evil/{number}/evil-{number}.jar");
        world.offer(&path, Answer::redirect(to), b"");
        world.get(&path).expect(502);
    }
    let lines = egress.lines();
    assert!(lines.iter().all(|line| line.contains("//repo.example.invalid/")), "{lines:?}");
}

#[test]
fn an_egress_proxy_at_a_forbidden_address_is_not_used() {
    let upstream = Upstream::start();
    let egress = Egress::start(upstream.address());
    let elsewhere = [("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "10.0.0.0/8")];
    let world = behind(&egress, upstream, "http://repo.example.invalid/", &elsewhere);
    world.offer(JAR, Answer::ok("x"), b"x");
    world.get(JAR).expect(502);
    assert!(egress.lines().is_empty() && world.upstream.requests().is_empty());
}

#[test]
fn an_unreachable_egress_proxy_fails_requests_and_a_change_applies_at_once() {
    let world = World::new(&json!({}));
    world.offer(JAR, Answer::ok("x"), b"x");
    let nobody = format!("http://127.0.0.1:{}", server::free_port());
    world.set(&json!({"egress_proxy": nobody}));
    world.get(JAR).expect(502);
    assert!(world.upstream.requests().is_empty());
    world.set(&json!({"egress_proxy": null}));
    world.get(JAR).expect(200);
}

#[test]
fn an_upstream_is_trusted_by_its_repositorys_certificate_authority() {
    let (bytes, sum) = (payload::bytes(2, 200_000), digests::sha1(&payload::bytes(2, 200_000)));
    let checksum = format!("{JAR}.sha1");
    let files: [(&str, &[u8]); 2] = [(JAR, &bytes), (&checksum, sum.as_bytes())];
    let (upstream, other) = match (TlsUpstream::start(&files), tls::another_authority()) {
        (Ok(upstream), Ok(other)) => (upstream, other),
        (Err(lacking), _) | (_, Err(lacking)) => return skip("an upstream with its own authority", &lacking),
    };
    let world = World::before(Upstream::start(), Some(&upstream.url()), &[], &json!({}));
    world.get(JAR).expect(502);
    world.set(&json!({"ca_pem": other}));
    world.get(JAR).expect(502);
    world.set(&json!({"ca_pem": upstream.ca_pem()}));
    assert_eq!(world.get(JAR).expect(200).body, bytes);

    // One proxy uses a host name, which the certificate does not contain. The other one lacks the
    // authority, which only the first repository trusts. Both fail.
    let by_name = format!("https://localhost:{}", upstream.address().port());
    let named = world.api.create_proxy("named", "maven", &by_name, &json!({"ca_pem": upstream.ca_pem()}));
    let plain = world.api.create_proxy("plain", "maven", &upstream.url(), &json!({}));
    let token = world.api.create_token(&[&named, &plain], &["read"], None);
    let client = world.server.anonymous().basic(server::OWNER, &token.secret);
    client.get(&format!("/repositories/named/{JAR}")).expect(502);
    client.get(&format!("/repositories/plain/{JAR}")).expect(502);

    // The connection goes through the operator's egress proxy, which sees only the destination.
    let egress = Egress::start(upstream.address());
    world.api.call("DELETE", &format!("/v1/repositories/{}/cache", world.id)).expect(204);
    world.set(&json!({"egress_proxy": egress.url()}));
    assert_eq!(world.get(JAR).expect(200).body, bytes);
    let connect = format!("CONNECT {} HTTP/1.1", upstream.address());
    assert!(egress.lines().iter().all(|line| *line == connect), "{:?}", egress.lines());
}
