//! A database of an earlier version: opening it converts its rows.

use std::path::Path;
use std::time::Duration;

use packhouse_store::{CatalogChange, Change, Commit, Expectation, RepositoryId, Sha256, Store};
use sqlx::Connection as _;

use crate::support::{World, applied, in_both};

in_both! { records_keep_the_blobs_that_they_named }

/// The migration step under test; all earlier steps build the old database.
const STEP: &str = "_growth.sql";
/// A record that refers to two blobs, one without blobs, and a blob without a record.
const ROWS: &str = "INSERT INTO organizations (id, name, created_at) VALUES (1, 'first', 0);
    INSERT INTO repositories (id, organization, name, format, kind, public, settings, members, revision, settings_revision, \
    created_at) VALUES (2, 1, 'main', 'maven', 'hosted', 0, '{}', '[]', 7, 0, 0);
    INSERT INTO blobs (id, sha256, size, checked, data, digests, created_at) VALUES \
    (11, {11}, 0, {check}, {empty}, '', 0), (12, {12}, 0, {check}, {empty}, '', 0), (13, {13}, 0, {check}, {empty}, '', 0);
    INSERT INTO records (repository, key, value, revision) VALUES (2, 'two', {empty}, 3), (2, 'none', {empty}, 4);
    INSERT INTO record_blobs (repository, key, blob) VALUES (2, 'two', 12), (2, 'two', 11);
    INSERT INTO packages (repository, name, search, updated_at) VALUES (2, 'package', 'package', 0);
    INSERT INTO versions (repository, name, version, published, summary, search, properties, state, shown_at, updated_at) \
    VALUES (2, 'package', '1', NULL, 'a summary', 'package', '[[\"a\",\"b\"]]', 'yanked', 5, 6);
    INSERT INTO files (repository, name, version, path, digest, size) VALUES (2, 'package', '1', 'a/path', '{digest}', 3)";
const DIGEST: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn sha256(number: u8) -> Sha256 {
    Sha256([number; 32])
}

/// The statements that build the old database with some rows.
fn before(sqlite: bool) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host/store/src/migrations");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let steps: Vec<_> = files.iter().take_while(|file| !file.to_str().unwrap().ends_with(STEP)).collect();
    assert!(!steps.is_empty() && steps.len() < files.len());
    let mut all =
        "CREATE TABLE migrations (step BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL);\n".to_owned();
    for (number, file) in (1..).zip(steps) {
        all += &std::fs::read_to_string(file).unwrap();
        all += &format!(";\nINSERT INTO migrations VALUES ({number}, 0);\n");
    }
    let [key, blob, text, without] = if sqlite {
        ["INTEGER PRIMARY KEY", "BLOB", "TEXT", " WITHOUT ROWID"]
    } else {
        ["BIGINT PRIMARY KEY", "BYTEA", "TEXT COLLATE \"C\"", ""]
    };
    let bytes = |hex: &str| if sqlite { format!("X'{hex}'") } else { format!("'\\x{hex}'") };
    let mut all = (all + ROWS)
        .replace("{integer_primary_key}", key)
        .replace("{blob}", blob)
        .replace("{text_collate_c}", text)
        .replace("{without_rowid}", without)
        .replace("{empty}", &bytes(""))
        .replace("{digest}", DIGEST)
        .replace("{check}", &xxhash_rust::xxh3::xxh3_64(b"").cast_signed().to_string());
    for number in 11..14_u8 {
        all = all.replace(&format!("{{{number}}}"), &bytes(&format!("{number:02x}").repeat(32)));
    }
    all
}

async fn make(url: &str) {
    match url.strip_prefix("sqlite://") {
        Some(file) => {
            rusqlite::Connection::open(file).unwrap().execute_batch(&before(true)).unwrap();
        }
        None => {
            let mut connection = sqlx::PgConnection::connect(url).await.unwrap();
            let sql = sqlx::AssertSqlSafe(before(false));
            sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
    }
}

async fn records_keep_the_blobs_that_they_named(world: &World) {
    let mut config = world.config.clone();
    let folder = tempfile::tempdir().unwrap();
    config.data = folder.path().to_owned();
    config.blobs = packhouse_store::BlobsConfig::Fs(folder.path().to_owned());
    (config.gc_grace, config.gc_lease) = (Duration::ZERO, Duration::ZERO);
    config.database_url = if config.database_url.starts_with("sqlite:") {
        format!("sqlite://{}", folder.path().join("old.db").display())
    } else {
        crate::support::postgres::shared().unwrap().create_database()
    };
    make(&config.database_url).await;
    let (store, repository) = (Store::open(config).await.unwrap(), RepositoryId(2));
    assert_eq!(store.get(repository, "none").await.unwrap().unwrap().revision, 4);
    let versions = store.versions(repository, "package").await.unwrap();
    assert_eq!((versions.len(), versions[0].files.len()), (1, 1));
    let (version, file) = (&versions[0], &versions[0].files[0]);
    assert_eq!(
        (version.summary.as_str(), version.state.as_str(), version.published),
        ("a summary", "yanked", Some(5))
    );
    assert_eq!((file.path.as_str(), file.digest.to_string().as_str(), file.size), ("a/path", DIGEST, 3));
    let hide = CatalogChange::Hide { name: "package".to_owned(), version: "1".to_owned() };
    applied(store.commit(repository, Commit { catalog: vec![hide], ..Commit::default() }).await.unwrap());
    assert!(store.versions(repository, "package").await.unwrap().is_empty());
    assert!(store.package_names(repository, "", 10).await.unwrap().is_empty());
    assert_eq!(store.collect_garbage().await.unwrap().blobs, 1);
    for (number, there) in [(11, true), (12, true), (13, false)] {
        assert_eq!(store.held_blob(repository, sha256(number)).await.unwrap().is_some(), there, "{number}");
    }
    // The change releases blobs that the record no longer names, and keeps those that it still
    // names.
    let (key, value) = ("two".to_owned(), bytes::Bytes::from("value"));
    let change = Change::Put { key, value, expect: Expectation::Revision(3), blobs: vec![sha256(12)] };
    let commit = Commit { changes: vec![change], ..Commit::default() };
    assert_eq!(applied(store.commit(repository, commit).await.unwrap()), 9);
    assert_eq!(store.collect_garbage().await.unwrap().blobs, 1);
    assert!(store.held_blob(repository, sha256(12)).await.unwrap().is_some());
    let change = Change::Remove { key: "two".to_owned(), expect: Expectation::Present };
    let commit = Commit { changes: vec![change], ..Commit::default() };
    assert_eq!(applied(store.commit(repository, commit).await.unwrap()), 10);
    assert_eq!(store.collect_garbage().await.unwrap().blobs, 1);
    store.close().await;
}
