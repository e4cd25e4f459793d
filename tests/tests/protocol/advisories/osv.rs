//! The OSV interface: the requests of pip-audit and uv, access, and each ecosystem's order of
//! versions.

use super::*;

/// Ecosystem, package, start and end of the affected range, affected versions and unaffected ones.
type Order = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

/// A package of each ecosystem. Only the ecosystem's own order of versions tells its affected
/// versions from the unaffected ones.
const ORDERS: [Order; 7] = [
    (
        "npm",
        "@acme/lib",
        "1.0.0-rc.1",
        "1.10.0",
        &["1.0.0-rc.1", "1.0.0", "1.9.9"],
        &["1.0.0-beta", "1.10.0"],
    ),
    (
        "PyPI",
        "acme-lib",
        "1.0a1",
        "1.0.post1",
        &["1.0a2.dev1", "1.0", "1.0.0"],
        &["1.0.dev5", "1.0.post1", "1!0.5"],
    ),
    ("Maven", "org.acme:lib", "1.0-alpha-1", "1.0.1", &["1.0-SNAPSHOT", "1.0-sp", "1"], &["0.9", "1.0.1"]),
    ("crates.io", "acme_lib", "0.1.0", "0.2.0", &["0.1.0", "0.1.99", "0.2.0-alpha"], &["0.0.9", "0.2.0"]),
    (
        "Go",
        "acme.example/lib/v2",
        "2.0.0",
        "2.1.0",
        &["v2.0.0", "2.0.5", "v2.1.0-rc.1"],
        &["v1.9.0", "v2.1.0"],
    ),
    ("RubyGems", "acme", "1.0.rc1", "1.0.10", &["1.0.rc2", "1.0.9", "1"], &["1.0.b1", "1.0.10"]),
    (
        "Packagist",
        "acme/lib",
        "1.0.0-beta1",
        "1.0.1",
        &["v1.0.0-RC1", "1.0", "1.0.0.0"],
        &["1.0.0-alpha9", "v1.0.1"],
    ),
];

#[test]
fn versions_are_compared_by_the_rules_of_their_ecosystem() {
    let world = AdvisoryServer::start();
    let record = |(number, (ecosystem, name, from, until, ..)): (usize, &Order)| {
        Record::new(&format!("T-{number}"), ecosystem, name).between(from, until)
    };
    let records: Vec<Record> = ORDERS.iter().enumerate().map(record).collect();
    world.import(&records, &[]);
    world.known("@acme/lib", "1.0.0");
    for (number, (ecosystem, name, _, _, within, without)) in ORDERS.iter().enumerate() {
        let ask = |version: &str| {
            ids(&world.query(&json!({"package": {"ecosystem": ecosystem, "name": name}, "version": version})))
        };
        for version in *within {
            assert_eq!(ask(version), [format!("T-{number}")], "{ecosystem} {version}");
        }
        for version in *without {
            assert!(ask(version).is_empty(), "{ecosystem} {version}");
        }
    }
    // The server compares names by the rules of the ecosystem.
    let named = |ecosystem: &str, name: &str| {
        ids(&world.query(&json!({"package": {"ecosystem": ecosystem, "name": name}, "version": "1.0"}))).len()
    };
    assert_eq!(
        (named("PyPI", "Acme._Lib"), named("Packagist", "Acme/Lib"), named("Maven", "Org.acme:lib")),
        (1, 1, 0)
    );
}

#[test]
fn osv_clients_get_answers() {
    let world = AdvisoryServer::start();
    let lib = Record::new("GHSA-lib1-lib1-lib1", "PyPI", "lib").below("2.0");
    world.import(&[lib.clone(), Record::new("PYSEC-1", "PyPI", "lib").listed(&["1.0"])], &[]);
    // pip-audit queries by version and sends no JSON content type.
    let question = json!({"package": {"name": "lib", "ecosystem": "PyPI"}, "version": "1.0"}).to_string();
    let found = eventually("the server follows", || {
        let request = Request::new("POST", "/v1/query").body(question.clone());
        let found = world.api.client().send(request).expect(200).json();
        Some(found).filter(|found| found["vulns"].is_array())
    });
    assert_eq!(ids(&found), ["GHSA-lib1-lib1-lib1", "PYSEC-1"]);
    assert_eq!(found["vulns"][0], lib.0, "the record is returned as imported");
    // uv sends a batch of queries and then requests each record.
    let batch = json!({"queries": [
        {"package": {"name": "lib", "ecosystem": "PyPI"}, "version": "1.5"},
        {"package": {"purl": "pkg:pypi/lib@1.0"}},
        {"package": {"name": "other", "ecosystem": "PyPI"}, "version": "1.0"},
        {"commit": "6879efc2c1596d11a6a6ad296f80063b558d5e0f"},
    ]});
    let found = world.api.post("/v1/querybatch", &batch).expect(200).json();
    let short = |id: &str| json!({"id": id, "modified": "2026-01-01T00:00:00Z"});
    let both = json!([short("GHSA-lib1-lib1-lib1"), short("PYSEC-1")]);
    assert_eq!(found["results"], json!([{"vulns": [short("GHSA-lib1-lib1-lib1")]}, {"vulns": both}, {}, {}]));
    assert_eq!(world.api.call("GET", "/v1/vulns/PYSEC-1").expect(200).json()["id"], "PYSEC-1");
    world.api.call("GET", "/v1/vulns/PYSEC-2").expect(404);
    let listed =
        world.api.call("GET", "/v1/advisories?ecosystem=PyPI&package=lib&limit=1").expect(200).json();
    assert_eq!(
        (&listed["items"][0]["id"], &listed["next"]),
        (&json!("GHSA-lib1-lib1-lib1"), &json!("GHSA-lib1-lib1-lib1"))
    );
    world.api.post("/v1/query", &json!({"package": {"name": "lib"}})).expect(400);
    let many = vec![json!({}); 1_001];
    world.api.post("/v1/querybatch", &json!({"queries": many})).expect(400);
}

#[test]
fn unauthenticated_queries_need_the_operators_permission() {
    let question = json!({"package": {"name": "lib", "ecosystem": "PyPI"}, "version": "1.0"});
    let world = AdvisoryServer::start();
    let unauthenticated = Client::new(world.server.api());
    let status_of = |client: &Client, path: &str| post(client, path, &question).status;
    assert_eq!(
        (status_of(&unauthenticated, "/v1/query"), status_of(&unauthenticated, "/v1/querybatch")),
        (401, 401)
    );
    assert_eq!(unauthenticated.get("/v1/vulns/X").status, 401);
    let open = Server::with().env("PACKHOUSE_ADVISORIES_PUBLIC", "true").start();
    let unauthenticated = Client::new(open.api());
    assert_eq!(
        (status_of(&unauthenticated, "/v1/query"), unauthenticated.get("/v1/vulns/X").status),
        (200, 404)
    );
    assert_eq!(
        (unauthenticated.get("/v1/advisories").status, unauthenticated.get("/v1/search?q=a").status),
        (401, 401)
    );
}
