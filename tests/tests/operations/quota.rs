//! Quotas: 64 concurrent publishers near the limit, in each format, on both databases. The server
//! refuses a publish that cannot fit before it reads the body. Also the form of a refusal.

use crate::release;
use crate::wheel;

use packhouse_tests::database::Postgres;
use packhouse_tests::images::{ImageRepository, MANIFEST, digest, manifest};
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::race::at_once;
use packhouse_tests::{Api, Client, Connection, MavenRepository, Request, Response, Server, payload, skip};
use release::Release;
use serde_json::{Value, json};

const PUBLISHERS: usize = 64;
/// Number of publishes that fit into the quota.
const ROOM: usize = 20;

fn set_quota(api: &Api, id: &str, bytes: Option<u64>) {
    let settings = json!({"settings": {"quota_bytes": bytes}});
    let changed = api.patch(&format!("/v1/repositories/{id}"), &settings).expect(200).json();
    assert_eq!(changed["settings"]["quota_bytes"], json!(bytes));
}

fn used(api: &Api, id: &str) -> u64 {
    let usage = api.call("GET", "/v1/usage").expect(200).json();
    let own = usage["repositories"].as_array().unwrap().iter().find(|row| row["id"] == id).unwrap().clone();
    own["bytes"].as_u64().unwrap()
}

/// Checks that a refusal states the quota and the use, both in its sentence and in its fields.
#[track_caller]
fn refused(answer: &Response, quota: u64) {
    let body = answer.json();
    assert_eq!((answer.status, &body["reason_code"]), (403, &json!("quota_exceeded")), "{body}");
    let sentence = match &body["errors"] {
        Value::Null => body["error"].as_str().unwrap(),
        errors => {
            assert_eq!(errors[0]["code"], "DENIED");
            errors[0]["message"].as_str().unwrap()
        }
    };
    let begins = format!("is {quota} bytes. ");
    assert!(sentence.contains(&begins) && sentence.contains(" bytes are used, so "), "{sentence}");
}

/// Sets a quota with room for `ROOM` publishes and a half. All publishers publish concurrently, and
/// exactly `ROOM` of them succeed.
fn at_the_edge(api: &Api, id: &str, format: &str, publish: impl Fn(usize) -> Response + Sync) {
    let before = used(api, id);
    assert!(publish(PUBLISHERS).status < 300, "{format}");
    let first = used(api, id);
    let size = first - before;
    assert!(size > 0, "{format}");
    // All numbers of publishers have the same number of digits, so the compressed sizes are nearly
    // equal.
    let quota = first + size * ROOM as u64 + size / 2;
    set_quota(api, id, Some(quota));
    let answers = at_once(PUBLISHERS, &publish);
    let through = answers.iter().filter(|answer| answer.status < 300).count();
    answers.iter().filter(|answer| answer.status >= 300).for_each(|answer| refused(answer, quota));
    let now = used(api, id);
    assert_eq!(through, ROOM, "{format}: {now} of {quota}");
    assert!(now <= quota && now > quota - size, "{format}: {now} of {quota}");
    // A refused publish leaves nothing behind, so it succeeds once the quota is gone.
    let late = answers.iter().position(|answer| answer.status >= 300).unwrap();
    set_quota(api, id, None);
    assert!(publish(late).status < 300, "{format}");
}

fn number(publisher: usize) -> usize {
    100 + publisher
}

fn in_all_formats(server: &Server) {
    let api = Api::sign_in(server);
    let maven = MavenRepository::create(server, "jars");
    at_the_edge(&api, &maven.id, "maven", |publisher| {
        let version = number(publisher);
        maven.put(&format!("org/example/a/{version}/a-{version}.jar"), payload::bytes(version as u64, 3000))
    });
    let npm = NpmRepository::create(server, "js");
    at_the_edge(&api, &npm.id, "npm", |publisher| {
        let version = format!("1.0.{}", number(publisher));
        // Stored without compression, because gzip would give each version another size.
        let tarball = release::stored(&release::tar(&[(
            "package/package.json",
            json!({"name": "lib", "version": version}).to_string().as_bytes(),
        )]));
        let release = Release::new("lib", &version).raw(&tarball);
        let path = npm.path(release.path().trim_start_matches('/'));
        let request = Request::new("PUT", &path).header("Content-Type", "application/json");
        // Only one of several concurrent publishes of a package commits. A publisher that loses the
        // race tries again, as people do.
        loop {
            let answer = npm.client.send(request.clone().body(release.document().to_string()));
            if answer.status != 409 && answer.status != 503 {
                return answer;
            }
        }
    });
    let python = PythonRepository::create(server, "py");
    at_the_edge(&api, &python.id, "python", |publisher| {
        let version = format!("1.{}", number(publisher));
        let name = wheel::wheel_name("tool", &version);
        let bytes = wheel::wheel("tool", &version, "");
        python.publish("tool", &version, &name, &bytes)
    });
    let images = ImageRepository::create(server, "images", &json!({}));
    at_the_edge(&api, &images.id, "docker", |publisher| {
        let tag = number(publisher).to_string();
        let layer = payload::bytes(publisher as u64 + 1, 3000);
        let image = format!("app{tag}");
        for bytes in [&layer[..], b"{}"] {
            let pushed = images.push_blob(&image, bytes);
            if pushed.status != 201 {
                return pushed;
            }
        }
        images.push_manifest(&image, &tag, MANIFEST, &manifest(&[&layer]))
    });
}

