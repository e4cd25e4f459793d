//! Commands against a running server from another machine, with an API token: they print what the
//! same commands print on the database, and errors are the API's sentences.

use packhouse_tests::authority::Authority;
use packhouse_tests::cli::{self, RemoteCli, feed};
use packhouse_tests::clients::ProgramOutput;
use packhouse_tests::server::OWNER;
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, MavenRepository, Server, checkout, skip};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;

const FILE: &str = "org/example/a/1.0/a-1.0.jar";
/// Actions that the commands of these tests need to confirm.
const SENSITIVE: [&str; 3] = ["create_token", "manage_members", "manage_plugins"];

fn remote(server: &Server) -> RemoteCli {
    let token = Api::sign_in(server).create_api_token("me", &["all"], &SENSITIVE);
    RemoteCli::new(server, &token.secret)
}

/// Checks that a command prints the same on the database and through the API.
#[track_caller]
fn same(server: &Server, remote: &RemoteCli, words: &[&str]) {
    let here = cli::packhouse(server.data(), words, "").success().text;
    assert_eq!(remote.run(words).success().text, here, "{words:?}");
    assert_eq!(remote.json(words), cli::json(server.data(), words), "{words:?} --json");
}

#[test]
fn repositories_are_managed_as_on_the_database() {
    let server = Server::start();
    let remote = remote(&server);
    for name in ["zebra", "apple"] {
        remote.run(&["repo", "create", name, "--format", "maven"]).success();
    }
    let outside = ["--kind", "proxy", "--upstream", "https://repo.example/maven2/"];
    remote.run(&[&["repo", "create", "outside", "--format", "maven"][..], &outside].concat()).success();
    let group = ["--kind", "group", "--member", "zebra,apple"];
    remote.run(&[&["repo", "create", "all", "--format", "maven"][..], &group].concat()).success();
    same(&server, &remote, &["repo", "list"]);
    same(&server, &remote, &["repo", "show", "all"]);
    same(&server, &remote, &["repo", "show", "outside"]);

    let set = ["repo", "set", "outside", "offline=true", "min_release_age_s=60", "claimed_names=a,b"];
    remote.run(&set).success();
    remote.run(&["repo", "set", "outside", "--upstream", "https://other.example/"]).success();
    same(&server, &remote, &["repo", "show", "outside"]);
    let details = remote.json(&["repo", "show", "outside"]);
    assert_eq!(details["settings"]["claimed_names"], json!(["a", "b"]));
    assert_eq!(details["upstream"], "https://other.example/");
    remote.run(&["repo", "members", "all", "--add", "outside", "--remove", "zebra"]).success();
    same(&server, &remote, &["repo", "members", "all"]);
    let listed = remote.json(&["repo", "members", "all"]);
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["apple", "outside"]);

    for (words, why) in [
        (&["create", "x", "--format", "absent"][..], "maven"),
        (&["create", "apple", "--format", "maven"], "exists"),
        (&["create", "x", "--format", "maven", "--kind", "proxy"], "--upstream URL"),
        (&["set", "outside", "colour=red"], "there is no setting colour"),
        (&["set", "outside", "offline=perhaps"], "true or false"),
        (&["set", "apple", "--upstream", "https://other.example/"], "Only a proxy"),
        (&["members", "all", "--remove", "zebra"], "is not a member"),
        (&["members", "all", "--add", "all"], "is a group itself"),
        (&["members", "apple"], "only groups have members"),
        (&["show", "absent"], "there is no repository \"absent\""),
    ] {
        remote.run(&[&["repo"], words].concat()).refused(why);
    }
    remote.run(&["repo", "delete", "apple"]).refused("member of");
    remote.run(&["repo", "delete", "zebra"]).success();
    remote.run(&["repo", "show", "zebra"]).refused("no repository");
    let path = "/v1/audit-events?action=change_repository";
    let events = Api::sign_in(&server).call("GET", path).expect(200).json();
    let credential = events["items"][0]["credential"].as_str().unwrap_or_default();
    assert!(credential.starts_with("api-token:"), "{events}");
}

