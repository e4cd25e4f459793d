//! What a run judges again right before it deletes: by what is there by then, and by what was published beside it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use packhouse_app::App;
use packhouse_runtime::{NeededVersion, VersionFacts};

use super::evaluate::{Place, facts, newest, seen};
use super::rule::Rule;
use super::walk::{Condemned, Key, Newest, Seen, key};
use crate::error::ApiError;

/// How often at most it is looked for what was published beside a run.
const NEWS: Duration = Duration::from_secs(2);
/// Versions that are read of that.
const NEWS_READ: u32 = 5_000;
/// Of these, versions that are judged at a time.
const NEWS_JUDGED: usize = 500;
/// How much earlier than the last look the next one begins: clocks differ, and a commit may take its time.
const OVERLAP_MS: i64 = 10_000;
/// Why something stays that others need.
pub(super) const NEEDED: &str = "Another version that stays needs it.";

/// What was published beside a run, and what that needs.
pub(super) struct News {
    looked: Instant,
    since: i64,
    /// What something that stays cannot be used without.
    pub(super) needed: HashSet<Key>,
}

impl News {
    /// Nothing yet, since this time in ms since 1970.
    pub(super) fn since(began: i64, needed: HashSet<Key>) -> News {
        News { looked: Instant::now(), since: began, needed }
    }

    /// Looks for it, now and then.
    pub(super) async fn look(&mut self, app: &App, places: &[Place]) -> Result<(), ApiError> {
        if self.looked.elapsed() < NEWS {
            return Ok(());
        }
        let since = self.since.saturating_sub(OVERLAP_MS);
        (self.looked, self.since) = (Instant::now(), app.store.now_ms());
        for (at, place) in places.iter().enumerate().filter(|(_, place)| place.plugin.has_retention()) {
            let rows = app.store.versions_since(place.repository.id, since, NEWS_READ).await?;
            for rows in rows.chunks(NEWS_JUDGED) {
                let ids = rows.iter().map(|row| (row.name.clone(), row.version.clone())).collect();
                for facts in facts(place, ids).await?.into_iter().flatten() {
                    self.needed.extend(facts.needs.into_iter().map(|needed| (at, needed)));
                }
            }
        }
        Ok(())
    }
}

/// Judges a piece again, by what is there now.
pub(super) struct Again<'a> {
    app: &'a App,
    rule: &'a Rule,
    /// Where it is.
    pub(super) places: &'a [Place],
    facts: HashMap<Key, VersionFacts>,
    newest: HashMap<(usize, String), Newest>,
}

impl<'a> Again<'a> {
    /// By this rule.
    pub(super) fn of(app: &'a App, rule: &'a Rule, places: &'a [Place]) -> Again<'a> {
        Again { app, rule, places, facts: HashMap::new(), newest: HashMap::new() }
    }

    /// Asks the plugins about all of a piece at once.
    pub(super) async fn ask(&mut self, piece: &[Condemned]) -> Result<(), ApiError> {
        let which: BTreeSet<usize> = piece.iter().map(|condemned| condemned.seen.place).collect();
        for at in which {
            let Some(place) = self.places.get(at) else { continue };
            let of: Vec<&Seen> = piece.iter().map(|one| &one.seen).filter(|seen| seen.place == at).collect();
            let ids = of.iter().map(|seen| (seen.package.clone(), seen.version.clone())).collect();
            for (seen, facts) in of.iter().zip(facts(place, ids).await?) {
                if let Some(facts) = facts {
                    self.facts.insert(key(seen), facts);
                }
            }
        }
        Ok(())
    }

    /// Whether one of these needs another of them.
    pub(super) fn are_linked(&self, going: &[&Condemned]) -> bool {
        let keys: HashSet<Key> = going.iter().map(|condemned| key(&condemned.seen)).collect();
        let needs = |condemned: &&Condemned| {
            let place = condemned.seen.place;
            self.needs_of(condemned).into_iter().any(|needed| keys.contains(&(place, needed)))
        };
        going.iter().any(needs)
    }

    pub(super) fn needs_of(&self, condemned: &Condemned) -> Vec<NeededVersion> {
        match self.facts.get(&key(&condemned.seen)) {
            Some(facts) => facts.needs.clone(),
            None => condemned.needs.clone(),
        }
    }

    /// Why a version is not to go after all.
    pub(super) async fn spared(
        &mut self,
        condemned: &Condemned,
        needed: &HashSet<Key>,
    ) -> Result<Option<String>, ApiError> {
        let said = |text: &str| Ok(Some(text.to_owned()));
        let own = key(&condemned.seen);
        let (Some(place), Some(facts)) = (self.places.get(own.0), self.facts.get(&own)) else {
            return said("It was deleted meanwhile, or something names it now.");
        };
        let now = match condemned.seen.shown_at {
            None => condemned.seen.clone(),
            Some(_) => {
                let Seen { package, version, .. } = &condemned.seen;
                match self.app.store.judged_version(place.repository.id, package, version).await? {
                    Some(row) => seen(row, own.0),
                    None => return said("It was deleted meanwhile."),
                }
            }
        };
        if needed.contains(&own) {
            return said(NEEDED);
        }
        let judged = now.judged(facts);
        if facts.follows || !self.rule.matches(place.plugin.description().name_folding, &judged) {
            return said("The policy is not about it any more.");
        }
        if self.rule.condemns(&judged, self.app.store.now_ms()).is_none() {
            return said("It was published or downloaded meanwhile.");
        }
        if let Some(most) = self.rule.keep.newest {
            let of = (own.0, own.1.name.clone());
            if !self.newest.contains_key(&of) {
                let newest = newest(self.app, place, &of.1, most).await?;
                self.newest.insert(of.clone(), newest);
            }
            if self.newest.get(&of).is_some_and(|newest| newest.holds(&now.version, facts)) {
                return said("It is among the newest of its package by now.");
            }
        }
        Ok(None)
    }
}
