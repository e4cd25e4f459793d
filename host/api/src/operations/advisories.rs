//! Advisories about packages: for versions on a page, and for OSV queries of other programs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use packhouse_advisories::{Advisory, Severity};
use packhouse_runtime::Plugin;
use packhouse_store::{AdvisoryFilter, ListedAdvisory, RepositoryRow};
use packhouse_wire::catalogue;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Actor, Origin, loaded};
use crate::error::ApiError;

/// Maximum number of records on one page.
const MAX_FOUND: usize = 500;
/// Size of records in bytes after which a page ends.
const MAX_FOUND_BYTES: usize = 4 << 20;
/// Maximum number of records in all results of a batch.
const MAX_BATCH_FOUND: usize = 20_000;
/// Time after which a batch postpones the remaining queries.
const BATCH_TIME: Duration = Duration::from_secs(5);
/// Maximum number of OSV calls at a time.
const MAX_CALLS: usize = 4;
/// Time for which an OSV call waits for its turn.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Page token of a query that was not answered at all. It contains a space, so it is not the id of
/// an advisory.
const FIRST_PAGE: &str = "first page";

static TURNS: Semaphore = Semaphore::const_new(MAX_CALLS);

/// Advisory about a version, for display with the version.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Identifier of the advisory, such as `GHSA-…`.
    pub id: String,
    pub severity: Severity,
    /// True if the version is malware.
    pub malware: bool,
    /// Summary in one line of text.
    pub summary: String,
    /// Versions in which it is fixed.
    pub fixed: Vec<String>,
    /// Address of its description; empty if it has none.
    pub url: String,
}

impl From<Arc<Advisory>> for Mark {
    fn from(advisory: Arc<Advisory>) -> Mark {
        Mark {
            id: advisory.id.clone(),
            severity: advisory.severity,
            malware: advisory.malware,
            summary: advisory.summary.clone(),
            fixed: advisory.affected.fixed().into_iter().map(str::to_owned).collect(),
            url: advisory.url.clone(),
        }
    }
}

/// Returns the advisories about each of these versions of a package, the most severe first. It does
/// not check a right: whoever may see the versions may see these.
pub async fn of_versions(
    actor: &Actor,
    repository: &RepositoryRow,
    package: &str,
    versions: &[String],
) -> Result<Vec<Vec<Mark>>, ApiError> {
    of_format(actor, &repository.format, package, versions).await
}

/// Same as [`of_versions`], for the name of a format.
pub async fn of_format(
    actor: &Actor,
    format: &str,
    package: &str,
    versions: &[String],
) -> Result<Vec<Vec<Mark>>, ApiError> {
    let app = &actor.app;
    let Some(plugin) = loaded::plugin(app, format)?.filter(|_| app.advisories.number() != 0) else {
        return Ok(vec![Vec::new(); versions.len()]);
    };
    let found = app.advisories.of_versions(&plugin, package, versions).await?;
    let sorted = |of: Vec<Arc<Advisory>>| {
        let mut marks: Vec<Mark> = of.into_iter().map(Mark::from).collect();
        marks.sort_by(|one, other| (other.severity, &one.id).cmp(&(one.severity, &other.id)));
        marks
    };
    Ok(found.into_iter().map(sorted).collect())
}

#[derive(Debug)]
pub struct AdvisoryPage {
    pub advisories: Vec<ListedAdvisory>,
    /// Start of the next page.
    pub next: Option<String>,
}

/// Returns a page of all advisories or of those about one package, by id.
pub async fn list(actor: &Actor, filter: AdvisoryFilter, limit: u32) -> Result<AdvisoryPage, ApiError> {
    actor.judged_own();
    let mut advisories = actor.app.store.list_advisories(&filter, limit + 1).await?;
    let more = advisories.len() > limit as usize;
    advisories.truncate(limit as usize);
    let next = advisories.last().filter(|_| more).map(|last| last.id.clone());
    Ok(AdvisoryPage { advisories, next })
}

