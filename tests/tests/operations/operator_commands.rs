//! Everyday commands of operators: repositories, their settings, and the effect of a removed
//! setting.

use std::process::{Command, Stdio};

use packhouse_tests::cli::{json, packhouse, packhouse_with};
use packhouse_tests::clients::ProgramOutput;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::{OWNER, PASSWORD, program};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, MavenRepository, Server, checkout};
use serde_json::json;
use tempfile::TempDir;

#[test]
fn a_repository_of_an_installed_format_is_created() {
    let server = Server::start();
    let run = |words: &[&str]| packhouse(server.data(), words, "");
    let create = ["repo", "create", "things", "--format", "raw"];
    run(&create).refused("--format must be one of");
    let guest = checkout().join("target/release/guests/raw.wasm");
    let output = run(&["plugins", "install", guest.to_str().unwrap()]).success().text;
    let digest = output.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap();
    run(&["plugins", "activate", "raw", digest]).success();
    let made = json(server.data(), &create);
    assert_eq!((&made["format"], &made["kind"]), (&json!("raw"), &json!("hosted")));
    let listed = Api::sign_in(&server).call("GET", "/v1/repositories").expect(200).text();
    assert!(listed.contains("\"things\""), "{listed}");
    // The refusal of an unknown format lists the installed ones.
    run(&["repo", "create", "x", "--format", "absent"]).refused("raw");
}

#[test]
fn errors_of_the_command_line_name_its_flags() {
    let server = Server::start();
    let refused = |words: &[&str], why: &str| {
        let words = [&["repo", "create", "x", "--format", "maven"], words].concat();
        let output = packhouse(server.data(), &words, "").refused(why);
        assert!(!output.text.contains('`'), "{}", output.text);
    };
    refused(&["--kind", "proxy"], "--upstream URL");
    refused(&["--upstream", "https://repo.example/"], "--kind proxy");
    refused(&["--member", "y"], "--kind group");
    refused(&["--kind", "mirror"], "--kind must be one of");
    refused(&["--kind", "proxy", "--upstream", "ftp://repo.example/"], "The upstream's address");
    refused(&["--kind", "group", "--member", "absent"], "there is no repository \"absent\"");
}

