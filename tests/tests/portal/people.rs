//! Data for people: search, the details of a version, download counts, the organization. Also a
//! member's own sessions, name and password.

use crate::release;
use crate::wheel;

use packhouse_tests::cli::json as packhouse_json;
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::server::{OWNER, PASSWORD, eventually};
use packhouse_tests::{Api, Client, MavenRepository, Request, Server};
use release::Release;
use serde_json::{Value, json};

const OTHER_PASSWORD: &str = "another password of a test";

/// Creates a member with these permissions for repositories and signs the member in.
fn sign_in(server: &Server, email: &str, repositories: &Value) -> Api {
    let permissions = json!({"organization": [], "repositories": repositories});
    let member = json!({"email": email, "password": PASSWORD, "permissions": permissions});
    Api::sign_in(server).post("/v1/members", &member).expect(201);
    Api::sign_in_as(server, email, PASSWORD)
}

fn names(answer: &Value) -> Vec<&str> {
    answer["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

fn publish_npm(repository: &NpmRepository, release: &Release) {
    let path = repository.path(release.path().trim_start_matches('/'));
    let request = Request::new("PUT", &path).header("Content-Type", "application/json");
    repository.client.send(request.body(release.document().to_string())).expect(201);
}

#[test]
fn search_finds_packages_in_all_readable_repositories() {
    let server = Server::start();
    let maven = MavenRepository::create(&server, "jars");
    for file in ["org/example/tool/1.0/tool-1.0.jar", "org/example/tool-kit/1.0/tool-kit-1.0.jar"] {
        maven.put(file, "x").expect(201);
    }
    let npm = NpmRepository::create(&server, "js");
    publish_npm(&npm, &Release::new("tool", "1.0.0"));
    publish_npm(&npm, &Release::new("toolbox", "1.0.0"));
    publish_npm(
        &npm,
        &Release::new("other", "1.0.0").manifest_members(&json!({"description": "A TOOL for all"})),
    );
    let api = Api::sign_in(&server);
    let search = |api: &Api, query: &str| api.call("GET", &format!("/v1/search?{query}")).expect(200).json();
    let all = search(&api, "q=tool");
    assert_eq!(names(&all), ["tool", "toolbox", "org.example:tool", "org.example:tool-kit", "other"]);
    let tool = &all["items"][0];
    assert_eq!(tool["repository"], json!({"id": npm.id, "name": "js", "format": "npm"}));
    assert_eq!(
        (&tool["latest"], &tool["summary"], &tool["state"]),
        (&json!("1.0.0"), &json!("about tool"), &json!(""))
    );
    assert!(tool["updated_at"].is_u64() && all["next"].is_null());
    assert_eq!(names(&search(&api, "q=tool&format=maven")), ["org.example:tool", "org.example:tool-kit"]);
    assert_eq!(names(&search(&api, &format!("q=tool&repository={}", maven.id))).len(), 2);
    assert_eq!(names(&search(&api, "q=tool&repository=nothing")).len(), 0);
    assert_eq!(names(&search(&api, "q=for+all+tool")), ["other"]);
    assert_eq!(names(&search(&api, "q=nothing")).len(), 0);
    // Each page names the key after which the next page begins.
    let (mut paged, mut after) = (Vec::new(), String::new());
    loop {
        let page = search(&api, &format!("q=tool&limit=2{after}"));
        paged.extend(names(&page).into_iter().map(str::to_owned));
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(paged, names(&all));
    for wrong in ["q=a&limit=0", "q=a&after=nonsense", "q=a&what=1"] {
        api.call("GET", &format!("/v1/search?{wrong}")).expect(400);
    }
    // A search can be limited to one repository.
    let listed = api.call("GET", &format!("/v1/repositories/{}/packages?q=tool", npm.id)).expect(200).json();
    assert_eq!(names(&listed), ["tool", "toolbox", "other"]);
    assert_eq!(listed["items"][0]["versions"], 1);
    // A member finds only packages in readable repositories. A member without read access finds no
    // packages.
    let reader =
        sign_in(&server, "reader@example.com", &json!([{"repository": npm.id, "actions": ["read"]}]));
    assert_eq!(names(&search(&reader, "q=tool")), ["tool", "toolbox", "other"]);
    assert_eq!(names(&search(&reader, &format!("q=tool&repository={}", maven.id))).len(), 0);
    let nobody =
        sign_in(&server, "nobody@example.com", &json!([{"repository": npm.id, "actions": ["publish"]}]));
    assert_eq!(names(&search(&nobody, "q=tool")).len(), 0);
    api.patch(&format!("/v1/repositories/{}", maven.id), &json!({"settings": {"public": true}})).expect(200);
    assert_eq!(names(&search(&nobody, "q=tool")), ["org.example:tool", "org.example:tool-kit"]);
    assert_eq!(Client::new(server.api()).get("/v1/search?q=tool").status, 401);
    // A search does not find a deleted package.
    api.call("DELETE", &format!("/v1/repositories/{}/packages/toolbox", npm.id)).expect(204);
    assert_eq!(
        names(&search(&reader, "q=tool")),
        ["tool", "org.example:tool", "org.example:tool-kit", "other"]
    );
}

#[test]
fn a_version_is_returned_with_all_its_details() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let version = |id: &str, name: &str, number: &str| {
        api.call("GET", &format!("/v1/repositories/{id}/packages/{name}/versions/{number}"))
            .expect(200)
            .json()
    };
    let npm = NpmRepository::create(&server, "js");
    publish_npm(&npm, &Release::new("@acme/lib", "1.0.0").attested());
    let details = version(&npm.id, "%40acme%2Flib", "1.0.0");
    assert_eq!((&details["version"], &details["published_by"]), (&json!("1.0.0"), &json!(OWNER)));
    assert_eq!((&details["downloads"], &details["last_downloaded_at"]), (&json!(0), &Value::Null));
    assert_eq!(details["readme"], json!({"media_type": "text/markdown", "text": "# @acme/lib"}));
    assert_eq!(details["dependencies"], json!([{"name": "dep", "requirement": "^1.0.0", "group": ""}]));
    assert_eq!(details["summary"], "about @acme/lib");
    assert_eq!(
        details["install"][0],
        json!({"client": "npm", "language": "shell", "text": "npm install @acme/lib@1.0.0"})
    );
    assert_eq!(details["files"][0]["downloads"], 0);
    assert_eq!(details["attestations"][0]["path"], "-/npm/v1/attestations/@acme/lib@1.0.0");
    npm.client.get(&npm.path(details["attestations"][0]["path"].as_str().unwrap())).expect(200);

    let python = PythonRepository::create(&server, "py");
    let more = "Description-Content-Type: text/markdown\nRequires-Dist: six>=1\nRequires-Dist: pytest; extra == 'test'\n\n# Readme\n";
    let name = wheel::wheel_name("some-tool", "1.0");
    python.publish("some-tool", "1.0", &name, &wheel::wheel("some-tool", "1.0", more)).expect(200);
    let details = version(&python.id, "some-tool", "1.0");
    assert_eq!(details["readme"], json!({"media_type": "text/markdown", "text": "# Readme\n"}));
    let six = json!({"name": "six", "requirement": ">=1", "group": ""});
    let pytest = json!({"name": "pytest", "requirement": "", "group": "test"});
    assert_eq!(details["dependencies"], json!([six, pytest]));
    assert_eq!(details["files"][0]["path"], json!(format!("packages/some-tool/1.0/{name}")));

    let maven = MavenRepository::create(&server, "jars");
    let pom = "<project><description>About it</description><dependencies><dependency><groupId>g</groupId>\
               <artifactId>a</artifactId><version>1</version><scope>test</scope></dependency></dependencies></project>";
    maven.put("org/example/a/1.0/a-1.0.pom", pom).expect(201);
    let details = version(&maven.id, "org.example%3Aa", "1.0");
    assert_eq!(details["readme"], json!({"media_type": "text/plain", "text": "About it"}));
    assert_eq!(details["dependencies"], json!([{"name": "g:a", "requirement": "1", "group": "test"}]));
    assert!(details["install"][0]["text"].as_str().unwrap().contains("<artifactId>a</artifactId>"));
    // The API answers 404 for a missing version, and for a version that the member may not read.
    for missing in ["org.example%3Aa/versions/2.0", "org.example%3Ab/versions/1.0"] {
        api.call("GET", &format!("/v1/repositories/{}/packages/{missing}", maven.id)).expect(404);
    }
    let publisher =
        sign_in(&server, "p@example.com", &json!([{"repository": maven.id, "actions": ["publish"]}]));
    let path = format!("/v1/repositories/{}/packages/org.example%3Aa/versions/1.0", maven.id);
    assert_eq!(publisher.call("GET", &path).expect(403).field("error"), "role_mismatch");
    publisher.call("GET", &format!("/v1/repositories/{}/connection", maven.id)).expect(403);
    publisher.call("GET", &format!("/v1/repositories/{}/connection", npm.id)).expect(404);
}

#[test]
fn only_downloads_are_counted() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "jars");
    let group = json!({"name": "all", "format": "maven", "kind": "group", "members": [maven.id]});
    let group = api.post("/v1/repositories", &group).expect(201).field("id");
    let token = api.create_token(&[&maven.id, &group], &["read"], None);
    let file = "org/example/a/1.0/a-1.0.jar";
    maven.put(file, "0123456789").expect(201);
    let path = maven.path(file);
    // The server answers the second download from memory.
    for _ in 0..2 {
        maven.client.get(&path).expect(200);
    }
    let ask = |method: &str, range: &str, status: u16| {
        let request = Request::new(method, &path);
        let request = if range.is_empty() { request } else { request.header("Range", range) };
        maven.client.send(request).expect(status);
    };
    ask("GET", "bytes=0-3", 206);
    for (method, range, status) in [("HEAD", "", 200), ("GET", "bytes=4-", 206), ("GET", "bytes=99-", 416)] {
        ask(method, range, status);
    }
    let etag = maven.client.get(&path).expect(200).header("etag").unwrap().to_owned();
    maven.client.send(Request::new("GET", &path).header("If-None-Match", &etag)).expect(304);
    server.anonymous().get(&path).expect(401);
    maven.get("org/example/a/1.0/a-1.0.war").expect(404);
    maven.get(&format!("{file}.sha1")).expect(200);
    server.anonymous().basic(OWNER, &token.secret).get(&format!("/repositories/all/{file}")).expect(200);
    let version = format!("/v1/repositories/{}/packages/org.example%3Aa/versions/1.0", maven.id);
    let details = eventually("downloads", || {
        let details = api.call("GET", &version).expect(200).json();
        (details["downloads"].as_u64() >= Some(5)).then_some(details)
    });
    // The server counted five downloads: two whole files, a range from the start, another whole
    // file, and a download through the group.
    assert_eq!((&details["downloads"], &details["files"][0]["downloads"]), (&json!(5), &json!(5)));
    assert!(details["last_downloaded_at"].as_u64() > Some(1_700_000_000_000));
    let usage = api.call("GET", "/v1/usage").expect(200).json();
    let own =
        usage["repositories"].as_array().unwrap().iter().find(|row| row["id"] == json!(maven.id)).unwrap();
    assert_eq!((&own["downloads"], &usage["downloads"]), (&json!(5), &json!(5)));
    assert_eq!((&own["bytes"], &own["packages"], &own["versions"]), (&json!(10), &json!(1), &json!(1)));
    assert!(usage["stored_bytes"].as_u64() >= Some(10));
    // The activity of the package, the repository and the organization contains publishes and
    // downloads by day.
    let base = format!("/v1/repositories/{}", maven.id);
    for path in
        ["/v1/activity", &format!("{base}/activity"), &format!("{base}/packages/org.example%3Aa/activity")]
    {
        let days = api.call("GET", path).expect(200).json()["days"].as_array().unwrap().clone();
        let sum = |of: &str| days.iter().map(|day| day[of].as_u64().unwrap()).sum::<u64>();
        assert_eq!((days.len(), sum("publishes"), sum("downloads")), (30, 1, 5), "{path}");
        assert!(days.windows(2).all(|pair| pair[0]["day"].as_u64() < pair[1]["day"].as_u64()));
    }
    api.call("GET", &format!("{base}/packages/org.example%3Ab/activity")).expect(404);
    assert_eq!(own["quota_bytes"], Value::Null);
    let listed = api.call("GET", "/v1/repositories").expect(200).json();
    let listed = |id: &str| {
        listed["items"].as_array().unwrap().iter().find(|row| row["id"] == json!(id)).unwrap().clone()
    };
    assert_eq!((&listed(&maven.id)["packages"], &listed(&group)["packages"]), (&json!(1), &Value::Null));
    assert!(listed(&maven.id)["last_published_at"].is_u64());
    let member = sign_in(&server, "m@example.com", &json!([]));
    assert_eq!(member.call("GET", "/v1/usage").expect(403).field("error"), "insufficient_permissions");
    assert_eq!(member.call("GET", "/v1/activity").expect(403).field("error"), "insufficient_permissions");
    member.call("GET", &format!("{base}/activity")).expect(404);
}

