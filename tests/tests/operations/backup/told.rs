//! The server's operators see the backups in the portal and in a metric.

use packhouse_tests::person::Person;
use packhouse_tests::server::{PASSWORD, eventually};
use packhouse_tests::{Api, Client, Server};
use serde_json::json;
use tempfile::TempDir;

use super::world::{Published, Stand, place};

fn last_success(server: &Server) -> f64 {
    let metrics = Client::new(server.api()).get("/metrics").expect(200).text();
    let line = metrics.lines().find(|line| line.starts_with("packhouse_backup_last_success"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(-1.0)
}

fn backups_are_reported(stand: &Stand) {
    let home = TempDir::new().unwrap();
    let server = stand.server().env("PACKHOUSE_READINESS_INTERVAL_MS", "200").start();
    let mut published = Published::some(&server);
    for seed in 0..20 {
        published.more(&server, seed, 400_000);
    }
    let mut person = Person::owner(&server);
    assert!(person.get("/backups").expect(200).text().contains("No backups yet"));
    eventually("the metric reports no backup", || (last_success(&server) == 0.0).then_some(()));
    let folder = place(&home);

    // The test kills the first backup as soon as the server knows of it. The server reports a
    // killed backup as running until the protection of its blobs expires. Nobody can restore from a
    // killed backup.
    let mut child = stand.spawn(&["backup", &folder]);
    eventually("the server knows of the backup", || {
        let page = person.get("/backups").text();
        (page.contains("running") || page.contains("complete") || child.try_wait().unwrap().is_some())
            .then_some(())
    });
    let _ = child.kill();
    let _ = child.wait();

    stand.run(&["backup", &folder]).success();
    let page = person.get("/backups").expect(200).text();
    assert!(page.contains("The newest complete backup contains everything up to"), "{page}");
    assert!(page.contains(&folder), "{page}");
    eventually("the metric follows", || (last_success(&server) > 1e9).then_some(()));

    // A failed backup is listed with its reason.
    std::fs::write(format!("{folder}/pruning"), format!("{}\n", now_ms())).unwrap();
    stand.run(&["backup", &folder]).refused("being pruned");
    std::fs::remove_file(format!("{folder}/pruning")).unwrap();
    std::fs::remove_dir_all(format!("{folder}/content")).unwrap();
    std::fs::write(format!("{folder}/content"), "in the way").unwrap();
    assert!(!stand.run(&["backup", &folder]).success);
    let page = person.get("/backups").expect(200).text();
    assert!(page.contains("failed"), "{page}");

    // A backup contains the whole server, so only the server's operators may see the page.
    let api = Api::sign_in(&server);
    let member = json!({"email": "some@example.com", "password": PASSWORD,
        "permissions": {"organization": ["manage-members", "manage-repositories"]}});
    api.post("/v1/members", &member).expect(201);
    let mut other = Person::signed_in(&server, "some@example.com", PASSWORD);
    other.get("/backups").expect(403);
    assert!(!other.get("/repositories").expect(200).text().contains("/backups"));
}

fn now_ms() -> u128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_millis()
}

#[test]
fn operators_see_the_backups_with_sqlite() {
    backups_are_reported(&Stand::folder());
}

#[test]
fn operators_see_the_backups_with_postgresql() {
    backups_are_reported(&Stand::shared());
}
