//! Tests with Helm and curl: they publish charts, print refusals, and install charts. They use a
//! hosted repository, a group, and a proxy of another Packhouse.

use crate::chart;

use chart::{chart, provenance};
use packhouse_tests::client_home::ClientHome;
use packhouse_tests::clients::ProgramOutput;
use packhouse_tests::go::Go;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::OWNER;
use packhouse_tests::upstream::Upstream;
use packhouse_tests::{Api, Server, skip};
use serde_json::json;

const HELM: &str = "helm";

/// Helm with a home of its own; `None`, with a printed reason, if it is not installed.
fn helm() -> Option<Go> {
    Go::client(HELM).map_err(|reason| skip(HELM, &reason)).ok()
}

fn add(helm: &Go, repository: &FormatRepository, secret: &str) -> ProgramOutput {
    helm.run(&[
        "repo",
        "add",
        "--force-update",
        "own",
        &repository.url,
        "--username",
        OWNER,
        "--password",
        secret,
    ])
}

fn publish(repository: &FormatRepository, name: &str, version: &str, more: &str) {
    repository.client.send(post(repository, chart(name, version, more))).expect(201);
}

fn post(repository: &FormatRepository, file: Vec<u8>) -> packhouse_tests::Request {
    packhouse_tests::Request::new("POST", &repository.path("api/charts"))
        .header("Content-Type", "application/octet-stream")
        .body(file)
}

#[test]
fn helm_installs_charts_that_curl_publishes() {
    let Some(helm) = helm() else { return };
    let curl = match ClientHome::with("curl") {
        Ok(home) => home,
        Err(reason) => return skip("curl", &reason),
    };
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, HELM, "charts", &json!({}));
    let secret = repository.token.secret.clone();
    helm.run(&["create", "demo"]).success();
    for version in ["1.9.0", "1.10.0", "2.0.0-rc.1"] {
        helm.run(&["package", "demo", "--version", version]).success();
        let file = format!("demo-{version}.tgz");
        let user = format!("{OWNER}:{secret}");
        curl.write(&file, helm.read(&file));
        let form = [
            "--fail-with-body",
            "-sS",
            "--user",
            &user,
            "-F",
            &format!("chart=@{file}"),
            &format!("{}/api/charts", repository.url),
        ];
        let output = curl.run("", "curl", &form, &[]).success();
        assert!(output.text.contains("{\"saved\":true}"), "{}", output.text);
        let again = [
            "--fail-with-body",
            "-sS",
            "--user",
            &user,
            "--data-binary",
            &format!("@{file}"),
            &format!("{}/api/charts", repository.url),
        ];
        curl.run("", "curl", &again, &[]).refused("already exists; publish a new version");
    }
    add(&helm, &repository, &secret).success();
    let found = helm.run(&["search", "repo", "own/demo", "--versions"]).success();
    let (newer, older) = (found.text.find("1.10.0").unwrap(), found.text.find("1.9.0").unwrap());
    assert!(newer < older && !found.text.contains("2.0.0-rc.1"), "{}", found.text);
    helm.run(&["pull", "own/demo", "--version", "1.9.0"]).success();
    let rendered = helm.run(&["template", "one", "own/demo"]).success();
    assert!(rendered.text.contains("helm.sh/chart: demo-1.10.0"), "{}", rendered.text);
    let devel = helm.run(&["template", "one", "own/demo", "--devel"]).success();
    assert!(devel.text.contains("demo-2.0.0-rc.1"), "{}", devel.text);

    // A chart that depends on the published chart `demo`.
    helm.write("app/Chart.yaml", format!("apiVersion: v2\nname: app\nversion: 0.1.0\ndependencies:\n- name: demo\n  version: ^1\n  repository: {}\n", repository.url));
    helm.run(&["dependency", "update", "app"]).success();
    assert!(helm.folder().join("app/charts/demo-1.10.0.tgz").is_file());
    assert!(!server.log().contains(&secret), "a token in the log");
}

#[test]
fn a_refused_helm_user_reads_the_reason() {
    let Some(helm) = helm() else { return };
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, HELM, "charts", &json!({}));
    publish(&repository, "demo", "1.0.0", "");
    add(&helm, &repository, "wrong").refused("401 The credential that was sent is not accepted");
    helm.run(&["repo", "add", "own", &repository.url]).refused("401 Authentication is required");
    add(&helm, &repository, &repository.token.secret).success();
    helm.run(&["pull", "own/absent"]).refused("not found");
    let reader = Api::sign_in(&server).create_token(&[&repository.id], &["read"], None);
    let reading = server.anonymous().basic(OWNER, &reader.secret);
    let refused = reading.send(post(&repository, chart("demo", "1.1.0", ""))).expect(403);
    assert!(!refused.field("error").is_empty());
    repository.client.get(&repository.path("charts/demo-1.1.0.tgz")).expect(404);
    let bad = repository.client.send(post(&repository, b"no chart".to_vec())).expect(400);
    assert!(bad.text().contains("This is not a valid chart"), "{}", bad.text());
}

