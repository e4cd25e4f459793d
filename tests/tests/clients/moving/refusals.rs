//! What goes wrong is a sentence: damaged bytes, wrong passwords, nobody there, formats that do not fit; and nothing of it arrives.

use packhouse_tests::api::Api;
use packhouse_tests::digests::sha1;
use packhouse_tests::images::ImageRepository;
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::server::{OWNER, eventually, free_port};
use packhouse_tests::upstream::{Answer, Gate, Upstream};
use packhouse_tests::{MavenRepository, Server};
use serde_json::json;
use tempfile::TempDir;

use super::world::{begin, command, moved, run, write};
use crate::release::Release;
use crate::wheel;

#[test]
fn what_is_damaged_is_refused_and_does_not_arrive() {
    let (server, upstream, home) = (Server::start(), Upstream::start(), TempDir::new().unwrap());
    let maven = MavenRepository::create(&server, "maven");
    let (py, js) = (PythonRepository::create(&server, "py"), NpmRepository::create(&server, "js"));
    let images = ImageRepository::create(&server, "images", &json!({}));
    let url = upstream.url();

    // Larger than a piece, so that most of it has been sent when the digest is known to be wrong.
    write(home.path(), "org/a/1/a-1.jar", vec![7; 3_000_000]);
    write(home.path(), "org/a/1/a-1.jar.sha1", sha1(b"another"));
    write(home.path(), "org/a/1/a-1.pom", "<project/>");
    let done = moved(&server, &["import", "maven", "--from", "maven", &home.path().to_string_lossy()]);
    assert_eq!((done.count("refused"), done.count("moved")), (1, 1), "{:#?}", done.lines);
    assert!(done.line("org/a/1/a-1.jar")["reason"].as_str().unwrap().contains("damaged"));
    maven.get("org/a/1/a-1.jar").expect(404);
    done.said.refused("not all of it was moved");

    let file = wheel::wheel_name("demo", "1.0");
    let page = format!("<a href='/f/{file}#sha256={}'>{file}</a>", "0".repeat(64));
    upstream.on("/simple/", Answer::ok("<a href='demo/'>demo</a>"));
    upstream.on("/simple/demo/", Answer::ok(page));
    upstream.on(&format!("/f/{file}"), Answer::ok(wheel::wheel("demo", "1.0", "")));
    let done = moved(&server, &["import", "py", "--from", "pypi", &url]);
    assert!(done.line(&file)["reason"].as_str().unwrap().contains("damaged"), "{:#?}", done.lines);
    py.ask("demo").expect(404);

    let document = Release::new("lib", "1.0.0").document();
    let mut packument =
        json!({"name": "lib", "dist-tags": {"latest": "1.0.0"}, "versions": document["versions"]});
    packument["versions"]["1.0.0"]["dist"] =
        json!({"tarball": format!("{url}/lib.tgz"), "shasum": sha1(b"x")});
    upstream.on("/lib", Answer::ok(packument.to_string()));
    upstream.on("/lib.tgz", Answer::ok("no tarball"));
    let done = moved(&server, &["import", "js", "--from", "npm", &url, "--package", "lib"]);
    assert!(
        done.line("lib/-/lib-1.0.0.tgz")["reason"].as_str().unwrap().contains("damaged"),
        "{:#?}",
        done.lines
    );
    js.get("lib").expect(404);

    let manifest = packhouse_tests::images::manifest(&[b"layer"]);
    let digest = packhouse_tests::images::digest;
    upstream.on("/v2/_catalog?n=1000", Answer::ok(r#"{"repositories":["app"]}"#));
    upstream.on("/v2/app/tags/list?n=1000", Answer::ok(r#"{"name":"app","tags":["1","2"]}"#));
    upstream.on("/v2/app/manifests/1", Answer::ok(manifest.clone()));
    upstream.on("/v2/app/manifests/2", Answer::ok("{}").header("Docker-Content-Digest", &digest(b"x")));
    upstream.on(&format!("/v2/app/blobs/{}", digest(b"{}")), Answer::ok("{}"));
    upstream.on(&format!("/v2/app/blobs/{}", digest(b"layer")), Answer::ok("reyal"));
    let done = moved(&server, &["import", "images", "--from", "oci", &url]);
    let blob = format!("app/blobs/{}", digest(b"layer"));
    assert!(done.line(&blob)["reason"].as_str().unwrap().contains("damaged"), "{:#?}", done.lines);
    assert!(done.line("2")["reason"].as_str().unwrap().contains("damaged"), "{:#?}", done.lines);
    images.get("app/manifests/1").expect(404);
}

#[test]
fn who_may_not_is_told_so() {
    let (server, home) = (Server::start(), TempDir::new().unwrap());
    MavenRepository::create(&server, "maven");
    let at = home.path().to_string_lossy().into_owned();
    let words = ["import", "maven", "--from", "maven", &at];
    let with = |login: &str, words: &[&str]| {
        packhouse_tests::clients::run(command(&server, words).env("PACKHOUSE_LOGIN", login))
    };
    let wrong = with(&format!("{OWNER}:wrong"), &words).refused("failed to sign in");
    assert!(wrong.text.contains("The e-mail address or the password is wrong"), "{}", wrong.text);
    with("nobody", &words).refused("NAME:PASSWORD");
    let nobody = packhouse_tests::clients::run(command(&server, &words).env_remove("PACKHOUSE_LOGIN"));
    nobody.refused("--login-file");
    run(&server, &["import", "other", "--from", "maven", &at]).refused("there is no repository other");
    run(&server, &["import", "maven", "--from", "pypi", "http://127.0.0.1:1/"])
        .refused("of the format python");
    run(&server, &["import", "maven", "--from", "rpm", &at]).refused("possible values");
    run(&server, &["import", "maven", "--from", "maven", "/nowhere/at/all"]).refused("no folder");
    run(&server, &["import", "maven", "--from", "maven", "http://me:secret@127.0.0.1:1/"])
        .refused("holds no credential");
    run(&server, &["import", "maven", "--from", "export", &at]).refused("no whole export");
    let nowhere = format!("http://127.0.0.1:{}", free_port());
    let gone = run(&server, &["import", "maven", "--from", "maven", &nowhere]).refused("cannot be reached");
    assert!(gone.text.contains(&nowhere), "{}", gone.text);

    // Who only reads there cannot bring anything in, and no token is left behind by any of it.
    let api = Api::sign_in(&server);
    let member = json!({"email": "reader@example.com", "password": packhouse_tests::server::PASSWORD,
        "permissions": {"organization": [], "repositories": [{"repository": "*", "actions": ["read"]}]}});
    api.post("/v1/members", &member).expect(201);
    write(home.path(), "org/a/1/a-1.pom", "<project/>");
    let reader = format!("reader@example.com:{}", packhouse_tests::server::PASSWORD);
    with(&reader, &words).refused("failed to make a token");
    run(&server, &words).well();
    assert_eq!(active_tokens(&api), 0);
    let group = json!({"name": "group", "format": "maven", "kind": "group", "members": []});
    api.post("/v1/repositories", &group).expect(201);
    run(&server, &["import", "group", "--from", "maven", &at]).refused("name a hosted repository");
}

#[test]
fn a_login_in_a_file_is_read_and_nothing_secret_is_said() {
    let (server, home) = (Server::start(), TempDir::new().unwrap());
    MavenRepository::create(&server, "maven");
    write(home.path(), "tree/org/a/1/a-1.pom", "<project/>");
    write(home.path(), "login", format!("{OWNER}:{}\n", packhouse_tests::server::PASSWORD));
    write(home.path(), "source", "me:hidden-password\n");
    let at = |name: &str| home.path().join(name).to_string_lossy().into_owned();
    let (tree, login, source) = (at("tree"), at("login"), at("source"));
    let words =
        ["import", "maven", "--from", "maven", &tree, "--login-file", &login, "--source-login-file", &source];
    let said = packhouse_tests::clients::run(command(&server, &words).env_remove("PACKHOUSE_LOGIN")).well();
    assert!(said.text.starts_with("moved 1 "), "{}", said.text);
    // A shell that has them set serves as well.
    let hidden = [
        ("PACKHOUSE_LOGIN", "me:hidden"),
        ("PACKHOUSE_SOURCE_LOGIN", "me:hidden"),
        ("PACKHOUSE_SOURCE_TOKEN", "hidden"),
    ];
    let other = hidden.iter().fold(Server::with(), |server, (name, value)| server.env(name, value)).start();
    assert!(!other.log().contains("hidden"), "{}", other.log());
    let upstream = Upstream::start();
    let url = upstream.url();
    let words = ["import", "maven", "--from", "maven", &url, "--source-login-file", &source];
    let said = run(&server, &words).refused("404");
    assert!(!said.text.contains("hidden-password"), "{}", said.text);
    let secret = packhouse_tests::server::PASSWORD;
    assert!(!server.log().contains(secret) && !said.text.contains(secret));
}

/// Tokens that work, but for those that the tests have made.
fn active_tokens(api: &Api) -> usize {
    let tokens = api.call("GET", "/v1/tokens").expect(200).json();
    let all = tokens["items"].as_array().unwrap().iter();
    all.filter(|token| token["name"] != "a test's" && token["state"] == "active").count()
}

#[test]
fn who_interrupts_it_leaves_no_token_behind() {
    let (server, upstream, gate) = (Server::start(), Upstream::start(), Gate::new());
    MavenRepository::create(&server, "maven");
    upstream.on("/", Answer::ok("").silent(&gate));
    let url = upstream.url();
    let mut child = begin(&server, &["import", "maven", "--from", "maven", &url]);
    eventually("it asks the source", || (upstream.count("/") > 0).then_some(()));
    let api = Api::sign_in(&server);
    assert_eq!(active_tokens(&api), 1);
    let interrupted =
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success() && !child.wait().unwrap().success());
    gate.open();
    assert_eq!(active_tokens(&api), 0);
}
