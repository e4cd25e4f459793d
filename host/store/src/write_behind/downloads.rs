//! Counts of downloads, and the tokens that made them. A request only states the path and the
//! repository. The flush that writes the counts looks up the file and version.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::DeferredWrite;
use super::fetches::{self, TokenFetch};
use crate::activity::day_of;
use crate::db::{MultiRow, Transaction, Value, signed};
use crate::digest::Sha256;
use crate::error::StoreError;
use crate::ids::{RepositoryId, TokenId};

/// A file that was sent. Values are ordered by file, so that a file's counter is written once for
/// all tokens.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Downloaded {
    /// Requested repository. For a group, the file belongs to one of its members.
    pub repository: RepositoryId,
    /// Path of the file in the repository.
    pub path: Box<str>,
    /// Digest of the bytes, if known. The digest identifies files that were requested under another
    /// name.
    pub sha256: Option<Sha256>,
    /// Token that is recorded as having fetched the version, if any.
    pub token: Option<TokenId>,
}

/// Number and time of the downloads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Downloads {
    /// Number of downloads of the file.
    pub(crate) times: u32,
    /// Downloads that also count as a fetch of the version.
    pub(crate) of_version: u32,
    /// Time of the last one, in ms since 1970.
    pub(crate) last: i64,
}

impl Downloads {
    fn and(self, other: Downloads) -> Downloads {
        Downloads {
            times: self.times.saturating_add(other.times),
            of_version: self.of_version.saturating_add(other.of_version),
            last: self.last.max(other.last),
        }
    }
}

impl DeferredWrite for Downloaded {
    type Value = Downloads;
    const INTERVAL: Duration = Duration::from_secs(10);
    /// Maximum pending rows. Above this number, downloads that need a new row are neither counted
    /// nor recorded.
    const CAPACITY: usize = 100_000;
    const NAME: &'static str = "which files were fetched";

    fn merge(one: Downloads, other: Downloads) -> Downloads {
        one.and(other)
    }

    async fn write(
        counted: &HashMap<Downloaded, Downloads>,
        transaction: &mut Transaction,
    ) -> Result<(), StoreError> {
        let found = versions_of(counted.keys(), transaction).await?;
        fetches::remember(by_token(counted, &found), transaction).await?;
        add(counted, found, transaction).await
    }
}

/// Versions whose downloads are recorded for a token.
fn by_token<'a>(
    counted: &'a HashMap<Downloaded, Downloads>,
    found: &'a HashMap<i64, Vec<FileKey>>,
) -> impl Iterator<Item = (TokenFetch<'a>, i64)> {
    (0..).zip(counted).flat_map(|(number, (what, downloads))| {
        let files = found.get(&number).into_iter().flatten();
        files.filter_map(|(repository, name, version, _)| {
            Some(((what.token?, *repository, name.as_str(), version.as_str()), downloads.last))
        })
    })
}

/// Files of these downloads, keyed by the position of the download. Paths that are not files of a
/// version are missing.
async fn versions_of<'a>(
    fetches: impl Iterator<Item = &'a Downloaded> + Clone + Send,
    transaction: &mut Transaction,
) -> Result<HashMap<i64, Vec<FileKey>>, StoreError> {
    let requested = requested(fetches, transaction).await?;
    let mut found = by_path(&requested, transaction).await?;
    let left: Vec<RequestedFile<'_>> =
        requested.into_iter().filter(|file| !found.contains_key(&file.number)).collect();
    found.extend(by_digest(&left, transaction).await?);
    Ok(found)
}

/// A download, assigned to the requested repository or to one member of a group.
struct RequestedFile<'a> {
    /// Position of the download in the batch.
    number: i64,
    /// Position of the member in its group.
    position: i64,
    repository: RepositoryId,
    what: &'a Downloaded,
}

/// A file: repository, package, version, path.
pub(super) type FileKey = (i64, String, String, String);

const GROUPS: &str = "SELECT id, members FROM repositories WHERE members <> '[]' AND id IN (VALUES ";