#[test]
fn a_deleted_version_is_gone_and_a_deprecated_one_says_so() {
    let Some(helm) = helm() else { return };
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, HELM, "charts", &json!({}));
    for version in ["1.0.0", "1.1.0"] {
        publish(&repository, "demo", version, "");
    }
    let api = Api::sign_in(&server);
    let version = format!("/v1/repositories/{}/packages/demo/versions", repository.id);
    let mark = json!({"state": "deprecated", "reason": "use other"});
    api.send("PUT", &format!("{version}/1.0.0/state"), &mark).expect(200);
    repository
        .client
        .send(packhouse_tests::Request::new("DELETE", &repository.path("api/charts/demo/1.1.0")))
        .expect(200);
    add(&helm, &repository, &repository.token.secret).success();
    let chart_text = helm.run(&["show", "chart", "own/demo"]).success();
    assert!(chart_text.text.contains("version: 1.0.0"), "{}", chart_text.text);
    helm.run(&["pull", "own/demo", "--version", "1.1.0"]).refused("not found");
    let index = repository.client.get(&repository.path("index.yaml")).expect(200).text();
    assert!(index.contains("deprecated: true"), "{index}");
    let page = api.call("GET", &format!("{version}/1.0.0")).expect(200).json();
    assert_eq!(page["state"], "deprecated");
    api.call("DELETE", &format!("{version}/1.0.0")).expect(204);
    assert!(repository.client.get(&repository.path("index.yaml")).expect(200).text().contains("entries: {}"));
}

/// Helm installs charts through a group. The group's members are a hosted repository and a proxy of
/// a repository on another server. Helm installs them again after that server has ended.
#[test]
fn helm_installs_through_a_proxy_and_a_group() {
    let Some(helm) = helm() else { return };
    let far = Server::start();
    let near = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
    let origin = FormatRepository::hosted(&far, HELM, "origin", &json!({}));
    publish(&origin, "lib", "1.0.0", "");
    publish(&origin, "own", "9.0.0", "");
    let signature = provenance("lib-1.0.0.tgz", &chart("lib", "1.0.0", ""));
    origin
        .client
        .send(packhouse_tests::Request::new("POST", &origin.path("api/prov")).body(signature.clone()))
        .expect(201);
    let hosted = FormatRepository::hosted(&near, HELM, "hosted", &json!({}));
    publish(&hosted, "own", "1.0.0", "");
    let proxy = FormatRepository::proxy_of(&near, HELM, "proxy", &origin, &json!({}));
    let group = FormatRepository::group(&near, HELM, "all", &[&hosted, &proxy]);
    add(&helm, &group, &group.token.secret).success();
    helm.run(&["template", "one", "own/lib", "--version", "1.0.0"]).success();
    let own = helm.run(&["show", "chart", "own/own"]).success();
    assert!(own.text.contains("version: 1.0.0"), "the hosted package takes precedence:\n{}", own.text);
    helm.run(&["pull", "own/own", "--version", "9.0.0"]).refused("not found");
    let signed = proxy.client.get(&proxy.path("charts/lib-1.0.0.tgz.prov")).expect(200);
    assert_eq!(signed.text(), signature);
    // Cached charts stay available when the upstream is gone.
    let address = far.packages();
    drop(far);
    let _gone = Upstream::start_at(address);
    let again = helm.run(&["pull", "own/lib", "--version", "1.0.0"]).success();
    assert_eq!(helm.read("lib-1.0.0.tgz"), chart("lib", "1.0.0", ""), "{}", again.text);
    // A proxy and a group accept no publish.
    for (repository, status) in [(&proxy, 405), (&group, 405)] {
        let refused = repository.client.send(post(repository, chart("x", "1.0.0", "")));
        assert_eq!(refused.status, status, "{}", refused.text());
    }
}

#[test]
fn helm_and_curl_work_with_the_pasted_settings() {
    let Some(helm) = helm() else { return };
    let Some(home) = ClientHome::with("curl").map_err(|reason| skip("curl", &reason)).ok() else { return };
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, HELM, "charts", &json!({}));
    home.write("CHART.tgz", chart("demo", "1.0.0", ""));
    home.shell("", &repository.connection_text(&server, "curl", "publish", None), &[]).success();
    // Helm is not on the path, so the test puts the program's full path into the command.
    let program = packhouse_tests::checkout().join(".tools/go/bin/helm");
    let read = repository.connection_text(&server, HELM, "read", None).replacen(
        "helm ",
        &format!("{} ", program.display()),
        1,
    );
    home.shell("", &format!("{read}\n{} pull charts/demo --version 1.0.0", program.display()), &[]).success();
    assert!(home.folder().join("demo-1.0.0.tgz").is_file());
    let manifest = repository.connection_text(&server, "Argo CD", "read", Some("repository.yaml"));
    assert!(manifest.contains(&format!("url: {}/", repository.url)), "{manifest}");
    drop(helm);
}
