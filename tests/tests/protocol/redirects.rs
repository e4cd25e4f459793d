//! Large files that clients fetch directly from S3, if the operator allows it. The server redirects
//! only clients that check digests, only to signed addresses, and each address expires.

use std::process::Command;

use packhouse_tests::clients::{has, run};
use packhouse_tests::images::{ImageRepository, digest};
use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::s3::{S3, address};
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::{Api, Client, MavenRepository, Request, Response, Server, payload, skip};
use serde_json::json;

const LARGE: usize = 200_000;
/// Size of a file that is too large for the database, and too small to be fetched directly.
const SMALL: usize = 50_000;

struct RedirectFixture {
    s3: S3,
    server: Server,
}

fn world() -> RedirectFixture {
    let mut s3 = S3::start().expect("seaweedfs, which ./bootstrap test installs");
    s3.require("key", "secret");
    s3.stop();
    s3.resume();
    let server = Server::with()
        .env("PACKHOUSE_BLOBS", &address(s3.endpoint(), "key", "secret"))
        .env("PACKHOUSE_BLOBS_REDIRECT_MIN_BYTES", "100000")
        .start();
    RedirectFixture { s3, server }
}

impl RedirectFixture {
    /// Returns the redirect target of a response, as a path of S3.
    fn elsewhere(&self, answer: &Response) -> String {
        assert_eq!(answer.status, 307, "{}", answer.text());
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert!(answer.body.is_empty());
        let location = answer.header("location").unwrap();
        let own = format!("http://{}", self.s3.endpoint());
        location.strip_prefix(&own).unwrap_or_else(|| panic!("{location}")).to_owned()
    }

    fn fetch(&self, path: &str) -> Response {
        Client::new(self.s3.endpoint()).get(path)
    }
}

#[test]
fn a_large_file_is_fetched_from_s3_at_a_signed_address() {
    let world = world();
    let images = ImageRepository::create(&world.server, "images", &json!({}));
    let (large, small) = (payload::bytes(1, LARGE), payload::bytes(2, SMALL));
    images.push("app", "1", &[&large, &small]).unwrap();
    let blob = |bytes: &[u8]| format!("app/blobs/{}", digest(bytes));

    let sent = images.get(&blob(&large));
    let there = world.elsewhere(&sent);
    let fetched = world.fetch(&there).expect(200);
    assert_eq!(fetched.body, large);
    assert_eq!(fetched.header("content-type"), Some("application/octet-stream"));
    let part =
        Client::new(world.s3.endpoint()).send(Request::new("GET", &there).header("Range", "bytes=5-9"));
    assert_eq!(part.expect(206).body, &large[5..10]);
    let (bare, query) = there.split_once('?').unwrap();
    assert!(!query.contains("secret"), "{query}");
    for hostile in
        [bare.to_owned(), there.replace("X-Amz-Expires=300", "X-Amz-Expires=3000"), format!("{there}0")]
    {
        world.fetch(&hostile).expect(403);
    }
    let other = world.elsewhere(&images.get(&blob(&large)));
    let elsewhere = format!("{}x?{}", bare, other.split_once('?').unwrap().1);
    world.fetch(&elsewhere).expect(403);

    // The server itself answers requests without a body, requests for files that the client has
    // already, and requests for small files.
    let head = images.ask("HEAD", &blob(&large)).expect(200);
    assert_eq!(head.header("content-length"), Some(LARGE.to_string().as_str()));
    let tag = head.header("etag").unwrap().to_owned();
    let path = images.path(&blob(&large));
    images.client.send(Request::new("GET", &path).header("If-None-Match", &tag)).expect(304);
    assert_eq!(images.get(&blob(&small)).expect(200).body, small);
    let nobody = world.server.anonymous().get(&path);
    assert_eq!((nobody.status, nobody.header("location")), (401, None));

    // A Maven client only warns about a wrong checksum. So Maven files pass through the server,
    // which checks them.
    let maven = MavenRepository::create(&world.server, "maven");
    let jar = "org/example/a/1/a-1.jar";
    maven.put(jar, large.clone()).expect(201);
    assert_eq!(maven.get(jar).expect(200).body, large);
}

#[test]
fn clients_follow_and_their_downloads_count() {
    let world = world();
    let npm = NpmRepository::create(&world.server, "npm");
    let js = match Js::new(Tool::Npm11, &npm.url(&world.server), &npm.token.secret) {
        Ok(js) => js,
        Err(reason) => return skip(Tool::Npm11.name(), &reason),
    };
    js.package("large", &json!({"name": "large", "version": "1.0.0"}));
    let filler: String = payload::bytes(3, LARGE).iter().map(|byte| format!("{byte:02x}")).collect();
    js.write("large/filler.txt", &filler);
    js.publish("large").success();
    let required = json!({"large": "1.0.0"});
    js.package("project", &json!({"name": "project", "version": "0.0.0", "dependencies": required}));
    // The client has its own publishes in its cache, so the test empties the cache.
    js.forget("project");
    js.install("project").success();
    assert_eq!(js.installed("project", "large").as_deref(), Some("1.0.0"));
    world.elsewhere(&npm.get("large/-/large-1.0.0.tgz"));
    let api = Api::sign_in(&world.server);
    let listed = api.call("GET", "/v1/repositories").expect(200).json();
    let repository = listed["items"][0]["id"].as_str().unwrap().to_owned();
    let version = format!("/v1/repositories/{repository}/packages/large/versions/1.0.0");
    eventually("both fetches are counted", || {
        (api.call("GET", &version).expect(200).json()["downloads"] == 2).then_some(())
    });

    if !has("skopeo") {
        return skip("skopeo", "no skopeo on the path");
    }
    let images = ImageRepository::create(&world.server, "images", &json!({}));
    images.push("app", "1", &[&payload::bytes(4, LARGE)]).unwrap();
    let home = tempfile::tempdir().unwrap();
    let mut copy = Command::new("skopeo");
    copy.args(["copy", "--insecure-policy", "--src-tls-verify=false", "--src-creds"]);
    copy.arg(format!("{OWNER}:{}", images.token.secret));
    copy.arg(format!("docker://{}/repositories/images/app:1", world.server.packages())).arg("dir:back");
    run(copy.current_dir(home.path()).env("HOME", home.path())).success();
}
