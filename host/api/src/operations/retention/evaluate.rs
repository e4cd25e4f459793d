//! The one evaluation of a rule, which a preview shows and a run carries out: it goes through what is shown in pages, asks the plugin
//! what it knows of each, and puts both to the walk.

use std::collections::HashMap;
use std::sync::Arc;

use packhouse_app::App;
use packhouse_config::repository_settings::view;
use packhouse_identity::access::Kind;
use packhouse_runtime::{Action, Call, CallError, Failure, Plugin, RequestHead, Unshown, VersionFacts};
use packhouse_store::{JudgedPlace, JudgedVersion, OrganizationId, RepositoryId, RepositoryRow};

use super::rule::{Reach, Rule};
use super::walk::{Found, Newest, Seen, Walk};
use crate::error::ApiError;
use crate::operations::loaded;
use crate::operations::upkeep::done;

/// Versions that are read and judged at a time.
const PAGE: usize = 500;
/// Versions that are read beyond those that are looked for.
const MORE: usize = 10;
/// Repositories that are read at a time.
const REPOSITORIES: u32 = 200;

/// A repository that is evaluated.
pub(super) struct Place {
    /// Its row.
    pub(super) repository: RepositoryRow,
    /// Its format's plugin, which can delete.
    pub(super) plugin: Arc<Plugin>,
    /// What it holds and nobody is shown, by package, the latest last.
    unshown: HashMap<String, Vec<Unshown>>,
}

/// What an evaluation found.
pub(super) struct Evaluation {
    /// Where.
    pub(super) places: Vec<Place>,
    /// What.
    pub(super) found: Found,
    /// When it began, in ms since 1970.
    pub(super) began: i64,
}

/// What a rule deletes at present, so much at most. 503 where a plugin has no room for a call; what it cannot tell ends the evaluation.
pub(super) async fn evaluate(
    app: &App,
    organization: OrganizationId,
    rule: &Rule,
    most: usize,
) -> Result<Evaluation, ApiError> {
    let began = app.store.now_ms();
    let mut places = Vec::new();
    for repository in reached(app, organization, &rule.repositories).await? {
        let plugin = loaded::plugin_of(app, &repository)?.filter(|plugin| plugin.has_upkeep());
        let Some(plugin) = plugin.filter(|_| Kind::of(&repository.kind) == Kind::Hosted) else { continue };
        places.push(Place { repository, plugin, unshown: HashMap::new() });
    }
    let mut walk = Walk::new(rule, began);
    for (at, place) in places.iter_mut().enumerate() {
        place.unshown = unshown(place).await?;
        walk_place(app, place, at, &mut walk).await?;
    }
    Ok(Evaluation { places, found: walk.finish(most), began })
}

/// The repositories that are meant, of an organization.
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

async fn walk_place(app: &App, place: &Place, at: usize, walk: &mut Walk<'_>) -> Result<(), ApiError> {
    walk.begin_repository(place.plugin.description().name_folding);
    let mut merge = Merge::new(at, &place.unshown);
    let mut after: Option<JudgedPlace> = None;
    loop {
        let rows = app.store.judged_versions(place.repository.id, after.as_ref(), PAGE as u32).await?;
        let facts =
            facts(place, rows.iter().map(|row| (row.name.clone(), row.version.clone())).collect()).await?;
        after = rows.last().map(JudgedVersion::place);
        let is_last = rows.len() < PAGE;
        for (row, facts) in rows.into_iter().zip(facts) {
            if merge.enter(&row.name, walk) {
                walk.begin_package();
            }
            merge.before(Some(row.published_at), walk);
            if let Some(facts) = facts {
                walk.see(seen(row, at), facts);
            }
        }
        if is_last {
            break;
        }
    }
    merge.end(walk);
    Ok(())
}

/// What nobody is shown, put where it belongs among what is shown.
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

    /// Whether this is another package than the one before, which has come to its end then.
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

    /// What is as late as this or later; all that is left without a time.
    fn before(&mut self, time: Option<i64>, walk: &mut Walk<'_>) {
        while let Some((next, rest)) = self.rest.split_last() {
            if time.is_some_and(|time| next.published.is_none_or(|published| published < time)) {
                return;
            }
            self.rest = rest;
            see(next, self.at, walk);
        }
    }

    /// The rest of the package, and the packages of which nothing is shown.
    fn end(mut self, walk: &mut Walk<'_>) {
        self.before(None, walk);
        let mut others: Vec<&String> =
            self.all.keys().filter(|name| !self.entered.contains(name.as_str())).collect();
        others.sort_unstable();
        for name in others {
            walk.begin_package();
            for next in self.all.get(name).into_iter().flatten().rev() {
                see(next, self.at, walk);
            }
        }
    }
}