#[test]
fn members_and_tokens_are_managed_as_on_the_database() {
    let server = Server::start();
    let remote = remote(&server);
    let libs = MavenRepository::create(&server, "libs");
    let made =
        remote.json(&["member", "create", "dev@example.com", "--name", "Dev", "--repository", "libs=read"]);
    let password = made["password"].as_str().unwrap().to_owned();
    Api::sign_in_as(&server, "dev@example.com", &password);
    same(&server, &remote, &["member", "list"]);
    let granted = ["--repository", "libs=publish,delete", "--permission", "manage-members"];
    let granted = remote.json(&[&["member", "grant", "dev@example.com"][..], &granted].concat());
    assert_eq!(granted["permissions"]["organization"], json!(["manage-members"]));
    let member = Api::sign_in_as(&server, "dev@example.com", &password);
    let words = ["member", "set-password", "dev@example.com", "--password-stdin"];
    remote.run_with_input(&words, "a new password\n").success();
    member.call("GET", "/v1/me").expect(401);
    Api::sign_in_as(&server, "dev@example.com", "a new password");
    remote.run(&["member", "grant", "dev@example.com", "--permission", "everything"]).refused("everything");
    remote.run(&["member", "create", "dev@example.com"]).refused("already");
    remote.run(&["member", "set-password", "absent@example.com"]).refused("is not a member");

    let new = ["token", "create", "--name", "ci", "--repository", "libs", "--scope", "read,write"];
    let token = remote.json(&[&new[..], &["--expires-in", "30d"]].concat());
    let key = remote.json(&[&new[..], &["--expires-in", "7", "--service-key", "repo"]].concat());
    assert_eq!((&key["backing"], &key["owner"]), (&json!("repo"), &Value::Null));
    remote.run(&[&new[..], &["--never", "--service-key", "org"]].concat()).refused("90 days");
    let other = ["--never", "--member", "dev@example.com"];
    remote.run(&[&new[..], &other].concat()).refused("only for the owner of the API token");
    same(&server, &remote, &["token", "list"]);
    let client = server.anonymous().basic(OWNER, token["secret"].as_str().unwrap());
    client.put(&libs.path(FILE), "hello").expect(201);
    let revoked = remote.json(&["token", "revoke", token["id"].as_str().unwrap()]);
    assert_eq!((&revoked["state"], &revoked["name"]), (&json!("revoked"), &json!("ci")));
    client.get(&libs.path(FILE)).expect(401);
    let organization = remote.json(&["org", "show", "--org", "default"]);
    assert_eq!((&organization["name"], &organization["quota_bytes"]), (&json!("default"), &Value::Null));
    assert_eq!(remote.json(&["org", "list"])[0]["id"], organization["id"]);
    remote.run(&["org", "show", "--org", "other"]).refused("belongs to the organization \"default\"");
}

#[test]
fn commands_without_an_api_do_not_fall_back_to_a_database() {
    let server = Server::start();
    let remote = remote(&server);
    for words in [
        &["token", "purge"][..],
        &["token", "import", "--legacy", "absent"],
        &["org", "create", "x", "--base-url", "http://x.example"],
        &["org", "move", "default", "--base-url", "http://x.example"],
    ] {
        remote.run(words).refused("the API has no call for this command");
    }
    let listed = server.data().to_str().unwrap();
    remote.run(&["repo", "list", "--data", listed]).refused("either on a database or through the API");
    for words in [&["apply", "-f", "."][..], &["export-config"]] {
        let output = remote.command(words).output().unwrap();
        ProgramOutput::from(output).refused("name the server with --server");
    }
    // Nothing was created in the folder where the commands ran.
    assert_eq!(std::fs::read_dir(remote.home()).unwrap().count(), 0);
}

#[test]
fn what_an_api_token_may_not_do_is_the_sentence_of_the_api() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    MavenRepository::create(&server, "libs");
    let reads = RemoteCli::new(&server, &api.create_api_token("me", &["read"], &[]).secret);
    reads.run(&["repo", "list"]).success();
    let body = json!({"name": "x", "format": "maven", "kind": "hosted"});
    let token = api.create_api_token("me", &["read"], &[]);
    let refused = token.send("POST", "/v1/repositories", &body).expect(403).field("message");
    reads.run(&["repo", "create", "x", "--format", "maven"]).refused(&refused);
    // A scope is not enough for an action that needs a confirmation.
    let writes = RemoteCli::new(&server, &api.create_api_token("me", &["all"], &[]).secret);
    let words = ["token", "create", "--name", "ci", "--repository", "libs", "--never"];
    writes.run(&words).refused("confirmation");
    RemoteCli::new(&server, "pka_unknown").run(&["repo", "list"]).refused("packhouse:");
    RemoteCli::new(&server, "").run(&["repo", "list"]).refused("there is no API token");
}

#[test]
fn a_login_is_stored_privately_and_used_by_later_commands() {
    let server = Server::start();
    let token = Api::sign_in(&server).create_api_token("me", &["read"], &[]);
    let remote = RemoteCli::new(&server, "");
    let login = |input: &str| feed(&mut remote.command(&["login", remote.address()]), input);
    login("a password\n").refused("is not an API token");
    login("pka_0123456789\n").refused("packhouse:");
    let file = remote.home().join(".config/packhouse/servers.toml");
    assert!(!file.exists());
    let text = login(&format!("{}\n", token.secret)).success().text;
    assert!(text.contains(OWNER) && !text.contains(&token.secret), "{text}");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    remote.run(&["repo", "list"]).success();
    let mut named = remote.command(&["repo", "list"]);
    let output = named.env("PACKHOUSE_SERVER", remote.address()).output().unwrap();
    ProgramOutput::from(output).success();

    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    remote.run(&["repo", "list"]).refused("chmod 600");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let logout = || feed(&mut remote.command(&["logout", remote.address()]), "");
    logout().success();
    assert!(!std::fs::read_to_string(&file).unwrap().contains("pka_"));
    remote.run(&["repo", "list"]).refused("there is no API token");
    logout().refused("there is no login");
}

