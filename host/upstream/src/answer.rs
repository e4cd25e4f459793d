//! Which response a plugin gets: a cached one, the upstream's, or a cached one that is older than it should be.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use packhouse_names::{Judgement, ReleaseVerdict};
use packhouse_runtime::Freshness;
use packhouse_store::{CacheName, CachedAnswer, Dependencies, Digest, StoreError, now_ms};

use super::body;
use super::client::UpstreamClient;
use super::context::FetchContext;
use super::counts::CacheOutcome;
use super::error::UpstreamError;
use super::fetched::{Content, FetchedResponse};
use super::plan::FetchPlan;
use super::releases::{self, FetchedRelease};
use super::session::{UpstreamSession, UsedResponse};
use super::single_flight::{self, SingleFlight, Waiter};
use super::unverified::UnverifiedResponse;

/// How long an upstream has to confirm a cached response. Then all who wait get that one, and the request goes on without them.
const REVALIDATION: Duration = Duration::from_secs(2);
/// The status for a version that must not be served.
const WITHHELD: u16 = 404;

/// What a plugin gets.
pub(crate) struct Answer {
    pub fetched: FetchedResponse,
    /// Keeps the fetch alive that brings the content.
    pub waiter: Option<Waiter>,
    pub outcome: CacheOutcome,
    /// For how long the same is answered without asking the upstream; none where that is not known.
    pub lifetime: Option<Lifetime>,
}

/// See [`packhouse_runtime::ReplyLifetime`].
#[derive(Clone, Default)]
pub(crate) struct Lifetime {
    /// In ms since 1970; none where time changes nothing.
    pub until: Option<i64>,
    /// What of the repository decided.
    pub made_of: Dependencies,
    /// The cached response that was used.
    pub name: Option<CacheName>,
}

impl Answer {
    fn complete(fetched: FetchedResponse, outcome: CacheOutcome) -> Answer {
        Answer { fetched, waiter: None, outcome, lifetime: None }
    }

    fn from_upstream(fetched: FetchedResponse, waiter: Option<Waiter>) -> Answer {
        let outcome = if fetched.revalidated { CacheOutcome::Hit } else { CacheOutcome::Miss };
        Answer { fetched, waiter, outcome, lifetime: None }
    }
}

/// One request of a plugin on its way to an answer.
pub(crate) struct FetchTask {
    pub fetches: Arc<SingleFlight>,
    pub client: Arc<UpstreamClient>,
    pub plan: Arc<FetchPlan>,
    /// The digests that the content must have.
    pub expected: Vec<Digest>,
    pub session: Arc<UpstreamSession>,
}

impl FetchTask {
    /// The stores and caches that all requests share.
    pub(crate) fn context(&self) -> &FetchContext {
        &self.fetches.context
    }

    /// The answer. A version that its state, its age or an advisory of malware forbids is answered as if it were not there.
    pub(crate) async fn answer(&self) -> Result<Answer, UpstreamError> {
        if self.plan.judged_as.is_empty() {
            return self.find().await;
        }
        let (release, judged) = self.first_open_release().await?;
        let Some(release) = release else { return Ok(self.withheld(judged, Lifetime::default())) };
        let answer = self.find().await?;
        // A part has no date of its own: the file that it belongs to was judged by its date.
        let Some((name, version, _)) = &self.plan.show_as else { return Ok(self.of_release(answer)) };
        if judged.verdict == ReleaseVerdict::Offered || answer.fetched.status != 200 {
            return Ok(self.of_release(answer));
        }
        let time = match release.counts_from(answer.fetched.header("last-modified")) {
            Some(time) => time,
            None => self.first_seen(name, version).await?,
        };
        let judged = release.judge_from(time);
        if judged.verdict == ReleaseVerdict::Offered {
            return Ok(self.of_release(answer));
        }
        Ok(match answer.lifetime {
            Some(lifetime) => self.withheld(judged, lifetime),
            None => Answer { lifetime: None, ..self.withheld(judged, Lifetime::default()) },
        })
    }

