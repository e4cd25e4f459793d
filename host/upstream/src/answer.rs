//! Chooses the response for a plugin: a cached one, the upstream's, or a stale cached one.

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
use super::fetched::{FetchedResponse, ResponseContent};
use super::plan::FetchPlan;
use super::releases::{self, FetchedRelease};
use super::session::{UpstreamSession, UsedResponse};
use super::single_flight::{self, SingleFlight, Waiter};
use super::unverified::UnverifiedResponse;

/// How long an upstream has to confirm a cached response. After that, all waiting calls get the
/// cached response, and the request continues in the background.
const REVALIDATION: Duration = Duration::from_secs(2);
/// Status for a version that must not be served.
const WITHHELD: u16 = 404;

/// The response for a plugin.
pub(crate) struct ProxyAnswer {
    pub fetched: FetchedResponse,
    /// Keeps the fetch that delivers the content alive.
    pub waiter: Option<Waiter>,
    pub outcome: CacheOutcome,
    /// How long the host may repeat this answer without asking the upstream. None if that is
    /// unknown.
    pub lifetime: Option<Lifetime>,
}

/// Period in which an answer is valid; see [`packhouse_runtime::ReplyLifetime`].
#[derive(Clone, Default)]
pub(crate) struct Lifetime {
    /// End time in ms since 1970. None if the answer does not depend on time.
    pub until: Option<i64>,
    /// Repository data that the answer depends on.
    pub made_of: Dependencies,
    /// Name of the cached response that was used.
    pub name: Option<CacheName>,
}

impl ProxyAnswer {
    fn complete(fetched: FetchedResponse, outcome: CacheOutcome) -> ProxyAnswer {
        ProxyAnswer { fetched, waiter: None, outcome, lifetime: None }
    }

    fn from_upstream(fetched: FetchedResponse, waiter: Option<Waiter>) -> ProxyAnswer {
        let outcome = if fetched.revalidated { CacheOutcome::Hit } else { CacheOutcome::Miss };
        ProxyAnswer { fetched, waiter, outcome, lifetime: None }
    }
}

/// A plugin's request that is being answered.
pub(crate) struct FetchTask {
    pub fetches: Arc<SingleFlight>,
    pub client: Arc<UpstreamClient>,
    pub plan: Arc<FetchPlan>,
    /// Digests that the content must have.
    pub expected: Vec<Digest>,
    pub session: Arc<UpstreamSession>,
}

impl FetchTask {
    /// Returns the store and the caches that all requests share.
    pub(crate) fn context(&self) -> &FetchContext {
        &self.fetches.context
    }

