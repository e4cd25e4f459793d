//! Packages that were published or downloaded lately.
//!
//! No index orders packages by these numbers, so a ranking reads all packages of a few
//! repositories. It is reused while the counters of these repositories stay the same. While they
//! change, a ranking that took long is reused for a multiple of that time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;

use super::{RankedRepository, numbered};
use crate::activity::{ACTIVITY_DAYS, day_of};
use crate::boxed;
use crate::db::{MultiRow, Row, Value, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;
use crate::usage::RepositoryUsage;

/// Number of highlighted packages in each ranking.
pub const HIGHLIGHTS: u32 = 8;
/// Maximum number of rankings that are cached.
const CACHED: usize = 1_000;
/// Multiple of the duration of a slow ranking for which it is reused although counters changed.
const REUSED_FOR: u32 = 20;
/// Duration from which a ranking is slow.
const SLOW: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Highlight {
    /// Packages with the latest publish or change of state first.
    Newest,
    /// Most downloads in the last [`ACTIVITY_DAYS`] days first.
    MostDownloaded,
}

/// A highlighted package with its latest version.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HighlightedPackage {
    pub repository: RepositoryId,
    pub name: String,
    /// Version that was published last.
    pub latest: String,
    pub summary: String,
    pub state: String,
    /// Publication time of that version, in ms since 1970.
    pub published_at: i64,
    /// Downloads in the last [`ACTIVITY_DAYS`] days; 0 in the ranking by publishes.
    pub downloads: u64,
}

/// Rankings of packages, by the repositories that they cover.
pub(crate) struct Rankings(Cache<(Highlight, Vec<RepositoryId>), Arc<Ranking>>);

impl Default for Rankings {
    fn default() -> Rankings {
        Rankings(Cache::new(CACHED))
    }
}

struct Ranking {
    /// Today, and the counters of the repositories, on which the ranking depends.
    counted: Counted,
    at: Instant,
    took: Duration,
    packages: Vec<RankedPackage>,
}

impl Ranking {
    fn is_slow_and_recent(&self) -> bool {
        self.took >= SLOW && self.at.elapsed() < self.took.saturating_mul(REUSED_FOR)
    }
}

type Counted = (i64, Vec<RepositoryUsage>);

#[derive(Clone)]
struct RankedPackage {
    repository: RepositoryId,
    name: String,
    /// Number by which the packages are ranked.
    number: i64,
}

/// Latest version of each package. The result leaves out packages without a version.
const LATEST: [&str; 2] = [
    "WITH requested (repository, name) AS (VALUES ",
    ") SELECT v.repository, v.name, v.version, v.summary, v.state, COALESCE(v.published, v.shown_at) AS published_at \
      FROM requested JOIN versions v ON v.repository = requested.repository AND v.name = requested.name AND v.version = \
        (SELECT l.version FROM versions l WHERE l.repository = requested.repository AND l.name = requested.name \
         ORDER BY COALESCE(l.published, l.shown_at) DESC, l.version DESC LIMIT 1)",
];

impl Store {
    /// The first [`HIGHLIGHTS`] packages of these repositories in this ranking. The ranking of busy
    /// repositories may be a little old; the details are always current.
    #[boxed]
    pub async fn highlighted_packages(
        &self,
        highlight: Highlight,
        repositories: &[RankedRepository],
    ) -> Result<Vec<HighlightedPackage>, StoreError> {
        if repositories.is_empty() {
            return Ok(Vec::new());
        }
        let ranked = self.ranking(highlight, repositories).await?;
        if ranked.is_empty() {
            return Ok(Vec::new());
        }
        let keys = ranked.iter().map(|one| [Value::from(one.repository.0), Value::from(one.name.as_str())]);
        let [before, after] = LATEST;
        let statement = MultiRow::new(before, keys.collect(), after);
        let mut found = HashMap::new();
        for row in &self.inner.db.fetch_multi_row(statement).await? {
            let package = highlighted(row)?;
            found.insert((package.repository, package.name.clone()), package);
        }
        let mut packages = Vec::with_capacity(found.len());
        for one in ranked {
            let Some(package) = found.remove(&(one.repository, one.name)) else { continue };
            let downloads = match highlight {
                Highlight::Newest => 0,
                Highlight::MostDownloaded => u64::try_from(one.number).unwrap_or_default(),
            };
            packages.push(HighlightedPackage { downloads, ..package });
        }
        Ok(packages)
    }

