//! Refused imports and exports: damaged bytes, wrong passwords, unreachable servers, mismatched
//! formats. The program prints a sentence for each, and moves no file.

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
fn damaged_files_are_refused_and_not_stored() {
    let (server, upstream, home) = (Server::start(), Upstream::start(), TempDir::new().unwrap());
    let maven = MavenRepository::create(&server, "maven");
    let (py, js) = (PythonRepository::create(&server, "py"), NpmRepository::create(&server, "js"));
    let images = ImageRepository::create(&server, "images", &json!({}));
    let url = upstream.url();

    // The file is larger than one piece, so the program has sent most of it before it finds the
    // wrong digest.
    write(home.path(), "org/a/1/a-1.jar", vec![7; 3_000_000]);
    write(home.path(), "org/a/1/a-1.jar.sha1", sha1(b"another"));
    write(home.path(), "org/a/1/a-1.pom", "<project/>");
    let done = moved(&server, &["import", "maven", "--from", "maven", &home.path().to_string_lossy()]);
    assert_eq!((done.count("refused"), done.count("moved")), (1, 1), "{:#?}", done.lines);
    assert!(done.line("org/a/1/a-1.jar")["reason"].as_str().unwrap().contains("damaged"));
    maven.get("org/a/1/a-1.jar").expect(404);
    done.output.refused("some items were not moved");

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
fn a_refused_mover_reads_the_reason() {
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
    run(&server, &["import", "maven", "--from", "maven", "/nowhere/at/all"]).refused("nor a folder");
    run(&server, &["import", "maven", "--from", "maven", "http://me:secret@127.0.0.1:1/"])
        .refused("must not contain a credential");
    run(&server, &["import", "maven", "--from", "export", &at]).refused("not a complete export");
    let nowhere = format!("http://127.0.0.1:{}", free_port());
    let gone = run(&server, &["import", "maven", "--from", "maven", &nowhere]).refused("cannot be reached");
    assert!(gone.text.contains(&nowhere), "{}", gone.text);

    // A member with only read access cannot import. No attempt leaves a token behind.
    let api = Api::sign_in(&server);
    let member = json!({"email": "reader@example.com", "password": packhouse_tests::server::PASSWORD,
        "permissions": {"organization": [], "repositories": [{"repository": "*", "actions": ["read"]}]}});
    api.post("/v1/members", &member).expect(201);
    write(home.path(), "org/a/1/a-1.pom", "<project/>");
    let reader = format!("reader@example.com:{}", packhouse_tests::server::PASSWORD);
    with(&reader, &words).refused("failed to create a token");
    run(&server, &words).success();
    assert_eq!(active_tokens(&api), 0);
    let group = json!({"name": "group", "format": "maven", "kind": "group", "members": []});
    api.post("/v1/repositories", &group).expect(201);
    run(&server, &["import", "group", "--from", "maven", &at]).refused("name a hosted repository");
}

#[test]
fn a_login_is_read_from_a_file_and_no_secret_is_printed() {
    let (server, home) = (Server::start(), TempDir::new().unwrap());
    MavenRepository::create(&server, "maven");
    write(home.path(), "tree/org/a/1/a-1.pom", "<project/>");
    write(home.path(), "login", format!("{OWNER}:{}\n", packhouse_tests::server::PASSWORD));
    write(home.path(), "source", "me:hidden-password\n");
    let at = |name: &str| home.path().join(name).to_string_lossy().into_owned();
    let (tree, login, source) = (at("tree"), at("login"), at("source"));
    let words =
        ["import", "maven", "--from", "maven", &tree, "--login-file", &login, "--source-login-file", &source];
    let output =
        packhouse_tests::clients::run(command(&server, &words).env_remove("PACKHOUSE_LOGIN")).success();
    assert!(output.text.starts_with("moved 1 "), "{}", output.text);
    // A server may have the variables of the import in its environment, and does not log their
    // values.
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
    let output = run(&server, &words).refused("404");
    assert!(!output.text.contains("hidden-password"), "{}", output.text);
    let secret = packhouse_tests::server::PASSWORD;
    assert!(!server.log().contains(secret) && !output.text.contains(secret));
}

/// Number of valid tokens, without the tokens that the tests created.
fn active_tokens(api: &Api) -> usize {
    let tokens = api.call("GET", "/v1/tokens").expect(200).json();
    let all = tokens["items"].as_array().unwrap().iter();
    all.filter(|token| token["name"] != "a test's" && token["state"] == "active").count()
}

#[test]
fn an_interrupted_move_leaves_no_token_behind() {
    let (server, upstream, gate) = (Server::start(), Upstream::start(), Gate::new());
    MavenRepository::create(&server, "maven");
    upstream.on("/", Answer::ok("").silent(&gate));
    let url = upstream.url();
    let mut child = begin(&server, &["import", "maven", "--from", "maven", &url]);
    eventually("it queries the source", || (upstream.count("/") > 0).then_some(()));
    let api = Api::sign_in(&server);
    assert_eq!(active_tokens(&api), 1);
    let interrupted =
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupted.success() && !child.wait().unwrap().success());
    gate.open();
    assert_eq!(active_tokens(&api), 0);
}