/// Returns a record as JSON. 404 `not_found` if it does not exist.
pub async fn record(origin: &Origin, id: &str) -> Result<String, ApiError> {
    origin.app.store.advisory(id).await?.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct AdvisoryQuery {
    /// OSV name of the ecosystem.
    pub ecosystem: String,
    pub name: String,
    /// Version; `None` for all advisories about the package.
    pub version: Option<String>,
    /// Page token of an earlier response; empty for the first page.
    pub after: String,
}

#[derive(Debug, Default)]
pub struct AdvisoryRecords {
    /// Records as JSON, by id.
    pub records: Vec<String>,
    /// Page token of the next page; `None` on the last page.
    pub next: Option<String>,
}

/// Result of one query of a batch.
#[derive(Clone, Debug, Default)]
pub struct BatchAnswer {
    /// Advisories by id. Equal queries share them.
    pub found: Arc<[Arc<Advisory>]>,
    /// Page token of the next page; `None` on the last page.
    pub next: Option<String>,
}

impl BatchAnswer {
    /// Result of a query that the client must repeat.
    fn postponed(query: &AdvisoryQuery) -> BatchAnswer {
        let next = if query.after.is_empty() { FIRST_PAGE } else { &query.after };
        BatchAnswer { found: Arc::default(), next: Some(next.to_owned()) }
    }
}

/// Returns the records about a package or one of its versions, by id. 503 `server_busy` if too many
/// OSV calls run.
pub async fn answer(origin: &Origin, query: &AdvisoryQuery) -> Result<AdvisoryRecords, ApiError> {
    let _turn = turn().await?;
    let (mut answered, mut bytes, mut last) = (AdvisoryRecords::default(), 0, None);
    for advisory in matching(origin, query).await? {
        if answered.records.len() == MAX_FOUND || bytes > MAX_FOUND_BYTES {
            answered.next = last;
            break;
        }
        let Some(record) = origin.app.store.advisory(&advisory.id).await? else { continue };
        bytes += record.len();
        last = Some(advisory.id.clone());
        answered.records.push(record);
    }
    Ok(answered)
}

/// Returns the advisories for several queries, in their order. A query that exceeds the time or
/// size limit is postponed: its result has only the token of its next page. The first query is
/// never postponed. 503 `server_busy` if too many OSV calls run.
pub async fn answer_batch(origin: &Origin, queries: &[AdvisoryQuery]) -> Result<Vec<BatchAnswer>, ApiError> {
    let _turn = turn().await?;
    let (until, mut room) = (Instant::now() + BATCH_TIME, MAX_BATCH_FOUND);
    let mut answers: HashMap<&AdvisoryQuery, BatchAnswer> = HashMap::new();
    let mut all = Vec::with_capacity(queries.len());
    for query in queries {
        let has_time = answers.is_empty() || Instant::now() < until;
        if has_time && room > 0 && !answers.contains_key(query) {
            answers.insert(query, page(matching(origin, query).await?));
        }
        let answered = answers.get(query).filter(|answered| answered.found.len() <= room);
        // After a query that exceeds the limit, all further ones are postponed.
        room = answered.map_or(0, |answered| room - answered.found.len());
        all.push(answered.cloned().unwrap_or_else(|| BatchAnswer::postponed(query)));
    }
    Ok(all)
}

async fn turn() -> Result<SemaphorePermit<'static>, ApiError> {
    let turn = tokio::time::timeout(MAX_WAIT, TURNS.acquire()).await;
    turn.ok().and_then(Result::ok).ok_or(ApiError::from(&catalogue::SERVER_BUSY))
}

fn page(mut matching: Vec<Arc<Advisory>>) -> BatchAnswer {
    let more = matching.len() > MAX_FOUND;
    matching.truncate(MAX_FOUND);
    let next = matching.last().filter(|_| more).map(|last| last.id.clone());
    BatchAnswer { found: matching.into(), next }
}

/// Returns all advisories about a package or one of its versions, after the query's page token.
async fn matching(origin: &Origin, query: &AdvisoryQuery) -> Result<Vec<Arc<Advisory>>, ApiError> {
    let AdvisoryQuery { ecosystem, name, version, after } = query;
    let app = &origin.app;
    let current = app.runtime.current();
    let plugin = current.plugins().iter().find(|plugin| plugin.description().ecosystem == *ecosystem);
    if plugin.is_none() {
        loaded::all(app)?;
    }
    let folding = plugin.map(|plugin| plugin.description().name_folding).unwrap_or_default();
    let mut matching = match (plugin, version) {
        (Some(plugin), Some(version)) => of_version(origin, plugin, name, version).await?,
        (_, None) => app.advisories.of_named(ecosystem, folding, name).await?.to_vec(),
        (None, Some(version)) => {
            let matching = app.advisories.of_named(ecosystem, folding, name).await?;
            let is_about = |it: &&Arc<Advisory>| it.affected.covers_without_order(version);
            matching.iter().filter(is_about).cloned().collect()
        }
    };
    if after != FIRST_PAGE {
        matching.retain(|advisory| advisory.id > *after);
    }
    Ok(matching)
}

async fn of_version(
    origin: &Origin,
    plugin: &Plugin,
    name: &str,
    version: &str,
) -> Result<Vec<Arc<Advisory>>, ApiError> {
    let versions = [version.to_owned()];
    let found = origin.app.advisories.of_versions(plugin, name, &versions).await?;
    Ok(found.into_iter().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_limit_and_the_token_of_the_next_page() {
        let matching = |count: usize| -> Vec<Arc<Advisory>> {
            let id = |number| Advisory { id: format!("A-{number:04}"), ..Advisory::default() };
            (0..count).map(|number| Arc::new(id(number))).collect()
        };
        let whole = page(matching(MAX_FOUND));
        assert_eq!((whole.found.len(), whole.next), (MAX_FOUND, None));
        let first = page(matching(MAX_FOUND + 1));
        assert_eq!((first.found.len(), first.next.as_deref()), (MAX_FOUND, Some("A-0499")));
    }

    #[test]
    fn a_postponed_query_continues_where_it_stopped() {
        let query_after = |after: &str| AdvisoryQuery { after: after.to_owned(), ..AdvisoryQuery::default() };
        for (after, next) in [("", FIRST_PAGE), (FIRST_PAGE, FIRST_PAGE), ("A-1", "A-1")] {
            let answered = BatchAnswer::postponed(&query_after(after));
            assert_eq!((answered.found.len(), answered.next.as_deref()), (0, Some(next)));
        }
    }
}
