//! Addresses to which an upstream may refer: by redirects, by links in its metadata and through its
//! token service. A network that the operator allows is reachable only for upstreams in that
//! network. A port on loopback is reachable only for the upstream at that port, or if the operator
//! names the port.

use packhouse_tests::egress::Egress;
use packhouse_tests::proxy::{JAR, World};
use packhouse_tests::server::OWNER;
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Client, Server};
use serde_json::json;

const ALLOW: &str = "PACKHOUSE_UPSTREAM_ALLOW_NETWORKS";

#[test]
fn a_redirect_to_another_loopback_port_is_refused_unless_it_is_named() {
    for (networks, status) in
        [("127.0.0.0/8", 502), ("127.0.0.0/8,127.0.0.1:PORT", 200), ("127.0.0.0/8:*", 200)]
    {
        let inner = Upstream::start();
        inner.on("/secret", Answer::ok("inner"));
        let networks = networks.replace("PORT", &inner.address().port().to_string());
        let world = World::with(&[(ALLOW, &networks)], &json!({}));
        world.offer(JAR, Answer::redirect(&format!("{}/secret", inner.url())), b"inner");
        world.get(JAR).expect(status);
        assert_eq!(inner.requests().len(), usize::from(status == 200), "{networks}");
    }
}

#[test]
fn a_redirect_to_its_own_port_is_followed() {
    let world = World::with(&[(ALLOW, "127.0.0.0/8")], &json!({}));
    world.upstream.on("/moved", Answer::ok("moved"));
    world.offer(JAR, Answer::redirect(&format!("{}/moved", world.upstream.url())), b"moved");
    assert_eq!(world.get(JAR).expect(200).text(), "moved");
}

/// The upstream looks public to the server, because the egress proxy resolves its name.
#[test]
fn a_public_upstream_cannot_refer_to_internal_networks() {
    let (upstream, inner) = (Upstream::start(), Upstream::start());
    inner.on("/secret", Answer::ok("inner"));
    let egress = Egress::start(upstream.address());
    let settings = json!({"egress_proxy": egress.url()});
    let networks = [(ALLOW, "127.0.0.0/8:*")];
    let world = World::before(upstream, Some("http://repo.example.invalid/"), &networks, &settings);
    for (path, to) in
        [("a", format!("{}/secret", inner.url())), ("b", format!("http://{}/v1/me", world.server.api()))]
    {
        world.offer(&format!("org/example/{path}/1.0/{path}-1.0.jar"), Answer::redirect(&to), b"inner");
        world.get(&format!("org/example/{path}/1.0/{path}-1.0.jar")).expect(502);
    }
    assert!(inner.requests().is_empty());
    assert!(egress.lines().iter().all(|line| line.contains("repo.example.invalid")), "{:?}", egress.lines());
    world.offer(JAR, Answer::ok("own"), b"own");
    world.get(JAR).expect(200);
}

/// Returns the path to which a link on the page at this path leads.
fn below(page: &str, href: &str) -> String {
    if let Some(rest) = href.strip_prefix("http://") {
        return format!("/{}", rest.split_once('/').unwrap().1);
    }
    let mut segments: Vec<&str> = page.split('/').collect();
    segments.pop();
    for segment in href.split('/') {
        match segment {
            ".." => drop(segments.pop()),
            other => segments.push(other),
        }
    }
    if href.starts_with('/') { href.to_owned() } else { segments.join("/") }
}

#[test]
fn a_link_in_metadata_is_checked_like_a_redirect() {
    let (index, files) = (Upstream::start(), Upstream::start());
    files.on("/demo-1.0.tar.gz", Answer::ok("inner"));
    let link = format!("<a href=\"{}/demo-1.0.tar.gz\">demo-1.0.tar.gz</a>", files.url());
    index.on("/simple/demo/", Answer::ok(link).header("Content-Type", "text/html"));
    for (networks, requests) in [("127.0.0.0/8", 0), ("127.0.0.0/8:*", 1)] {
        let server = Server::with().env(ALLOW, networks).start();
        let api = Api::sign_in(&server);
        let id = api.create_proxy("proxy", "python", &index.url(), &json!({}));
        let token = api.create_token(&[&id], &["read"], None);
        let client = server.anonymous().basic(OWNER, &token.secret);
        let page = client.get("/repositories/proxy/simple/demo/").expect(200).text();
        let href = page.split("href=\"").nth(1).unwrap().split(['"', '#']).next().unwrap();
        let path = below("/repositories/proxy/simple/demo/", href);
        client.get(&path).expect(if requests == 0 { 502 } else { 200 });
        assert_eq!(files.requests().len(), requests, "{networks}");
    }
}

#[test]
fn a_token_service_is_checked_like_a_redirect() {
    let (registry, realm) = (Upstream::start(), Upstream::start());
    realm.on("/token?service=x", Answer::ok(json!({"token": "t"}).to_string()));
    let challenge = format!("Bearer realm=\"{}/token\",service=\"x\"", realm.url());
    registry.on("/v2/app/manifests/1", Answer::ok("{}").guarded("Bearer t", &challenge));
    for (networks, requests) in [("127.0.0.0/8", 0), ("127.0.0.0/8:*", 1)] {
        let server = Server::with().env(ALLOW, networks).start();
        let api = Api::sign_in(&server);
        let id = api.create_proxy("images", "docker", &registry.url(), &json!({}));
        let token = api.create_token(&[&id], &["read"], None);
        let client = server.anonymous().basic(OWNER, &token.secret);
        let answer = client.get("/v2/repositories/images/app/manifests/1");
        assert!(answer.status >= 400, "{}", answer.text());
        assert_eq!(realm.requests().len(), requests, "{networks}: {}", answer.text());
    }
}

#[test]
fn an_invalid_network_stops_the_start() {
    for wrong in ["127.0.0.0/8:", "127.0.0.0/33", "10.0.0.0/8:http"] {
        let (status, output) = Server::with().env(ALLOW, wrong).start_refused();
        assert!(!status.success() && output.contains("upstream.allow_networks"), "{wrong}: {output}");
    }
    let server = Server::with().env(ALLOW, "[::1]:8443, 127.0.0.1:80").start();
    Client::new(server.api()).get("/readyz").expect(200);
}