async fn requested<'a>(
    fetches: impl Iterator<Item = &'a Downloaded> + Clone,
    transaction: &mut Transaction,
) -> Result<Vec<RequestedFile<'a>>, StoreError> {
    let ids: BTreeMap<RepositoryId, ()> = fetches.clone().map(|what| (what.repository, ())).collect();
    let ids = ids.into_keys().map(|id| [Value::from(id.0)]).collect();
    let mut groups: HashMap<RepositoryId, Vec<i64>> = HashMap::new();
    for row in transaction.fetch_each(vec![MultiRow::new(GROUPS, ids, ")")]).await?.iter().flatten() {
        let mut columns = row.columns();
        let id = RepositoryId(columns.int("id")?);
        let members = serde_json::from_str(&columns.text("members")?)
            .map_err(|problem| StoreError::Corrupt(format!("the members of a group: {problem}")))?;
        groups.insert(id, members);
    }
    let mut requested = Vec::new();
    for (number, what) in (0..).zip(fetches) {
        let members = groups.get(&what.repository).cloned().unwrap_or_else(|| vec![what.repository.0]);
        let of = |(position, id)| RequestedFile { number, position, repository: RepositoryId(id), what };
        requested.extend((0..).zip(members).map(of));
    }
    Ok(requested)
}

// Selects the size only because no index contains it. SQLite would prefer an index with all
// selected columns, and scan the whole repository in that index.
pub(crate) const BY_PATH: [&str; 2] = [
    "WITH requested (number, position, repository, path) AS (VALUES ",
    ") SELECT a.number, a.position, f.repository, f.name, f.version, f.path, f.size FROM requested a \
      JOIN files f ON f.repository = a.repository AND f.path = a.path",
];
pub(crate) const BY_DIGEST: [&str; 2] = [
    "WITH requested (number, position, repository, sha256) AS (VALUES ",
    ") SELECT a.number, a.position, f.repository, f.name, f.version, f.path FROM requested a \
      JOIN blobs b ON b.sha256 = a.sha256 JOIN files f ON f.repository = a.repository AND f.blob = b.id",
];

/// Files with the requested path, one for each version that has it.
async fn by_path(
    requested: &[RequestedFile<'_>],
    transaction: &mut Transaction,
) -> Result<HashMap<i64, Vec<FileKey>>, StoreError> {
    let row = |file: &RequestedFile<'_>| {
        let RequestedFile { number, position, repository, what } = file;
        [Value::from(*number), Value::from(*position), Value::from(repository.0), Value::from(&*what.path)]
    };
    let [before, after] = BY_PATH;
    files(MultiRow::new(before, requested.iter().map(row).collect(), after), transaction).await
}

/// Files with the sent bytes, for example a manifest that was requested by its digest.
async fn by_digest(
    requested: &[RequestedFile<'_>],
    transaction: &mut Transaction,
) -> Result<HashMap<i64, Vec<FileKey>>, StoreError> {
    let row = |file: &RequestedFile<'_>| {
        let RequestedFile { number, position, repository, what } = file;
        let sha256 = Value::from(&what.sha256.as_ref()?.0);
        Some([Value::from(*number), Value::from(*position), Value::from(repository.0), sha256])
    };
    let [before, after] = BY_DIGEST;
    files(MultiRow::new(before, requested.iter().filter_map(row).collect(), after), transaction).await
}

/// Files by the number of the download. In a group, the files of the first member that has any are
/// used.
async fn files(
    statement: MultiRow,
    transaction: &mut Transaction,
) -> Result<HashMap<i64, Vec<FileKey>>, StoreError> {
    let mut found: HashMap<i64, (i64, Vec<FileKey>)> = HashMap::new();
    for row in transaction.fetch_each(vec![statement]).await?.iter().flatten() {
        let mut columns = row.columns();
        let (number, position) = (columns.int("number")?, columns.int("position")?);
        let (repository, name) = (columns.int("repository")?, columns.text("name")?);
        let file = (repository, name, columns.text("version")?, columns.text("path")?);
        let (first, files) = found.entry(number).or_insert((position, Vec::new()));
        if position < *first {
            (*first, *files) = (position, Vec::new());
        }
        if position == *first {
            files.push(file);
        }
    }
    Ok(found.into_iter().map(|(number, (_, files))| (number, files)).collect())
}

