//! Retention policies: they delete old or unused versions, and are previewed before they run. If
//! the repository has a trash, deleted versions can be restored. All operations need
//! manage-repositories, or the right `manage` in each repository of the policy.

mod evaluate;
mod managed;
mod recheck;
mod rule;
mod run;
mod walk;

use std::collections::HashSet;
use std::sync::Arc;

use packhouse_identity::access::RepositoryKind;
use packhouse_store::{
    MAX_POLICIES, NewPolicy, PolicyChange, PolicyId, PolicyRow, RepositoryId, RunId, RunRow,
};
use packhouse_wire::catalogue;

use super::repositories::{manages_some, may_read};
use super::{Actor, PageRequest, RowPage};
use crate::error::ApiError;
pub(crate) use evaluate::reached;
pub use rule::{Conditions, Keep, Matching, Reach, Rule};
pub use run::{Skipped, job, run_due};

#[derive(Clone, Debug)]
pub struct Policy {
    pub row: PolicyRow,
    pub rule: Rule,
}

/// Changes to a policy; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default)]
pub struct PolicyRequest {
    pub name: Option<String>,
    /// Repositories to which it applies.
    pub repositories: Option<Reach>,
    /// Versions to which it applies.
    pub matching: Option<Matching>,
    pub delete: Option<Conditions>,
    /// Versions to keep in any case.
    pub keep: Option<Keep>,
    /// Maximum number of versions that one run deletes.
    pub max_deletes: Option<u64>,
    pub enforced: Option<bool>,
}

/// Versions that a policy would delete now.
#[derive(Clone, Debug)]
pub struct Preview {
    /// Versions that one run deletes, in its order, from repositories that the actor may read.
    pub items: Vec<PreviewItem>,
    /// Number of further versions that one run deletes from repositories that the actor may not
    /// read.
    pub hidden: u64,
    /// Matching versions that are kept.
    pub retained: u64,
    /// Total number of versions that it deletes.
    pub versions: u64,
    pub bytes: u64,
    /// True if it takes more than one run.
    pub truncated: bool,
}

/// A version that would be deleted.
#[derive(Clone, Debug)]
pub struct PreviewItem {
    pub repository: String,
    pub repository_name: String,
    pub package: String,
    pub version: String,
    /// Time in ms since 1970, if known.
    pub published_at: Option<i64>,
    /// Time in ms since 1970; `None` if no download is known.
    pub last_downloaded_at: Option<i64>,
    /// Total size of its files in bytes.
    pub bytes: u64,
    /// Reason, as a text for people.
    pub reason: String,
}

#[derive(Clone, Debug)]
pub struct PolicyRun {
    pub row: RunRow,
    /// Versions that it skipped: the first 200.
    pub skipped: Vec<Skipped>,
}

/// Creates a policy, which is paused at first. 409 `too_many_policies` if there are a hundred.
pub async fn create(actor: &Actor, name: String, rule: Rule) -> Result<Policy, ApiError> {
    managed::judge_reach(actor, &rule.repositories).await?;
    check_reach(actor, &rule.repositories).await?;
    let text = rule.text();
    let new = NewPolicy {
        name: name.clone(),
        digest: Rule::digest(&text),
        rule: text,
        created_by: actor.name().to_owned(),
    };
    let event = actor.event("create_retention_policy", name);
    let made = actor.app.store.create_policy(actor.organization(), new, Some(event)).await?;
    let row = made.ok_or_else(|| ApiError::with(&catalogue::TOO_MANY_POLICIES, &MAX_POLICIES.to_string()))?;
    Ok(Policy { row, rule })
}

/// Returns a page of the policies that the actor may manage.
pub async fn list(actor: &Actor, page: PageRequest<PolicyId>) -> Result<RowPage<Policy>, ApiError> {
    manages_some(actor)?;
    let (store, organization) = (&actor.app.store, actor.organization());
    let (mut found, mut after) = (Vec::new(), page.after);
    while found.len() < page.one_further() as usize {
        let rows = store.list_policies(organization, after, MAX_POLICIES).await?;
        after = rows.last().map(|row| row.id);
        let last = rows.len() < MAX_POLICIES as usize;
        let policies = rows.into_iter().map(policy).collect::<Result<Vec<_>, _>>()?;
        found.extend(managed::only_managed(actor, policies).await?);
        if last {
            break;
        }
    }
    Ok(page.cut(found))
}

