//! Hostile paths. The server refuses them before any look-up, with and without a credential. They
//! have no effect on storage.

use packhouse_tests::{MavenRepository, Request, Server, database};

/// Returns paths below `/repositories/paths/`. The client sends each path exactly as written here.
fn hostile() -> Vec<String> {
    let mut paths: Vec<String> = [
        "../paths/org/example/a/1.0/a-1.0.jar",
        "org/../../../etc/passwd",
        "org/%2e%2e/a/1.0/a-1.0.jar",
        "org/%2E%2e/a",
        "org/.%2e/a",
        "./org/a",
        "org/%2e/a",
        "%2F%2F%2F..%2F..%2Fetc%2Fpasswd",
        "org%2fexample/a/1.0/a-1.0.jar",
        "org%2Fexample/a/1.0/a-1.0.jar",
        "..%5c..%5cetc",
        "org\\example\\a",
        "org/%5cexample",
        "org/a%00.jar",
        "org/.%00/a",
        "org/%0d%0aLocation:%20x/a",
        "org/%0a/a",
        "org/%7f/a",
        "org/%c0%ae%c0%ae/a",
        "org/%c0%af/a",
        "org/%e0%80%af/a",
        "org/%ff/a",
        "org/%/a",
        "org/%zz/a",
    ]
    .map(str::to_owned)
    .to_vec();
    paths.push(vec!["a"; 10_000].join("/"));
    paths.push(format!("org/{}/a", "b".repeat(10_000)));
    paths
}

#[test]
fn hostile_paths_are_refused_with_and_without_a_credential() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "paths");
    let before = database::fingerprint(&server);

    let mut wrong = Vec::new();
    for path in hostile() {
        for (who, client) in [("with a credential", &repository.client), ("without", &server.anonymous())] {
            for method in ["PUT", "GET", "DELETE"] {
                let mut request = Request::new(method, &repository.path(&path));
                if method == "PUT" {
                    request = request.body("hostile");
                }
                let status = client.send(request).status;
                if status != 400 && status != 414 {
                    wrong.push(format!("{method} {path:.80} {who}: {status}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(database::fingerprint(&server), before, "something was stored");
}

#[test]
fn a_name_that_only_looks_hostile_is_accepted() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "odd");
    for name in ["a;b", "..;", "a+b", "a:b", "%252e%252e", "a%20b", "...", "%C3%A9", "e%CC%81"] {
        let file = format!("org/example/{name}/1.0/odd-1.0.jar");
        assert_eq!(repository.get(&file).status, 404, "GET {file}");
    }
    // Names are different if one has a composed letter and the other a decomposed one. Upper and
    // lower case make different names too.
    for (number, name) in ["%C3%A9", "e%CC%81", "lower", "LOWER"].into_iter().enumerate() {
        let file = format!("org/example/{name}/1.0/{name}-1.0.jar");
        repository.put(&file, format!("file {number}")).expect(201);
    }
    assert_eq!(repository.get("org/example/%C3%A9/1.0/%C3%A9-1.0.jar").expect(200).text(), "file 0");
    assert_eq!(repository.get("org/example/e%CC%81/1.0/e%CC%81-1.0.jar").expect(200).text(), "file 1");
    assert_eq!(repository.get("org/example/LOWER/1.0/LOWER-1.0.jar").expect(200).text(), "file 3");
}

#[test]
fn repeated_slashes_count_as_one() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "slashes");
    repository.put("org//example/a/1.0//a-1.0.jar", "a").expect(201);
    for path in [
        "/repositories/slashes/org/example/a/1.0/a-1.0.jar",
        "//repositories//slashes/org/example/a/1.0/a-1.0.jar",
        "/repositories/slashes///org/example/a/1.0/a-1.0.jar",
    ] {
        assert_eq!(repository.client.get(path).expect(200).text(), "a", "{path}");
        server.anonymous().get(path).expect(401);
    }
    // An encoded slash is part of a name, so these names are invalid.
    repository.get("org%2F%2Fexample/a/1.0/a-1.0.jar").expect(400);
}

#[test]
fn hostile_path_content_never_reaches_a_response_header() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "headers");
    for target in ["/%0d%0aX-Planted:%201", "/repositories/%0d%0aX-Planted:%201/", "/?a=%0d%0aX-Planted:%201"]
    {
        let answer = repository.client.get(target);
        assert!(answer.header("x-planted").is_none(), "{target}: {:?}", answer.headers);
    }
}