// A join finds each row by its whole key. `IN` over several columns would scan all files of the
// repository.
pub(crate) const FILES: [&str; 2] = [
    "WITH got (repository, name, version, path, times) AS (VALUES ",
    ") UPDATE files SET downloads = files.downloads + got.times FROM got WHERE files.repository = got.repository \
      AND files.name = got.name AND files.version = got.version AND files.path = got.path",
];
pub(crate) const VERSIONS: [&str; 2] = [
    "WITH got (repository, name, version, times, at) AS (VALUES ",
    ") UPDATE versions SET downloads = versions.downloads + got.times, last_downloaded_at = got.at FROM got \
      WHERE versions.repository = got.repository AND versions.name = got.name AND versions.version = got.version",
];
const REPOSITORIES: [&str; 2] = [
    "WITH got (repository, times) AS (VALUES ",
    ") UPDATE repository_usage SET downloads = repository_usage.downloads + got.times FROM got \
      WHERE repository_usage.repository = got.repository",
];
/// Counts by package and day, and by repository and day under an empty name.
const DAYS: [&str; 2] = [
    "INSERT INTO activity (repository, name, day, downloads) VALUES ",
    " ON CONFLICT (repository, name, day) DO UPDATE SET downloads = activity.downloads + excluded.downloads",
];

/// Adds to the counters in one global order, so that two servers never deadlock.
async fn add(
    counted: &HashMap<Downloaded, Downloads>,
    found: HashMap<i64, Vec<FileKey>>,
    transaction: &mut Transaction,
) -> Result<(), StoreError> {
    let mut files: BTreeMap<FileKey, Downloads> = BTreeMap::new();
    let mut versions: BTreeMap<(i64, String, String), Downloads> = BTreeMap::new();
    let mut repositories: BTreeMap<i64, u64> = BTreeMap::new();
    let mut days: BTreeMap<(i64, String, i64), u64> = BTreeMap::new();
    for (number, downloads) in (0..).zip(counted.values()) {
        for (at, file) in found.get(&number).into_iter().flatten().enumerate() {
            let version = (file.0, file.1.clone(), file.2.clone());
            let sum = |known: &mut Downloads| *known = known.and(*downloads);
            files.entry(file.clone()).and_modify(sum).or_insert(*downloads);
            versions.entry(version).and_modify(sum).or_insert(*downloads);
            if at == 0 {
                *repositories.entry(file.0).or_default() += u64::from(downloads.of_version);
                for name in [String::new(), file.1.clone()].into_iter().filter(|_| downloads.of_version > 0) {
                    *days.entry((file.0, name, day_of(downloads.last))).or_default() +=
                        u64::from(downloads.of_version);
                }
            }
        }
    }
    let file = |((repository, name, version, path), downloads): (FileKey, Downloads)| {
        [repository.into(), name.into(), version.into(), path.into(), i64::from(downloads.times).into()]
    };
    let version = |((repository, name, version), downloads): ((i64, String, String), Downloads)| {
        let times = Value::from(i64::from(downloads.of_version));
        [repository.into(), name.into(), version.into(), times, downloads.last.into()]
    };
    let repository = |(id, times): (i64, u64)| [Value::from(id), Value::from(signed(times))];
    let day = |((repository, name, day), times): ((i64, String, i64), u64)| {
        [Value::from(repository), name.into(), day.into(), signed(times).into()]
    };
    let statements = vec![
        MultiRow::new(REPOSITORIES[0], repositories.into_iter().map(repository).collect(), REPOSITORIES[1]),
        MultiRow::new(VERSIONS[0], versions.into_iter().map(version).collect(), VERSIONS[1]),
        MultiRow::new(FILES[0], files.into_iter().map(file).collect(), FILES[1]),
        MultiRow::new(DAYS[0], days.into_iter().map(day).collect(), DAYS[1]),
    ];
    transaction.execute_each(statements).await.map(drop)
}
