//! From SQLite and a folder to PostgreSQL and S3, and back.

use packhouse_tests::api::Api;
use serde_json::Value;
use tempfile::TempDir;

use super::world::{Published, Stand, file, listed, part, place, run};

/// What the API says of repositories, tokens and members, but for addresses and for what is written behind.
fn shown(api: &Api) -> Vec<Value> {
    let told = ["/v1/repositories", "/v1/tokens", "/v1/members"]
        .map(|path| api.call("GET", path).expect(200).json());
    told.into_iter().map(lasting).collect()
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
fn a_backup_is_the_way_to_the_other_storage_and_back() {
    let home = TempDir::new().unwrap();
    let phrase = file(&home, "phrase", "correct horse battery\n");
    let (here, there, back) = (Stand::folder(), Stand::shared(), Stand::folder());
    let server = here.server().start();
    let mut published = Published::some(&server);
    published.expect(&server);
    let before = shown(&Api::sign_in(&server));

    // Into a part of a bucket, beside the server, with a passphrase.
    let bucket = part(there.s3.as_ref().unwrap(), "backups");
    let said = here.run(&["backup", &bucket, "--passphrase-file", &phrase]).well().text;
    assert!(said.starts_with("backup 20") && said.contains(" rows and "), "{said}");
    assert!(!said.contains("secret_access_key"), "{said}");
    run(&["backup", "verify", &bucket, "--passphrase-file", &phrase]).well();
    drop(server);

    there.run(&["restore", &bucket, "--passphrase-file", &phrase]).well();
    let key = |stand: &Stand| std::fs::read_to_string(stand.data().join("sealing.key")).ok();
    assert_eq!(key(&there), key(&here));
    let server = there.server().start();
    published.expect(&server);
    assert_eq!(shown(&Api::sign_in(&server)), before);
    for seed in 0..5 {
        published.more(&server, seed, 100_000);
    }

    // And back, through a folder, in the clear.
    let folder = place(&home);
    there.run(&["backup", &folder]).well();
    run(&["backup", "verify", &folder]).well();
    assert_eq!(listed(&folder).len(), 1);
    drop(server);
    back.run(&["restore", &folder]).well();
    let server = back.server().start();
    published.expect(&server);
    published.more(&server, 99, 100_000);
    published.expect(&server);
    drop(server);
    back.run(&["scrub"]).well();
    back.run(&["gc"]).well();
    let server = back.server().start();
    published.expect(&server);
}

#[test]
fn only_an_empty_place_is_restored_into_and_only_a_place_of_backups_is_backed_up_to() {
    let home = TempDir::new().unwrap();
    let stand = Stand::folder();
    let server = stand.server().start();
    let published = Published::some(&server);
    let folder = place(&home);
    stand.run(&["restore", &folder]).refused("there are no backups at this place");
    stand.run(&["backup", &folder]).well();
    // A running server, then a folder that has been used, then another database on the same folder.
    stand.run(&["restore", &folder]).refused("another server runs on the data folder");
    drop(server);
    stand.run(&["restore", &folder]).refused("the database is not empty");
    let other = format!("sqlite://{}", home.path().join("other.db").display());
    let elsewhere = ["restore", &folder, "--database-url", &other];
    stand.run(&elsewhere).refused("holds files that are not this program's");
    let beside = [&elsewhere[..], &["--beside-other-files"]].concat();
    stand.run(&beside).refused("the storage of blobs is not empty");
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