    /// When the server first saw this version, in ms since 1970: now, unless it remembers. If the fetch expects a digest, that stands
    /// for the version, since a version as a tag may name other bytes later.
    async fn first_seen(&self, name: &str, version: &str) -> Result<u64, StoreError> {
        let seen = self.expected.first().map_or_else(|| version.to_owned(), ToString::to_string);
        let (repository, seen) = (self.plan.repository, BTreeSet::from([seen]));
        let times = self.context().store.note_first_seen(repository, name, seen).await?;
        Ok(times.into_values().next().unwrap_or_else(releases::now))
    }

    /// Whether a release is malware, where that is blocked.
    async fn is_malware(&self, (name, version): &(String, String)) -> Result<bool, StoreError> {
        let Some(plugin) = self.session.ordering() else { return Ok(false) };
        let found = self.context().advisories.malware(plugin, name, std::slice::from_ref(version)).await?;
        let found = found.into_iter().flatten().next();
        if let Some(advisory) = &found {
            let (id, repository) = (advisory.id.as_str(), self.plan.repository);
            tracing::warn!(%repository, name, version, advisory = id, "malware is withheld");
        }
        Ok(found.is_some())
    }

    /// The answer, which depends on what is shown of its release too.
    fn of_release(&self, answer: Answer) -> Answer {
        let lifetime = answer.lifetime.map(|lifetime| self.judged_by_what_is_shown(lifetime));
        Answer { lifetime, ..answer }
    }

    fn judged_by_what_is_shown(&self, mut lifetime: Lifetime) -> Lifetime {
        for (name, _) in &self.plan.judged_as {
            lifetime.made_of.on_package(name);
        }
        lifetime
    }

    /// The first release that is not withheld, of those that the response belongs to, and its judgement. Where
    /// all are withheld, the judgement holds until one of them may be judged otherwise.
    async fn first_open_release(&self) -> Result<(Option<FetchedRelease>, Judgement), StoreError> {
        let mut until: Option<u64> = None;
        for named in &self.plan.judged_as {
            let (release, judged) = self.release(named).await?;
            if judged.verdict != ReleaseVerdict::Withheld {
                return Ok((Some(release), judged));
            }
            until = until.into_iter().chain(judged.until).min();
        }
        Ok((None, Judgement { verdict: ReleaseVerdict::Withheld, until }))
    }

    /// A release of those that the response belongs to, and its judgement.
    pub(crate) async fn release(
        &self,
        named: &(String, String),
    ) -> Result<(FetchedRelease, Judgement), StoreError> {
        let FetchPlan { repository, settings, .. } = &*self.plan;
        let (rules, named_as) = (settings.releases.for_package(&named.0), (&*named.0, &*named.1));
        let release = FetchedRelease::find(&self.context().store, rules, *repository, named_as).await?;
        // For how long malware is withheld is told by the number of changes of advisories, with which answers are kept.
        let judged = if self.is_malware(named).await? {
            Judgement { verdict: ReleaseVerdict::Withheld, until: None }
        } else {
            release.judge()
        };
        Ok((release, judged))
    }

    /// `of` is for how long the file stands that was judged.
    fn withheld(&self, judged: Judgement, of: Lifetime) -> Answer {
        let fetched = FetchedResponse::bare(WITHHELD, self.plan.request.url.as_str());
        let judged = judged.until.map(|at| i64::try_from(at).unwrap_or(i64::MAX));
        let until = of.until.into_iter().chain(judged).min();
        let lifetime = Some(self.judged_by_what_is_shown(Lifetime { until, ..of }));
        Answer { lifetime, ..Answer::complete(fetched, CacheOutcome::Hit) }
    }

