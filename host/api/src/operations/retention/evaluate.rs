//! Evaluation of a rule, for previews and runs. It reads the listed versions in pages, gets the
//! plugin's facts about each, and passes both to the walk.

use std::collections::HashMap;
use std::sync::Arc;

use packhouse_app::App;
use packhouse_config::repository_settings::view;
use packhouse_identity::access::RepositoryKind;
use packhouse_runtime::{Action, Call, CallError, Failure, Plugin, RequestHead, Unshown, VersionFacts};
use packhouse_store::{JudgedPlace, JudgedVersion, OrganizationId, RepositoryId, RepositoryRow};

use super::rule::{Reach, Rule};
use super::walk::{Newest, StoredVersion, Walk, WalkResult};
use crate::error::ApiError;
use crate::operations::loaded;
use crate::operations::upkeep::plugin_outcome;

/// Number of versions that are read and evaluated at a time.
const PAGE: usize = 500;
/// Number of versions that are read beyond the requested ones.
const MORE: usize = 10;
/// Number of repositories that are read at a time.
const REPOSITORIES: u32 = 200;

pub(super) struct EvaluatedRepository {
    pub(super) row: RepositoryRow,
    /// Plugin of its format. It can delete versions.
    pub(super) plugin: Arc<Plugin>,
    /// Unlisted content by package, the latest last.
    unshown: HashMap<String, Vec<Unshown>>,
}

pub(super) struct Evaluation {
    pub(super) repositories: Vec<EvaluatedRepository>,
    pub(super) found: WalkResult,
    /// Start in ms since 1970.
    pub(super) began: i64,
}

/// Evaluates what a rule would delete now, at most `most` versions. 503 if a plugin is busy. The
/// evaluation fails if a plugin cannot return its facts.
pub(super) async fn evaluate(
    app: &App,
    organization: OrganizationId,
    rule: &Rule,
    most: usize,
) -> Result<Evaluation, ApiError> {
    let began = app.store.now_ms();
    let mut repositories = Vec::new();
    for repository in reached(app, organization, &rule.repositories).await? {
        let plugin = loaded::plugin_of(app, &repository)?.filter(|plugin| plugin.has_upkeep());
        let Some(plugin) = plugin.filter(|_| RepositoryKind::of(&repository.kind) == RepositoryKind::Hosted)
        else {
            continue;
        };
        repositories.push(EvaluatedRepository { row: repository, plugin, unshown: HashMap::new() });
    }
    let mut walk = Walk::new(rule, began);
    for (at, repository) in repositories.iter_mut().enumerate() {
        repository.unshown = unshown(repository).await?;
        walk_repository(app, repository, at, &mut walk).await?;
    }
    Ok(Evaluation { repositories, found: walk.finish(most), began })
}

/// Returns the repositories of an organization that a policy applies to.
pub(crate) async fn reached(
    app: &App,
    organization: OrganizationId,
    reach: &Reach,
) -> Result<Vec<RepositoryRow>, ApiError> {
    if let Reach::Only(ids) = reach {
        return Ok(app.store.find_repositories(organization, ids).await?);
    }
    let (mut all, mut after): (Vec<RepositoryRow>, Option<RepositoryId>) = (Vec::new(), None);
    loop {
        let page = app.store.list_repositories(organization, after, REPOSITORIES).await?;
        after = page.last().map(|row| row.id);
        let is_last = page.len() < REPOSITORIES as usize;
        all.extend(page);
        if is_last {
            return Ok(all);
        }
    }
}

