//! Retention: policies that delete what is old or not used, previewed before they run, and always with an undo where the repository has a
//! trash. All of it needs manage-repositories.

mod again;
mod evaluate;
mod rule;
mod run;
mod walk;

use std::collections::HashSet;
use std::sync::Arc;

use packhouse_identity::access::Kind;
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::{
    MAX_POLICIES, NewPolicy, PolicyChange, PolicyId, PolicyRow, RepositoryId, RunId, RunRow,
};
use packhouse_wire::catalogue;

use super::repositories::may_read;
use super::{Actor, Listed, PageRequest};
use crate::error::ApiError;
pub(crate) use evaluate::reached;
pub use rule::{Conditions, Keep, Matching, Reach, Rule};
pub use run::{Skipped, every_hour, run_due};

/// A policy.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Its row.
    pub row: PolicyRow,
    /// What it says.
    pub rule: Rule,
}

/// What is to be another of a policy; none: as it is.
#[derive(Clone, Debug, Default)]
pub struct PolicyRequest {
    /// What people call it.
    pub name: Option<String>,
    /// Where it holds.
    pub repositories: Option<Reach>,
    /// Which versions it is about.
    pub matching: Option<Matching>,
    /// Which of these go.
    pub delete: Option<Conditions>,
    /// Which of these stay.
    pub keep: Option<Keep>,
    /// How many one run deletes at most.
    pub max_deletes: Option<u64>,
    /// Whether it runs.
    pub enforced: Option<bool>,
}

/// What a policy would delete now.
#[derive(Clone, Debug)]
pub struct Preview {
    /// What one run deletes, in its order, where the actor may read.
    pub items: Vec<PreviewItem>,
    /// How many more one run deletes in repositories that the actor may not read.
    pub hidden: u64,
    /// Versions that it is about and that stay.
    pub kept: u64,
    /// Versions that it deletes in all.
    pub versions: u64,
    /// Of these.
    pub bytes: u64,
    /// Whether it takes more than one run.
    pub truncated: bool,
}

/// A version that would be deleted.
#[derive(Clone, Debug)]
pub struct PreviewItem {
    /// The repository's id.
    pub repository: String,
    /// Its name.
    pub repository_name: String,
    /// The package.
    pub package: String,
    /// The version.
    pub version: String,
    /// In ms since 1970, where it is known.
    pub published_at: Option<i64>,
    /// In ms since 1970; none: never, as far as is known.
    pub last_downloaded_at: Option<i64>,
    /// Of its files.
    pub bytes: u64,
    /// Why.
    pub because: String,
}

/// What one run did.
#[derive(Clone, Debug)]
pub struct PolicyRun {
    /// Its row.
    pub row: RunRow,
    /// What it was to delete and did not: the first 200.
    pub skipped: Vec<Skipped>,
}

/// Makes a policy, which is paused. 409 `too_many_policies` where there are a hundred.
pub async fn create(actor: &Actor, name: String, rule: Rule) -> Result<Policy, ApiError> {
    actor.needs(ManageRepositories)?;
    check_reach(actor, &rule.repositories).await?;
    let text = rule.text();
    let new = NewPolicy {
        name: name.clone(),
        digest: Rule::digest(&text),
        rule: text,
        created_by: actor.member().email.clone(),
    };
    let event = actor.event("create_retention_policy", name);
    let made = actor.app.store.create_policy(actor.organization(), new, Some(event)).await?;
    let row = made.ok_or_else(|| ApiError::with(&catalogue::TOO_MANY_POLICIES, &MAX_POLICIES.to_string()))?;
    Ok(Policy { row, rule })
}

/// A page of them.
pub async fn list(actor: &Actor, page: PageRequest<PolicyId>) -> Result<Listed<Policy>, ApiError> {
    actor.needs(ManageRepositories)?;
    let found = actor.app.store.list_policies(actor.organization(), page.after, page.one_further()).await?;
    let Listed { rows, more } = page.cut(found);
    Ok(Listed { rows: rows.into_iter().map(policy).collect::<Result<_, _>>()?, more })
}

/// The one of this id.
pub async fn find(actor: &Actor, id: &str) -> Result<Policy, ApiError> {
    actor.needs(ManageRepositories)?;
    let id = id.parse::<PolicyId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_policy(actor.organization(), id).await?;
    policy(row.ok_or(&catalogue::NOT_FOUND)?)
}

/// Changes the one of this id. What it says being changed, it is paused. 409 `preview_required` where it is to run and was not previewed
/// as it is then; nothing has changed then.
pub async fn change(actor: &Actor, id: &str, request: PolicyRequest) -> Result<Policy, ApiError> {
    let Policy { row, rule } = find(actor, id).await?;
    let PolicyRequest { name, repositories, matching, delete, keep, max_deletes, enforced } = request;
    if let Some(reach) = &repositories {
        check_reach(actor, reach).await?;
    }
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
    let change = PolicyChange { name, rule: changes.then_some((text, digest)), enforced };
    let event = actor.event("change_retention_policy", row.name);
    let changed = actor.app.store.change_policy(row.organization, row.id, change, Some(event)).await?;
    match changed {
        Some(row) => policy(row),
        None if enforced == Some(true) => {
            // Or it was deleted meanwhile.
            find(actor, id).await?;
            Err(ApiError::from(&catalogue::PREVIEW_REQUIRED))
        }
        None => Err(ApiError::from(&catalogue::NOT_FOUND)),
    }
}

