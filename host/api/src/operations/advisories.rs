//! What is known to be wrong with packages: of versions that people look at, and as other programs ask for it.

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

/// Records of one page of an answer.
const MAX_FOUND: usize = 500;
/// Bytes of records after which a page ends.
const MAX_FOUND_BYTES: usize = 4 << 20;
/// Records that all answers to a batch of questions name together.
const MAX_BATCH_FOUND: usize = 20_000;
/// Time after which a batch answers no further question.
const BATCH_TIME: Duration = Duration::from_secs(5);
/// Calls with questions that are answered at one time.
const AT_ONE_TIME: usize = 4;
/// How long a call with questions waits for its turn.
const PATIENCE: Duration = Duration::from_secs(2);
/// The page token of a question that was not answered at all. It has a blank, so it is the id of no advisory.
const FIRST_PAGE: &str = "first page";

static TURNS: Semaphore = Semaphore::const_new(AT_ONE_TIME);

/// An advisory about a version, as it is shown beside that.
#[derive(Clone, Debug)]
pub struct Mark {
    /// As `GHSA-…`.
    pub id: String,
    /// How bad it is.
    pub severity: Severity,
    /// Whether the version does harm by itself.
    pub malware: bool,
    /// One line.
    pub summary: String,
    /// Versions that fix it.
    pub fixed: Vec<String>,
    /// Where it is described; empty: nowhere.
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

/// The advisories about each of these versions of a package, in their order, the worst first. No right is judged: whoever sees the versions
/// may see these.
pub async fn of_versions(
    actor: &Actor,
    repository: &RepositoryRow,
    package: &str,
    versions: &[String],
) -> Result<Vec<Vec<Mark>>, ApiError> {
    of_format(actor, &repository.format, package, versions).await
}

/// The same by the name of the format.
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

/// A page of advisories.
#[derive(Debug)]
pub struct AdvisoryPage {
    /// What is on it.
    pub advisories: Vec<ListedAdvisory>,
    /// Where the next begins.
    pub next: Option<String>,
}

/// A page of all advisories, or of those about one package, by id.
pub async fn list(actor: &Actor, filter: AdvisoryFilter, limit: u32) -> Result<AdvisoryPage, ApiError> {
    actor.judged_own();
    let mut advisories = actor.app.store.list_advisories(&filter, limit + 1).await?;
    let more = advisories.len() > limit as usize;
    advisories.truncate(limit as usize);
    let next = advisories.last().filter(|_| more).map(|last| last.id.clone());
    Ok(AdvisoryPage { advisories, next })
}

/// The record of this id, as JSON: 404 `not_found` where there is none.
pub async fn record(origin: &Origin, id: &str) -> Result<String, ApiError> {
    origin.app.store.advisory(id).await?.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Which advisories a program asks for.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Question {
    /// As OSV calls it.
    pub ecosystem: String,
    /// The package.
    pub name: String,
    /// The version; all that are about the package where there is none.
    pub version: Option<String>,
    /// The page token of an earlier answer; empty for the first page.
    pub after: String,
}

/// The records that answer a question.
#[derive(Debug, Default)]
pub struct Answered {
    /// Records as JSON, by id.
    pub records: Vec<String>,
    /// Where the next page begins; none on the last.
    pub next: Option<String>,
}

/// The advisories that answer a question of a batch.
#[derive(Clone, Debug, Default)]
pub struct BatchAnswered {
    /// By id. Equal questions share them.
    pub found: Arc<[Arc<Advisory>]>,
    /// Where the next page begins; none on the last.
    pub next: Option<String>,
}

impl BatchAnswered {
    /// The answer to a question that has to be asked again.
    fn postponed(question: &Question) -> BatchAnswered {
        let next = if question.after.is_empty() { FIRST_PAGE } else { &question.after };
        BatchAnswered { found: Arc::default(), next: Some(next.to_owned()) }
    }
}

/// The records about a package or a version of it, by id. 503 `server_busy` where too many calls ask.
pub async fn answer(origin: &Origin, question: &Question) -> Result<Answered, ApiError> {
    let _turn = turn().await?;
    let (mut answered, mut bytes, mut last) = (Answered::default(), 0, None);
    for advisory in known(origin, question).await? {
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

/// The advisories for several questions, in their order. A question that finds no room or no time any more has a token of its next page
/// and nothing else. The first question always has both. 503 `server_busy` where too many calls ask.
pub async fn answer_together(
    origin: &Origin,
    questions: &[Question],
) -> Result<Vec<BatchAnswered>, ApiError> {
    let _turn = turn().await?;
    let (until, mut room) = (Instant::now() + BATCH_TIME, MAX_BATCH_FOUND);
    let mut answers: HashMap<&Question, BatchAnswered> = HashMap::new();
    let mut all = Vec::with_capacity(questions.len());
    for question in questions {
        let has_time = answers.is_empty() || Instant::now() < until;
        if has_time && room > 0 && !answers.contains_key(question) {
            answers.insert(question, page(known(origin, question).await?));
        }
        let answered = answers.get(question).filter(|answered| answered.found.len() <= room);
        // Behind one that finds no room none is judged any more.
        room = answered.map_or(0, |answered| room - answered.found.len());
        all.push(answered.cloned().unwrap_or_else(|| BatchAnswered::postponed(question)));
    }
    Ok(all)
}

async fn turn() -> Result<SemaphorePermit<'static>, ApiError> {
    let turn = tokio::time::timeout(PATIENCE, TURNS.acquire()).await;
    turn.ok().and_then(Result::ok).ok_or(ApiError::from(&catalogue::SERVER_BUSY))
}

/// The first page of these.
fn page(mut known: Vec<Arc<Advisory>>) -> BatchAnswered {
    let more = known.len() > MAX_FOUND;
    known.truncate(MAX_FOUND);
    let next = known.last().filter(|_| more).map(|last| last.id.clone());
    BatchAnswered { found: known.into(), next }
}

/// All that is known about a package or a version of it, behind the question's token.
async fn known(origin: &Origin, question: &Question) -> Result<Vec<Arc<Advisory>>, ApiError> {
    let Question { ecosystem, name, version, after } = question;
    let app = &origin.app;
    let current = app.runtime.current();
    let plugin = current.plugins().iter().find(|plugin| plugin.description().ecosystem == *ecosystem);
    if plugin.is_none() {
        loaded::all(app)?;
    }
    let folding = plugin.map(|plugin| plugin.description().name_folding).unwrap_or_default();
    let mut known = match (plugin, version) {
        (Some(plugin), Some(version)) => of_version(origin, plugin, name, version).await?,
        (_, None) => app.advisories.of_named(ecosystem, folding, name).await?.to_vec(),
        (None, Some(version)) => {
            let known = app.advisories.of_named(ecosystem, folding, name).await?;
            let is_about = |it: &&Arc<Advisory>| it.affected.covers_without_order(version);
            known.iter().filter(is_about).cloned().collect()
        }
    };
    if after != FIRST_PAGE {
        known.retain(|advisory| advisory.id > *after);
    }
    Ok(known)
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
    fn a_page_ends_after_so_many_and_says_where_the_next_begins() {
        let known = |count: usize| -> Vec<Arc<Advisory>> {
            let id = |number| Advisory { id: format!("A-{number:04}"), ..Advisory::default() };
            (0..count).map(|number| Arc::new(id(number))).collect()
        };
        let whole = page(known(MAX_FOUND));
        assert_eq!((whole.found.len(), whole.next), (MAX_FOUND, None));
        let first = page(known(MAX_FOUND + 1));
        assert_eq!((first.found.len(), first.next.as_deref()), (MAX_FOUND, Some("A-0499")));
    }

    #[test]
    fn a_postponed_question_goes_on_where_it_was() {
        let asked = |after: &str| Question { after: after.to_owned(), ..Question::default() };
        for (after, next) in [("", FIRST_PAGE), (FIRST_PAGE, FIRST_PAGE), ("A-1", "A-1")] {
            let answered = BatchAnswered::postponed(&asked(after));
            assert_eq!((answered.found.len(), answered.next.as_deref()), (0, Some(next)));
        }
    }
}
