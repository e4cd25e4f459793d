//! A server without a public address. Links use the host of the request. A host that one client
//! sends never appears in another client's response.

use crate::release;

use packhouse_tests::cli::packhouse_with;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::{Api, Client, Connection, Request, Server, server};
use release::Release;
use serde_json::json;
use tempfile::TempDir;

/// Returns the repository host's list of repositories, which contains their addresses.
fn listed(client: &Client) -> String {
    client.get("/repositories/").expect(200).text()
}

#[test]
fn links_use_the_host_of_the_request() {
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, "generic", "files", &json!({}));
    let api = Api::sign_in(&server);
    for (host, site, name) in [
        ("packages.corp:8080", "packages.corp:8080", "packages.corp"),
        ("Packages.Corp", "packages.corp", "packages.corp"),
        ("192.0.2.7:81", "192.0.2.7:81", "192.0.2.7"),
        ("[2001:db8::1]:8080", "[2001:db8::1]:8080", "[2001:db8::1]"),
    ] {
        let text = listed(&repository.client.clone().with("Host", host));
        assert!(text.contains(&format!("\"http://{site}/repositories/files/\"")), "{host}: {text}");
        let client = api.client().clone().with("Host", host);
        let details = client.get(&format!("/v1/repositories/{}", repository.id)).expect(200);
        // Links have the port of the repository host, which differs from the API's port.
        let port = server.packages().port();
        assert_eq!(details.field("connection_address"), format!("http://{name}:{port}/repositories/files/"));
    }
}

#[test]
fn no_link_leads_to_an_unspecified_address() {
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, "generic", "files", &json!({}));
    for host in ["0.0.0.0:8080", "0:8080", "[::]:8080", "a.example:99999", ":8080"] {
        let text = listed(&repository.client.clone().with("Host", host));
        let own = format!("http://{}/repositories/files/", server.packages());
        assert!(text.contains(&own), "{host}: {text}");
    }
}

#[test]
fn a_trusted_proxy_sets_the_host_of_links() {
    let server = Server::with().env("PACKHOUSE_TRUSTED_PROXIES", "127.0.0.0/8").start();
    let repository = FormatRepository::hosted(&server, "generic", "files", &json!({}));
    let through = |fields: &[(&str, &str)]| {
        listed(
            &fields.iter().fold(repository.client.clone(), |client, (name, value)| client.with(name, value)),
        )
    };
    for fields in [
        &[("X-Forwarded-Host", "packages.example"), ("X-Forwarded-Proto", "https")][..],
        &[("Forwarded", "for=203.0.113.9;host=packages.example;proto=https")],
    ] {
        let text = through(fields);
        assert!(text.contains("\"https://packages.example/repositories/files/\""), "{text}");
    }
    let other = Server::start();
    let repository = FormatRepository::hosted(&other, "generic", "files", &json!({}));
    let client =
        repository.client.with("X-Forwarded-Host", "evil.example").with("X-Forwarded-Proto", "https");
    let text = listed(&client);
    assert!(!text.contains("evil.example") && !text.contains("https://"), "{text}");
}

#[test]
fn a_response_for_one_host_is_not_served_to_another() {
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, "npm", "js", &json!({}));
    let publish = Release::new("hello", "1.0.0").document();
    let request = Request::new("PUT", "/repositories/js/hello").header("Content-Type", "application/json");
    let published = repository.client.send(request.body(publish.to_string()));
    assert!(published.status < 300, "{}", published.text());
    let list_for = |host: &str| {
        repository.client.clone().with("Host", host).get("/repositories/js/hello").expect(200).text()
    };
    for round in 0..3 {
        for host in ["evil.example", "packages.corp", "evil.example:81"] {
            let text = list_for(host);
            assert!(text.contains(&format!("http://{host}/repositories/js/")), "{round} {host}: {text}");
            let others = ["evil.example/", "packages.corp/", "evil.example:81/"].into_iter();
            let strange = others
                .filter(|other| *other != format!("{host}/"))
                .find(|other| text.contains(&format!("//{other}")));
            assert_eq!(strange, None, "{round} {host}");
        }
    }
    // Requests with many different host names still succeed.
    for number in 0..40 {
        let host = format!("h{number}.example");
        assert!(list_for(&host).contains(&format!("http://{host}/repositories/js/")));
    }
}

#[test]
fn an_id_token_for_another_service_is_not_accepted_under_that_services_name() {
    let server = Server::start();
    let audience = |host: &str| {
        server.anonymous().with("Host", host).get("/_/oidc/audience").expect(200).field("audience")
    };
    let own = server.packages().to_string();
    for host in ["evil.example", "packages.corp:8080", own.as_str()] {
        assert_eq!(audience(host), own, "{host}");
    }
}

#[test]
fn a_public_address_that_was_removed_is_no_longer_used() {
    let data = TempDir::new().unwrap();
    let server = Server::with().data(data.path()).arg("--base-url").arg("https://production.example").start();
    let repository = FormatRepository::hosted(&server, "generic", "files", &json!({}));
    assert!(listed(&repository.client).contains("https://production.example/repositories/files/"));
    drop(server);
    let server = Server::with().data(data.path()).start();
    let repository = repository.on(&server);
    let text = listed(&repository.client);
    assert!(text.contains(&repository.url) && !text.contains("production.example"), "{text}");
    let me = Api::sign_in(&server).call("GET", "/v1/me").expect(200).json();
    assert_eq!(me["organization"]["base_url"], server.base_url());
    assert!(server.log().contains("base_url is no longer set"), "{}", server.log());
}

#[test]
fn a_request_that_names_two_hosts_is_refused() {
    let server = Server::start();
    for address in [server.packages(), server.api()] {
        let send = |target: &str, host: &str| {
            let mut connection = Connection::open(address).unwrap();
            let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            connection.send(head.as_bytes()).unwrap();
            connection.read_response(false).unwrap()
        };
        send("http://a.example/livez", "a.example").expect(200);
        send("http://a.example:80/livez", "A.example").expect(200);
        for (target, host) in
            [("http://a.example/livez", "b.example"), ("http://a.example/livez", "a.example:81")]
        {
            assert_eq!(send(target, host).expect(400).field("error"), "invalid_request", "{target} {host}");
        }
    }
}

#[test]
fn the_start_warns_if_no_public_address_is_set() {
    let data = TempDir::new().unwrap();
    let listen = |port: u16| format!("0.0.0.0:{port}");
    let (packages, api) = (listen(server::free_port()), listen(server::free_port()));
    let settings = [("PACKHOUSE_PACKAGES_LISTEN", packages), ("PACKHOUSE_API_LISTEN", api)];
    let output = packhouse_with(data.path(), &["doctor"], &settings);
    assert!(
        output.text.contains("all addresses of this machine, and base_url is not set"),
        "{}",
        output.text
    );
    let with_address =
        [&settings[..], &[("PACKHOUSE_BASE_URL", "http://127.0.0.1:8080".to_owned())]].concat();
    let output = packhouse_with(data.path(), &["doctor"], &with_address);
    assert!(!output.text.contains("base_url is not set"), "{}", output.text);
}