#[test]
fn repositories_are_listed_displayed_and_changed() {
    let server = Server::start();
    let run = |words: &[&str]| packhouse(server.data(), words, "");
    for name in ["zebra", "apple"] {
        run(&["repo", "create", name, "--format", "maven"]).success();
    }
    let outside = ["--kind", "proxy", "--upstream", "https://repo.example/maven2/"];
    run(&[&["repo", "create", "outside", "--format", "maven"][..], &outside].concat()).success();
    let group = ["--kind", "group", "--member", "zebra,apple"];
    run(&[&["repo", "create", "all", "--format", "maven"][..], &group].concat()).success();

    let text = run(&["repo", "list"]).success().text;
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines[0], ["ID", "NAME", "FORMAT", "KIND"]);
    let names: Vec<&str> = lines[1..].iter().map(|line| line[1]).collect();
    assert_eq!(names, ["all", "apple", "outside", "zebra"]);

    let details = json(server.data(), &["repo", "show", "all"]);
    assert_eq!(details["members"], json!(["zebra", "apple"]));
    let text = run(&["repo", "show", "outside"]).success().text;
    for line in ["name\toutside", "upstream\thttps://repo.example/maven2/", "settings.offline\tfalse"] {
        assert!(text.lines().any(|found| found == line), "{line:?}: {text}");
    }

    run(&["repo", "set", "outside", "offline=true", "min_release_age_s=60", "claimed_names=a,b"]).success();
    run(&["repo", "set", "outside", "--upstream", "https://other.example/"]).success();
    let details = json(server.data(), &["repo", "show", "outside"]);
    let settings = &details["settings"];
    assert_eq!((&settings["offline"], &settings["min_release_age_s"]), (&json!(true), &json!(60)));
    assert_eq!(
        (&settings["claimed_names"], &details["upstream"]),
        (&json!(["a", "b"]), &json!("https://other.example/"))
    );
    run(&["repo", "set", "outside", "offline="]).success();
    assert_eq!(json(server.data(), &["repo", "show", "outside"])["settings"]["offline"], false);
    for (words, why) in [
        (&["outside", "offline=perhaps"][..], "true or false"),
        (&["outside", "colour=red"], "there is no setting colour"),
        (&["outside"], "name a setting to change"),
        (&["apple", "--upstream", "https://other.example/"], "Only a proxy"),
        (&["absent", "offline=true"], "there is no repository"),
    ] {
        run(&[&["repo", "set"], words].concat()).refused(why);
    }

    let members = |words: &[&str]| {
        let listed = json(server.data(), &[&["repo", "members", "all"], words].concat());
        let names =
            listed.as_array().unwrap().iter().map(|member| member["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<String>>()
    };
    assert_eq!(members(&[]), ["zebra", "apple"]);
    assert_eq!(members(&["--add", "outside"]), ["zebra", "apple", "outside"]);
    assert_eq!(members(&["--remove", "zebra"]), ["apple", "outside"]);
    assert_eq!(members(&["--set", "outside,zebra"]), ["outside", "zebra"]);
    run(&["repo", "members", "all", "--remove", "apple"]).refused("is not a member");
    run(&["repo", "members", "all", "--add", "all"]).refused("is a group itself");
    run(&["repo", "members", "apple"]).refused("only groups have members");
    let events = Api::sign_in(&server).call("GET", "/v1/audit-events?limit=50").expect(200).text();
    assert!(events.contains("change_repository"), "{events}");
}

#[test]
fn a_public_address_removed_from_the_settings_is_not_used() {
    let home = TempDir::new().unwrap();
    let data = home.path().join("data");
    let address = |server: &Server| {
        Api::sign_in(server).call("GET", "/v1/organization").expect(200).json()["base_url"].to_string()
    };
    let server = Server::with().data(&data).env("PACKHOUSE_BASE_URL", "http://packages.example.com").start();
    assert!(address(&server).contains("packages.example.com"), "{}", address(&server));
    drop(server);
    let server = Server::with().data(&data).start();
    assert!(!address(&server).contains("packages.example.com"), "{}", address(&server));
    drop(server);
    // An address that was set by a command stays.
    packhouse(&data, &["org", "move", "default", "--base-url", "http://chosen.example.com"], "").success();
    let server = Server::with().data(&data).start();
    assert!(address(&server).contains("chosen.example.com"), "{}", address(&server));
}

#[test]
fn an_import_does_not_follow_its_source_into_internal_networks() {
    let server = Server::start();
    MavenRepository::create(&server, "jars");
    let source = Upstream::start();
    let import = |more: &[&str]| -> ProgramOutput {
        let mut command = Command::new(program());
        command.args(["import", "jars", "--from", "maven", &source.url(), "--package", "org.example:a"]);
        command.args(["--api-url", &format!("http://{}", server.api())]).args(more);
        command.env("PACKHOUSE_LOGIN", format!("{OWNER}:{PASSWORD}")).env_remove("http_proxy");
        command.stdin(Stdio::null()).output().unwrap().into()
    };
    source.on("/org/example/a/maven-metadata.xml", Answer::redirect("http://10.255.255.1/metadata.xml"));
    source.on("/", Answer::redirect("http://10.255.255.1/"));
    source.on("/org/example/a/", Answer::redirect("http://10.255.255.1/a/"));
    import(&[]).refused("10.255.255.1, which is an internal address");
    assert!(source.count("/org/example/a/maven-metadata.xml") + source.count("/org/example/a/") > 0);
}

#[test]
fn a_failed_activation_names_the_format_and_the_expected_component() {
    let folder = TempDir::new().unwrap();
    let plugins = folder.path().join("plugins");
    std::fs::create_dir(&plugins).unwrap();
    let server = Server::with().arg("--plugins").arg(plugins.to_str().unwrap()).start();
    let environment = [("PACKHOUSE_PLUGINS_DIR", plugins.to_str().unwrap().to_owned())];
    let guest = checkout().join("target/release/guests/raw.wasm");
    let words = ["plugins", "install", guest.to_str().unwrap()];
    let output = packhouse_with(server.data(), &words, &environment).success().text;
    let digest = output.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap();
    let api = Api::sign_in(&server);
    let body = json!({"digest": digest, "expected_active": digest});
    let answer = api.post("/v1/plugins/raw/activate", &body).expect(409);
    let sentence = answer.field("message");
    assert!(
        sentence.starts_with("The format raw runs no component, but the activation expected"),
        "{sentence}"
    );
    assert!(sentence.ends_with("retry with it."), "{sentence}");
    api.post("/v1/plugins/raw/activate", &json!({"digest": digest, "expected_active": null})).expect(200);
    FormatRepository::hosted(&server, "raw", "files", &json!({}));
}
