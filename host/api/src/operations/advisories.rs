//! What is known to be wrong with packages: of versions that people look at, and as other programs ask for it.

use std::sync::Arc;

use packhouse_advisories::{Advisory, OsvRecord, Severity};
use packhouse_runtime::Plugin;
use packhouse_store::{AdvisoryFilter, ListedAdvisory, RepositoryRow};
use packhouse_wire::catalogue;

use super::{Actor, Origin, loaded};
use crate::error::ApiError;

/// Records of an answer to a question at most, and their bytes.
const MAX_FOUND: usize = 500;
const MAX_FOUND_BYTES: usize = 16 << 20;

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
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// As OSV calls it.
    pub ecosystem: String,
    /// The package.
    pub name: String,
    /// The version; all that are about the package where there is none.
    pub version: Option<String>,
    /// Behind this id; empty for the first page.
    pub after: String,
}

/// A record that was found.
#[derive(Debug)]
pub struct FoundRecord {
    /// Its identifier.
    pub id: String,
    /// Its own time of change, as it writes it.
    pub modified: String,
    /// The whole of it, as JSON.
    pub record: String,
}

/// What is found for a question.
#[derive(Debug, Default)]
pub struct Answered {
    /// What was found, by id.
    pub found: Vec<FoundRecord>,
    /// Where the next page begins; none on the last.
    pub next: Option<String>,
}

/// The records about a package or a version of it, by id.
pub async fn answer(origin: &Origin, question: &Question) -> Result<Answered, ApiError> {
    let Question { ecosystem, name, version, after } = question;
    let app = &origin.app;
    let current = app.runtime.current();
    let plugin = current.plugins().iter().find(|plugin| plugin.description().ecosystem == *ecosystem);
    if plugin.is_none() {
        loaded::all(app)?;
    }
    let folding = plugin.map(|plugin| plugin.description().name_folding).unwrap_or_default();
    let known = match (plugin, version) {
        (Some(plugin), Some(version)) => of_version(origin, plugin, name, version).await?,
        (_, None) => app.advisories.of_named(ecosystem, folding, name).await?.to_vec(),
        (None, Some(version)) => {
            let known = app.advisories.of_named(ecosystem, folding, name).await?;
            let is_about = |it: &&Arc<Advisory>| it.affected.covers_without_order(version);
            known.iter().filter(is_about).cloned().collect()
        }
    };
    let (mut answered, mut bytes) = (Answered::default(), 0);
    for advisory in known.iter().filter(|advisory| advisory.id > *after) {
        if answered.found.len() == MAX_FOUND || bytes > MAX_FOUND_BYTES {
            answered.next = answered.found.last().map(|last| last.id.clone());
            break;
        }
        let Some(text) = app.store.advisory(&advisory.id).await? else { continue };
        let Ok(record) = OsvRecord::parse(&text) else { continue };
        bytes += text.len();
        let (id, modified) = (advisory.id.clone(), record.modified().to_owned());
        answered.found.push(FoundRecord { id, modified, record: text });
    }
    Ok(answered)
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
