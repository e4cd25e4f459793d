//! Runs of policies: killed in the middle, on two servers, from the command line, with a limit of
//! deletions, and during other changes.

use packhouse_tests::cli::packhouse;
use packhouse_tests::database::{Postgres, sqlite};
use packhouse_tests::images::{ImageRepository, MANIFEST, digest};
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::server::eventually;
use packhouse_tests::{Api, MavenRepository, Request, Server, long, skip};
use serde_json::{Value, json};

use super::{POLICIES, enforce, named, names, policy, preview, restore_all, run, runs, trash, wheel};
use crate::release::Release;

fn jar(number: usize) -> String {
    format!("org/example/a/{number}/a-{number}.jar")
}

#[test]
fn a_killed_run_continues_and_respects_its_limit() {
    let mut server = Server::start();
    let maven = MavenRepository::create(&server, "jars");
    let (all, most) = (if long() { 1_000 } else { 200 }, if long() { 900 } else { 150 });
    for number in 0..all {
        maven.put(&jar(number), format!("bytes of {number}")).expect(201);
    }
    let records = "select count(*), sum(length(value)) from records where key not like '%//t'";
    let before = sqlite(&server, records);
    let count = |server: &Server, sql: &str| sqlite(server, sql).trim().parse::<usize>().unwrap();
    let api = Api::sign_in(&server);
    let id = policy(&api, json!([maven.id]), json!({"max_deletes": most}));
    let previewed = preview(&api, &id);
    assert_eq!((&previewed["versions"], &previewed["truncated"]), (&json!(all), &json!(true)));
    assert_eq!(previewed["items"].as_array().unwrap().len(), most);
    enforce(&api, &id);
    api.call("POST", &format!("{POLICIES}/{id}/runs")).expect(202);
    let rounds = if long() { 8 } else { 1 };
    for round in 0..rounds {
        let goal = (round + 1) * most / (rounds + 2);
        eventually("the run is in progress", || {
            (count(&server, "select count(*) from trash") >= goal).then_some(())
        });
        server.kill9();
        server.restart();
    }
    let api = Api::sign_in(&server);
    let done =
        eventually("the run has ended", || runs(&api, &id).into_iter().find(|run| run["ended_at"].is_i64()));
    assert_eq!(
        (&done["deleted"], &done["error"], &done["skipped"]),
        (&json!(most), &Value::Null, &json!([])),
        "{done:#}"
    );
    assert_eq!(runs(&api, &id).len(), 1, "there is one run");
    assert_eq!(count(&server, "select count(*) from versions"), all - most);
    assert_eq!(count(&server, "select count(*) from trash where open = 0"), most);
    // The oldest versions are deleted, as the preview said.
    maven.get(&jar(most - 1)).expect(404);
    maven.get(&jar(most)).expect(200);
    assert_eq!(preview(&api, &id)["versions"], all - most);
    while !trash(&api, &maven.id).as_array().unwrap().is_empty() {
        restore_all(&api, &maven.id);
    }
    assert_eq!((sqlite(&server, records), count(&server, "select count(*) from versions")), (before, all));
    let event = api.call("GET", "/v1/audit-events?action=delete_version&limit=1").expect(200).json()["items"]
        [0]
    .clone();
    assert_eq!(
        (&event["actor"], &event["credential"]),
        (&json!("cleaning"), &json!(format!("retention:{id}")))
    );
}

/// Number of versions that a killed run has to delete.
const KILLED_AMONG: usize = 40;

/// Publishes a version for each number with `publish`. Kills the server in the middle of the run
/// that deletes them. Then restores everything.
fn killed_in_the_middle(
    server: &mut Server,
    repository: &str,
    publish: impl Fn(usize),
    view: impl Fn() -> Vec<(u16, String)>,
) {
    (0..KILLED_AMONG).for_each(publish);
    let before = view();
    assert!(before.iter().all(|(status, _)| *status == 200), "{before:?}");
    let api = Api::sign_in(server);
    let id = policy(&api, json!([repository]), json!({}));
    assert_eq!(preview(&api, &id)["versions"], KILLED_AMONG);
    enforce(&api, &id);
    api.call("POST", &format!("{POLICIES}/{id}/runs")).expect(202);
    eventually("the run is in progress", || {
        (sqlite(server, "select count(*) from trash").trim() != "0").then_some(())
    });
    server.kill9();
    server.restart();
    let api = Api::sign_in(server);
    let done =
        eventually("the run has ended", || runs(&api, &id).into_iter().find(|run| run["ended_at"].is_i64()));
    assert_eq!(
        (&done["deleted"], &done["error"], &done["skipped"]),
        (&json!(KILLED_AMONG), &Value::Null, &json!([])),
        "{done:#}"
    );
    assert_eq!(runs(&api, &id).len(), 1, "there is one run");
    assert_eq!(trash(&api, repository).as_array().unwrap().len(), KILLED_AMONG);
    api.call("DELETE", &format!("{POLICIES}/{id}")).expect(204);
    restore_all(&api, repository);
    assert_eq!((view(), trash(&api, repository)), (before, json!([])));
}