/// Deletes the one of this id, with what is known of its runs. What it deleted can still be brought back.
pub async fn remove(actor: &Actor, id: &str) -> Result<(), ApiError> {
    let Policy { row, .. } = find(actor, id).await?;
    let event = actor.event("delete_retention_policy", row.name);
    if actor.app.store.delete_policy(row.organization, row.id, Some(event)).await? {
        Ok(())
    } else {
        Err(ApiError::from(&catalogue::NOT_FOUND))
    }
}

/// What the one of this id would delete now: the very evaluation that a run makes. From then on it may be enforced as it is.
pub async fn preview(actor: &Actor, id: &str) -> Result<Preview, ApiError> {
    let Policy { row, rule } = find(actor, id).await?;
    let most = usize::try_from(rule.max_deletes).unwrap_or(usize::MAX);
    let evaluation = evaluate::evaluate(&actor.app, row.organization, &rule, most).await?;
    actor.app.store.mark_previewed(row.organization, row.id, &row.digest).await?;
    let places = &evaluation.places;
    let found = evaluation.found;
    let all = found.items.len();
    let item = |one: walk::Condemned| {
        let repository = places.get(one.seen.place).map(|place| &place.repository);
        let repository = repository.filter(|row| may_read(actor, row))?;
        Some(PreviewItem {
            repository: repository.id.to_string(),
            repository_name: repository.name.clone(),
            package: one.seen.package,
            version: one.seen.version,
            published_at: one.seen.published_at,
            last_downloaded_at: one.seen.last_downloaded_at,
            bytes: one.seen.bytes,
            because: one.because,
        })
    };
    let items: Vec<PreviewItem> = found.items.into_iter().filter_map(item).collect();
    Ok(Preview {
        hidden: (all - items.len()) as u64,
        items,
        kept: found.kept,
        versions: found.versions,
        bytes: found.bytes,
        truncated: found.truncated,
    })
}

/// Runs the one of this id as soon as it can be: it goes on after this. 409 `preview_required` or `policy_paused` where it does not run.
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
    // Where it is being run already, or this server stops first, whoever looks for policies that are due finds it.
    tokio::spawn(async move {
        if let Err(error) = run_due(&app, None).await {
            tracing::warn!("policies of retention could not be run; the next time will do: {error:?}");
        }
    });
    Ok(found)
}

/// What the one of this id did, the latest run first.
pub async fn runs(actor: &Actor, id: &str, page: PageRequest<RunId>) -> Result<Listed<PolicyRun>, ApiError> {
    let Policy { row, .. } = find(actor, id).await?;
    let found = actor.app.store.list_runs(row.id, page.after, page.one_further()).await?;
    let Listed { rows, more } = page.cut(found);
    let readable = readable(actor, &rows).await?;
    let run = |row: RunRow| {
        let mut skipped = skipped(&row);
        skipped.retain(|one| readable.contains(&one.repository));
        PolicyRun { skipped, row }
    };
    Ok(Listed { rows: rows.into_iter().map(run).collect(), more })
}

fn skipped(row: &RunRow) -> Vec<Skipped> {
    serde_json::from_str(&row.skipped).unwrap_or_default()
}

/// Of the repositories in which these runs skipped something, those that the actor may read.
async fn readable(actor: &Actor, runs: &[RunRow]) -> Result<HashSet<String>, ApiError> {
    let named: HashSet<String> = runs.iter().flat_map(skipped).map(|one| one.repository).collect();
    let ids: Vec<RepositoryId> = named.iter().filter_map(|id| id.parse().ok()).collect();
    let found = actor.app.store.find_repositories(actor.organization(), &ids).await?;
    Ok(found.iter().filter(|row| may_read(actor, row)).map(|row| row.id.to_string()).collect())
}

/// 400 unless these are hosted repositories of the organization.
async fn check_reach(actor: &Actor, reach: &Reach) -> Result<(), ApiError> {
    let Reach::Only(ids) = reach else { return Ok(()) };
    let found = actor.app.store.find_repositories(actor.organization(), ids).await?;
    if found.len() != ids.len() {
        return Err(ApiError::invalid("`repositories` names one that is not there, or one twice."));
    }
    if found.iter().any(|row| Kind::of(&row.kind) != Kind::Hosted) {
        return Err(ApiError::invalid(
            "A policy of retention is about hosted repositories: others hold nothing of their own.",
        ));
    }
    Ok(())
}

fn policy(row: PolicyRow) -> Result<Policy, ApiError> {
    Ok(Policy { rule: stored(&row)?, row })
}

/// What a policy says.
fn stored(row: &PolicyRow) -> Result<Rule, ApiError> {
    serde_json::from_str(&row.rule).map_err(|problem| {
        ApiError::Internal(anyhow::anyhow!("the policy {} cannot be read: {problem}", row.id))
    })
}
