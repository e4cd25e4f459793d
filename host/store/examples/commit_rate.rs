//! How many publishes a second are made durable: `commit_rate FOLDER [WRITERS] [SECONDS] [RECORDS BEFOREHAND]`.
//!
//! A publish is a 4 KiB blob, a record that names it, and a file shown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use packhouse_store::{
    AuditEvent, Blob, CatalogChange, Change, Commit, Expectation, NewMember, NewOrganization, NewRepository,
    OrganizationId, Outcome, RepositoryId, Store, StoreConfig, StoreError, Version, VersionFile,
};

#[tokio::main]
async fn main() -> Result<(), StoreError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |at: usize, default: u64| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let mut config = StoreConfig::new(arguments.first().cloned().unwrap_or_else(|| "commit-rate".to_owned()));
    if let Ok(url) = std::env::var("DATABASE_URL") {
        config.database_url = url;
    }
    let store = Store::open(config).await?;
    let place = place(&store).await?;
    let (writers, seconds, before) = (number(1, 8), number(2, 5), number(3, 0));
    if before > 0 {
        publish(&store, place, 64, Stop::After(before)).await?;
    }
    let begun = Instant::now();
    let (statements, done) = (
        store.statements(),
        publish(&store, place, writers, Stop::At(begun + Duration::from_secs(seconds))).await?,
    );
    let rate = done as f64 / begun.elapsed().as_secs_f64();
    let statements = (store.statements() - statements) as f64 / done as f64;
    println!("{rate:.0} publishes/s by {writers} writers after {before}; {statements:.2} statements each");
    store.close().await;
    Ok(())
}

#[derive(Clone, Copy)]
struct Place {
    repository: RepositoryId,
    /// The organization in which each publish is an event as well: with `AUDIT` set.
    audited: Option<OrganizationId>,
}

#[derive(Clone, Copy)]
enum Stop {
    At(Instant),
    After(u64),
}

async fn publish(store: &Store, place: Place, writers: u64, stop: Stop) -> Result<u64, StoreError> {
    let done = Arc::new(AtomicU64::new(0));
    let tasks: Vec<_> =
        (0..writers).map(|_| tokio::spawn(write(store.clone(), place, stop, Arc::clone(&done)))).collect();
    for task in tasks {
        task.await.map_err(|problem| StoreError::Invalid(problem.to_string()))??;
    }
    Ok(done.load(Ordering::Relaxed))
}

async fn write(store: Store, place: Place, stop: Stop, done: Arc<AtomicU64>) -> Result<(), StoreError> {
    loop {
        let over = match stop {
            Stop::At(end) => Instant::now() >= end,
            Stop::After(count) => done.load(Ordering::Relaxed) >= count,
        };
        if over {
            return Ok(());
        }
        let commit = one(rand::random(), place.audited).await?;
        match store.commit(place.repository, commit).await? {
            Outcome::Applied(_) => done.fetch_add(1, Ordering::Relaxed),
            other => return Err(StoreError::Invalid(format!("{other:?}"))),
        };
    }
}

async fn one(id: u64, organization: Option<OrganizationId>) -> Result<Commit, StoreError> {
    let blob = Blob::from_bytes(Bytes::from(id.to_le_bytes().repeat(512)));
    let sha256 = blob.sha256().await?;
    let path = format!("org/example/lib{:03}/{id:016x}/lib-{id:016x}.jar", id % 1000);
    let file = VersionFile { path: path.clone(), digest: sha256.digest(), size: 4096 };
    let version = Version {
        name: format!("org.example:lib{:03}", id % 1000),
        version: format!("{id:016x}"),
        files: vec![file],
        ..Version::default()
    };
    let value = Bytes::from(format!("{{\"sha256\":\"{sha256}\",\"size\":4096,\"modified\":1700000000000}}"));
    let change =
        Change::Put { key: format!("file/{path}"), value, expect: Expectation::Absent, blobs: vec![sha256] };
    let audit = organization.map(|organization| AuditEvent {
        organization,
        actor: "owner@localhost".to_owned(),
        credential: "token:3759482716253184".to_owned(),
        action: "publish".to_owned(),
        subject: format!("bench/{path}"),
        address: "127.0.0.1".to_owned(),
        request_id: format!("{id:024x}"),
        detail: String::new(),
    });
    Ok(Commit {
        changes: vec![change],
        catalog: vec![CatalogChange::Show(version)],
        keeps: vec![blob],
        audit,
        ..Commit::default()
    })
}

async fn place(store: &Store) -> Result<Place, StoreError> {
    let organization = NewOrganization { name: "bench".to_owned(), base_url: None, host: None };
    let owner = NewMember {
        email: "owner@localhost".to_owned(),
        name: "Owner".to_owned(),
        password_hash: String::new(),
        permissions: "{}".to_owned(),
    };
    store.bootstrap(organization, owner).await?;
    let organizations = store.organizations().await?;
    let organization =
        organizations.first().ok_or_else(|| StoreError::Invalid("no organization".to_owned()))?;
    let new = NewRepository {
        name: format!("bench-{}", packhouse_store::now_ms()),
        format: "maven".to_owned(),
        kind: "hosted".to_owned(),
        public: false,
        settings: "{}".to_owned(),
        upstream: None,
        members: Vec::new(),
    };
    let made = store.create_repository(organization.id, new, None).await?;
    let made = made.ok_or_else(|| StoreError::Invalid("the name is in use".to_owned()))?;
    let audited = std::env::var_os("AUDIT").map(|_| organization.id);
    Ok(Place { repository: made.id, audited })
}
