//! One host name and one port: packages at the root, portal and API below a path, on one listener
//! or behind a proxy. Also public addresses with a path.

use crate::release;

use std::path::Path;
use std::process::{Child, Command, Stdio};

use packhouse_tests::cli::packhouse_with;
use packhouse_tests::images::{ImageRepository, digest};
use packhouse_tests::person::{form, hidden};
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::{OWNER, PASSWORD, eventually, free_port};
use packhouse_tests::{Api, Client, Request, Response, Server, checkout, skip};
use release::Release;
use serde_json::json;
use tempfile::TempDir;

/// Creates a generic repository through an API below this path. Returns the API, a client with a
/// token for the repository, and the repository's address.
fn files(server: &Server, client: Client, base: &str) -> (Api, Client, String) {
    let api = Api::below(client, base);
    let body = json!({"name": "files", "format": "generic", "kind": "hosted"});
    let made = api.post("/v1/repositories", &body).expect(201);
    let token = api.create_token(&[&made.field("id")], &["read", "write"], None);
    (api, server.anonymous().basic(OWNER, &token.secret), made.field("connection_address"))
}

/// The `Set-Cookie` values of a response.
fn cookies(answer: &Response) -> Vec<String> {
    let set = answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    set.map(|(_, value)| value.clone()).collect()
}

/// Signs in through the page below this path and follows the redirect.
fn sign_in_through_the_page(client: &Client, base: &str) -> Response {
    let page = client.get(&format!("{base}/sign-in")).expect(200);
    let text = page.text();
    for own in ["href=\"/", "src=\"/", "action=\"/"] {
        for rest in text.split(own).skip(1) {
            assert!(format!("/{rest}").starts_with(&format!("{base}/")), "{own}{rest:.60}");
        }
    }
    let asset = text.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let asset = asset.into_iter().find(|path| path.ends_with(".css")).unwrap();
    client.get(asset).expect(200);
    let set = cookies(&page);
    assert!(!set.is_empty() && set.iter().all(|cookie| cookie.contains(&format!("Path={base};"))), "{set:?}");
    let cookie = set[0].split(';').next().unwrap().to_owned();
    let csrf = hidden(&text, "csrf").unwrap();
    let fields =
        [("csrf", csrf.as_str()), ("email", OWNER), ("password", PASSWORD), ("return_to", "/tokens")];
    let answer = client.send(form(&format!("{base}/sign-in"), &fields).header("Cookie", &cookie)).expect(303);
    assert_eq!(answer.header("location"), Some(format!("{base}/tokens").as_str()));
    let session =
        cookies(&answer).iter().map(|cookie| cookie.split(';').next().unwrap().to_owned()).next().unwrap();
    let next = Request::new("GET", &format!("{base}/tokens")).header("Cookie", &session);
    client.send(next).expect(200)
}

#[test]
fn one_listener_serves_packages_at_the_root_and_the_portal_below_its_path() {
    let server = Server::with().on_one_listener().start();
    let (api, packages, address) = files(&server, server.anonymous(), "/portal");
    assert_eq!(address, format!("{}/repositories/files/", server.base_url()));
    packages.put("/repositories/files/a.txt", "hello").expect(201);
    assert_eq!(packages.get("/repositories/files/a.txt").expect(200).text(), "hello");

    let anonymous = server.anonymous();
    for base in ["/portal", "/portal/"] {
        let there = anonymous.get(base).expect(303);
        assert!(
            there.header("location").unwrap().starts_with("/portal/sign-in?return_to="),
            "{:?}",
            there.headers
        );
    }
    let page = sign_in_through_the_page(&anonymous, "/portal").text();
    assert!(
        page.contains("href=\"/portal/repositories\"") && !page.contains("href=\"/repositories\""),
        "{page}"
    );
    let document = api.call("GET", "/v1/openapi.json").expect(200).json();
    assert_eq!(document["servers"][0]["url"], "/portal");
    for path in ["/livez", "/readyz", "/metrics"] {
        anonymous.get(path).expect(200);
        anonymous.get(&format!("/portal{path}")).expect(200);
    }
    // The server serves no portal page at package paths, and no package at portal paths.
    anonymous.get("/v1/me").expect(401);
    assert_eq!(anonymous.get("/portal/repositories/files/a.txt").status, 404);
    assert_eq!(anonymous.get("/portal/v1/me").expect(401).field("error"), "not_signed_in");
}

#[test]
fn image_clients_use_the_root_of_a_shared_listener() {
    let server = Server::with().on_one_listener().start();
    let api = Api::below(server.anonymous(), "/portal");
    let body = json!({"name": "images", "format": "docker", "kind": "hosted"});
    let id = api.post("/v1/repositories", &body).expect(201).field("id");
    let token = api.create_token(&[&id], &["read", "write"], None);
    server.anonymous().get("/v2/").expect(401);
    server.anonymous().basic(OWNER, &token.secret).get("/v2/").expect(200);
}