async fn walk_repository(
    app: &App,
    repository: &EvaluatedRepository,
    at: usize,
    walk: &mut Walk<'_>,
) -> Result<(), ApiError> {
    walk.begin_repository(repository.plugin.description().name_folding);
    let mut merge = Merge::new(at, &repository.unshown);
    let mut after: Option<JudgedPlace> = None;
    loop {
        let rows = app.store.judged_versions(repository.row.id, after.as_ref(), PAGE as u32).await?;
        let facts =
            facts(repository, rows.iter().map(|row| (row.name.clone(), row.version.clone())).collect())
                .await?;
        after = rows.last().map(JudgedVersion::place);
        let is_last = rows.len() < PAGE;
        for (row, facts) in rows.into_iter().zip(facts) {
            if merge.enter(&row.name, walk) {
                walk.begin_package();
            }
            merge.before(Some(row.published_at), walk);
            if let Some(facts) = facts {
                walk.add(stored_version(row, at), facts);
            }
        }
        if is_last {
            break;
        }
    }
    merge.end(walk);
    Ok(())
}

/// Merges the unlisted content of a repository into its listed versions.
struct Merge<'a> {
    at: usize,
    all: &'a HashMap<String, Vec<Unshown>>,
    package: Option<String>,
    rest: &'a [Unshown],
    entered: std::collections::HashSet<&'a str>,
}

