//! Runs of retention policies. Each version is checked again right before it is deleted, and the
//! reason for skipping one is recorded. If a run is interrupted, the next server that finds it
//! continues it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use packhouse_app::App;
use packhouse_app::jobs::{Job, JobResult, Next};
use packhouse_config::repository_settings::trash_days;
use packhouse_store::{AuditEvent, PolicyId, RepositoryId, RetentionClaim, TrashId};
use packhouse_wire::catalogue;
use serde::{Deserialize, Serialize};

use super::evaluate::{EvaluatedRepository, Evaluation, evaluate, is_still_stored};
use super::recheck::{NEEDED, RecentPublishes, Recheck};
use super::rule::Rule;
use super::walk::{Candidate, StoredVersion, WalkResult, key};
use crate::error::ApiError;
use crate::operations::upkeep::{VersionRef, delete_into};

/// Versions in a batch, after which the progress of a run is recorded.
const BATCH: usize = 20;
/// Maximum number of skipped versions that a run records.
const MAX_SKIPPED: usize = 200;
/// Number of failed deletions by internal errors after which a run ends.
const MAX_FAULTS: usize = 20;
/// Packages from which versions are deleted concurrently, for SQLite and PostgreSQL. With SQLite,
/// two share a wait for the disk; more would delay publishes. PostgreSQL makes each step wait, and
/// delays publishes only by waits for its disk.
const CONCURRENCY: [usize; 2] = [2, 8];
/// Time between two looks for due policies.
const INTERVAL: Duration = Duration::from_secs(10);

/// A version that a run skipped.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Skipped {
    pub repository: String,
    pub package: String,
    pub version: String,
    /// Time in ms since 1970, if known.
    pub published_at: Option<i64>,
    /// Time in ms since 1970; `None` if no download is known.
    pub last_downloaded_at: Option<i64>,
    /// Total size of its files in bytes.
    pub bytes: u64,
    /// Reason, as a text for people.
    #[serde(rename = "because")]
    pub reason: String,
}

/// Outcome of deleting one version.
enum DeletionOutcome {
    Deleted,
    Skipped(String),
    /// Failed because of an internal error.
    Failed(ApiError),
}

/// Index of a version in its batch, and its entry in the trash, if there is one.
type QueuedDeletion = (usize, Option<TrashId>);

/// Version that an interrupted run may have deleted: repository, package, version, bytes, and the
/// time of its first listing.
type Pending = (i64, String, String, u64, Option<i64>);

/// Runs due policies one after the other until none is left; with `only`, just that one. Returns
/// the runs.
pub async fn run_due(app: &Arc<App>, only: Option<PolicyId>) -> Result<Vec<RetentionClaim>, ApiError> {
    let mut done = Vec::new();
    while !app.stop.is_cancelled() && !*app.live.read_only.get() {
        let Some(claim) = app.store.claim_run(only).await? else { break };
        done.push(carry_out(app, claim).await?);
        if only.is_some() {
            break;
        }
    }
    Ok(done)
}

/// Background job that runs policies: due ones, requested ones, and interrupted runs.
pub fn job(app: &Arc<App>) -> Job {
    Job::new(app, "run-retention", INTERVAL, run_all).with_plugins()
}

async fn run_all(app: Arc<App>) -> JobResult {
    run_due(&app, None).await.map_err(ApiError::for_command)?;
    app.store.end_paused_runs().await?;
    Ok(Next::AfterPeriod)
}

/// Carries out a run. Returns how it ended, or an error if that could not be recorded.
async fn carry_out(app: &App, claim: RetentionClaim) -> Result<RetentionClaim, ApiError> {
    let counted = (claim.run.deleted, claim.run.bytes);
    let mut run = ActiveRun { app, claim, counted, skipped: Vec::new(), faults: 0 };
    let name = run.claim.policy.name.clone();
    let mut ended = run.work().await;
    if let Err(error) = &ended
        && !is_unavailable(error)
    {
        // The run ended within a batch; find out what was deleted, as after an interruption.
        (run.claim.run.deleted, run.claim.run.bytes) = run.counted;
        if let Err(error) = run.settle().await {
            ended = Err(error);
        }
    }
    run.record_skipped();
    let error = match &ended {
        Ok(true) => None,
        // The next server that claims the run continues it; if the database is unavailable, after
        // the claim has expired.
        Err(error) if is_unavailable(error) => return ended.map(|_| run.claim),
        Ok(false) if app.stop.is_cancelled() || *app.live.read_only.get() => {
            app.store.leave_run(&run.claim).await?;
            return Ok(run.claim);
        }
        Ok(false) => Some("The policy was paused, changed or taken over by another server.".to_owned()),
        Err(error) => Some(error.message().to_owned()),
    };
    if let Err(error) = &ended {
        tracing::warn!(policy = name, "a retention run ended early: {error:?}");
    }
    app.store.end_run(&run.claim, error.as_deref()).await?;
    let (deleted, bytes) = (run.claim.run.deleted, run.claim.run.bytes);
    tracing::info!(
        policy = name,
        deleted,
        bytes,
        skipped = run.skipped.len(),
        "retention policy run finished"
    );
    run.claim.run.error = error;
    Ok(run.claim)
}