    /// Answers the request. If the state, the age or a malware advisory blocks the version, the
    /// answer is 404.
    pub(crate) async fn answer(&self) -> Result<ProxyAnswer, UpstreamError> {
        if self.plan.judged_as.is_empty() {
            return self.find().await;
        }
        let (release, judged) = self.first_open_release().await?;
        let Some(release) = release else { return Ok(self.withheld(judged, Lifetime::default())) };
        let answer = self.find().await?;
        // A part of a file has no date of its own. The date is judged only for the file itself,
        // which `show_as` names.
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
            None => ProxyAnswer { lifetime: None, ..self.withheld(judged, Lifetime::default()) },
        })
    }

    /// Returns when the server first saw this version, in ms since 1970. Records the current time
    /// for a new version. If a digest is expected, the time is recorded for the digest and not for
    /// the version, because a tag may later name other bytes.
    async fn first_seen(&self, name: &str, version: &str) -> Result<u64, StoreError> {
        let seen = self.expected.first().map_or_else(|| version.to_owned(), ToString::to_string);
        let (repository, seen) = (self.plan.repository, BTreeSet::from([seen]));
        let times = self.context().store.note_first_seen(repository, name, seen).await?;
        Ok(times.into_values().next().unwrap_or_else(releases::now))
    }

    /// Returns true if the release is malware and malware is blocked.
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

    /// Makes the answer depend on the listed state of its release as well.
    fn of_release(&self, answer: ProxyAnswer) -> ProxyAnswer {
        let lifetime = answer.lifetime.map(|lifetime| self.depend_on_listed_state(lifetime));
        ProxyAnswer { lifetime, ..answer }
    }

    fn depend_on_listed_state(&self, mut lifetime: Lifetime) -> Lifetime {
        for (name, _) in &self.plan.judged_as {
            lifetime.made_of.on_package(name);
        }
        lifetime
    }

    /// Returns the first release of the response that is not withheld, with its judgement. If all
    /// are withheld, the judgement is valid until the judgement of one of them may change.
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

    /// Reads a release that the response belongs to, and judges it.
    pub(crate) async fn release(
        &self,
        named: &(String, String),
    ) -> Result<(FetchedRelease, Judgement), StoreError> {
        let FetchPlan { repository, settings, .. } = &*self.plan;
        let (rules, named_as) = (settings.releases.for_package(&named.0), (&*named.0, &*named.1));
        let release = FetchedRelease::find(&self.context().store, rules, *repository, named_as).await?;
        // The judgement needs no end time, because every answer already depends on the advisories'
        // change counter.
        let judged = if self.is_malware(named).await? {
            Judgement { verdict: ReleaseVerdict::Withheld, until: None }
        } else {
            release.judge()
        };
        Ok((release, judged))
    }

    /// Returns the answer for a withheld version. `of` is the lifetime that the answer would have
    /// otherwise.
    fn withheld(&self, judged: Judgement, of: Lifetime) -> ProxyAnswer {
        let fetched = FetchedResponse::bare(WITHHELD, self.plan.request.url.as_str());
        let judged = judged.until.map(|at| i64::try_from(at).unwrap_or(i64::MAX));
        let until = of.until.into_iter().chain(judged).min();
        let lifetime = Some(self.depend_on_listed_state(Lifetime { until, ..of }));
        ProxyAnswer { lifetime, ..ProxyAnswer::complete(fetched, CacheOutcome::Hit) }
    }

    /// Returns a lifetime that depends on the cached responses under the names that were looked up.
    fn lifetime(&self, until: Option<i64>, name: Option<CacheName>) -> Option<Lifetime> {
        let mut made_of = Dependencies::default();
        made_of.on_answer(&self.plan.name);
        made_of.on_answer(&self.plan.get_name);
        Some(Lifetime { until, made_of, name })
    }

    async fn find(&self) -> Result<ProxyAnswer, UpstreamError> {
        let FetchPlan { repository, settings, name, freshness, .. } = &*self.plan;
        if !self.plan.is_cacheable() {
            if settings.offline {
                return Err(UpstreamError::Offline);
            }
            return self.ask_upstream(None).await;
        }
        let (key, cached) = (self.plan.key(), self.cached().await?);
        // The fetches must be checked before the unverified responses. A fetch that ends in between
        // has then already stored its response among the unverified ones, so the response is not
        // missed.
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
            // The response does not change at `until`, but from then on it is stale.
            let until = settings.fresh_until(answer, *freshness).filter(|_| fresh);
            // A running fetch replaces the cached response only after a plugin call has read the
            // new one. Without a lifetime, the host cannot repeat the answer, so the next request
            // causes such a call.
            let lifetime = self.lifetime(until, Some(answer.name)).filter(|_| !under_way);
            return Ok(ProxyAnswer {
                lifetime,
                ..ProxyAnswer::complete(FetchedResponse::from_cache(answer), outcome)
            });
        }
        if settings.offline {
            return Err(UpstreamError::Offline);
        }
        // A fresh cached `GET` can answer a `HEAD`. A stale one cannot, because a `HEAD` does not
        // revalidate it.
        let cached = cached.filter(|answer| answer.name == *name);
        if let Some(answer) = &cached
            && settings.stale_on_error
            && (self.session.has_discarded(key) || self.context().unverified.is_backed_off(key))
        {
            return Ok(self.stale(answer, "the newer response was unreadable"));
        }
        let negative = self.context().negatives.get(key).filter(|_| *freshness != Some(Freshness::Never));
        if let Some((fetched, expires_at)) = negative {
            // A refusal does not invalidate the cached response.
            if let (Some(refusal), Some(answer), true) = (&fetched.refusal, &cached, settings.stale_on_error)
            {
                return Ok(self.stale(answer, &refusal.status.to_string()));
            }
            let lifetime = self.lifetime(Some(expires_at), None);
            return Ok(ProxyAnswer { lifetime, ..ProxyAnswer::complete(fetched, CacheOutcome::Hit) });
        }
        self.ask_upstream(cached).await
    }

    /// Returns the latest response that no plugin has read yet. `None` if the plugin requires the
    /// response that the upstream would send now.
    fn unverified(&self, has_older: bool) -> Option<ProxyAnswer> {
        if !self.plan.needs_verification() || self.plan.freshness == Some(Freshness::Never) {
            return None;
        }
        let (unverified, response) = self.context().unverified.get(self.plan.key())?;
        self.note_used(unverified, response.status, has_older);
        Some(ProxyAnswer::complete(FetchedResponse::from_unverified(&response), CacheOutcome::Hit))
    }

    /// Records that the call uses the response of a fetch, so that the call's outcome decides
    /// whether to cache the response. The outcome of other calls does not matter.
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

    /// Returns the cached response, if its bytes have the expected digests.
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

    /// Returns the upstream's response, or the cached one if the upstream fails or is slow.
    async fn ask_upstream(&self, cached: Option<CachedAnswer>) -> Result<ProxyAnswer, UpstreamError> {
        let FetchPlan { settings, freshness, .. } = &*self.plan;
        let cached = cached.filter(|_| settings.stale_on_error);
        if let Err(saturated) = self.session.enter(self.plan.repository, &self.client) {
            return cached.map(|answer| self.stale(&answer, &saturated.to_string())).ok_or(saturated);
        }
        let waiter = self.fetches.join_or_start(&self.client, &self.plan, &self.expected);
        let Some(cached) = cached else {
            let fetched = waiter.head().await?;
            self.note_fetched(&waiter, fetched.status, false);
            return Ok(ProxyAnswer::from_upstream(fetched, Some(waiter)));
        };
        // Only a complete response can replace the cached one, and it is worth caching even if no
        // call waits for it.
        waiter.demand_body();
        let (complete, left) = (complete(&waiter), REVALIDATION.saturating_sub(waiter.shared.age()));
        let received = match freshness {
            Some(Freshness::Never) => complete.await,
            _ => match tokio::time::timeout(left, complete).await {
                Ok(received) => received,
                Err(_) => Err(UpstreamError::Unavailable("the upstream is slow".to_owned())),
            },
        };
        match received {
            // A refusal does not invalidate the cached response.
            Ok(FetchedResponse { refusal: Some(refusal), .. }) => {
                Ok(self.stale(&cached, &refusal.status.to_string()))
            }
            Ok(fetched) if fetched.status < 400 || matches!(fetched.status, 404 | 410) => {
                self.note_fetched(&waiter, fetched.status, true);
                Ok(ProxyAnswer::from_upstream(fetched, None))
            }
            Err(error @ (UpstreamError::Store(_) | UpstreamError::Refused(_))) => Err(error),
            failed => {
                let why = failed.map_or_else(|error| error.to_string(), |fetched| fetched.status.to_string());
                Ok(self.stale(&cached, &why))
            }
        }
    }

    fn stale(&self, cached: &CachedAnswer, why: &str) -> ProxyAnswer {
        let (repository, path) = (&*self.plan.repository_name, self.plan.path());
        tracing::info!(repository, path, why, "serving a stale cached response");
        self.context().store.cache_used(self.plan.repository, &cached.name);
        ProxyAnswer::complete(FetchedResponse::from_cache(cached), CacheOutcome::Stale)
    }
}

/// Waits for the response with its whole body.
async fn complete(waiter: &Waiter) -> Result<FetchedResponse, UpstreamError> {
    let fetched = waiter.head().await?;
    let ResponseContent::Body(body) = &fetched.content else { return Ok(fetched) };
    let arriving = single_flight::arriving(body.clone()).await?;
    let blob = arriving.wait().await.map_err(UpstreamError::unavailable)?;
    Ok(FetchedResponse { content: ResponseContent::Complete(Some(blob)), ..fetched })
}
