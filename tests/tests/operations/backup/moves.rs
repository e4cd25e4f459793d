//! Moves by backup from SQLite and a folder to PostgreSQL and S3, and back.

use packhouse_tests::api::Api;
use serde_json::Value;
use tempfile::TempDir;

use super::world::{Published, Stand, file, listed, part, place, run};

/// Returns the repositories, tokens and members that the API lists. Leaves out addresses and the
/// values that the server writes in the background.
fn api_state(api: &Api) -> Vec<Value> {
    let pages = ["/v1/repositories", "/v1/tokens", "/v1/members"]
        .map(|path| api.call("GET", path).expect(200).json());
    pages.into_iter().map(lasting).collect()
}

fn lasting(value: Value) -> Value {
    const PASSING: [&str; 3] = ["connection_address", "downloads", "last_used_at"];
    match value {
        Value::Object(members) => {
            let lasts = members.into_iter().filter(|(name, _)| !PASSING.contains(&name.as_str()));
            lasts.map(|(name, value)| (name, lasting(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(lasting).collect(),
        other => other,
    }
}

#[test]
fn a_backup_moves_a_server_to_the_other_storage_and_back() {
    let home = TempDir::new().unwrap();
    let phrase = file(&home, "phrase", "correct horse battery\n");
    let (here, there, back) = (Stand::folder(), Stand::shared(), Stand::folder());
    let server = here.server().start();
    let mut published = Published::some(&server);
    published.expect(&server);
    let before = api_state(&Api::sign_in(&server));

    // The first backup goes into a prefix of the other server's bucket, encrypted with a
    // passphrase.
    let bucket = part(there.s3.as_ref().unwrap(), "backups");
    let output = here.run(&["backup", &bucket, "--passphrase-file", &phrase]).success().text;
    assert!(output.starts_with("backup 20") && output.contains(" rows and "), "{output}");
    assert!(!output.contains("secret_access_key"), "{output}");
    run(&["backup", "verify", &bucket, "--passphrase-file", &phrase]).success();
    drop(server);

    there.run(&["restore", &bucket, "--passphrase-file", &phrase]).success();
    let key = |stand: &Stand| std::fs::read_to_string(stand.data().join("sealing.key")).ok();
    assert_eq!(key(&there), key(&here));
    let server = there.server().start();
    published.expect(&server);
    assert_eq!(api_state(&Api::sign_in(&server)), before);
    for seed in 0..5 {
        published.more(&server, seed, 100_000);
    }

    // The move back uses an unencrypted backup in a folder.
    let folder = place(&home);
    there.run(&["backup", &folder]).success();
    run(&["backup", "verify", &folder]).success();
    assert_eq!(listed(&folder).len(), 1);
    drop(server);
    back.run(&["restore", &folder]).success();
    let server = back.server().start();
    published.expect(&server);
    published.more(&server, 99, 100_000);
    published.expect(&server);
    drop(server);
    back.run(&["scrub"]).success();
    back.run(&["gc"]).success();
    let server = back.server().start();
    published.expect(&server);
}

#[test]
fn restores_need_an_empty_target_and_backups_an_empty_or_backup_location() {
    let home = TempDir::new().unwrap();
    let stand = Stand::folder();
    let server = stand.server().start();
    let published = Published::some(&server);
    let folder = place(&home);
    stand.run(&["restore", &folder]).refused("there are no backups at this location");
    stand.run(&["backup", &folder]).success();
    // A restore fails while a server uses the data folder, and if the database is not empty. With
    // another, empty database it fails because the data folder is not empty.
    stand.run(&["restore", &folder]).refused("another server is using the data folder");
    drop(server);
    stand.run(&["restore", &folder]).refused("the database is not empty");
    let other = format!("sqlite://{}", home.path().join("other.db").display());
    let elsewhere = ["restore", &folder, "--database-url", &other];
    stand.run(&elsewhere).refused("contains files of other programs");
    let beside = [&elsewhere[..], &["--beside-other-files"]].concat();
    stand.run(&beside).refused("the blob storage is not empty");
    published.expect(&stand.server().start());

    let data = stand.data();
    let within = data.join("backups");
    stand.run(&["backup", within.to_str().unwrap()]).refused("is in the data folder");
    let own = TempDir::new().unwrap();
    file(&own, "something", "of somebody's");
    stand.run(&["backup", own.path().to_str().unwrap()]).refused("not empty");
    stand.run(&["backup", "ftp://host/path"]).refused("s3://BUCKET/PATH");
    let plain = "s3://bucket/x?endpoint=http://127.0.0.1:1&access_key_id=a&secret_access_key=b";
    stand.run(&["backup", plain]).refused("allow_http=true");
    run(&["backup"]).refused("TO");
}