#[test]
fn sixty_four_publishers_never_pass_a_quota_together() {
    in_all_formats(&Server::start());
}

#[test]
fn sixty_four_publishers_never_pass_a_quota_together_with_postgresql() {
    match Postgres::start() {
        Ok(postgres) => in_all_formats(&Server::with().arg("--database-url").arg(&postgres.url()).start()),
        Err(reason) => skip("quotas on PostgreSQL", &reason),
    }
}

/// Announces a body with `Expect: 100-continue`.
fn announce(client: &Client, request: Request, length: u64) -> Connection {
    let head = request.header("Expect", "100-continue").header("Content-Length", &length.to_string());
    let mut connection = Connection::open(client.address()).unwrap();
    connection.send(&client.head_bytes(head)).unwrap();
    connection
}

/// Returns the refusal that the server sends instead of `100 Continue`.
#[track_caller]
fn announced(client: &Client, request: Request, length: u64) -> Response {
    let answer = announce(client, request, length).read_response(false).unwrap();
    assert!(answer.interim.is_empty(), "the server sent 100 Continue");
    answer
}

#[test]
fn a_publish_that_cannot_fit_is_refused_before_its_bytes() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "jars");
    let jar = "org/example/a/1.0/a-1.0.jar";
    maven.put(jar, vec![1; 700]).expect(201);
    set_quota(&api, &maven.id, Some(1000));
    let put = |file: &str| Request::new("PUT", &maven.path(file));
    let other = "org/example/a/2.0/a-2.0.jar";
    let answer = announced(&maven.client, put(other), 301);
    refused(&answer, 1000);
    assert!(answer.text().contains("700 bytes are used, so 301 more"));
    assert_eq!(announce(&maven.client, put(other), 300).read_head().unwrap().status, 100);
    // An existing version is a conflict, with room and without.
    assert_eq!(announced(&maven.client, put(jar), 700).status, 409);
    maven.put(other, vec![2; 300]).expect(201);
    // The quota does not include checksums and metadata of existing files, so the server accepts
    // these even if nothing else fits.
    maven.put(&format!("{other}.sha1"), "0").expect(400);
    let metadata = "<metadata><groupId>org.example</groupId><artifactId>a</artifactId></metadata>";
    maven.put("org/example/a/maven-metadata.xml", metadata).expect(201);
    assert_eq!(used(&api, &maven.id), 1000);

    let npm = NpmRepository::create(&server, "js");
    set_quota(&api, &npm.id, Some(100_000));
    let request = Request::new("PUT", &npm.path("lib")).header("Content-Type", "application/json");
    refused(&announced(&npm.client, request, 400_000), 100_000);
    let python = PythonRepository::create(&server, "py");
    set_quota(&api, &python.id, Some(100_000));
    let form =
        Request::new("POST", &python.path("")).header("Content-Type", "multipart/form-data; boundary=b");
    refused(&announced(&python.client, form, 300_000), 100_000);
    let images = ImageRepository::create(&server, "images", &json!({}));
    set_quota(&api, &images.id, Some(1000));
    let layer = payload::bytes(1, 1001);
    let whole = Request::new("POST", &images.path(&format!("app/blobs/uploads/?digest={}", digest(&layer))));
    refused(&announced(&images.client, whole, 1001), 1000);
    // The chunks that an upload session already contains are part of the use.
    let begun = images.ask("POST", "app/blobs/uploads/").expect(202);
    let session = begun.header("location").unwrap();
    let piece = |range: &str| Request::new("PATCH", session).header("Content-Range", range);
    images.client.send(piece("0-599").body(&layer[..600])).expect(202);
    refused(&announced(&images.client, piece("600-1000"), 401), 1000);

    // The organization's quota applies too. A deletion frees room.
    let organization =
        |quota: Value| api.patch("/v1/organization", &json!({"quota_bytes": quota})).expect(200);
    organization(json!(1100));
    set_quota(&api, &maven.id, None);
    let third = "org/example/a/3.0/a-3.0.jar";
    let answer = announced(&maven.client, put(third), 101);
    refused(&answer, 1100);
    assert!(answer.text().contains("The quota of the organization"));
    let answer = maven.put(third, vec![3; 101]);
    refused(&answer, 1100);
    api.call("DELETE", &format!("/v1/repositories/{}/packages/org.example%3Aa/versions/1.0", maven.id))
        .expect(204);
    maven.put(third, vec![3; 101]).expect(201);
    for wrong in [json!(-1), json!("1"), json!(1.5)] {
        let settings = json!({"settings": {"quota_bytes": wrong}});
        let answer = api.patch(&format!("/v1/repositories/{}", maven.id), &settings).expect(400);
        assert_eq!(answer.field("error"), "invalid_settings");
    }
}