#[test]
fn a_killed_run_over_python_packages_continues() {
    let mut server = Server::start();
    let python = PythonRepository::create(&server, "py");
    let file = |number: usize| wheel::wheel_name("tool", &format!("1.{number}"));
    let publish = |number: usize| {
        let version = format!("1.{number}");
        python.publish("tool", &version, &file(number), &wheel::wheel("tool", &version, "")).expect(200);
    };
    killed_in_the_middle(&mut server, &python.id, publish, || {
        let files =
            (0..KILLED_AMONG).map(|number| python.file("tool", &format!("1.{number}"), &file(number)));
        let page = python.ask("tool");
        let files = files.map(|got| (got.status, digest(&got.body)));
        [(page.status, page.text())].into_iter().chain(files).collect()
    });
}

#[test]
fn a_killed_run_over_npm_packages_continues() {
    let mut server = Server::start();
    let npm = NpmRepository::create(&server, "js");
    let publish = |number: usize| {
        let release = Release::new("lib", &format!("1.{number}.0"));
        let path = npm.path(release.path().trim_start_matches('/'));
        let request = Request::new("PUT", &path).header("Content-Type", "application/json");
        npm.client.send(request.body(release.document().to_string())).expect(201);
    };
    killed_in_the_middle(&mut server, &npm.id, publish, || {
        let packument = npm.get("lib");
        // A deletion and its undo both change the document's revision.
        let mut document = packument.json();
        let _revision = document.as_object_mut().unwrap().remove("_rev");
        let files = (0..KILLED_AMONG).map(|number| npm.get(&format!("lib/-/lib-1.{number}.0.tgz")));
        let files = files.map(|got| (got.status, digest(&got.body)));
        [(packument.status, document.to_string())].into_iter().chain(files).collect()
    });
}

#[test]
fn a_killed_run_over_images_continues() {
    let mut server = Server::start();
    let images = ImageRepository::create(&server, "images", &json!({}));
    let publish = |number: usize| {
        images.push("app", &format!("1.{number}"), &[number.to_string().as_bytes()]).unwrap();
    };
    killed_in_the_middle(&mut server, &images.id, publish, || {
        let tags = (0..KILLED_AMONG).map(|number| format!("app/manifests/1.{number}"));
        let paths = ["app/tags/list".to_owned()].into_iter().chain(tags);
        paths.map(|path| images.get(&path)).map(|got| (got.status, got.text())).collect()
    });
}

#[test]
fn two_servers_on_one_database_run_it_once() {
    let postgres = match Postgres::start() {
        Ok(postgres) => postgres,
        Err(reason) => return skip("two servers and one policy", &reason),
    };
    let data = tempfile::tempdir().unwrap();
    let start = || Server::with().data(data.path()).arg("--database-url").arg(&postgres.url()).start();
    let servers = [start(), start()];
    let maven = MavenRepository::create(&servers[0], "jars");
    for number in 0..120 {
        maven.put(&jar(number), format!("bytes of {number}")).expect(201);
    }
    let apis = [Api::sign_in(&servers[0]), Api::sign_in(&servers[1])];
    let id = policy(&apis[0], json!("*"), json!({"keep": {"newest": 20}}));
    preview(&apis[1], &id);
    enforce(&apis[0], &id);
    // The test requests a run from both servers at once, and each server also has a schedule.
    std::thread::scope(|scope| {
        for api in &apis {
            scope.spawn(|| api.call("POST", &format!("{POLICIES}/{id}/runs")).expect(202));
        }
    });
    eventually("all runs have ended", || {
        let due =
            postgres.query("select count(*) from retention_policies where due_at = 0 or claimed_until > 0");
        (due.trim() == "0").then_some(())
    });
    let runs = runs(&apis[0], &id);
    let deleted: u64 = runs.iter().map(|run| run["deleted"].as_u64().unwrap()).sum();
    assert_eq!(deleted, 100, "{runs:#?}");
    assert!(runs.iter().all(|run| run["skipped"] == json!([]) && run["error"].is_null()), "{runs:#?}");
    assert_eq!(postgres.query("select count(*) from trash").trim(), "100");
    assert_eq!(
        postgres.query("select count(*) from audit_events where action = 'delete_version'").trim(),
        "100"
    );
}