    /// Returns the cached ranking, or ranks the packages.
    async fn ranking(
        &self,
        highlight: Highlight,
        repositories: &[RankedRepository],
    ) -> Result<Vec<RankedPackage>, StoreError> {
        let today = day_of(self.now_ms());
        let mut order: Vec<&RankedRepository> = repositories.iter().collect();
        order.sort_unstable_by_key(|one| one.id);
        let ids: Vec<RepositoryId> = order.iter().map(|one| one.id).collect();
        let counted: Counted = (today, order.iter().map(|one| relevant(highlight, one.usage)).collect());
        let (key, cache) = ((highlight, ids), &self.inner.rankings.0);
        if let Some(known) = cache.get(&key)
            && (known.counted == counted || known.is_slow_and_recent())
        {
            return Ok(known.packages.clone());
        }
        let at = Instant::now();
        let packages = self.rank(highlight, &key.1, today).await?;
        let ranking = Ranking { counted, at, took: at.elapsed(), packages: packages.clone() };
        cache.insert(key, Arc::new(ranking));
        Ok(packages)
    }

    async fn rank(
        &self,
        highlight: Highlight,
        ids: &[RepositoryId],
        today: i64,
    ) -> Result<Vec<RankedPackage>, StoreError> {
        let mut values = values![i64::from(HIGHLIGHTS)];
        let sql = match highlight {
            Highlight::Newest => format!(
                "SELECT repository, name, updated_at AS number FROM packages WHERE repository IN ({}) \
                 ORDER BY updated_at DESC, repository, name LIMIT $1",
                numbered(ids, &mut values)
            ),
            Highlight::MostDownloaded => {
                values.push(Value::from(today - ACTIVITY_DAYS + 1));
                format!(
                    "SELECT repository, name, CAST(SUM(downloads) AS BIGINT) AS number FROM activity \
                     WHERE day >= $2 AND name > '' AND downloads > 0 AND repository IN ({}) \
                     GROUP BY repository, name ORDER BY number DESC, repository, name LIMIT $1",
                    numbered(ids, &mut values)
                )
            }
        };
        let rows = self.inner.db.fetch(sql, values).await?;
        rows.iter().map(ranked).collect()
    }
}

/// Returns the counters that change whenever the ranking of a repository's packages may change.
fn relevant(highlight: Highlight, usage: RepositoryUsage) -> RepositoryUsage {
    match highlight {
        Highlight::Newest => RepositoryUsage { downloads: 0, ..usage },
        Highlight::MostDownloaded => {
            RepositoryUsage { downloads: usage.downloads, ..RepositoryUsage::default() }
        }
    }
}

fn ranked(row: &Row) -> Result<RankedPackage, StoreError> {
    let mut columns = row.columns();
    Ok(RankedPackage {
        repository: RepositoryId(columns.int("repository")?),
        name: columns.text("name")?,
        number: columns.int("number")?,
    })
}

fn highlighted(row: &Row) -> Result<HighlightedPackage, StoreError> {
    let mut columns = row.columns();
    Ok(HighlightedPackage {
        repository: RepositoryId(columns.int("repository")?),
        name: columns.text("name")?,
        latest: columns.text("version")?,
        summary: columns.text("summary")?,
        state: columns.text("state")?,
        published_at: columns.int("published_at")?,
        downloads: 0,
    })
}
