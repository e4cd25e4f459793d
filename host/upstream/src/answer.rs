//! Which answer a plugin gets: one that is kept, the upstream's, or one that is older than it should be.

use std::sync::Arc;
use std::time::Duration;

use packhouse_runtime::Freshness;
use packhouse_store::{CachedAnswer, Digest, StoreError, now_ms};

use super::candidate::Candidate;
use super::errand::{Errand, Used};
use super::flight::{self, Content, Landed, Passenger};
use super::fly::{landed, new};
use super::negative::Key;
use super::plan::Plan;
use super::policy::Release;
use super::site::{Outcome, Site};
use super::trouble::Trouble;
use super::{Upstreams, body};

/// How long an upstream has to say whether a kept answer is still right; then all who wait get that one, and the question goes on
/// without them.
const REVALIDATION: Duration = Duration::from_secs(2);
/// What is answered for a version that must not be served.
const WITHHELD: u16 = 404;

/// An answer, and the place in the flight that brings its content.
pub(crate) struct Taken {
    pub landed: Landed,
    pub passenger: Option<Passenger>,
    pub outcome: Outcome,
}

impl Taken {
    fn here(landed: Landed, outcome: Outcome) -> Taken {
        Taken { landed, passenger: None, outcome }
    }
}

/// One question of a plugin's on its way to an answer.
pub(crate) struct Asker {
    pub upstreams: Arc<Upstreams>,
    pub site: Arc<Site>,
    pub plan: Arc<Plan>,
    pub expected: Vec<Digest>,
    pub errand: Arc<Errand>,
}

impl Asker {
    /// The answer. What a version's state or age forbids is answered as if it were not there.
    pub(crate) async fn answer(&self) -> Result<Taken, Trouble> {
        let release = self.release().await?;
        let withheld = || Taken::here(Landed::bare(WITHHELD, self.plan.question.url.as_str()), Outcome::Hit);
        if matches!(release, Release::Withdrawn | Release::TooYoung) {
            return Ok(withheld());
        }
        let taken = self.take().await?;
        let served =
            release != Release::ByItsFile || taken.landed.status != 200 || self.is_old(&taken.landed);
        Ok(if served { taken } else { withheld() })
    }

    async fn release(&self) -> Result<Release, StoreError> {
        let Plan { repository, policy, show_as, .. } = &*self.plan;
        let Some((name, version, _)) = show_as else { return Ok(Release::Free) };
        let shown = self.upstreams.store.shown_state(*repository, name, version).await?;
        Ok(policy.release(name, &shown, now_ms()))
    }

    /// By the time that the upstream gives its file; one without is never old enough.
    fn is_old(&self, landed: &Landed) -> bool {
        let modified = landed.header("last-modified").and_then(|date| httpdate::parse_http_date(date).ok());
        let at = modified.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let at = at.and_then(|at| i64::try_from(at.as_millis()).ok());
        at.is_some_and(|at| self.plan.policy.is_old(at, now_ms()))
    }

    async fn take(&self) -> Result<Taken, Trouble> {
        let Plan { repository, policy, name, freshness, .. } = &*self.plan;
        if !self.plan.is_kept() {
            return match policy.offline {
                true => Err(Trouble::Offline),
                false => self.ask_upstream(None).await,
            };
        }
        let (key, known) = (self.key(), self.known().await?);
        if let Some(taken) = self.on_trial(known.is_some()) {
            return Ok(taken);
        }
        if let Some(answer) = &known
            && (policy.offline || policy.is_fresh(answer, *freshness, now_ms()))
        {
            self.upstreams.store.cache_used(*repository, &answer.name);
            let fresh = policy.is_fresh(answer, *freshness, now_ms());
            return Ok(Taken::here(landed(answer), if fresh { Outcome::Hit } else { Outcome::Stale }));
        }
        if policy.offline {
            return Err(Trouble::Offline);
        }
        if let Some(answer) = known.as_ref().filter(|answer| answer.name == *name)
            && policy.stale_on_error
            && (self.errand.threw_away(key) || self.upstreams.candidates.is_held(key))
        {
            return Ok(self.stale(answer, "what came since could not be read"));
        }
        let negative = self.upstreams.negatives.get(key);
        if let Some(landed) = negative.filter(|_| *freshness != Some(Freshness::Never)) {
            return Ok(Taken::here(landed, Outcome::Hit));
        }
        // A `HEAD` may be answered by what a `GET` left, but whether that is still right is its own question.
        let own = known.filter(|answer| answer.name == *name);
        self.ask_upstream(own).await
    }

    fn key(&self) -> Key {
        Key(self.plan.repository, self.plan.name)
    }