#[test]
fn the_portal_uses_the_path_of_its_public_address() {
    let server =
        Server::with().on_one_listener().arg("--api-url").arg("http://tools.example/team/console").start();
    let client = server.anonymous().with("Host", "tools.example");
    let (api, ..) = files(&server, client.clone(), "/team/console");
    sign_in_through_the_page(&client, "/team/console");
    let document = api.call("GET", "/v1/openapi.json").expect(200).json();
    assert_eq!(document["servers"][0]["url"], "http://tools.example/team/console");
    server.anonymous().get("/portal/sign-in").expect(401);
}

#[test]
fn an_api_on_a_separate_listener_uses_the_path_of_its_public_address() {
    let server = Server::with().arg("--api-url").arg("http://tools.example/portal").start();
    let client = Client::new(server.api()).with("Host", "tools.example");
    files(&server, client.clone(), "/portal");
    sign_in_through_the_page(&client, "/portal");
    client.get("/readyz").expect(200);
    client.get("/portal/readyz").expect(200);
}

#[test]
fn package_requests_and_links_have_the_path_of_the_public_address() {
    let server = Server::with().arg("--base-url").arg("http://tools.example:8080/packages").start();
    let repository = FormatRepository::hosted(&server, "npm", "js", &json!({}));
    let client = repository.client.clone().with("Host", "tools.example:8080");
    let document = Release::new("hello", "1.0.0").document();
    let put =
        Request::new("PUT", "/packages/repositories/js/hello").header("Content-Type", "application/json");
    let published = client.send(put.body(document.to_string()));
    assert!(published.status < 300, "{}", published.text());
    let text = client.get("/packages/repositories/js/hello").expect(200).text();
    let link = "http://tools.example:8080/packages/repositories/js/hello/-/hello-1.0.0.tgz";
    assert!(text.contains(link), "{text}");
    client.get("/packages/repositories/js/hello/-/hello-1.0.0.tgz").expect(200);
    let api = Api::sign_in(&server);
    let details = api.call("GET", &format!("/v1/repositories/{}", repository.id)).expect(200);
    assert_eq!(details.field("connection_address"), "http://tools.example:8080/packages/repositories/js/");
    assert_eq!(server.anonymous().get("/packages/livez").expect(200).text(), "ok\n");

    // `/packages-old` only begins with the letters of `/packages`, so the path does not match.
    client.get("/packages-old/repositories/js/hello").expect(401);
}

#[test]
fn image_clients_need_no_path_and_are_sent_to_the_request_address() {
    let server = Server::with().arg("--base-url").arg("http://tools.example/packages").start();
    let images = ImageRepository::create(&server, "images", &json!({}));
    images.push("app", "1", &[b"layer"]).unwrap();
    let client = images.client.clone().with("Host", "tools.example");
    for base in ["", "/packages"] {
        client.get(&format!("{base}/v2/")).expect(200);
        client.get(&format!("{base}{}", images.path("app/manifests/1"))).expect(200);
        let challenge =
            server.anonymous().with("Host", "tools.example").get(&format!("{base}/v2/")).expect(401);
        let challenge = challenge.header("www-authenticate").unwrap().to_owned();
        let realm = challenge
            .split("realm=\"http://tools.example")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap()
            .to_owned();
        assert!(realm.starts_with("/packages/"), "{challenge}");
        client.get(&format!("{realm}?service=tools.example")).expect(200);
        let begun = client
            .send(Request::new("POST", &format!("{base}{}", images.path("app/blobs/uploads/"))))
            .expect(202);
        let location = begun.header("location").unwrap().to_owned();
        let path = location.strip_prefix("http://tools.example").unwrap_or(&location);
        assert!(path.starts_with("/packages/v2/repositories/images/app/blobs/uploads/"), "{location}");
        let mark = if path.contains('?') { '&' } else { '?' };
        let bytes = format!("blob{base}");
        let whole = Request::new("PUT", &format!("{path}{mark}digest={}", digest(bytes.as_bytes())))
            .body(bytes.as_bytes());
        client.send(whole).expect(201);
    }
    // The portal's commands for image clients contain no path, because these clients expect a
    // registry at the root of a host.
    let api = Api::sign_in(&server);
    let connection =
        api.call("GET", &format!("/v1/repositories/{}/connection", images.id)).expect(200).text();
    assert!(connection.contains("tools.example/repositories/images/IMAGE:TAG"), "{connection}");
    assert!(!connection.contains("tools.example/packages/repositories/images/IMAGE"), "{connection}");
}