#[test]
fn the_command_line_runs_policies_beside_a_server_and_without_one() {
    let mut server = Server::start();
    let api = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "jars");
    for number in 0..3 {
        maven.put(&jar(number), "bytes").expect(201);
    }
    let of = |version: &str| json!({"name": format!("of {version}"), "match": {"versions": [version]}});
    let [one, two, three] = ["0", "1", "2"].map(|version| policy(&api, json!([maven.id]), of(version)));
    for id in [&one, &two] {
        preview(&api, id);
        enforce(&api, id);
    }
    maven.get(&jar(0)).expect(200);
    let output = packhouse(server.data(), &["retention", "run", "--policy", &one], "").success();
    assert!(output.text.contains("of 0: deleted 1 versions of 5 bytes, skipped 0"), "{}", output.text);
    // The running server does not serve the deleted version from its cache.
    maven.get(&jar(0)).expect(404);
    maven.get(&jar(1)).expect(200);
    packhouse(server.data(), &["retention", "run", "--policy", &three], "").refused("is paused");
    packhouse(server.data(), &["retention", "run", "--policy", "12"], "").refused("there is no policy 12");
    server.kill9();
    packhouse(server.data(), &["retention", "run"], "").success();
    server.restart();
    let api = Api::sign_in(&server);
    maven.get(&jar(1)).expect(404);
    maven.get(&jar(2)).expect(200);
    assert_eq!((runs(&api, &one).len(), runs(&api, &two).len(), runs(&api, &three).len()), (2, 1, 0));
    let first = trash(&api, &maven.id);
    assert_eq!(named(&first), names(&["org.example:a 0", "org.example:a 1"]));
    restore_all(&api, &maven.id);
    maven.get(&jar(0)).expect(200);
}

#[test]
fn versions_that_changed_during_a_run_are_skipped_with_a_reason() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let images = ImageRepository::create(&server, "images", &json!({}));
    let all: Vec<String> =
        (0..60).map(|number| images.push("app", "tag", &[format!("{number}").as_bytes()]).unwrap()).collect();
    let id = policy(&api, json!([images.id]), json!({"match": {"tagged": false}}));
    assert_eq!(preview(&api, &id)["versions"], 59);
    enforce(&api, &id);
    api.call("POST", &format!("{POLICIES}/{id}/runs")).expect(202);
    // A client tags the last manifest during the run. The push succeeds, whether or not the run has
    // already deleted the manifest.
    let last = &all[58];
    let tagged = images.push_manifest("app", "late", MANIFEST, last).status;
    assert_eq!(tagged, 201);
    let done =
        eventually("the run has ended", || runs(&api, &id).into_iter().find(|run| run["ended_at"].is_i64()));
    let skipped = done["skipped"].as_array().unwrap();
    // A manifest with a tag is not part of the run if the client set the tag before the run read
    // the manifest.
    let judged = done["deleted"].as_u64().unwrap() + skipped.len() as u64;
    assert!((58..=59).contains(&judged), "{done:#}");
    assert!(
        skipped.len() <= 1 && skipped.iter().all(|skipped| !skipped["because"].as_str().unwrap().is_empty())
    );
    assert_eq!(images.get("app/manifests/late").expect(200).text(), *last);
    assert_eq!(
        images.get(&format!("app/manifests/{}", digest(all[59].as_bytes()))).expect(200).text(),
        all[59]
    );
}

#[test]
fn a_read_only_server_runs_no_retention() {
    let mut server = Server::start();
    let api = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "jars");
    maven.put(&jar(0), "bytes").expect(201);
    let id = policy(&api, json!([maven.id]), json!({}));
    preview(&api, &id);
    enforce(&api, &id);
    run(&api, &id);
    restore_all(&api, &maven.id);
    server.kill9();
    packhouse_tests::cli::packhouse_with(
        server.data(),
        &["retention", "run"],
        &[("PACKHOUSE_READ_ONLY", "true".to_owned())],
    )
    .refused("read_only");
    server.restart();
    maven.get(&jar(0)).expect(200);
    // The API does not run a paused policy either, and the error says so.
    api.patch(&format!("{POLICIES}/{id}"), &json!({"mode": "paused"})).expect(200);
    assert_eq!(
        api.call("POST", &format!("{POLICIES}/{id}/runs")).expect(409).field("error"),
        "policy_paused"
    );
}