    /// Of what is cached under the names that were looked for.
    fn lifetime(&self, until: Option<i64>, name: Option<CacheName>) -> Option<Lifetime> {
        let mut made_of = Dependencies::default();
        made_of.on_answer(&self.plan.name);
        made_of.on_answer(&self.plan.get_name);
        Some(Lifetime { until, made_of, name })
    }

    async fn find(&self) -> Result<Answer, UpstreamError> {
        let FetchPlan { repository, settings, name, freshness, .. } = &*self.plan;
        if !self.plan.is_cacheable() {
            if settings.offline {
                return Err(UpstreamError::Offline);
            }
            return self.ask_upstream(None).await;
        }
        let (key, cached) = (self.plan.key(), self.cached().await?);
        // Asked before what came is looked for: what comes in between is then not missed.
        let under_way = self.fetches.is_under_way(key);
        if let Some(answer) = self.unverified(cached.is_some()) {
            return Ok(answer);
        }
        if let Some(answer) = &cached
            && (settings.offline || settings.is_fresh(answer, *freshness, now_ms()))
        {
            self.context().store.cache_used(*repository, &answer.name);
            let fresh = settings.is_fresh(answer, *freshness, now_ms());
            let outcome = if fresh { CacheOutcome::Hit } else { CacheOutcome::Stale };
            // Without asking the upstream it stays as it is, but no longer counts as fresh.
            let until = settings.fresh_until(answer, *freshness).filter(|_| fresh);
            // What is under way takes its place when a call has read it, and so there must be a call.
            let lifetime = self.lifetime(until, Some(answer.name)).filter(|_| !under_way);
            return Ok(Answer { lifetime, ..Answer::complete(FetchedResponse::from_cache(answer), outcome) });
        }
        if settings.offline {
            return Err(UpstreamError::Offline);
        }
        // A `HEAD` may be answered by what a `GET` left, but whether that is still right is a request of its own.
        let cached = cached.filter(|answer| answer.name == *name);
        if let Some(answer) = &cached
            && settings.stale_on_error
            && (self.session.has_discarded(key) || self.context().unverified.is_backed_off(key))
        {
            return Ok(self.stale(answer, "what came since could not be read"));
        }
        let negative = self.context().negatives.get(key).filter(|_| *freshness != Some(Freshness::Never));
        if let Some((fetched, expires_at)) = negative {
            // A refusal says nothing about what is cached.
            if let (Some(refusal), Some(answer), true) = (&fetched.refusal, &cached, settings.stale_on_error)
            {
                return Ok(self.stale(answer, &refusal.status.to_string()));
            }
            let lifetime = self.lifetime(Some(expires_at), None);
            return Ok(Answer { lifetime, ..Answer::complete(fetched, CacheOutcome::Hit) });
        }
        self.ask_upstream(cached).await
    }

    /// The latest response that no plugin has read yet, unless the plugin wants the upstream's present one.
    fn unverified(&self, has_older: bool) -> Option<Answer> {
        if !self.plan.needs_verification() || self.plan.freshness == Some(Freshness::Never) {
            return None;
        }
        let (unverified, response) = self.context().unverified.get(self.plan.key())?;
        self.note_used(unverified, response.status, has_older);
        Some(Answer::complete(FetchedResponse::from_unverified(&response), CacheOutcome::Hit))
    }

    /// Notes that the call uses a fetch's response. A call that gets another one says nothing about it.
    fn note_fetched(&self, waiter: &Waiter, status: u16, has_older: bool) {
        if self.plan.needs_verification() {
            self.note_used(Arc::clone(&waiter.shared.unverified), status, has_older);
        }
    }

    fn note_used(&self, unverified: Arc<UnverifiedResponse>, status: u16, has_older: bool) {
        self.session.note_used(UsedResponse {
            key: self.plan.key(),
            plan: Arc::clone(&self.plan),
            status,
            unverified,
            has_fallback: has_older && self.plan.settings.stale_on_error,
        });
    }

