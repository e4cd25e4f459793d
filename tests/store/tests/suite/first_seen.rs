//! The times at which upstream versions were first seen. The first server that sees a version
//! records its time; the number of records is bounded.

use std::collections::{BTreeMap, BTreeSet};

use packhouse_store::{
    CatalogChange, Commit, NewRepository, RepositoryId, Sha256, Store, Version, VersionFile,
};
use sqlx::Connection as _;

use crate::support::{World, applied, in_both};

in_both! {
    the_first_sight_of_a_version_is_recorded_once, a_long_list_costs_few_statements,
    the_oldest_are_deleted_and_published_versions_stay, a_removed_repository_leaves_nothing_behind,
    an_upgrade_records_versions_that_proxies_served,
}

const NAME: &str = "example.com/far";

async fn note(store: &Store, repository: RepositoryId, versions: &[&str]) -> BTreeMap<String, u64> {
    let versions = versions.iter().map(|&version| version.to_owned()).collect();
    store.note_first_seen(repository, NAME, versions).await.unwrap()
}

/// Returns once the database's clock is past this moment.
async fn wait_past(store: &Store, moment: u64) {
    while store.now_ms().unsigned_abs() <= moment {
        tokio::task::yield_now().await;
    }
}

async fn the_first_sight_of_a_version_is_recorded_once(world: &World) {
    let (store, own) = (&world.store, world.repository);
    let first = note(store, own, &["1.0"]).await;
    wait_past(store, first["1.0"]).await;
    // Another server of the same database.
    let beside = Store::open(world.config.clone()).await.unwrap();
    let both = note(&beside, own, &["1.0", "2.0"]).await;
    assert_eq!(both["1.0"], first["1.0"]);
    assert_eq!(note(store, own, &["2.0", "1.0"]).await, both);
    assert_eq!(store.find_first_seen(own, NAME, "1.0").await.unwrap(), Some(first["1.0"]));
    // Other packages and other repositories are separate.
    assert_eq!(store.find_first_seen(own, "example.com/other", "1.0").await.unwrap(), None);
    let other = world.another("other").await;
    assert_eq!(store.find_first_seen(other, NAME, "1.0").await.unwrap(), None);
    // No database accepts a text with a zero byte; the store still records the other versions.
    assert_eq!(note(store, own, &["1.0", "3\0"]).await, first);
    beside.close().await;
}

async fn a_long_list_costs_few_statements(world: &World) {
    let (store, own) = (&world.store, world.repository);
    let versions: BTreeSet<String> = (0..1_000).map(|number| format!("1.{number}")).collect();
    let ask = async || {
        let before = store.statements();
        let recorded = store.note_first_seen(own, NAME, versions.clone()).await.unwrap();
        assert_eq!(recorded.len(), 1_000);
        (recorded, store.statements() - before)
    };
    let (first, written) = ask().await;
    let (again, read) = ask().await;
    assert_eq!(again, first);
    assert!(written < 10 && read < 10, "{written} statements, then {read}");
}

async fn the_oldest_are_deleted_and_published_versions_stay(world: &World) {
    let (store, own) = (&world.store, world.repository);
    let other = world.another("other").await;
    note(store, other, &["1"]).await;
    for version in ["1", "2", "3", "4", "5"] {
        let recorded = note(store, own, &[version]).await;
        wait_past(store, recorded[version]).await;
    }
    let version = Version { name: NAME.to_owned(), version: "1".to_owned(), ..Version::default() };
    let catalog = vec![CatalogChange::Show(version)];
    applied(store.commit(own, Commit { catalog, ..Commit::default() }).await.unwrap());
    assert_eq!(store.forget_first_seen(own, 5).await.unwrap(), 0);
    assert_eq!(store.forget_first_seen(own, 2).await.unwrap(), 2);
    let mut left = Vec::new();
    for version in ["1", "2", "3", "4", "5"] {
        left.extend(store.find_first_seen(own, NAME, version).await.unwrap().map(|_| version));
    }
    assert_eq!(left, ["1", "4", "5"]);
    assert!(store.find_first_seen(other, NAME, "1").await.unwrap().is_some(), "another repository's");
}

async fn a_removed_repository_leaves_nothing_behind(world: &World) {
    let (store, gone) = (&world.store, world.another("gone").await);
    note(store, gone, &["1.0"]).await;
    assert!(store.delete_repository(world.organization, gone, None).await.unwrap());
    assert_eq!(store.remove_deleted().await.unwrap(), 1);
    assert_eq!(store.find_first_seen(gone, NAME, "1.0").await.unwrap(), None);
}

/// The statement of the migration that fills the table.
fn filling() -> String {
    let step = include_str!("../../../../host/store/src/migrations/0031_first_seen.sql");
    step.split(';').find(|statement| statement.contains("INSERT INTO first_seen")).unwrap().to_owned()
}

async fn execute(world: &World, statement: String) {
    match world.config.sqlite_file() {
        Some(file) => rusqlite::Connection::open(file).unwrap().execute_batch(&statement).unwrap(),
        None => {
            let mut connection = sqlx::PgConnection::connect(&world.config.database_url).await.unwrap();
            sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
            connection.close().await.unwrap();
        }
    }
}

async fn an_upgrade_records_versions_that_proxies_served(world: &World) {
    let (store, hosted) = (&world.store, world.repository);
    let proxy = NewRepository { kind: "proxy".to_owned(), ..crate::support::repository("proxy") };
    let proxy = store.create_repository(world.organization, proxy, None).await.unwrap().unwrap().id;
    let digest = Sha256([7; 32]).digest();
    let named = digest.to_string();
    let at = |version: &str| format!("{NAME}/manifests/{version}");
    for repository in [hosted, proxy] {
        let show = |version: &str, path: Option<String>| {
            let file = |path| VersionFile { path, digest: digest.clone(), size: 1 };
            CatalogChange::Show(Version {
                name: NAME.to_owned(),
                version: version.to_owned(),
                files: path.into_iter().map(file).collect(),
                ..Version::default()
            })
        };
        let catalog = vec![
            show("1.0", Some("a-1.0.zip".to_owned())),
            show("listed", None),
            show("latest", Some(at("latest"))),
            show(&named, Some(at(&named))),
        ];
        applied(store.commit(repository, Commit { catalog, ..Commit::default() }).await.unwrap());
    }
    execute(world, filling()).await;
    let upgraded = Store::open(world.config.clone()).await.unwrap();
    let listed = upgraded.versions(proxy, NAME).await.unwrap();
    for version in ["1.0", "listed", "latest", &named] {
        let served = version == "1.0" || version == named;
        let published_at = listed.iter().find(|listed| listed.version == version).unwrap().published;
        let recorded = upgraded.find_first_seen(proxy, NAME, version).await.unwrap();
        assert_eq!(recorded, published_at.filter(|_| served), "{version}");
        assert_eq!(upgraded.find_first_seen(hosted, NAME, version).await.unwrap(), None, "{version}");
    }
    upgraded.close().await;
}
