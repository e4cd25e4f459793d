//! Tests that statements for long lists seek in the order of the list: they neither scan a table
//! nor sort the result. The tests explain the statements that the store's own methods have just
//! run.

use super::{Value, values};
use crate::accounts::AuditFilter;
use crate::activity::ActivityOf;
use crate::config::StoreConfig;
use crate::ids::{ApiTokenId, KeyOwnerId, MemberId, OrganizationId, RepositoryId, TeamId, TokenId, TrashId};
use crate::store::Store;

/// Tables with one row for each package, token or event, and the aliases for them.
const LONG: [&str; 27] = [
    "packages",
    "versions",
    "v",
    "files",
    "tokens",
    "t",
    "audit_events",
    "activity",
    "a",
    "trash",
    "trash_files",
    "cached_answers",
    "c",
    "token_repositories",
    "access_keys",
    "k",
    "key_owners",
    "o",
    "members",
    "m",
    "api_tokens",
    "teams",
    "te",
    "team_members",
    "tm",
    "i",
    "records",
];

/// Returns whether a step of a plan scans a long table or sorts.
fn is_slow(step: &str) -> bool {
    let scans = |table: &&str| step == format!("SCAN {table}") || step.starts_with(&format!("SCAN {table} "));
    LONG.iter().any(scans) || step == "USE TEMP B-TREE FOR ORDER BY"
}

#[tokio::test]
async fn pages_of_long_lists_seek() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(StoreConfig::new(folder.path())).await.unwrap();
    let (organization, repository) = (OrganizationId(1), RepositoryId(1));
    store.inner.db.take_statements();
    // Query the first page and a later one, as the portal's pages do.
    for after in [None, Some(5)] {
        let member = Some(MemberId(1));
        store.list_tokens(organization, member, None, after.map(TokenId), 21).await.unwrap();
        store.list_tokens(organization, None, Some("org"), after.map(TokenId), 21).await.unwrap();
        store.audit_events(organization, &AuditFilter::default(), after, 51).await.unwrap();
        store.list_members(organization, after.map(MemberId), 51).await.unwrap();
        store.list_newest_tokens(organization, member, None, after.map(TokenId), 21).await.unwrap();
        store.list_newest_tokens(organization, None, Some("org"), after.map(TokenId), 21).await.unwrap();
        store.list_newest_api_tokens(organization, MemberId(1), after.map(ApiTokenId), 51).await.unwrap();
        let name = after.map(|_| "m");
        store.list_repositories_by_name(organization, name, 51).await.unwrap();
        store.list_service_accounts(organization, after.map(MemberId), 51).await.unwrap();
        store.list_teams(organization, after.map(TeamId), 51).await.unwrap();
        store.team_members(TeamId(1), after.map(MemberId), 51).await.unwrap();
        store.list_api_tokens(organization, member, after.map(ApiTokenId), 51).await.unwrap();
        store.list_api_tokens(organization, None, after.map(ApiTokenId), 51).await.unwrap();
        store.list_repositories(organization, after.map(RepositoryId), 51).await.unwrap();
        store
            .list_key_owners(
                organization,
                crate::accounts::KeyOwnerKind::Subscriber,
                after.map(KeyOwnerId),
                51,
            )
            .await
            .unwrap();
        store.trash(repository, after.map(TrashId), 51).await.unwrap();
    }
    store.package_names(repository, "a", 51).await.unwrap();
    store.package_summaries(repository, vec!["a".to_owned(), "b".to_owned()]).await.unwrap();
    store.versions(repository, "a").await.unwrap();
    store.version_details(repository, "a", "1").await.unwrap();
    for of in [
        ActivityOf::Organization(organization),
        ActivityOf::Repository(repository),
        ActivityOf::Package(repository, "a"),
    ] {
        // The activity statement may sort: it groups by day, and sorts at most one row for each
        // repository and day.
        store.activity(of).await.unwrap();
    }
    let ran: Vec<(String, Vec<Value>)> = store.inner.db.take_statements();
    assert!(ran.len() > 20, "{} statements", ran.len());
    for (sql, values) in ran {
        let rows = store.inner.db.fetch(format!("EXPLAIN QUERY PLAN {sql}"), values).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.columns().text("detail").unwrap()).collect();
        assert!(!plan.iter().any(|step| is_slow(step)), "{sql}\n{plan:#?}");
    }
    // Check that `is_slow` detects a slow statement.
    let rows = store
        .inner
        .db
        .fetch("EXPLAIN QUERY PLAN SELECT * FROM tokens ORDER BY name", values![])
        .await
        .unwrap();
    assert!(rows.iter().any(|row| is_slow(&row.columns().text("detail").unwrap())));
    store.close().await;
}