fn see(unshown: &Unshown, place: usize, walk: &mut Walk<'_>) {
    let seen = Seen {
        place,
        package: unshown.name.clone(),
        version: unshown.version.clone(),
        published_at: unshown.published,
        last_downloaded_at: None,
        bytes: unshown.bytes,
        shown_at: None,
    };
    walk.see(seen, facts_of(unshown));
}

/// What is known of something that nobody is shown.
fn facts_of(unshown: &Unshown) -> VersionFacts {
    VersionFacts { tagged: Some(false), needs: unshown.needs.clone(), ..VersionFacts::default() }
}

/// A version as the walk sees it.
pub(super) fn seen(row: JudgedVersion, place: usize) -> Seen {
    Seen {
        place,
        package: row.name,
        version: row.version,
        published_at: Some(row.published_at),
        last_downloaded_at: row.last_downloaded_at,
        bytes: row.bytes,
        shown_at: Some(row.shown_at),
    }
}

/// What the plugin says of versions, in their order; nothing of one that is not there. One that says nothing of any says nothing of
/// these either.
pub(super) async fn facts(
    place: &Place,
    ids: Vec<(String, String)>,
) -> Result<Vec<Option<VersionFacts>>, ApiError> {
    if !place.plugin.has_retention() || ids.is_empty() {
        return Ok(ids.iter().map(|_| Some(VersionFacts::default())).collect());
    }
    told(place.plugin.judge_versions(call(place), &ids).await)
}

async fn unshown(place: &Place) -> Result<HashMap<String, Vec<Unshown>>, ApiError> {
    let mut all: HashMap<String, Vec<Unshown>> = HashMap::new();
    let mut after = String::new();
    while place.plugin.has_retention() {
        let page = told(place.plugin.list_unshown(call(place), &after).await)?;
        for item in page.items {
            all.entry(item.name.clone()).or_default().push(item);
        }
        match page.next {
            Some(next) if next > after => after = next,
            Some(_) => {
                return Err(ApiError::Internal(anyhow::anyhow!(
                    "a plugin lists what nobody is shown without end"
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

/// Whether a repository still holds something that nobody is shown.
pub(super) async fn holds_unshown(
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
    let place = Place { repository, plugin, unshown: HashMap::new() };
    Ok(facts(&place, vec![(package, version)]).await?.iter().any(Option::is_some))
}

/// The newest of a package as they are now, so many of them.
pub(super) async fn newest(app: &App, place: &Place, package: &str, most: u32) -> Result<Newest, ApiError> {
    let mut newest = Newest::default();
    let mut rest = place.unshown.get(package).map(Vec::as_slice).unwrap_or_default();
    let mut after = JudgedPlace::top_of(package);
    // A few more, as some may be one and the same thing.
    let page = (most as usize).saturating_add(MORE).min(PAGE);
    loop {
        let rows = app.store.judged_versions(place.repository.id, Some(&after), page as u32).await?;
        let is_last = rows.len() < page || rows.last().is_some_and(|row| row.name != package);
        let rows: Vec<JudgedVersion> = rows.into_iter().filter(|row| row.name == package).collect();
        let facts =
            facts(place, rows.iter().map(|row| (row.name.clone(), row.version.clone())).collect()).await?;
        for (row, facts) in rows.iter().zip(facts) {
            while let Some((next, older)) = rest.split_last() {
                if next.published.is_none_or(|published| published < row.published_at) {
                    break;
                }
                rest = older;
                newest.has(most, &next.version, &facts_of(next));
            }
            if facts
                .filter(|facts| !facts.follows)
                .is_some_and(|facts| !newest.has(most, &row.version, &facts))
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
        newest.has(most, &next.version, &facts_of(next));
    }
    Ok(newest)
}

fn call(place: &Place) -> Call {
    Call {
        target: Some(view(&place.repository, place.plugin.description())),
        ..Call::new(Arc::new(RequestHead::default()), Action::Read)
    }
}

fn told<T>(answered: Result<Result<T, Failure>, CallError>) -> Result<T, ApiError> {
    match answered {
        Ok(Ok(told)) => Ok(told),
        Ok(Err(failure)) => Err(done(Ok(Err(failure))).err().unwrap_or_else(nothing_told)),
        Err(error) => Err(done(Err(error)).err().unwrap_or_else(nothing_told)),
    }
}

fn nothing_told() -> ApiError {
    ApiError::Internal(anyhow::anyhow!("a plugin says nothing of its versions"))
}
