//! Measures durable publishes a second: `commit_rate FOLDER [WRITERS] [SECONDS] [GROWN TO]`.
//!
//! With GROWN TO it also measures a store with that many artifacts, and compares both rates.
//! `DATABASE_URL` selects another database than the one in the folder. A run reuses the data that
//! an earlier run left in the folder.
//!
//! Each publish stores a jar of 4 KiB: a blob, a record that names the blob, a version record, a
//! catalog file and an event. It also requires that one record is absent. The names are random, so
//! two publishes rarely touch the same index page. The output shows the rate, the latency, and the
//! CPU time and written bytes for each publish.

mod fill;

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
    let (writers, seconds, grown) = (number(1, 8), number(2, 5), number(3, 0));
    let (place, empty) = measure(&config, "an empty store", writers, seconds).await?;
    if grown > 0 {
        let since = Instant::now();
        fill::fill(&config.database_url, place.organization, place.repository, grown).await?;
        println!("filled with {grown} artifacts in {:.0} s", since.elapsed().as_secs_f64());
        let (_, then) = measure(&config, &format!("{grown} artifacts"), writers, seconds).await?;
        println!("{:.2} of the rate into an empty store", then / empty);
    }
    Ok(())
}

/// Publishes for the given number of seconds. Returns the repository and the publishes a second.
async fn measure(
    config: &StoreConfig,
    what: &str,
    writers: u64,
    seconds: u64,
) -> Result<(BenchRepository, f64), StoreError> {
    let store = Store::open(config.clone()).await?;
    let place = place(&store).await?;
    publish(&store, place, writers, Instant::now() + Duration::from_secs(seconds / 4)).await?;
    let begun = Instant::now();
    let (statements, used) = (store.statements(), ResourceUse::now()?);
    let mut took = publish(&store, place, writers, begun + Duration::from_secs(seconds)).await?;
    let (done, used) = (took.len().max(1) as f64, ResourceUse::now()?.since(&used));
    let rate = done / begun.elapsed().as_secs_f64();
    let statements = (store.statements() - statements) as f64 / done;
    took.sort_unstable();
    let within = |part: usize| took.get((took.len() * part / 1000).min(took.len().saturating_sub(1)));
    let [half, most, worst] =
        [500, 990, 1000].map(|part| within(part).copied().unwrap_or_default().as_secs_f64() * 1e3);
    println!("{what}: {rate:.0} publishes/s by {writers} writers; {statements:.2} statements each");
    println!(
        "  each: {half:.1} ms (99 %: {most:.1} ms, worst {worst:.1} ms), {:.0} us of CPU, {:.1} KiB written",
        used.cpu_us / done,
        used.written / done / 1024.0
    );
    store.close().await;
    Ok((place, rate))
}

/// CPU time and bytes written of this process.
struct ResourceUse {
    cpu_us: f64,
    written: f64,
}

impl ResourceUse {
    /// Reads `/proc`, where a tick is a hundredth of a second.
    fn now() -> Result<ResourceUse, StoreError> {
        let read =
            |path: &str| std::fs::read_to_string(path).map_err(|why| StoreError::Invalid(why.to_string()));
        let (stat, io) = (read("/proc/self/stat")?, read("/proc/self/io")?);
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
        let written = io.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok());
        Ok(ResourceUse { cpu_us: ticks * 1e4, written: written.unwrap_or_default() })
    }

    fn since(self, before: &ResourceUse) -> ResourceUse {
        ResourceUse { cpu_us: self.cpu_us - before.cpu_us, written: self.written - before.written }
    }
}

#[derive(Clone, Copy)]
struct BenchRepository {
    repository: RepositoryId,
    organization: OrganizationId,
}

async fn publish(
    store: &Store,
    place: BenchRepository,
    writers: u64,
    end: Instant,
) -> Result<Vec<Duration>, StoreError> {
    let tasks: Vec<_> = (0..writers).map(|_| tokio::spawn(write(store.clone(), place, end))).collect();
    let mut took = Vec::new();
    for task in tasks {
        took.extend(task.await.map_err(|problem| StoreError::Invalid(problem.to_string()))??);
    }
    Ok(took)
}

async fn write(store: Store, place: BenchRepository, end: Instant) -> Result<Vec<Duration>, StoreError> {
    let mut took = Vec::new();
    while Instant::now() < end {
        let commit = one(rand::random(), place.organization).await?;
        let since = Instant::now();
        match store.commit(place.repository, commit).await? {
            Outcome::Applied(_) => took.push(since.elapsed()),
            other => return Err(StoreError::Invalid(format!("{other:?}"))),
        };
    }
    Ok(took)
}

async fn one(id: u64, organization: OrganizationId) -> Result<Commit, StoreError> {
    let mut bytes = vec![0; 4096];
    rand::fill(bytes.as_mut_slice());
    let blob = Blob::from_bytes(Bytes::from(bytes));
    let sha256 = blob.sha256().await?;
    let (name, number) = (format!("org.example:lib{:03}", id % 1000), format!("{id:016x}"));
    let path = format!("org/example/lib{:03}/{id:016x}/lib-{id:016x}.jar", id % 1000);
    let file = VersionFile { path: path.clone(), digest: sha256.digest(), size: 4096 };
    let properties = [("group", "org.example".to_owned()), ("artifact", format!("lib{:03}", id % 1000))];
    let version = Version {
        summary: format!("{name}:{number}"),
        name: name.clone(),
        version: number.clone(),
        files: vec![file],
        properties: properties.map(|(name, value)| (name.to_owned(), value)).to_vec(),
        ..Version::default()
    };
    let value = Bytes::from(format!("{{\"sha256\":\"{sha256}\",\"size\":4096,\"modified\":1700000000000}}"));
    let put = |key: String, expect, value, blobs| Change::Put { key, value, expect, blobs };
    let changes = vec![
        put(format!("file/{path}"), Expectation::Absent, value, vec![sha256]),
        Change::Require { key: format!("held/{path}"), expect: Expectation::Absent },
        put(format!("version/{name}:{number}"), Expectation::Anything, Bytes::from("1700000000000"), vec![]),
    ];
    let audit = Some(AuditEvent {
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
        changes,
        catalog: vec![CatalogChange::Show(version)],
        keeps: vec![blob],
        audit,
        ..Commit::default()
    })
}

async fn place(store: &Store) -> Result<BenchRepository, StoreError> {
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
        name: "bench".to_owned(),
        format: "maven".to_owned(),
        kind: "hosted".to_owned(),
        public: false,
        settings: "{}".to_owned(),
        upstream: None,
        members: Vec::new(),
    };
    let organization = organization.id;
    let repository = match store.create_repository(organization, new, None).await? {
        Some(made) => Some(made),
        None => store.list_repositories(organization, None, 1).await?.pop(),
    };
    let repository = repository.ok_or_else(|| StoreError::Invalid("no repository".to_owned()))?.id;
    Ok(BenchRepository { repository, organization })
}