/// Finds a policy that the actor may manage; otherwise 404 `not_found`. 403
/// `insufficient_permissions` for an actor who manages no repository.
pub async fn find(actor: &Actor, id: &str) -> Result<Policy, ApiError> {
    manages_some(actor)?;
    let id = id.parse::<PolicyId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_policy(actor.organization(), id).await?;
    let found = policy(row.ok_or(&catalogue::NOT_FOUND)?)?;
    managed::only_managed(actor, vec![found]).await?.pop().ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Changes a policy. A change of its rule pauses it. 409 `preview_required`, without any change, if
/// the policy is to be enforced and its new rule was not previewed.
pub async fn change(actor: &Actor, id: &str, request: PolicyRequest) -> Result<Policy, ApiError> {
    if let Some(reach) = &request.repositories {
        // The policy is found first, because a missing one is refused before its new repositories.
        find(actor, id).await?;
        managed::judge_reach(actor, reach).await?;
        check_reach(actor, reach).await?;
    }
    let mut found = find(actor, id).await?;
    loop {
        let Policy { row, rule } = found;
        let change = PolicyChange { read: Some(row.digest.clone()), ..applied(rule, request.clone()) };
        let event = actor.event("change_retention_policy", row.name);
        let changed = actor.app.store.change_policy(row.organization, row.id, change, Some(event)).await?;
        if let Some(row) = changed {
            return policy(row);
        }
        // It may also have been deleted in the meantime.
        found = find(actor, id).await?;
        if found.row.digest == row.digest {
            let is_enforced = request.enforced == Some(true);
            let code = if is_enforced { &catalogue::PREVIEW_REQUIRED } else { &catalogue::NOT_FOUND };
            return Err(ApiError::from(code));
        }
        // Another call changed its rule, and maybe its repositories; `find` checked it again.
    }
}

/// Applies a request to a rule.
fn applied(rule: Rule, request: PolicyRequest) -> PolicyChange {
    let PolicyRequest { name, repositories, matching, delete, keep, max_deletes, enforced } = request;
    let changes = repositories.is_some()
        || matching.is_some()
        || delete.is_some()
        || keep.is_some()
        || max_deletes.is_some();
    let rule = Rule {
        repositories: repositories.unwrap_or(rule.repositories),
        matching: matching.unwrap_or(rule.matching),
        delete: delete.unwrap_or(rule.delete),
        keep: keep.unwrap_or(rule.keep),
        max_deletes: max_deletes.unwrap_or(rule.max_deletes),
    };
    let text = rule.text();
    let digest = Rule::digest(&text);
    PolicyChange { name, rule: changes.then_some((text, digest)), enforced, read: None }
}

/// Deletes a policy with its runs. Versions that it deleted can still be restored.
pub async fn remove(actor: &Actor, id: &str) -> Result<(), ApiError> {
    let Policy { row, .. } = find(actor, id).await?;
    let event = actor.event("delete_retention_policy", row.name);
    if actor.app.store.delete_policy(row.organization, row.id, Some(event)).await? {
        Ok(())
    } else {
        Err(ApiError::from(&catalogue::NOT_FOUND))
    }
}

/// Previews the versions that a policy would delete now, with the same evaluation as a run.
/// Afterwards it may be enforced with this rule.
pub async fn preview(actor: &Actor, id: &str) -> Result<Preview, ApiError> {
    let Policy { row, rule } = find(actor, id).await?;
    let most = usize::try_from(rule.max_deletes).unwrap_or(usize::MAX);
    let evaluation = evaluate::evaluate(&actor.app, row.organization, &rule, most).await?;
    actor.app.store.mark_previewed(row.organization, row.id, &row.digest).await?;
    let repositories = &evaluation.repositories;
    let found = evaluation.found;
    let all = found.items.len();
    let item = |one: walk::Candidate| {
        let repository = repositories.get(one.stored.repository).map(|repository| &repository.row);
        let repository = repository.filter(|row| may_read(actor, row))?;
        Some(PreviewItem {
            repository: repository.id.to_string(),
            repository_name: repository.name.clone(),
            package: one.stored.package,
            version: one.stored.version,
            published_at: one.stored.published_at,
            last_downloaded_at: one.stored.last_downloaded_at,
            bytes: one.stored.bytes,
            reason: one.reason,
        })
    };
    let items: Vec<PreviewItem> = found.items.into_iter().filter_map(item).collect();
    Ok(Preview {
        hidden: (all - items.len()) as u64,
        items,
        retained: found.retained,
        versions: found.versions,
        bytes: found.bytes,
        truncated: found.truncated,
    })
}

/// Starts a run of a policy, without waiting for its end. 409 `preview_required` or `policy_paused`
/// if the policy is not enforced.
pub async fn run(actor: &Actor, id: &str) -> Result<Policy, ApiError> {
    let found = find(actor, id).await?;
    let (row, app) = (&found.row, Arc::clone(&actor.app));
    let event = actor.event("run_retention_policy", row.name.clone());
    if !app.store.request_run(row.organization, row.id, Some(event)).await? {
        return Err(ApiError::from(match row.previewed {
            true => &catalogue::POLICY_PAUSED,
            false => &catalogue::PREVIEW_REQUIRED,
        }));
    }
    // If it is running already or this server stops first, the job that looks for due policies
    // finds the request.
    tokio::spawn(async move {
        if let Err(error) = run_due(&app, None).await {
            tracing::warn!("retention policies could not run; will retry on the next run: {error:?}");
        }
    });
    Ok(found)
}

/// Returns a page of a policy's runs, newest first.
pub async fn runs(actor: &Actor, id: &str, page: PageRequest<RunId>) -> Result<RowPage<PolicyRun>, ApiError> {
    let Policy { row, .. } = find(actor, id).await?;
    let found = actor.app.store.list_runs(row.id, page.after, page.one_further()).await?;
    let RowPage { rows, more } = page.cut(found);
    let readable = readable(actor, &rows).await?;
    let run = |row: RunRow| {
        let mut skipped = skipped(&row);
        skipped.retain(|one| readable.contains(&one.repository));
        PolicyRun { skipped, row }
    };
    Ok(RowPage { rows: rows.into_iter().map(run).collect(), more })
}

fn skipped(row: &RunRow) -> Vec<Skipped> {
    serde_json::from_str(&row.skipped).unwrap_or_default()
}

/// Returns the repositories of skipped versions that the actor may read.
async fn readable(actor: &Actor, runs: &[RunRow]) -> Result<HashSet<String>, ApiError> {
    let named: HashSet<String> = runs.iter().flat_map(skipped).map(|one| one.repository).collect();
    let ids: Vec<RepositoryId> = named.iter().filter_map(|id| id.parse().ok()).collect();
    let found = actor.app.store.find_repositories(actor.organization(), &ids).await?;
    Ok(found.iter().filter(|row| may_read(actor, row)).map(|row| row.id.to_string()).collect())
}

/// Checks that these are hosted repositories of the organization; otherwise 400.
async fn check_reach(actor: &Actor, reach: &Reach) -> Result<(), ApiError> {
    let Reach::Only(ids) = reach else { return Ok(()) };
    let found = actor.app.store.find_repositories(actor.organization(), ids).await?;
    if found.len() != ids.len() {
        return Err(ApiError::invalid(
            "`repositories` lists a repository that does not exist, or lists one twice.",
        ));
    }
    if found.iter().any(|row| RepositoryKind::of(&row.kind) != RepositoryKind::Hosted) {
        return Err(ApiError::invalid(
            "A retention policy can only apply to hosted repositories; other repositories do not own \
             versions.",
        ));
    }
    Ok(())
}

fn policy(row: PolicyRow) -> Result<Policy, ApiError> {
    Ok(Policy { rule: stored(&row)?, row })
}

/// Reads the stored rule of a policy.
fn stored(row: &PolicyRow) -> Result<Rule, ApiError> {
    serde_json::from_str(&row.rule).map_err(|problem| {
        ApiError::Internal(anyhow::anyhow!("the policy {} cannot be read: {problem}", row.id))
    })
}