    /// The cached response, if its bytes have the expected digests.
    async fn cached(&self) -> Result<Option<CachedAnswer>, UpstreamError> {
        let FetchPlan { repository, name, get_name, freshness, settings, .. } = &*self.plan;
        let own = self.context().store.cached(*repository, name).await?;
        let fresh = |answer: &CachedAnswer| settings.is_fresh(answer, *freshness, now_ms());
        let cached = match own {
            Some(own) if name == get_name || fresh(&own) => Some(own),
            own if name == get_name => own,
            own => self.context().store.cached(*repository, get_name).await?.filter(fresh).or(own),
        };
        let Some(answer) = cached else { return Ok(None) };
        let Some(blob) = answer.blob.as_ref().filter(|_| name == get_name) else { return Ok(Some(answer)) };
        match body::verify(blob, &self.expected).await {
            Ok(()) => Ok(Some(answer)),
            Err(StoreError::BrokenOff(_) | StoreError::Corrupt(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The upstream's response; or the cached one where the upstream fails or is slow.
    async fn ask_upstream(&self, cached: Option<CachedAnswer>) -> Result<Answer, UpstreamError> {
        let FetchPlan { settings, freshness, .. } = &*self.plan;
        let cached = cached.filter(|_| settings.stale_on_error);
        if let Err(saturated) = self.session.enter(self.plan.repository, &self.client) {
            return cached.map(|answer| self.stale(&answer, &saturated.to_string())).ok_or(saturated);
        }
        let waiter = self.fetches.join_or_start(&self.client, &self.plan, &self.expected);
        let Some(cached) = cached else {
            let fetched = waiter.head().await?;
            self.note_fetched(&waiter, fetched.status, false);
            return Ok(Answer::from_upstream(fetched, Some(waiter)));
        };
        // The response is worth keeping even if nobody waits for it, and only a complete one is better than the cached one.
        waiter.demand_body();
        let (complete, left) = (complete(&waiter), REVALIDATION.saturating_sub(waiter.shared.age()));
        let received = match freshness {
            Some(Freshness::Never) => complete.await,
            _ => match tokio::time::timeout(left, complete).await {
                Ok(received) => received,
                Err(_) => Err(UpstreamError::Unavailable("the upstream takes its time".to_owned())),
            },
        };
        match received {
            // A refusal says nothing about what is cached.
            Ok(FetchedResponse { refusal: Some(refusal), .. }) => {
                Ok(self.stale(&cached, &refusal.status.to_string()))
            }
            Ok(fetched) if fetched.status < 400 || matches!(fetched.status, 404 | 410) => {
                self.note_fetched(&waiter, fetched.status, true);
                Ok(Answer::from_upstream(fetched, None))
            }
            Err(error @ (UpstreamError::Store(_) | UpstreamError::Refused(_))) => Err(error),
            failed => {
                let why = failed.map_or_else(|error| error.to_string(), |fetched| fetched.status.to_string());
                Ok(self.stale(&cached, &why))
            }
        }
    }

    fn stale(&self, cached: &CachedAnswer, why: &str) -> Answer {
        let (repository, path) = (&*self.plan.repository_name, self.plan.path());
        tracing::info!(repository, path, why, "a kept answer is served though its time is over");
        self.context().store.cache_used(self.plan.repository, &cached.name);
        Answer::complete(FetchedResponse::from_cache(cached), CacheOutcome::Stale)
    }
}

/// The response with all its bytes.
async fn complete(waiter: &Waiter) -> Result<FetchedResponse, UpstreamError> {
    let fetched = waiter.head().await?;
    let Content::Body(body) = &fetched.content else { return Ok(fetched) };
    let arriving = single_flight::arriving(body.clone()).await?;
    let blob = arriving.wait().await.map_err(UpstreamError::unavailable)?;
    Ok(FetchedResponse { content: Content::Complete(Some(blob)), ..fetched })
}