#[test]
fn doctor_objects_to_addresses_that_cannot_work_together() {
    let data = TempDir::new().unwrap();
    let (one, other) = (format!("127.0.0.1:{}", free_port()), format!("127.0.0.1:{}", free_port()));
    let doctor = |api: &str, base_url: &str, api_url: &str| {
        let settings = [
            ("PACKHOUSE_PACKAGES_LISTEN", one.clone()),
            ("PACKHOUSE_API_LISTEN", api.to_owned()),
            ("PACKHOUSE_BASE_URL", base_url.to_owned()),
            ("PACKHOUSE_API_URL", api_url.to_owned()),
        ];
        packhouse_with(data.path(), &["doctor"], &settings)
    };
    let site = "http://127.0.0.1:8080";
    for (base_url, api_url, words) in [
        (site.to_owned(), site.to_owned(), "packages_listen and api_listen are the same address"),
        (format!("{site}/portal/packages"), format!("{site}/portal"), "is below the path of api_url"),
        (site.to_owned(), format!("{site}/repositories"), "a path that the repository host uses"),
    ] {
        doctor(&one, &base_url, &api_url).refused(words);
    }
    doctor(&other, site, site).refused("cannot tell packages from the portal");
    doctor(&other, site, &format!("{site}/tokens")).refused("a request could mean either");
    doctor(&other, &format!("{site}/repositories"), site).refused("a request could mean either");
    for (api, base_url, api_url) in [
        (&one, format!("{site}/packages"), format!("{site}/portal")),
        (&other, site.to_owned(), format!("{site}/portal")),
    ] {
        let output = doctor(api, &base_url, &api_url);
        assert!(!output.text.contains("WRONG") || !output.text.contains("api_url"), "{}", output.text);
    }
}

#[test]
fn a_path_that_begins_like_one_below_it_is_refused_at_the_start() {
    for (setting, path) in [
        ("--api-url", "tokens"),
        ("--api-url", "sign-in/portal"),
        ("--api-url", "assets"),
        ("--api-url", "v1"),
        ("--base-url", "repositories/packages"),
    ] {
        let url = format!("http://tools.example/{path}");
        let (status, output) = Server::with().arg(setting).arg(&url).start_refused();
        assert!(!status.success() && output.contains("a request could mean either"), "{url}: {output}");
    }
}

/// Starts nginx with the file of `deploy/proxies` and this test's addresses.
fn nginx(folder: &Path, port: u16, server: &Server) -> Child {
    let text = std::fs::read_to_string(checkout().join("deploy/proxies/nginx.conf")).unwrap();
    let text = text
        .replace("listen 443 ssl;", &format!("listen 127.0.0.1:{port};"))
        .replace("127.0.0.1:8080", &server.packages().to_string());
    let text: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("ssl_"))
        .map(|line| format!("{line}\n"))
        .collect();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {};\n", folder.join(name).display()))
        .concat();
    let whole = format!(
        "daemon off;\npid {0}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}{text}}}\n",
        folder.display()
    );
    std::fs::write(folder.join("nginx.conf"), whole).unwrap();
    let mut command = Command::new("nginx");
    command
        .arg("-e")
        .arg(folder.join("error.log"))
        .arg("-c")
        .arg(folder.join("nginx.conf"))
        .arg("-p")
        .arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn behind_nginx_packages_and_portal_are_at_one_name_and_one_port() {
    if Command::new("nginx").arg("-v").output().is_err() {
        return skip("one name and one port behind nginx", "no nginx on the path");
    }
    let server = Server::with().on_one_listener().env("PACKHOUSE_TRUSTED_PROXIES", "127.0.0.0/8").start();
    let (folder, port) = (TempDir::new().unwrap(), free_port());
    let mut proxy = nginx(folder.path(), port, &server);
    let through = Client::new(([127, 0, 0, 1], port).into());
    eventually("nginx answers", || {
        through.try_send(Request::new("GET", "/livez")).ok().filter(|answer| answer.status == 200)
    });
    let (_, packages, address) = files(&server, through.clone(), "/portal");
    assert_eq!(
        address,
        format!("http://127.0.0.1:{port}/repositories/files/"),
        "links lead through the proxy"
    );
    let packages = packages.at(through.address());
    // The body exceeds nginx's default limit of one megabyte.
    let large = vec![7; 3 * 1024 * 1024];
    packages.put("/repositories/files/large.bin", large.clone()).expect(201);
    assert_eq!(packages.get("/repositories/files/large.bin").expect(200).body, large);
    sign_in_through_the_page(&through, "/portal");
    for path in ["/metrics", "/portal/metrics"] {
        let answer = through.get(path);
        assert!([403, 404].contains(&answer.status), "{path}: {}", answer.text());
    }
    let _ = proxy.kill();
    let _ = proxy.wait();
}