#[test]
fn a_token_is_not_sent_in_the_clear_or_to_another_address() {
    let server = Server::start();
    let token = Api::sign_in(&server).create_api_token("me", &["read"], &[]);
    // 192.0.2.0/24 is reserved for examples, so nothing could answer.
    RemoteCli::at("http://192.0.2.1:1", &token.secret).run(&["repo", "list"]).refused("--insecure");
    RemoteCli::at("ftp://127.0.0.1", &token.secret).run(&["repo", "list"]).refused("https://");
    let upstream = Upstream::start();
    let elsewhere = format!("http://{}/v1/repositories", server.api());
    let redirect = Answer::redirect(&elsewhere);
    upstream.on("/v1/repositories?limit=200", redirect);
    RemoteCli::at(&upstream.url(), &token.secret).run(&["repo", "list"]).refused("redirects");
}

#[test]
fn an_api_below_a_path_and_behind_tls_is_reached() {
    let server = Server::with().on_one_listener().start();
    let api = Api::below(server.anonymous(), "/portal");
    let token = api.create_api_token("me", &["read"], &[]);
    let address = format!("http://{}/portal/", server.api());
    RemoteCli::at(&address, &token.secret).run(&["repo", "list"]).success();

    let authority = match Authority::new() {
        Ok(authority) => authority,
        Err(reason) => return skip("the command line over TLS", &reason),
    };
    let [certificate, key] = authority.issue("api", &["IP:127.0.0.1"]);
    let server = Server::with()
        .env("PACKHOUSE_TLS_CERT", certificate.to_str().unwrap())
        .env("PACKHOUSE_TLS_KEY", key.to_str().unwrap())
        .secured(&authority.ca())
        .start();
    let remote = RemoteCli::at(&format!("https://{}", server.api()), "pka_unknown");
    // Without the authority, the token is not sent; with it, the server refuses the token.
    let untrusted = remote.run(&["repo", "list"]).refused("cannot be reached").text;
    let trusted = remote.run(&["repo", "list", "--ca", authority.ca().to_str().unwrap()]);
    assert!(!trusted.success && !trusted.text.contains("cannot be reached"), "{untrusted}\n{}", trusted.text);
}

#[test]
fn plugins_retention_and_policies_are_managed_as_on_the_database() {
    let server = Server::start();
    let remote = remote(&server);
    let api = Api::sign_in(&server);
    let libs = MavenRepository::create(&server, "libs");
    libs.put(FILE, "hello").expect(201);
    same_text(&server, &remote, &["plugins", "list"]);
    let guest = checkout().join("target/release/guests/raw.wasm");
    let installed = remote.run(&["plugins", "install", guest.to_str().unwrap()]).success().text;
    let digest = installed.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap();
    assert!(installed.contains("\tinstalled"), "{installed}");
    remote.run(&["plugins", "activate", "raw", digest]).success();
    same_text(&server, &remote, &["plugins", "list"]);
    same_text(&server, &remote, &["plugins", "lock"]);
    remote.run(&["repo", "create", "things", "--format", "raw"]).success();
    remote.run(&["plugins", "pin", "things", digest]).success();
    let record = remote.json(&["plugins", "record", "--repository", "things", "--count", "2"]);
    assert_eq!((&record["format"], &record["count"]), (&json!("raw"), &json!(2)));
    same(&server, &remote, &["plugins", "recordings", "--repository", "things"]);

    let rule = json!({"name": "clean", "repositories": [libs.id], "delete": {"published_before_days": 0}, "max_deletes": 5});
    let id = api.post("/v1/retention-policies", &rule).expect(201).field("id");
    remote.run(&["retention", "run", "--policy", &id]).refused("is paused");
    api.call("POST", &format!("/v1/retention-policies/{id}/preview")).expect(200);
    api.patch(&format!("/v1/retention-policies/{id}"), &json!({"mode": "enforced"})).expect(200);
    let text = remote.run(&["retention", "run"]).success().text;
    assert!(text.starts_with("clean: deleted "), "{text}");
    libs.get(FILE).expect(404);

    let rule = json!({"name": "licences", "component": "licences", "settings": {"allow": ["MIT"]}, "repositories": "*"});
    api.post("/v1/policies", &rule).expect(201);
    let record = remote.json(&["policies", "record", "--policy", "licences", "--count", "3"]);
    assert_eq!(record["count"], 3);
    same(&server, &remote, &["policies", "recordings", "--policy", "licences"]);
    remote.run(&["policies", "recordings", "--policy", "absent"]).refused("there is no policy");
    assert!(remote.run(&["advisories", "list"]).success().text.is_empty());
}

/// Checks the output of a command that has no `--json`.
#[track_caller]
fn same_text(server: &Server, remote: &RemoteCli, words: &[&str]) {
    let mut here: Vec<String> = lines(&cli::packhouse(server.data(), words, "").success().text);
    let mut there: Vec<String> = lines(&remote.run(words).success().text);
    here.sort();
    there.sort();
    assert_eq!(there, here, "{words:?}");
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}