impl<'a> Merge<'a> {
    fn new(at: usize, all: &'a HashMap<String, Vec<Unshown>>) -> Merge<'a> {
        Merge { at, all, package: None, rest: &[], entered: std::collections::HashSet::new() }
    }

    /// Enters the package of the next version. Returns true if it is a new package; the previous
    /// one is then complete.
    fn enter(&mut self, package: &str, walk: &mut Walk<'_>) -> bool {
        if self.package.as_deref() == Some(package) {
            return false;
        }
        self.before(None, walk);
        self.package = Some(package.to_owned());
        self.rest = &[];
        if let Some((name, rest)) = self.all.get_key_value(package) {
            self.entered.insert(name);
            self.rest = rest;
        }
        true
    }

    /// Adds the unlisted content that is at least as late as `time`; without a time, all that is
    /// left of the package.
    fn before(&mut self, time: Option<i64>, walk: &mut Walk<'_>) {
        while let Some((next, rest)) = self.rest.split_last() {
            if time.is_some_and(|time| next.published.is_none_or(|published| published < time)) {
                return;
            }
            self.rest = rest;
            add_unshown(next, self.at, walk);
        }
    }

    /// Adds the rest of the package, and the packages that have no listed version.
    fn end(mut self, walk: &mut Walk<'_>) {
        self.before(None, walk);
        let mut others: Vec<&String> =
            self.all.keys().filter(|name| !self.entered.contains(name.as_str())).collect();
        others.sort_unstable();
        for name in others {
            walk.begin_package();
            for next in self.all.get(name).into_iter().flatten().rev() {
                add_unshown(next, self.at, walk);
            }
        }
    }
}

fn add_unshown(unshown: &Unshown, repository: usize, walk: &mut Walk<'_>) {
    let stored = StoredVersion {
        repository,
        package: unshown.name.clone(),
        version: unshown.version.clone(),
        published_at: unshown.published,
        last_downloaded_at: None,
        bytes: unshown.bytes,
        first_listed_at: None,
    };
    walk.add(stored, facts_of(unshown));
}

/// Facts about unlisted content.
fn facts_of(unshown: &Unshown) -> VersionFacts {
    VersionFacts { tagged: Some(false), needs: unshown.needs.clone(), ..VersionFacts::default() }
}

/// Converts a row for the walk.
pub(super) fn stored_version(row: JudgedVersion, repository: usize) -> StoredVersion {
    StoredVersion {
        repository,
        package: row.name,
        version: row.version,
        published_at: Some(row.published_at),
        last_downloaded_at: row.last_downloaded_at,
        bytes: row.bytes,
        first_listed_at: Some(row.shown_at),
    }
}

/// Returns the plugin's facts about versions, in their order; `None` for one that does not exist. A
/// plugin without retention support has only default facts.
pub(super) async fn facts(
    repository: &EvaluatedRepository,
    ids: Vec<(String, String)>,
) -> Result<Vec<Option<VersionFacts>>, ApiError> {
    if !repository.plugin.has_retention() || ids.is_empty() {
        return Ok(ids.iter().map(|_| Some(VersionFacts::default())).collect());
    }
    plugin_result(repository.plugin.judge_versions(call(repository), &ids).await)
}

async fn unshown(repository: &EvaluatedRepository) -> Result<HashMap<String, Vec<Unshown>>, ApiError> {
    let mut all: HashMap<String, Vec<Unshown>> = HashMap::new();
    let mut after = String::new();
    while repository.plugin.has_retention() {
        let page = plugin_result(repository.plugin.list_unshown(call(repository), &after).await)?;
        for item in page.items {
            all.entry(item.name.clone()).or_default().push(item);
        }
        match page.next {
            Some(next) if next > after => after = next,
            Some(_) => {
                return Err(ApiError::Internal(anyhow::anyhow!(
                    "a plugin's list of unlisted content does not end"
                )));
            }
            None => break,
        }
    }
    for items in all.values_mut() {
        items.sort_by(|a, b| (a.published, &a.version).cmp(&(b.published, &b.version)));
    }
    Ok(all)
}

/// Returns whether a repository still has this unlisted content.
pub(super) async fn is_still_stored(
    app: &App,
    organization: OrganizationId,
    repository: RepositoryId,
    package: String,
    version: String,
) -> Result<bool, ApiError> {
    let Some(repository) = app.store.find_repository(organization, repository).await? else {
        return Ok(false);
    };
    let Some(plugin) = loaded::plugin_of(app, &repository)? else { return Ok(true) };
    let repository = EvaluatedRepository { row: repository, plugin, unshown: HashMap::new() };
    Ok(facts(&repository, vec![(package, version)]).await?.iter().any(Option::is_some))
}

/// Returns the `most` newest versions of a package at present.
pub(super) async fn newest(
    app: &App,
    repository: &EvaluatedRepository,
    package: &str,
    most: u32,
) -> Result<Newest, ApiError> {
    let mut newest = Newest::default();
    let mut rest = repository.unshown.get(package).map(Vec::as_slice).unwrap_or_default();
    let mut after = JudgedPlace::top_of(package);
    // A few more, because several versions may be one unit.
    let page = (most as usize).saturating_add(MORE).min(PAGE);
    loop {
        let rows = app.store.judged_versions(repository.row.id, Some(&after), page as u32).await?;
        let is_last = rows.len() < page || rows.last().is_some_and(|row| row.name != package);
        let rows: Vec<JudgedVersion> = rows.into_iter().filter(|row| row.name == package).collect();
        let facts =
            facts(repository, rows.iter().map(|row| (row.name.clone(), row.version.clone())).collect())
                .await?;
        for (row, facts) in rows.iter().zip(facts) {
            while let Some((next, older)) = rest.split_last() {
                if next.published.is_none_or(|published| published < row.published_at) {
                    break;
                }
                rest = older;
                newest.admit(most, &next.version, &facts_of(next));
            }
            if facts
                .filter(|facts| !facts.follows)
                .is_some_and(|facts| !newest.admit(most, &row.version, &facts))
            {
                return Ok(newest);
            }
        }
        match rows.last() {
            Some(row) if !is_last => after = row.place(),
            _ => break,
        }
    }
    for next in rest.iter().rev() {
        newest.admit(most, &next.version, &facts_of(next));
    }
    Ok(newest)
}

fn call(repository: &EvaluatedRepository) -> Call {
    Call {
        target: Some(view(&repository.row, repository.plugin.description())),
        ..Call::new(Arc::new(RequestHead::default()), Action::Read)
    }
}

fn plugin_result<T>(answered: Result<Result<T, Failure>, CallError>) -> Result<T, ApiError> {
    match answered {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(failure)) => Err(plugin_outcome(Ok(Err(failure))).err().unwrap_or_else(no_facts)),
        Err(error) => Err(plugin_outcome(Err(error)).err().unwrap_or_else(no_facts)),
    }
}

fn no_facts() -> ApiError {
    ApiError::Internal(anyhow::anyhow!("a plugin returned nothing about its versions"))
}
