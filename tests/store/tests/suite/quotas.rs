//! Quotas: even concurrent publishes never exceed a quota, and the store refuses no publish that
//! fits.

use std::sync::Arc;

use packhouse_store::{
    Algorithm, CatalogChange, Commit, Digest, ExceededQuota, Expectation, Outcome, QuotaOf, QuotasOf,
    RepositoryId, Store, StoreError, Version, VersionFile,
};

use crate::support::{World, applied, in_both, put};

in_both! {
    a_publish_over_the_quota_is_refused, concurrent_publishes_never_exceed_the_quota,
    an_organizations_quota_holds_over_its_repositories, the_quota_uses_the_counters,
    a_declared_length_is_judged_before,
}

fn version(number: &str, files: &[(&str, u64)]) -> Version {
    let digest = || Digest { algorithm: Algorithm::Sha256, bytes: vec![7; 32] };
    let file =
        |(path, size): &(&str, u64)| VersionFile { path: (*path).to_owned(), digest: digest(), size: *size };
    Version {
        name: "lib".to_owned(),
        version: number.to_owned(),
        files: files.iter().map(file).collect(),
        ..Version::default()
    }
}

fn publish(catalog: Vec<CatalogChange>) -> Commit {
    Commit { catalog, publishes: true, ..Commit::default() }
}

fn show(number: &str, files: &[(&str, u64)]) -> CatalogChange {
    CatalogChange::Show(version(number, files))
}

fn hide(number: &str) -> CatalogChange {
    CatalogChange::Hide { name: "lib".to_owned(), version: number.to_owned() }
}

async fn limit(world: &World, repository: RepositoryId, bytes: u64) {
    let mut row = world.store.find_repository(world.organization, repository).await.unwrap().unwrap();
    row.settings = format!("{{\"quota_bytes\":{bytes}}}").into();
    assert!(world.store.update_repository(&row, false, None).await.unwrap());
}

async fn bytes(world: &World, repository: RepositoryId) -> u64 {
    world.store.repository_usage(world.organization, &[repository]).await.unwrap()[&repository].bytes
}

async fn refused(store: &Store, repository: RepositoryId, commit: Commit) -> ExceededQuota {
    match store.commit(repository, commit).await {
        Err(StoreError::QuotaExceeded { quota }) => quota,
        other => panic!("not refused: {other:?}"),
    }
}

async fn a_publish_over_the_quota_is_refused(world: &World) {
    let (store, repository) = (&world.store, world.repository);
    limit(world, repository, 100).await;
    applied(store.commit(repository, publish(vec![show("1", &[("a", 60), ("b", 20)])])).await.unwrap());
    let mut commit = publish(vec![show("2", &[("c", 21)])]);
    commit.changes.push(put("k", "v", Expectation::Anything));
    let quota = refused(store, repository, commit).await;
    assert_eq!(quota, ExceededQuota { of: QuotaOf::Repository, bytes: 100, used: 80, added: 21 });
    assert_eq!((world.value("k").await, bytes(world, repository).await), (None, 80));
    // Files that are already published add nothing, and a replaced file adds only the difference.
    applied(store.commit(repository, publish(vec![show("2", &[("c", 20)])])).await.unwrap());
    applied(store.commit(repository, publish(vec![show("3", &[("a", 60)])])).await.unwrap());
    applied(store.commit(repository, publish(vec![hide("2"), show("2", &[("d", 20)])])).await.unwrap());
    let quota = refused(store, repository, publish(vec![hide("2"), show("2", &[("d", 21)])])).await;
    assert_eq!((quota.used, quota.added), (100, 1));
    assert_eq!(bytes(world, repository).await, 100);
    // A stale commit is reported as stale even if it exceeds the quota. Quotas do not apply to
    // commits that publish or add nothing.
    let mut stale = publish(vec![show("4", &[("e", 50)])]);
    stale.changes.push(put("gone", "v", Expectation::Present));
    assert_eq!(store.commit(repository, stale).await.unwrap(), Outcome::Stale("gone".to_owned()));
    let fill = Commit { catalog: vec![show("5", &[("f", 50)])], ..Commit::default() };
    applied(store.commit(repository, fill).await.unwrap());
    applied(store.commit(repository, publish(vec![show("6", &[("f", 50)])])).await.unwrap());
    applied(store.commit(repository, publish(vec![hide("5")])).await.unwrap());
    assert_eq!(bytes(world, repository).await, 150);
    applied(store.commit(repository, publish(vec![hide("6"), hide("2")])).await.unwrap());
    applied(store.commit(repository, publish(vec![show("7", &[("g", 20)])])).await.unwrap());
    assert_eq!(bytes(world, repository).await, 100);
}

/// Commits 64 publishes at the same time, through two servers if the database allows it. Returns
/// how many of them were applied.
async fn at_the_edge(world: &World, repositories: &[RepositoryId], size: u64) -> usize {
    let other = match world.config.database_url.starts_with("postgres") {
        true => Some(Store::open(world.config.clone()).await.unwrap()),
        false => None,
    };
    let mut publishers = Vec::new();
    for number in 0..64_usize {
        let store = other.as_ref().filter(|_| number % 2 == 1).unwrap_or(&world.store).clone();
        let repository = repositories[number % repositories.len()];
        publishers.push(tokio::spawn(async move {
            let number = number.to_string();
            match store.commit(repository, publish(vec![show(&number, &[(&number, size)])])).await {
                Ok(outcome) => applied(outcome) > 0,
                Err(StoreError::QuotaExceeded { .. }) => false,
                Err(other) => panic!("{other}"),
            }
        }));
    }
    let mut through = 0;
    for publisher in publishers {
        through += usize::from(publisher.await.unwrap());
    }
    if let Some(other) = other {
        other.close().await;
    }
    through
}