    /// What came last and was not judged yet, as long as nothing says that it must be asked for now.
    fn on_trial(&self, older: bool) -> Option<Taken> {
        if !self.plan.is_on_trial() || self.plan.freshness == Some(Freshness::Never) {
            return None;
        }
        let (candidate, answer) = self.upstreams.candidates.get(self.key())?;
        self.used(candidate, older);
        Some(Taken::here(new(&answer), Outcome::Hit))
    }

    /// The answer is what a flight brings. Whoever gets another one says nothing of it.
    fn took(&self, passenger: &Passenger, older: bool) {
        if self.plan.is_on_trial() {
            self.used(Arc::clone(&passenger.flight.candidate), older);
        }
    }

    fn used(&self, candidate: Arc<Candidate>, older: bool) {
        let older = older && self.plan.policy.stale_on_error;
        self.errand.used(Used { key: self.key(), candidate, older, ttl: self.plan.policy.metadata_ms() });
    }

    /// The kept answer whose bytes are what is expected.
    async fn known(&self) -> Result<Option<CachedAnswer>, Trouble> {
        let Plan { repository, name, as_get, freshness, policy, .. } = &*self.plan;
        let own = self.upstreams.store.cached(*repository, name).await?;
        let fresh = |answer: &CachedAnswer| policy.is_fresh(answer, *freshness, now_ms());
        let known = match own {
            Some(own) if name == as_get || fresh(&own) => Some(own),
            own if name == as_get => own,
            own => self.upstreams.store.cached(*repository, as_get).await?.filter(fresh).or(own),
        };
        let Some(answer) = known else { return Ok(None) };
        let Some(blob) = answer.blob.as_ref().filter(|_| name == as_get) else { return Ok(Some(answer)) };
        match body::verify(blob, &self.expected).await {
            Ok(()) => Ok(Some(answer)),
            Err(StoreError::BrokenOff(_) | StoreError::Corrupt(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The upstream's answer; or the kept one where the upstream fails or takes its time.
    async fn ask_upstream(&self, known: Option<CachedAnswer>) -> Result<Taken, Trouble> {
        let Plan { policy, freshness, .. } = &*self.plan;
        let known = known.filter(|_| policy.stale_on_error);
        if let Err(crowded) = self.errand.enter(self.plan.repository, &self.site) {
            return known.map(|known| self.stale(&known, &crowded.to_string())).ok_or(crowded);
        }
        let passenger = self.upstreams.board(&self.site, &self.plan, &self.expected);
        let Some(known) = known else {
            let landed = passenger.head().await?;
            self.took(&passenger, false);
            return Ok(taken(landed, Some(passenger)));
        };
        // It is worth keeping whether or not somebody waits for it, and only the whole of it is better than what there is.
        passenger.want();
        let (whole, left) = (whole(&passenger), REVALIDATION.saturating_sub(passenger.flight.age()));
        let answered = match freshness {
            Some(Freshness::Never) => whole.await,
            _ => match tokio::time::timeout(left, whole).await {
                Ok(answered) => answered,
                Err(_) => Err(Trouble::Unavailable("the upstream takes its time".to_owned())),
            },
        };
        match answered {
            Ok(landed) if landed.status < 400 || matches!(landed.status, 404 | 410) => {
                self.took(&passenger, true);
                Ok(taken(landed, None))
            }
            Err(trouble @ (Trouble::Store(_) | Trouble::Refused(_))) => Err(trouble),
            refused => {
                let why =
                    refused.map_or_else(|trouble| trouble.to_string(), |landed| landed.status.to_string());
                Ok(self.stale(&known, &why))
            }
        }
    }

    fn stale(&self, known: &CachedAnswer, why: &str) -> Taken {
        tracing::info!(target = self.plan.target, why, "a kept answer is served though its time is over");
        self.upstreams.store.cache_used(self.plan.repository, &known.name);
        Taken::here(landed(known), Outcome::Stale)
    }
}

fn taken(landed: Landed, passenger: Option<Passenger>) -> Taken {
    let outcome = if landed.revalidated { Outcome::Hit } else { Outcome::Miss };
    Taken { landed, passenger, outcome }
}

/// The answer with all its bytes.
async fn whole(passenger: &Passenger) -> Result<Landed, Trouble> {
    let landed = passenger.head().await?;
    let Content::Body(body) = &landed.content else { return Ok(landed) };
    let arriving = flight::arriving(body.clone()).await?;
    let blob = arriving.wait().await.map_err(Trouble::unavailable)?;
    Ok(Landed { content: Content::Whole(Some(blob)), ..landed })
}
