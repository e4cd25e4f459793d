//! Tests that the statements of every request seek and never scan a table.

use super::{Database, placeholders, values};
use crate::accounts::{LOOK_UP, reached_sql};
use crate::attestations::rows as attestations;
use crate::config::StoreConfig;
use crate::documents::rows as documents;
use crate::first_seen;
use crate::ids::RepositoryId;
use crate::names::{HeldNamesQuery, PackageName, catalog_sql};
use crate::packages;
use crate::quotas;
use crate::records::{keys, read};
use crate::rules::version_facts;
use crate::version_details;
use crate::webhooks::queue_statements;
use crate::write_behind::{answers as used, downloads};
use crate::writer::{answers, catalog, events, quota, sql, trash};

async fn plan(database: &Database, statement: &str) -> Vec<String> {
    let rows = database.fetch(format!("EXPLAIN QUERY PLAN {statement}"), values![]).await.unwrap();
    rows.iter().map(|row| row.columns().text("detail").unwrap()).collect()
}

/// Tables of the schema and their aliases in the statements.
const TABLES: [&str; 32] = [
    "cached_answers",
    "packages",
    "versions",
    "v",
    "records",
    "r",
    "blobs",
    "b",
    "record_blobs",
    "n",
    "leases",
    "l",
    "repositories",
    "tokens",
    "t",
    "m",
    "tm",
    "te",
    "access_keys",
    "k",
    "o",
    "y",
    "z",
    "g",
    "f",
    "w",
    "webhooks",
    "h",
    "d",
    "e",
    "webhook_deliveries",
    "files",
];

#[tokio::test]
async fn hot_statements_seek() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(&StoreConfig::new(folder.path())).await.unwrap();
    let rows = |[before, after]: [&str; 2], width| format!("{before}{}{after}", placeholders(3, width));
    let mut held = HeldNamesQuery::new(&[RepositoryId(1), RepositoryId(2)]);
    for number in 0..2 {
        held.add(number, &PackageName { name: "a".to_owned(), keys: vec!["m/a:".to_owned()] });
    }
    let statements = [
        catalog_sql(2, 3),
        held.sql,
        read::GET.to_owned(),
        read::SCAN[0].to_owned(),
        read::SCAN[1].to_owned(),
        keys::KEYS.to_owned(),
        keys::LEVEL.replace("{position}", "instr"),
        LOOK_UP.clone(),
        reached_sql("r.id", 3),
        reached_sql("r.name", 3),
        rows(sql::REPOSITORIES, 1),
        rows(events::HOOKS, 1),
        rows(events::VERSIONS, 3),
        rows(events::CATALOG_FILES, 3),
        rows(events::RECORDS, 2),
        rows(quota::PATHS, 2),
        rows(quota::VERSIONS, 3),
        quotas::ROOM.to_owned(),
        rows(sql::ENTRIES, 2),
        rows(sql::BLOBS, 3),
        rows(sql::UNNAME, 3),
        rows(sql::REMOVE, 2),
        rows(sql::REVISIONS, 2),
        rows(answers::FORGET, 2),
        packages::NAMES.to_owned(),
        rows(packages::SUMMARIES, 2),
        rows(packages::NOTES, 2),
        rows(version_details::DAMAGED, 2),
    ];
    for statement in statements.into_iter().chain(queue_statements()) {
        let plan = plan(&database, &statement).await;
        assert!(!plan.is_empty());
        for step in &plan {
            let scans = TABLES
                .iter()
                .any(|table| step == &format!("SCAN {table}") || step.starts_with(&format!("SCAN {table} ")));
            assert!(!scans, "{statement}\n{plan:#?}");
        }
    }
    database.close().await;
}

/// Each statement must find its versions, files and records by complete keys, however many the
/// repository has.
#[tokio::test]
async fn statements_about_some_rows_of_a_repository_read_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(&StoreConfig::new(folder.path())).await.unwrap();
    let statements = [
        (trash::RECORDS, 4),
        (trash::VERSIONS, 4),
        (trash::FILES, 4),
        (attestations::INTO_TRASH, 4),
        (documents::INTO_TRASH, 4),
        (trash::PUBLISHES_AGAIN, 1),
        (trash::VERSIONS_AGAIN, 1),
        (trash::FILES_AGAIN, 1),
        (attestations::AGAIN, 1),
        (documents::AGAIN, 1),
        (downloads::BY_PATH, 4),
        (downloads::BY_DIGEST, 4),
        (downloads::FILES, 5),
        (downloads::VERSIONS, 5),
        (used::USED, 3),
        (first_seen::KNOWN, 3),
        (events::VERSIONS, 3),
        (events::CATALOG_FILES, 3),
        (events::RECORDS, 2),
        (quota::PATHS, 2),
        (quota::VERSIONS, 3),
        (sql::ENTRIES, 2),
        (sql::UNNAME, 3),
        (sql::REMOVE, 2),
        (answers::FORGET, 2),
        (packages::SUMMARIES, 2),
        (packages::NOTES, 2),
        (version_facts::FACTS, 3),
        (catalog::FILES_GONE, 4),
        (catalog::VERSIONS_GONE, 3),
        (catalog::PACKAGES_GONE, 2),
        (catalog::EMPTIED, 3),
        (catalog::FOUND_BY, 2),
    ];
    let mut wrong = Vec::new();
    // One row as the writer runs it on SQLite, and a batch.
    for (([before, after], width), rows) in statements.into_iter().flat_map(|it| [(it, 1), (it, 2)]) {
        let statement = format!("{before}{}{after}", placeholders(rows, width));
        let plan = plan(&database, &statement).await;
        assert!(!plan.is_empty());
        let of_the_repository = |step: &String| step.contains("(repository=?)");
        let scans = |step: &String| TABLES.iter().any(|table| step.starts_with(&format!("SCAN {table} ")));
        if plan.iter().any(|step| of_the_repository(step) || scans(step)) {
            wrong.push(format!("{statement}\n{plan:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    database.close().await;
}