async fn concurrent_publishes_never_exceed_the_quota(world: &World) {
    limit(world, world.repository, 1999).await;
    assert_eq!(at_the_edge(world, &[world.repository], 100).await, 19);
    assert_eq!(bytes(world, world.repository).await, 1900);
}

async fn an_organizations_quota_holds_over_its_repositories(world: &World) {
    let mut repositories = vec![world.repository];
    for name in ["two", "three", "four"] {
        repositories.push(world.another(name).await);
    }
    // The new quota applies from the next publish on.
    world.wait_for_lease().await;
    world.store.look_up(world.organization, "main", None).await.unwrap();
    assert!(world.store.change_organization(world.organization, "first", Some(1250), None).await.unwrap());
    let found = world.store.look_up(world.organization, "main", None).await.unwrap();
    assert_eq!(found.organization_quota, Some(1250));
    assert_eq!(at_the_edge(world, &repositories, 100).await, 12);
    let mut sum = 0;
    for repository in &repositories {
        sum += bytes(world, *repository).await;
    }
    assert_eq!(sum, 1200);
    let quota = refused(&world.store, repositories[1], publish(vec![show("x", &[("x", 51)])])).await;
    assert_eq!(quota, ExceededQuota { of: QuotaOf::Organization, bytes: 1250, used: 1200, added: 51 });
    // The repository's own quota applies too.
    limit(world, repositories[1], 10).await;
    let quota = refused(&world.store, repositories[1], publish(vec![show("x", &[("x", 50)])])).await;
    assert_eq!(quota.of, QuotaOf::Repository);
    applied(world.store.commit(repositories[0], publish(vec![show("x", &[("x", 50)])])).await.unwrap());
}

/// Runs a fixed sequence of changes, several in one batch. The store must apply every change for
/// which the counters have room, and no other change.
async fn the_quota_uses_the_counters(world: &World) {
    let repository = world.repository;
    limit(world, repository, 500).await;
    let mut seed = 7_u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for round in 0..40 {
        let mut tasks = Vec::new();
        for _ in 0..8 {
            // A path is one file, which versions may share.
            let number = next(6).to_string();
            let path = format!("{number}/f{}", next(2));
            let change = match next(5) {
                0 => vec![hide(&number)],
                1 => vec![CatalogChange::HideFile { name: "lib".to_owned(), version: number, path }],
                2 => vec![hide(&number), show(&number, &[(&path, 40 + next(60))])],
                _ => vec![show(&number, &[(&path, 40 + next(60)), ("shared", 25)])],
            };
            let store = world.store.clone();
            tasks.push(tokio::spawn(async move { store.commit(repository, publish(change)).await }));
        }
        for task in tasks {
            match task.await.unwrap() {
                Ok(outcome) => drop(applied(outcome)),
                Err(StoreError::QuotaExceeded { quota }) => {
                    assert!(quota.used <= 500 && quota.used + quota.added > 500, "{quota:?}");
                }
                Err(other) => panic!("{other}"),
            }
        }
        let now = bytes(world, repository).await;
        assert!(now <= 500, "round {round}: {now}");
    }
    // Publishes one byte more than the quota has room for, and then exactly as much as it has room
    // for.
    let room = 500 - bytes(world, repository).await;
    if room > 0 {
        let over = publish(vec![show("last", &[("last", room + 1)])]);
        assert_eq!(refused(&world.store, repository, over).await.used, 500 - room);
        let fits = publish(vec![show("last", &[("last", room)])]);
        applied(world.store.commit(repository, fits).await.unwrap());
    }
    assert_eq!(bytes(world, repository).await, 500);
}

async fn a_declared_length_is_judged_before(world: &World) {
    let (store, repository) = (Arc::new(world.store.clone()), world.repository);
    applied(store.commit(repository, publish(vec![show("1", &[("a", 60)])])).await.unwrap());
    let exceeds = async |own: Option<u64>, organization: Option<u64>, path: &str, bytes: u64| {
        let quotas = QuotasOf { repository: own, organization };
        let exceeded = store.exceeded_by(world.organization, repository, quotas, path, bytes).await.unwrap();
        exceeded.map(|quota| (quota.of, quota.used, quota.added))
    };
    assert_eq!(exceeds(None, None, "b", u64::MAX).await, None);
    assert_eq!(exceeds(Some(100), None, "b", 40).await, None);
    assert_eq!(exceeds(Some(100), None, "b", 41).await, Some((QuotaOf::Repository, 60, 41)));
    assert_eq!(exceeds(None, Some(100), "b", 41).await, Some((QuotaOf::Organization, 60, 41)));
    // The quota does not refuse a publish at the path of an existing file. The publish replaces the
    // file, or something else refuses it.
    assert_eq!(exceeds(Some(60), None, "a", 60).await, None);
    assert_eq!(QuotasOf::new("{\"quota_bytes\":5}", None).repository, Some(5));
    assert_eq!(QuotasOf::new("{\"ca_pem\":\"quota_bytes\"}", None), QuotasOf::default());
}