/// Returns whether the database is unavailable, so that nothing more can be done or recorded.
fn is_unavailable(error: &ApiError) -> bool {
    error.code().is_some_and(|code| std::ptr::eq(code, &catalogue::DDB_UNAVAILABLE))
}

struct ActiveRun<'a> {
    app: &'a App,
    claim: RetentionClaim,
    /// Versions and bytes as last recorded, including the whole batch.
    counted: (u64, u64),
    skipped: Vec<Skipped>,
    faults: usize,
}

impl ActiveRun<'_> {
    /// Works on the run. Returns false if it must stop before its end.
    async fn work(&mut self) -> Result<bool, ApiError> {
        self.skipped = serde_json::from_str(&self.claim.run.skipped).unwrap_or_default();
        self.settle().await?;
        let rule = super::stored(&self.claim.policy)?;
        let left = rule.max_deletes.saturating_sub(self.claim.run.deleted);
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        // The evaluation may take longer than a claim lasts, so the claim is renewed meanwhile.
        let organization = self.claim.policy.organization;
        let mut evaluating = std::pin::pin!(evaluate(self.app, organization, &rule, most));
        let evaluation = loop {
            tokio::select! {
                evaluated = &mut evaluating => break evaluated?,
                () = tokio::time::sleep(INTERVAL) => {
                    if !self.app.store.continue_run(&self.claim).await? {
                        return Ok(false);
                    }
                }
                () = self.app.stop.cancelled() => return Ok(false),
            }
        };
        let Evaluation { repositories, found: WalkResult { items, needed, .. }, began } = evaluation;
        let mut recent = RecentPublishes::since(began, needed);
        for batch in items.chunks(BATCH) {
            if self.app.stop.is_cancelled()
                || !self.delete_batch(&rule, &repositories, batch, &mut recent).await?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Finds out which pending versions an interrupted run deleted.
    async fn settle(&mut self) -> Result<(), ApiError> {
        let pending: Vec<Pending> = serde_json::from_str(&self.claim.run.pending).unwrap_or_default();
        for (repository, package, version, bytes, first_listed_at) in pending {
            let (repository, named) = (RepositoryId(repository), (package.clone(), version.clone()));
            let is_there = match first_listed_at {
                Some(first_listed_at) => {
                    let row = self.app.store.judged_version(repository, &package, &version).await?;
                    row.is_some_and(|row| row.shown_at == first_listed_at)
                }
                None => {
                    is_still_stored(self.app, self.claim.policy.organization, repository, package, version)
                        .await?
                }
            };
            if is_there {
                self.give_back(bytes);
            } else {
                self.app.store.end_interrupted_trash(repository, &named.0, &named.1).await?;
            }
        }
        "[]".clone_into(&mut self.claim.run.pending);
        self.counted = (self.claim.run.deleted, self.claim.run.bytes);
        Ok(())
    }

    /// Deletes a batch. Returns false if this server no longer owns the run.
    async fn delete_batch(
        &mut self,
        rule: &Rule,
        repositories: &[EvaluatedRepository],
        batch: &[Candidate],
        recent: &mut RecentPublishes,
    ) -> Result<bool, ApiError> {
        self.count_batch(repositories, batch);
        if *self.app.live.read_only.get() || !self.app.store.continue_run(&self.claim).await? {
            self.give_all_back(batch);
            return Ok(false);
        }
        recent.refresh(self.app, repositories).await?;
        let mut recheck = Recheck::of(self.app, rule, repositories);
        recheck.load_facts(batch).await?;
        let mut going = Vec::new();
        for candidate in batch {
            match recheck.reason_to_keep(candidate, &recent.needed).await? {
                None => going.push(candidate),
                Some(reason) => self.keep(&recheck, candidate, reason, recent),
            }
        }
        let entries = self.entries(repositories, &going).await?;
        let mut filled: BTreeMap<usize, TrashId> =
            entries.iter().enumerate().filter_map(|(at, entry)| Some((at, (*entry)?))).collect();
        self.delete(&recheck, &going, entries, &mut filled, recent).await?;
        self.app.store.end_trash_of(&filled.into_values().collect::<Vec<_>>()).await?;
        "[]".clone_into(&mut self.claim.run.pending);
        Ok(true)
    }

    /// Deletes versions, each into its trash entry. Removes the entries of failed deletions from
    /// `filled`.
    async fn delete(
        &mut self,
        recheck: &Recheck<'_>,
        going: &[&Candidate],
        entries: Vec<Option<TrashId>>,
        filled: &mut BTreeMap<usize, TrashId>,
        recent: &mut RecentPublishes,
    ) -> Result<(), ApiError> {
        let linked = recheck.are_linked(going);
        let mut turns: Vec<QueuedDeletion> = entries.into_iter().enumerate().collect();
        while !turns.is_empty() {
            // If some need others, they are deleted one at a time, in order. Otherwise packages are
            // independent, and only the versions of one package go in order.
            let rest = if linked { turns.split_off(1) } else { Vec::new() };
            let mut by_package: BTreeMap<(usize, &str), Vec<QueuedDeletion>> = BTreeMap::new();
            for (at, entry) in std::mem::replace(&mut turns, rest) {
                let Some(candidate) = going.get(at) else { continue };
                if recent.needed.contains(&key(&candidate.stored)) {
                    self.keep(recheck, candidate, NEEDED.to_owned(), recent);
                    continue;
                }
                let package = (candidate.stored.repository, candidate.stored.package.as_str());
                by_package.entry(package).or_default().push((at, entry));
            }
            let outcomes = self
                .delete_concurrently(recheck.repositories, going, by_package.into_values().collect())
                .await?;
            for (at, outcome) in outcomes {
                let Some(candidate) = going.get(at) else { continue };
                let reason = match outcome {
                    DeletionOutcome::Deleted => continue,
                    DeletionOutcome::Skipped(reason) => reason,
                    DeletionOutcome::Failed(error) => {
                        // The deletion may be incomplete. Its entry stays open, and the next
                        // deletion of the same version continues with it.
                        filled.remove(&at);
                        tracing::warn!(
                            package = candidate.stored.package,
                            "deleting a version failed: {error:?}"
                        );
                        self.faults += 1;
                        error.message().to_owned()
                    }
                };
                self.keep(recheck, candidate, reason, recent);
            }
            if self.faults >= MAX_FAULTS {
                let text = "too many versions could not be deleted";
                return Err(ApiError::Internal(anyhow::anyhow!(text)));
            }
        }
        Ok(())
    }

    /// Keeps a candidate and the versions that it needs.
    fn keep(
        &mut self,
        recheck: &Recheck<'_>,
        candidate: &Candidate,
        reason: String,
        recent: &mut RecentPublishes,
    ) {
        let needs = recheck.needs_of(candidate);
        recent.needed.extend(needs.into_iter().map(|needed| (candidate.stored.repository, needed)));
        self.give_back(candidate.stored.bytes);
        self.skip(recheck.repositories, candidate, reason);
    }

    /// Opens trash entries for candidates, in their order; `None` if their repository has no trash.
    async fn entries(
        &self,
        repositories: &[EvaluatedRepository],
        going: &[&Candidate],
    ) -> Result<Vec<Option<TrashId>>, ApiError> {
        let mut entries = vec![None; going.len()];
        let which: BTreeSet<usize> = going.iter().map(|candidate| candidate.stored.repository).collect();
        for at in which {
            let Some(repository) = repositories.get(at) else { continue };
            let days = trash_days(&repository.row.settings);
            if days == 0 {
                continue;
            }
            let of: Vec<(usize, &StoredVersion)> = going
                .iter()
                .map(|one| &one.stored)
                .enumerate()
                .filter(|(_, stored)| stored.repository == at)
                .collect();
            let versions: Vec<(&str, &str, Option<u64>)> = of
                .iter()
                .map(|(_, stored)| {
                    let unshown = stored.first_listed_at.is_none().then_some(stored.bytes);
                    (stored.package.as_str(), stored.version.as_str(), unshown)
                })
                .collect();
            let name = &self.claim.policy.name;
            let begun = self.app.store.begin_trash_of(repository.row.id, &versions, name, days).await?;
            for ((number, _), entry) in of.iter().zip(begun) {
                if let Some(slot) = entries.get_mut(*number) {
                    *slot = Some(entry);
                }
            }
        }
        Ok(entries)
    }

    /// Deletes versions of several packages concurrently. Returns the outcome of each.
    async fn delete_concurrently(
        &self,
        repositories: &[EvaluatedRepository],
        going: &[&Candidate],
        packages: Vec<Vec<QueuedDeletion>>,
    ) -> Result<Vec<(usize, DeletionOutcome)>, ApiError> {
        let mut working = Vec::new();
        for versions in packages {
            working.push(async move {
                let mut outcomes = Vec::new();
                for (at, entry) in versions {
                    if let Some(candidate) = going.get(at) {
                        outcomes.push((at, self.delete_one(repositories, candidate, entry).await?));
                    }
                }
                Ok::<_, ApiError>(outcomes)
            });
        }
        // Only a database of one process (SQLite) has a generation number.
        let [alone, shared] = CONCURRENCY;
        let concurrency = if self.app.store.generation().is_some() { alone } else { shared };
        let mut working = futures::stream::iter(working).buffer_unordered(concurrency);
        let mut outcomes = Vec::new();
        while let Some(some) = working.next().await {
            outcomes.extend(some?);
        }
        Ok(outcomes)
    }

    async fn delete_one(
        &self,
        repositories: &[EvaluatedRepository],
        candidate: &Candidate,
        entry: Option<TrashId>,
    ) -> Result<DeletionOutcome, ApiError> {
        let Some(repository) = repositories.get(candidate.stored.repository) else {
            return Ok(DeletionOutcome::Skipped("Its repository was deleted.".to_owned()));
        };
        let named = VersionRef { package: &candidate.stored.package, version: &candidate.stored.version };
        let event = self.event(repository, named);
        Ok(match delete_into(&repository.row, &repository.plugin, event, named, entry).await {
            Ok(()) => DeletionOutcome::Deleted,
            Err(ApiError::Refused { code, .. }) if std::ptr::eq(code, &catalogue::NOT_FOUND) => {
                DeletionOutcome::Skipped("It was deleted in the meantime.".to_owned())
            }
            Err(error) if is_unavailable(&error) => return Err(error),
            Err(ApiError::Refused { message, .. }) => DeletionOutcome::Skipped(message),
            Err(error) => DeletionOutcome::Failed(error),
        })
    }

    /// Audit event of a deletion by the policy.
    fn event(&self, repository: &EvaluatedRepository, named: VersionRef<'_>) -> AuditEvent {
        let policy = &self.claim.policy;
        AuditEvent {
            organization: policy.organization,
            actor: policy.name.clone(),
            credential: format!("retention:{}", policy.id),
            action: "delete_version".to_owned(),
            subject: format!("{}/{} {}", repository.row.name, named.package, named.version),
            ..AuditEvent::default()
        }
    }

    /// Counts a batch before it is deleted, so that an interrupted run never exceeds its limit.
    fn count_batch(&mut self, repositories: &[EvaluatedRepository], batch: &[Candidate]) {
        let pending = batch.iter().filter_map(|Candidate { stored, .. }| {
            let id = repositories.get(stored.repository)?.row.id.0;
            Some((id, stored.package.clone(), stored.version.clone(), stored.bytes, stored.first_listed_at))
        });
        let pending: Vec<Pending> = pending.collect();
        self.claim.run.pending = serde_json::to_string(&pending).unwrap_or_default();
        for candidate in batch {
            self.claim.run.deleted += 1;
            self.claim.run.bytes = self.claim.run.bytes.saturating_add(candidate.stored.bytes);
        }
        self.counted = (self.claim.run.deleted, self.claim.run.bytes);
        self.record_skipped();
    }

    fn give_all_back(&mut self, batch: &[Candidate]) {
        for candidate in batch {
            self.give_back(candidate.stored.bytes);
        }
        "[]".clone_into(&mut self.claim.run.pending);
    }

    fn give_back(&mut self, bytes: u64) {
        let run = &mut self.claim.run;
        (run.deleted, run.bytes) = (run.deleted.saturating_sub(1), run.bytes.saturating_sub(bytes));
    }

    fn skip(
        &mut self,
        repositories: &[EvaluatedRepository],
        Candidate { stored, .. }: &Candidate,
        reason: String,
    ) {
        let Some(repository) =
            repositories.get(stored.repository).filter(|_| self.skipped.len() < MAX_SKIPPED)
        else {
            return;
        };
        self.skipped.push(Skipped {
            repository: repository.row.id.to_string(),
            package: stored.package.clone(),
            version: stored.version.clone(),
            published_at: stored.published_at,
            last_downloaded_at: stored.last_downloaded_at,
            bytes: stored.bytes,
            reason,
        });
    }

    fn record_skipped(&mut self) {
        self.claim.run.skipped = serde_json::to_string(&self.skipped).unwrap_or_default();
    }
}