#[test]
fn a_member_manages_sessions_name_and_password() {
    let server = Server::start();
    let member = sign_in(&server, "m@example.com", &json!([]));
    let other = Api::sign_in_as(&server, "m@example.com", PASSWORD);
    let sessions =
        |api: &Api| api.call("GET", "/v1/sessions").expect(200).json()["items"].as_array().unwrap().clone();
    let listed = sessions(&member);
    assert_eq!(listed.len(), 2);
    assert_eq!(listed.iter().filter(|one| one["current"] == true).count(), 1);
    assert!(listed.iter().all(|one| one["expires_at"].as_u64() > one["created_at"].as_u64()));
    let owners = sessions(&Api::sign_in(&server));
    let foreign = owners[0]["id"].as_str().unwrap();
    member.call("DELETE", &format!("/v1/sessions/{foreign}")).expect(404);
    let theirs = listed.iter().find(|one| one["current"] == false).unwrap()["id"].as_str().unwrap();
    member.call("DELETE", &format!("/v1/sessions/{theirs}")).expect(204);
    member.call("DELETE", &format!("/v1/sessions/{theirs}")).expect(404);
    other.call("GET", "/v1/me").expect(401);

    let other = Api::sign_in_as(&server, "m@example.com", PASSWORD);
    let me = |body: Value, status| member.patch("/v1/me", &body).expect(status);
    assert_eq!(me(json!({"name": "Somebody"}), 200).json()["name"], "Somebody");
    assert_eq!(me(json!({"name": "a\nb"}), 400).field("error"), "invalid_name");
    for wrong in [
        json!({}),
        json!({"password": OTHER_PASSWORD}),
        json!({"current_password": PASSWORD}),
        json!({"password": "short", "current_password": PASSWORD}),
        json!({"email": "x@example.com"}),
    ] {
        me(wrong, 400);
    }
    let wrong = json!({"password": OTHER_PASSWORD, "current_password": "not it at all"});
    assert_eq!(me(wrong, 401).field("error"), "invalid_credentials");
    other.call("GET", "/v1/me").expect(200);
    me(json!({"password": OTHER_PASSWORD, "current_password": PASSWORD}), 200);
    member.call("GET", "/v1/me").expect(200);
    other.call("GET", "/v1/me").expect(401);
    let body = json!({"email": "m@example.com", "password": PASSWORD});
    assert_eq!(member.post("/v1/sessions", &body).status, 401);
    Api::sign_in_as(&server, "m@example.com", OTHER_PASSWORD);
    let events = Api::sign_in(&server).call("GET", "/v1/audit-events?limit=50").expect(200).text();
    for action in ["end_session", "set_password", "rename_member"] {
        assert!(events.contains(action), "{action} in {events}");
    }
}

