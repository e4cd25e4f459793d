//! Advisories on the portal's pages and in lists, and the effects of a second import.

use super::*;
use packhouse_tests::api::Token;
use packhouse_tests::person::Person;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::PASSWORD;

#[test]
fn versions_lists_search_and_pages_show_advisories() {
    let world = AdvisoryServer::start();
    let hosted = NpmRepository::create(&world.server, "hosted");
    publish(
        &hosted,
        &[Part::new("leaky", "1.0.0"), Part::new("leaky", "1.2.0"), Part::new("leaky", "2.0.0-rc.1")],
    );
    let leak = Record::new("GHSA-leak-leak-leak", "npm", "leaky").between("1.1.0", "2.0.0").high("It leaks");
    let other = Record::new("GHSA-othe-rone-0000", "npm", "leaky").below("1.5.0");
    world.import(&[leak, other], &[]);
    world.known("leaky", "1.2.0");
    let path = format!("/v1/repositories/{}/packages/leaky/versions", hosted.id);
    let listed = world.api.call("GET", &path).expect(200).json();
    let of = |version: &str| {
        let items = listed["items"].as_array().unwrap();
        let item = items.iter().find(|item| item["version"] == version).unwrap();
        item["advisories"].as_array().unwrap().iter().map(|one| one["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(of("1.0.0"), ["GHSA-othe-rone-0000"]);
    assert_eq!(of("1.2.0"), ["GHSA-leak-leak-leak", "GHSA-othe-rone-0000"], "the most severe first");
    assert_eq!(of("2.0.0-rc.1"), ["GHSA-leak-leak-leak"]);
    let one = world.api.call("GET", &format!("{path}/1.2.0")).expect(200).json();
    assert_eq!(
        one["advisories"][0],
        json!({"id": "GHSA-leak-leak-leak", "severity": "high", "malware": false, "summary": "It leaks", "fixed": ["2.0.0"],
            "url": "https://advisories.example/GHSA-leak-leak-leak"})
    );
    let found = world.api.call("GET", "/v1/search?q=leaky").expect(200).json();
    assert_eq!(found["items"][0]["advisory"]["id"], "GHSA-leak-leak-leak", "{found}");
    let mut person = Person::owner(&world.server);
    let base = "/repositories/hosted/packages/leaky";
    for page in [format!("{base}/versions/1.2.0"), "/search?q=leaky".to_owned()] {
        let text = person.get(&page).expect(200).text();
        assert!(text.contains("GHSA-leak-leak-leak") && text.contains("tag high"), "{page}: {text}");
    }
    assert!(person.get(base).expect(200).text().contains("tag high"));
    assert!(
        !person.get(&format!("{base}/versions/1.0.0")).expect(200).text().contains("GHSA-leak-leak-leak")
    );
}

#[test]
fn an_import_updates_newer_records_and_removes_only_on_request() {
    let world = AdvisoryServer::start();
    let record = |id: &str, at: &str| Record::new(id, "npm", "lib").below("9.0.0").modified(at);
    let output =
        world.import(&[record("A-1", "2026-01-02T00:00:00Z"), record("A-2", "2026-01-02T00:00:00Z")], &[]);
    assert!(output.contains("2 added, 0 changed, 0 already up to date"), "{output}");
    assert_eq!(world.known("lib", "1.0.0"), ["A-1", "A-2"]);
    let output =
        world.import(&[record("A-1", "2026-01-01T00:00:00Z"), record("A-2", "2026-01-03T00:00:00Z")], &[]);
    assert!(output.contains("0 added, 1 changed, 1 already up to date"), "{output}");
    let elsewhere = Record::new("B-1", "PyPI", "lib").below("9");
    let output = world.import(&[record("A-3", "2026-01-01T00:00:00Z"), elsewhere], &["--ecosystem", "npm"]);
    assert!(output.contains("1 added") && output.contains("1 of other ecosystems"), "{output}");
    let output = world.import(&[record("A-3", "2026-01-01T00:00:00Z")], &["--replace"]);
    assert!(output.contains("2 removed"), "{output}");
    eventually("the server follows", || (world.known("lib", "1.0.0") == ["A-3"]).then_some(()));
    let data = world.server.data();
    let list =
        packhouse(data, &["advisories", "list", "--ecosystem", "npm", "--package", "lib"], "").success().text;
    assert!(list.starts_with("A-3\tunknown\t2026-01-01\t"), "{list}");
    let show = packhouse(data, &["advisories", "show", "A-3"], "").success().text;
    assert!(show.contains("\"A-3\""), "{show}");
    let status = packhouse(data, &["advisories", "status"], "").success().text;
    assert!(status.contains("1 advisories, 0 of them about malware"), "{status}");
    let empty = world.folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let output = packhouse(data, &["advisories", "import", empty.to_str().unwrap(), "--replace"], "");
    assert!(!output.success && output.text.contains("nothing was changed"), "{}", output.text);
    assert_eq!(world.known("lib", "1.0.0"), ["A-3"]);
}

#[test]
fn stored_packages_are_exported_as_an_sbom() {
    let world = AdvisoryServer::start();
    let hosted = NpmRepository::create(&world.server, "hosted");
    let other = NpmRepository::create(&world.server, "other");
    publish(
        &hosted,
        &[Part::new("@acme/lib", "1.0.0"), Part::new("@acme/lib", "1.1.0"), Part::new("app", "2.0.0")],
    );
    publish(&other, &[Part::new("more", "1.0.0")]);
    let all = world.api.call("GET", "/v1/sbom").expect(200);
    assert!(all.header("content-type").unwrap().starts_with("application/vnd.cyclonedx+json"));
    let all = all.json();
    assert_eq!((&all["bomFormat"], &all["specVersion"]), (&json!("CycloneDX"), &json!("1.6")));
    let purls = |document: &Value| {
        let components = document["components"].as_array().unwrap().iter();
        let mut purls: Vec<String> = components.map(|one| one["purl"].as_str().unwrap().to_owned()).collect();
        purls.sort();
        purls
    };
    let of_hosted = ["pkg:npm/%40acme/lib@1.0.0", "pkg:npm/%40acme/lib@1.1.0", "pkg:npm/app@2.0.0"];
    assert_eq!(purls(&all), [of_hosted.as_slice(), &["pkg:npm/more@1.0.0"]].concat());
    let one = world.api.call("GET", &format!("/v1/sbom?repository={}", hosted.id)).expect(200).json();
    assert_eq!(purls(&one), of_hosted);
    let app = one["components"].as_array().unwrap().iter().find(|one| one["name"] == "app").unwrap();
    let tarball = hosted.get("app/-/app-2.0.0.tgz").expect(200).body;
    assert_eq!(app["hashes"][0]["alg"], "SHA-256");
    assert_eq!(app["hashes"][0]["content"], packhouse_tests::digests::sha256(&tarball), "{app}");
    world.api.call("GET", "/v1/sbom?repository=999999").expect(404);
    world.api.call("GET", "/v1/sbom?form=text").expect(400);
    let empty = NpmRepository::create(&world.server, "empty");
    let none = world.api.call("GET", &format!("/v1/sbom?repository={}", empty.id)).expect(200).json();
    assert_eq!(none["components"], json!([]));
}

#[test]
fn downloads_of_a_token_are_exported_to_members_who_may_revoke_it() {
    let world = AdvisoryServer::start();
    let hosted = NpmRepository::create(&world.server, "hosted");
    let group = FormatRepository::create(
        &world.server,
        "npm",
        "group",
        &json!({"kind": "group", "members": [hosted.id]}),
        &[&hosted.id],
    );
    publish(
        &hosted,
        &[Part::new("a", "1.0.0"), Part::new("a", "1.1.0"), Part::new("b", "1.0.0"), Part::new("c", "1.0.0")],
    );
    let [ours, other] = [0, 1].map(|_| world.api.create_token(&[&hosted.id, &group.id], &["read"], None));
    let fetch = |token: &Token, path: &str| {
        let client = world.server.anonymous().with("Authorization", &format!("Bearer {}", token.secret));
        client.get(path).expect(200);
    };
    for path in ["hosted/a/-/a-1.0.0.tgz", "hosted/a/-/a-1.0.0.tgz", "group/b/-/b-1.0.0.tgz", "hosted/c"] {
        fetch(&ours, &format!("/repositories/{path}"));
    }
    fetch(&other, "/repositories/hosted/c/-/c-1.0.0.tgz");
    let sbom_path = |token: &Token, more: &str| format!("/v1/sbom?token={}{more}", token.id);
    let purls = |query: &str| {
        let document = world.api.call("GET", query).expect(200).json();
        let components = document["components"].as_array().unwrap().iter();
        let mut purls: Vec<String> = components.map(|one| one["purl"].as_str().unwrap().to_owned()).collect();
        purls.sort();
        purls
    };
    let fetched = ["pkg:npm/a@1.0.0", "pkg:npm/b@1.0.0"];
    eventually("the downloads are recorded", || (purls(&sbom_path(&ours, "")) == fetched).then_some(()));
    assert_eq!(purls(&sbom_path(&other, "")), ["pkg:npm/c@1.0.0"]);
    assert_eq!(
        purls(&sbom_path(&ours, &format!("&repository={}", hosted.id))),
        fetched,
        "a download through a group belongs to its member"
    );
    let day = 24 * 60 * 60 * 1000;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    assert_eq!(purls(&sbom_path(&ours, &format!("&since={}&until={}", now - day, now + day))), fetched);
    assert!(purls(&sbom_path(&ours, &format!("&until={}", now - 2 * day))).is_empty());
    assert!(purls(&sbom_path(&ours, &format!("&since={}", now + 2 * day))).is_empty());
    // The list still contains downloads of a deleted package, and downloads with a revoked token.
    world.api.call("DELETE", &format!("/v1/repositories/{}/packages/b", hosted.id)).expect(204);
    world.api.call("DELETE", &format!("/v1/tokens/{}", ours.id)).expect(204);
    assert_eq!(purls(&sbom_path(&ours, "")), fetched);
    let spdx = world.api.call("GET", &sbom_path(&ours, "&form=spdx")).expect(200).json();
    assert_eq!(spdx["packages"].as_array().unwrap().len(), 2, "{spdx}");

    let without = format!("/v1/sbom?since={now}");
    for wrong in [without, sbom_path(&ours, "&since=yesterday"), sbom_path(&ours, "&until=-1")] {
        world.api.call("GET", &wrong).expect(400);
    }
    world.api.call("GET", "/v1/sbom?token=1").expect(404);
    let invited = json!({"email": "m@example.com", "password": PASSWORD, "permissions": {"organization": [], "repositories": []}});
    world.api.post("/v1/members", &invited).expect(201);
    let member = Api::sign_in_as(&world.server, "m@example.com", PASSWORD);
    member.call("GET", &sbom_path(&other, "")).expect(403);
}

#[test]
fn the_same_is_exported_as_spdx() {
    let world = AdvisoryServer::start();
    let npm = NpmRepository::create(&world.server, "npm");
    publish(&npm, &[Part::new("lib", "1.0.0")]);
    let maven = FormatRepository::hosted(&world.server, "maven", "maven", &json!({}));
    for file in ["a-1.0.jar", "a-1.0.pom"] {
        maven.put(&format!("org/example/a/1.0/{file}"), file).expect(201);
    }
    let answer = world.api.call("GET", "/v1/sbom?form=spdx").expect(200);
    assert_eq!(answer.header("content-type"), Some("application/spdx+json"));
    let document = answer.json();
    assert_eq!((&document["spdxVersion"], &document["dataLicense"]), (&json!("SPDX-2.3"), &json!("CC0-1.0")));
    let packages = document["packages"].as_array().unwrap();
    let named = |name: &str| packages.iter().find(|one| one["name"] == name).unwrap();
    let lib = named("lib");
    assert_eq!(lib["externalRefs"][0]["referenceLocator"], "pkg:npm/lib@1.0.0");
    let tarball = npm.get("lib/-/lib-1.0.0.tgz").expect(200).body;
    let checksum =
        json!({"algorithm": "SHA256", "checksumValue": packhouse_tests::digests::sha256(&tarball)});
    assert_eq!(lib["checksums"], json!([checksum]));
    let (jar, whole) = (named("org/example/a/1.0/a-1.0.jar"), named("org.example:a"));
    assert_eq!(jar["checksums"][0]["checksumValue"], packhouse_tests::digests::sha256(b"a-1.0.jar"));
    let relations = document["relationships"].as_array().unwrap();
    let related = |one: &Value, kind: &str, other: &Value| {
        relations.iter().any(|relation| {
            relation["spdxElementId"] == *one
                && relation["relationshipType"] == kind
                && relation["relatedSpdxElement"] == *other
        })
    };
    assert!(related(&whole["SPDXID"], "CONTAINS", &jar["SPDXID"]));
    for described in [lib, whole] {
        assert!(related(&json!("SPDXRef-DOCUMENT"), "DESCRIBES", &described["SPDXID"]), "{relations:?}");
    }
}
