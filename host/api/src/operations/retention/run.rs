//! Runs: a policy's evaluation, carried out. Each version is judged again right before it goes, and what it was skipped for is noted. A
//! run that is killed goes on where it was, on whichever server finds it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use packhouse_app::App;
use packhouse_config::repository_settings::trash_days;
use packhouse_store::{AuditEvent, PolicyId, RepositoryId, RetentionClaim, TrashId};
use packhouse_wire::catalogue;
use serde::{Deserialize, Serialize};

use super::again::{Again, NEEDED, News};
use super::evaluate::{Evaluation, Place, evaluate, holds_unshown};
use super::rule::Rule;
use super::walk::{Condemned, Found, Seen, key};
use crate::error::ApiError;
use crate::operations::upkeep::{Named, delete_into};

/// Versions after which it is noted how far a run has come.
const PIECE: usize = 20;
/// Versions that were skipped, of which a run remembers why.
const SKIPPED: usize = 200;
/// Versions that could not be deleted by a fault of ours, after which a run is given up.
const FAULTS: usize = 20;
/// Packages of which versions are deleted at the same time. With SQLite two share a wait for the disk, and more hold up publishes;
/// PostgreSQL is waited for at each step, and publishes beside it wait for its disk alone.
const AT_ONCE: [usize; 2] = [2, 8];
/// How often it is looked for policies that are due.
const LOOKED_FOR: Duration = Duration::from_secs(10);

/// A version that was to be deleted and was not.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Skipped {
    /// The repository's id.
    pub repository: String,
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

/// What came of a piece's version.
enum Outcome {
    Deleted,
    Skipped(String),
    /// By a fault of ours.
    Failed(ApiError),
}

/// Which of a piece's versions, and its entry in the trash, where there is one.
type Turn = (usize, Option<TrashId>);

/// What a run has taken on and may have done when it is killed: repository, package, version, bytes, and when it was shown.
type Pending = (i64, String, String, u64, Option<i64>);

/// Carries out policies that are due, one after the other, until none is left; of these the one named alone, if one is. How many runs.
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

/// Runs policies every hour, those that somebody asked for at once, and goes on with what was interrupted, until the stop.
pub async fn every_hour(app: Arc<App>) {
    loop {
        let worked = async {
            run_due(&app, None).await?;
            app.store.end_paused_runs().await.map_err(ApiError::from)
        };
        if let Err(error) = worked.await {
            tracing::warn!("policies of retention could not be run; the next time will do: {error:?}");
        }
        if tokio::time::timeout(LOOKED_FOR, app.stop.cancelled()).await.is_ok() {
            return;
        }
    }
}

/// Carries a run out to its end, and says how it ended. An error where that could not be noted.
async fn carry_out(app: &App, claim: RetentionClaim) -> Result<RetentionClaim, ApiError> {
    let taken_on = (claim.run.deleted, claim.run.bytes);
    let mut run = Run { app, claim, taken_on, skipped: Vec::new(), faults: 0 };
    let name = run.claim.policy.name.clone();
    let mut ended = run.work().await;
    if let Err(error) = &ended
        && !is_unavailable(error)
    {
        // In the middle of a piece: what was done of it is found out as after a kill.
        (run.claim.run.deleted, run.claim.run.bytes) = run.taken_on;
        if let Err(error) = run.settle().await {
            ended = Err(error);
        }
    }
    run.note();
    let error = match &ended {
        Ok(true) => None,
        // Whoever claims it once more goes on with it; where the database is away, once the claim is over.
        Err(error) if is_unavailable(error) => return ended.map(|_| run.claim),
        Ok(false) if app.stop.is_cancelled() || *app.live.read_only.get() => {
            app.store.leave_run(&run.claim).await?;
            return Ok(run.claim);
        }
        Ok(false) => Some("The policy was paused, changed or taken over by another server.".to_owned()),
        Err(error) => Some(error.message().to_owned()),
    };
    if let Err(error) = &ended {
        tracing::warn!(policy = name, "a run of retention ended early: {error:?}");
    }
    app.store.end_run(&run.claim, error.as_deref()).await?;
    let (deleted, bytes) = (run.claim.run.deleted, run.claim.run.bytes);
    tracing::info!(
        policy = name,
        deleted,
        bytes,
        skipped = run.skipped.len(),
        "a policy of retention was run"
    );
    run.claim.run.error = error;
    Ok(run.claim)
}

