//! Second check of a run's candidates right before it deletes them: against their present state,
//! and against versions that were published during the run.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use packhouse_app::App;
use packhouse_runtime::{NeededVersion, VersionFacts};

use super::evaluate::{EvaluatedRepository, facts, newest, stored_version};
use super::rule::Rule;
use super::walk::{Candidate, Newest, StoredVersion, VersionKey, key};
use crate::error::ApiError;

/// Minimum time between two looks for new versions.
const REFRESH_INTERVAL: Duration = Duration::from_secs(2);
/// Maximum number of new versions that one look reads.
const MAX_NEW_VERSIONS: u32 = 5_000;
/// Number of new versions in one plugin call.
const FACTS_BATCH: usize = 500;
/// Overlap with the previous look, because clocks differ and a commit may take its time.
const OVERLAP_MS: i64 = 10_000;
/// Reason for keeping a version that another one needs.
pub(super) const NEEDED: &str = "Another version that is kept needs it.";

/// Versions that were published during a run, and the versions that they need.
pub(super) struct RecentPublishes {
    refreshed: Instant,
    since: i64,
    /// Versions that a remaining version needs.
    pub(super) needed: HashSet<VersionKey>,
}

impl RecentPublishes {
    /// Starts with the needs of the evaluation, which began at `began` (ms since 1970).
    pub(super) fn since(began: i64, needed: HashSet<VersionKey>) -> RecentPublishes {
        RecentPublishes { refreshed: Instant::now(), since: began, needed }
    }

    /// Looks for new versions, unless the previous look was recent.
    pub(super) async fn refresh(
        &mut self,
        app: &App,
        repositories: &[EvaluatedRepository],
    ) -> Result<(), ApiError> {
        if self.refreshed.elapsed() < REFRESH_INTERVAL {
            return Ok(());
        }
        let since = self.since.saturating_sub(OVERLAP_MS);
        (self.refreshed, self.since) = (Instant::now(), app.store.now_ms());
        for (at, repository) in
            repositories.iter().enumerate().filter(|(_, repository)| repository.plugin.has_retention())
        {
            let rows = app.store.versions_since(repository.row.id, since, MAX_NEW_VERSIONS).await?;
            for rows in rows.chunks(FACTS_BATCH) {
                let ids = rows.iter().map(|row| (row.name.clone(), row.version.clone())).collect();
                for facts in facts(repository, ids).await?.into_iter().flatten() {
                    self.needed.extend(facts.needs.into_iter().map(|needed| (at, needed)));
                }
            }
        }
        Ok(())
    }
}

/// Checks a batch of candidates again, against their present state.
pub(super) struct Recheck<'a> {
    app: &'a App,
    rule: &'a Rule,
    pub(super) repositories: &'a [EvaluatedRepository],
    facts: HashMap<VersionKey, VersionFacts>,
    newest: HashMap<(usize, String), Newest>,
}

impl<'a> Recheck<'a> {
    pub(super) fn of(app: &'a App, rule: &'a Rule, repositories: &'a [EvaluatedRepository]) -> Recheck<'a> {
        Recheck { app, rule, repositories, facts: HashMap::new(), newest: HashMap::new() }
    }

    /// Loads the plugins' facts about all candidates of a batch.
    pub(super) async fn load_facts(&mut self, batch: &[Candidate]) -> Result<(), ApiError> {
        let which: BTreeSet<usize> = batch.iter().map(|candidate| candidate.stored.repository).collect();
        for at in which {
            let Some(repository) = self.repositories.get(at) else { continue };
            let of: Vec<&StoredVersion> =
                batch.iter().map(|one| &one.stored).filter(|stored| stored.repository == at).collect();
            let ids = of.iter().map(|stored| (stored.package.clone(), stored.version.clone())).collect();
            for (stored, facts) in of.iter().zip(facts(repository, ids).await?) {
                if let Some(facts) = facts {
                    self.facts.insert(key(stored), facts);
                }
            }
        }
        Ok(())
    }

    /// Returns whether one of these candidates needs another one of them.
    pub(super) fn are_linked(&self, going: &[&Candidate]) -> bool {
        let keys: HashSet<VersionKey> = going.iter().map(|candidate| key(&candidate.stored)).collect();
        let needs = |candidate: &&Candidate| {
            let repository = candidate.stored.repository;
            self.needs_of(candidate).into_iter().any(|needed| keys.contains(&(repository, needed)))
        };
        going.iter().any(needs)
    }

    pub(super) fn needs_of(&self, candidate: &Candidate) -> Vec<NeededVersion> {
        match self.facts.get(&key(&candidate.stored)) {
            Some(facts) => facts.needs.clone(),
            None => candidate.needs.clone(),
        }
    }

    /// Returns why a candidate must be kept after all, if so.
    pub(super) async fn reason_to_keep(
        &mut self,
        candidate: &Candidate,
        needed: &HashSet<VersionKey>,
    ) -> Result<Option<String>, ApiError> {
        let keep = |text: &str| Ok(Some(text.to_owned()));
        let own = key(&candidate.stored);
        let (Some(repository), Some(facts)) = (self.repositories.get(own.0), self.facts.get(&own)) else {
            return keep("It was deleted in the meantime, or something refers to it now.");
        };
        let now = match candidate.stored.first_listed_at {
            None => candidate.stored.clone(),
            Some(_) => {
                let StoredVersion { package, version, .. } = &candidate.stored;
                match self.app.store.judged_version(repository.row.id, package, version).await? {
                    Some(row) => stored_version(row, own.0),
                    None => return keep("It was deleted in the meantime."),
                }
            }
        };
        if needed.contains(&own) {
            return keep(NEEDED);
        }
        let input = now.rule_input(facts);
        if facts.follows || !self.rule.matches(repository.plugin.description().name_folding, &input) {
            return keep("The policy no longer applies to it.");
        }
        if self.rule.deletion_reason(&input, self.app.store.now_ms()).is_none() {
            return keep("It was published or downloaded in the meantime.");
        }
        if let Some(most) = self.rule.keep.newest {
            let of = (own.0, own.1.name.clone());
            if !self.newest.contains_key(&of) {
                let newest = newest(self.app, repository, &of.1, most).await?;
                self.newest.insert(of.clone(), newest);
            }
            if self.newest.get(&of).is_some_and(|newest| newest.contains(&now.version, facts)) {
                return keep("It is now among the newest versions of its package.");
            }
        }
        Ok(None)
    }
}