#[test]
fn the_organization_is_read_and_changed() {
    let mut server = Server::start();
    packhouse_json(server.data(), &["org", "create", "second", "--base-url", "https://two.example/"]);
    server.restart();
    let api = Api::sign_in(&server);
    let details = api.call("GET", "/v1/organization").expect(200).json();
    assert!(details["id"].is_string() && details["created_at"].is_u64());
    assert_eq!(details["quota_bytes"], Value::Null);
    let changed = api
        .patch("/v1/organization", &json!({"name": "Acme", "quota_bytes": 5_000_000_000_u64}))
        .expect(200)
        .json();
    assert_eq!((&changed["name"], &changed["quota_bytes"]), (&json!("Acme"), &json!(5_000_000_000_u64)));
    assert_eq!(changed["base_url"], details["base_url"]);
    let taken = api.patch("/v1/organization", &json!({"name": "second"})).expect(409);
    assert_eq!(taken.field("error"), "organization_already_exists");
    for wrong in [json!({"quota_bytes": -1}), json!({"quota_bytes": "1"}), json!({"base_url": "x"})] {
        api.patch("/v1/organization", &wrong).expect(400);
    }
    assert_eq!(
        api.patch("/v1/organization", &json!({"name": ""})).expect(400).field("error"),
        "invalid_name"
    );
    let cleared = api.patch("/v1/organization", &json!({"quota_bytes": null})).expect(200).json();
    assert_eq!((&cleared["name"], &cleared["quota_bytes"]), (&json!("Acme"), &Value::Null));
    let member = sign_in(&server, "m@example.com", &json!([]));
    assert_eq!(member.call("GET", "/v1/organization").expect(200).json()["name"], "Acme");
    let refused = member.patch("/v1/organization", &json!({"name": "Mine"})).expect(403);
    assert_eq!(refused.field("error"), "insufficient_permissions");
}