/// Whether the database is away, so that nothing more can be done or noted.
fn is_unavailable(error: &ApiError) -> bool {
    error.code().is_some_and(|code| std::ptr::eq(code, &catalogue::DDB_UNAVAILABLE))
}

/// A run under way.
struct Run<'a> {
    app: &'a App,
    claim: RetentionClaim,
    /// Versions and bytes as they were noted last, with all of the piece.
    taken_on: (u64, u64),
    skipped: Vec<Skipped>,
    faults: usize,
}

impl Run<'_> {
    /// False when it is to stop here.
    async fn work(&mut self) -> Result<bool, ApiError> {
        self.skipped = serde_json::from_str(&self.claim.run.skipped).unwrap_or_default();
        self.settle().await?;
        let rule = super::stored(&self.claim.policy)?;
        let left = rule.max_deletes.saturating_sub(self.claim.run.deleted);
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        // What is evaluated may take longer than a claim lasts: it is renewed beside it.
        let organization = self.claim.policy.organization;
        let mut evaluating = std::pin::pin!(evaluate(self.app, organization, &rule, most));
        let evaluation = loop {
            tokio::select! {
                evaluated = &mut evaluating => break evaluated?,
                () = tokio::time::sleep(LOOKED_FOR) => {
                    if !self.app.store.go_on_with_run(&self.claim).await? {
                        return Ok(false);
                    }
                }
                () = self.app.stop.cancelled() => return Ok(false),
            }
        };
        let Evaluation { places, found: Found { items, needed, .. }, began } = evaluation;
        let mut news = News::since(began, needed);
        for piece in items.chunks(PIECE) {
            if self.app.stop.is_cancelled() || !self.piece(&rule, &places, piece, &mut news).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Finds out what was done of what a run that was killed had taken on.
    async fn settle(&mut self) -> Result<(), ApiError> {
        let pending: Vec<Pending> = serde_json::from_str(&self.claim.run.pending).unwrap_or_default();
        for (repository, package, version, bytes, shown_at) in pending {
            let (repository, named) = (RepositoryId(repository), (package.clone(), version.clone()));
            let is_there = match shown_at {
                Some(shown_at) => {
                    let row = self.app.store.judged_version(repository, &package, &version).await?;
                    row.is_some_and(|row| row.shown_at == shown_at)
                }
                None => {
                    holds_unshown(self.app, self.claim.policy.organization, repository, package, version)
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
        self.taken_on = (self.claim.run.deleted, self.claim.run.bytes);
        Ok(())
    }

    /// Deletes a piece. False when the run is no longer this server's.
    async fn piece(
        &mut self,
        rule: &Rule,
        places: &[Place],
        piece: &[Condemned],
        news: &mut News,
    ) -> Result<bool, ApiError> {
        self.take_on(places, piece);
        if *self.app.live.read_only.get() || !self.app.store.go_on_with_run(&self.claim).await? {
            self.give_all_back(piece);
            return Ok(false);
        }
        news.look(self.app, places).await?;
        let mut again = Again::of(self.app, rule, places);
        again.ask(piece).await?;
        let mut going = Vec::new();
        for condemned in piece {
            match again.spared(condemned, &news.needed).await? {
                None => going.push(condemned),
                Some(because) => self.leave(&again, condemned, because, news),
            }
        }
        let entries = self.entries(places, &going).await?;
        let mut filled: BTreeMap<usize, TrashId> =
            entries.iter().enumerate().filter_map(|(at, entry)| Some((at, (*entry)?))).collect();
        self.delete(&again, &going, entries, &mut filled, news).await?;
        self.app.store.end_trash_of(&filled.into_values().collect::<Vec<_>>()).await?;
        "[]".clone_into(&mut self.claim.run.pending);
        Ok(true)
    }

    /// Deletes these, each into its entry; entries of what failed half-way are no longer among those that are `filled`.
    async fn delete(
        &mut self,
        again: &Again<'_>,
        going: &[&Condemned],
        entries: Vec<Option<TrashId>>,
        filled: &mut BTreeMap<usize, TrashId>,
        news: &mut News,
    ) -> Result<(), ApiError> {
        let linked = again.are_linked(going);
        let mut turns: Vec<Turn> = entries.into_iter().enumerate().collect();
        while !turns.is_empty() {
            // What needs another goes before it, alone; else packages are independent of each other, and what is of one goes in turn.
            let rest = if linked { turns.split_off(1) } else { Vec::new() };
            let mut by_package: BTreeMap<(usize, &str), Vec<Turn>> = BTreeMap::new();
            for (at, entry) in std::mem::replace(&mut turns, rest) {
                let Some(condemned) = going.get(at) else { continue };
                if news.needed.contains(&key(&condemned.seen)) {
                    self.leave(again, condemned, NEEDED.to_owned(), news);
                    continue;
                }
                let package = (condemned.seen.place, condemned.seen.package.as_str());
                by_package.entry(package).or_default().push((at, entry));
            }
            let outcomes = self.at_once(again.places, going, by_package.into_values().collect()).await?;
            for (at, outcome) in outcomes {
                let Some(condemned) = going.get(at) else { continue };
                let because = match outcome {
                    Outcome::Deleted => continue,
                    Outcome::Skipped(because) => because,
                    Outcome::Failed(error) => {
                        // Half-way perhaps: it stays open, and the next deletion of the same goes on with it.
                        filled.remove(&at);
                        tracing::warn!(
                            package = condemned.seen.package,
                            "a version could not be deleted: {error:?}"
                        );
                        self.faults += 1;
                        error.message().to_owned()
                    }
                };
                self.leave(again, condemned, because, news);
            }
            if self.faults >= FAULTS {
                let text = "too many versions could not be deleted";
                return Err(ApiError::Internal(anyhow::anyhow!(text)));
            }
        }
        Ok(())
    }

    /// It stays, and so does what it needs.
    fn leave(&mut self, again: &Again<'_>, condemned: &Condemned, because: String, news: &mut News) {
        let needs = again.needs_of(condemned);
        news.needed.extend(needs.into_iter().map(|needed| (condemned.seen.place, needed)));
        self.give_back(condemned.seen.bytes);
        self.skip(again.places, condemned, because);
    }

    /// Entries of the trash for these, in their order; none where their repository has no trash.
    async fn entries(
        &self,
        places: &[Place],
        going: &[&Condemned],
    ) -> Result<Vec<Option<TrashId>>, ApiError> {
        let mut entries = vec![None; going.len()];
        let which: BTreeSet<usize> = going.iter().map(|condemned| condemned.seen.place).collect();
        for at in which {
            let Some(place) = places.get(at) else { continue };
            let days = trash_days(&place.repository.settings);
            if days == 0 {
                continue;
            }
            let of: Vec<(usize, &Seen)> =
                going.iter().map(|one| &one.seen).enumerate().filter(|(_, seen)| seen.place == at).collect();
            let versions: Vec<(&str, &str, Option<u64>)> = of
                .iter()
                .map(|(_, seen)| {
                    let unshown = seen.shown_at.is_none().then_some(seen.bytes);
                    (seen.package.as_str(), seen.version.as_str(), unshown)
                })
                .collect();
            let name = &self.claim.policy.name;
            let begun = self.app.store.begin_trash_of(place.repository.id, &versions, name, days).await?;
            for ((number, _), entry) in of.iter().zip(begun) {
                if let Some(slot) = entries.get_mut(*number) {
                    *slot = Some(entry);
                }
            }
        }
        Ok(entries)
    }

    /// Deletes versions of several packages; what came of each.
    async fn at_once(
        &self,
        places: &[Place],
        going: &[&Condemned],
        packages: Vec<Vec<Turn>>,
    ) -> Result<Vec<(usize, Outcome)>, ApiError> {
        let mut working = Vec::new();
        for versions in packages {
            working.push(async move {
                let mut outcomes = Vec::new();
                for (at, entry) in versions {
                    if let Some(condemned) = going.get(at) {
                        outcomes.push((at, self.one(places, condemned, entry).await?));
                    }
                }
                Ok::<_, ApiError>(outcomes)
            });
        }
        // A database of one process knows at no cost whether anything has changed.
        let [alone, shared] = AT_ONCE;
        let at_once = if self.app.store.generation().is_some() { alone } else { shared };
        let mut working = futures::stream::iter(working).buffer_unordered(at_once);
        let mut outcomes = Vec::new();
        while let Some(some) = working.next().await {
            outcomes.extend(some?);
        }
        Ok(outcomes)
    }

    async fn one(
        &self,
        places: &[Place],
        condemned: &Condemned,
        entry: Option<TrashId>,
    ) -> Result<Outcome, ApiError> {
        let Some(place) = places.get(condemned.seen.place) else {
            return Ok(Outcome::Skipped("Its repository is gone.".to_owned()));
        };
        let named = Named { package: &condemned.seen.package, version: &condemned.seen.version };
        let event = self.event(place, named);
        Ok(match delete_into(&place.repository, &place.plugin, event, named, entry).await {
            Ok(()) => Outcome::Deleted,
            Err(ApiError::Refused { code, .. }) if std::ptr::eq(code, &catalogue::NOT_FOUND) => {
                Outcome::Skipped("It was deleted meanwhile.".to_owned())
            }
            Err(error) if is_unavailable(&error) => return Err(error),
            Err(ApiError::Refused { message, .. }) => Outcome::Skipped(message),
            Err(error) => Outcome::Failed(error),
        })
    }

    /// What is remembered of a deletion: the policy did it.
    fn event(&self, place: &Place, named: Named<'_>) -> AuditEvent {
        let policy = &self.claim.policy;
        AuditEvent {
            organization: policy.organization,
            actor: policy.name.clone(),
            credential: format!("retention:{}", policy.id),
            action: "delete_version".to_owned(),
            subject: format!("{}/{} {}", place.repository.name, named.package, named.version),
            ..AuditEvent::default()
        }
    }

    /// Counts a piece before it is done: a run that is killed in it never deletes more than it may.
    fn take_on(&mut self, places: &[Place], piece: &[Condemned]) {
        let pending = piece.iter().filter_map(|Condemned { seen, .. }| {
            let id = places.get(seen.place)?.repository.id.0;
            Some((id, seen.package.clone(), seen.version.clone(), seen.bytes, seen.shown_at))
        });
        let pending: Vec<Pending> = pending.collect();
        self.claim.run.pending = serde_json::to_string(&pending).unwrap_or_default();
        for condemned in piece {
            self.claim.run.deleted += 1;
            self.claim.run.bytes = self.claim.run.bytes.saturating_add(condemned.seen.bytes);
        }
        self.taken_on = (self.claim.run.deleted, self.claim.run.bytes);
        self.note();
    }

    fn give_all_back(&mut self, piece: &[Condemned]) {
        for condemned in piece {
            self.give_back(condemned.seen.bytes);
        }
        "[]".clone_into(&mut self.claim.run.pending);
    }

    fn give_back(&mut self, bytes: u64) {
        let run = &mut self.claim.run;
        (run.deleted, run.bytes) = (run.deleted.saturating_sub(1), run.bytes.saturating_sub(bytes));
    }

    fn skip(&mut self, places: &[Place], Condemned { seen, .. }: &Condemned, because: String) {
        let Some(place) = places.get(seen.place).filter(|_| self.skipped.len() < SKIPPED) else { return };
        self.skipped.push(Skipped {
            repository: place.repository.id.to_string(),
            package: seen.package.clone(),
            version: seen.version.clone(),
            published_at: seen.published_at,
            last_downloaded_at: seen.last_downloaded_at,
            bytes: seen.bytes,
            because,
        });
    }

    fn note(&mut self) {
        self.claim.run.skipped = serde_json::to_string(&self.skipped).unwrap_or_default();
    }
}
