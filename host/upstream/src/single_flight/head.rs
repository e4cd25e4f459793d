//! Sends the request of a shared fetch and evaluates the head of its response.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::Method;
use packhouse_store::{Blob, CachedAnswer, StoreError, now_ms};
use reqwest::Response;
use tokio::sync::SemaphorePermit;
use url::Url;

use super::super::body::{self, Coding};
use super::super::error::UpstreamError;
use super::super::fetched::{FetchedResponse, ResponseContent, UpstreamRefusal};
use super::super::headers;
use super::super::plan::FetchPlan;
use super::super::redirects::{self, Redirected};
use super::fetcher::Fetcher;

/// Maximum size in bytes of an unsuccessful response that is passed to its plugin.
const EXCERPT: usize = 64 * 1024;

/// A response whose head was evaluated.
pub(super) enum JudgedHead {
    /// The whole response is available.
    Complete(FetchedResponse),
    /// The body must still be received.
    Body { response: Response, coding: Coding, head: FetchedResponse },
}

/// An evaluated response, and the request slot that it occupies.
pub(super) struct ReceivedHead<'a> {
    pub judged: JudgedHead,
    pub slot: Option<SemaphorePermit<'a>>,
}

impl Fetcher {
    /// Waits for a slot and sends the request, unless a fresh response was cached in the meantime.
    pub(super) async fn receive_head(&self) -> Result<ReceivedHead<'_>, UpstreamError> {
        let FetchPlan { settings, repository, name, freshness, .. } = &*self.plan;
        let begun = Instant::now();
        let cached = loop {
            let cached = if self.plan.is_cacheable() {
                self.context.store.cached(*repository, name).await?
            } else {
                None
            };
            let cached = match cached {
                Some(answer) if !self.is_expected(&answer).await? => None,
                other => other,
            };
            if let Some(answer) = &cached
                && settings.is_fresh(answer, *freshness, now_ms())
            {
                let fetched = FetchedResponse { revalidated: true, ..FetchedResponse::from_cache(answer) };
                return Ok(ReceivedHead { judged: JudgedHead::Complete(fetched), slot: None });
            }
            if !self.has_waited(begun).await {
                break cached;
            }
        };
        let slot = self.client.request_slot().await?;
        // A pause does not count as a failure.
        if self.asks_upstream_itself() {
            self.client.breaker.admit(Instant::now()).map_err(|pause| self.paused(pause))?;
        }
        let sent = self.send(cached.as_ref()).await;
        match &sent {
            Ok(redirected) => self.note_answer(redirected),
            Err(error) => self.note_failure(error),
        }
        Ok(ReceivedHead { judged: self.judge(sent?, cached).await?, slot: Some(slot) })
    }

    /// Returns true if a cached response's bytes have the digests that the waiters expect.
    async fn is_expected(&self, cached: &CachedAnswer) -> Result<bool, StoreError> {
        let Some(blob) = &cached.blob else { return Ok(true) };
        match body::verify(blob, &self.shared.expected()).await {
            Err(StoreError::BrokenOff(_) | StoreError::Corrupt(_)) => Ok(false),
            verified => verified.map(|()| true),
        }
    }

    async fn send(&self, cached: Option<&CachedAnswer>) -> Result<Redirected, UpstreamError> {
        let mut request = self.plan.request.clone();
        let compressed = request.method == Method::GET && !self.plan.is_file();
        headers::set_accept_encoding(&mut request.headers, compressed);
        if let Some(answer) = cached {
            headers::add_validators(&mut request.headers, &answer.headers);
        }
        let auth = self.context.auth(&self.client, &self.plan).await?;
        let redirected = redirects::send(&self.client, &request, &auth).await?;
        let (status, headers) = (redirected.response.status(), redirected.response.headers());
        if headers::limits_rate(status, headers) {
            return Err(UpstreamError::Throttled(headers::rate_limit_wait(headers)));
        }
        match status.as_u16() {
            status @ (408 | 425 | 500..) => {
                Err(UpstreamError::Failing(status, headers::retry_after(headers)))
            }
            _ => Ok(redirected),
        }
    }

    async fn judge(
        &self,
        redirected: Redirected,
        cached: Option<CachedAnswer>,
    ) -> Result<JudgedHead, UpstreamError> {
        let refusal = self.refusal(&redirected);
        let Redirected { response, url, .. } = redirected;
        let (status, url) = (response.status().as_u16(), &url);
        if let Some(refusal) = refusal {
            return Ok(JudgedHead::Complete(self.refused(response, url, refusal).await));
        }
        match (status, cached) {
            (304, Some(answer)) => self.revalidated(&answer).await.map(JudgedHead::Complete),
            (404 | 410, cached) => self.not_found(response, url, cached).await.map(JudgedHead::Complete),
            (400..500, _) => Ok(JudgedHead::Complete(self.excerpt(response, url).await)),
            (200 | 203, _) if self.plan.request.method == Method::HEAD => {
                let headers = Arc::new(headers::stored(response.headers()));
                let head = FetchedResponse { headers, ..bare(200, url) };
                self.cache(&head, None).await?;
                Ok(JudgedHead::Complete(head))
            }
            (200 | 203, _) => self.with_body(response, 200, url),
            (201..300, _) if !self.plan.is_cacheable() => self.with_body(response, status, url),
            _ => Err(UpstreamError::Unavailable(format!("the upstream answered with status {status}"))),
        }
    }

    fn with_body(&self, response: Response, status: u16, url: &Url) -> Result<JudgedHead, UpstreamError> {
        let coding = Coding::of(response.headers(), url.path(), self.plan.is_file())?;
        let mut headers = headers::stored(response.headers());
        if coding != Coding::Plain {
            headers.retain(|(name, _)| name != "content-encoding" && name != "content-length");
        }
        let head = FetchedResponse { headers: Arc::new(headers), ..bare(status, url) };
        Ok(JudgedHead::Body { response, coding, head })
    }

    /// Marks the cached response as confirmed and returns it. With `keep_withdrawn`, this also
    /// happens for a response that has vanished from the upstream.
    async fn revalidated(&self, cached: &CachedAnswer) -> Result<FetchedResponse, UpstreamError> {
        let FetchPlan { repository, name, .. } = &*self.plan;
        let now = now_ms();
        self.context.store.cache_validated(*repository, name, now).await?;
        let answer = CachedAnswer { validated_at: now, ..cached.clone() };
        Ok(FetchedResponse { revalidated: true, ..FetchedResponse::from_cache(&answer) })
    }

    /// Handles a 404 or 410: caches it for a while and drops an older response. With
    /// `keep_withdrawn`, confirms the older response instead.
    async fn not_found(
        &self,
        response: Response,
        url: &Url,
        cached: Option<CachedAnswer>,
    ) -> Result<FetchedResponse, UpstreamError> {
        let FetchPlan { repository, name, settings, .. } = &*self.plan;
        if let Some(answer) = cached {
            if settings.releases.keep_withdrawn {
                return self.revalidated(&answer).await;
            }
            self.context.store.uncache(*repository, name).await?;
        }
        let fetched = self.excerpt(response, url).await;
        self.remember_absence(&fetched);
        Ok(fetched)
    }

    /// Handles a refusal: plugins get a 404. Cached responses stay cached.
    async fn refused(&self, response: Response, url: &Url, refusal: UpstreamRefusal) -> FetchedResponse {
        let excerpt = self.excerpt(response, url).await;
        let refused = (headers::REFUSED.to_owned(), refusal.status.to_string());
        let headers = Arc::new(excerpt.headers.iter().cloned().chain([refused]).collect());
        let fetched = FetchedResponse { status: 404, headers, refusal: Some(refusal), ..excerpt };
        self.remember_absence(&fetched);
        fetched
    }

    fn remember_absence(&self, fetched: &FetchedResponse) {
        if self.plan.is_cacheable() {
            let expires_at = now_ms().saturating_add(self.plan.settings.negative_ms());
            self.context.negatives.put(self.plan.key(), &self.plan.target, expires_at, fetched);
        }
    }

    async fn excerpt(&self, response: Response, url: &Url) -> FetchedResponse {
        let (status, headers) = (response.status().as_u16(), headers::stored(response.headers()));
        let bytes = if self.plan.request.method == Method::HEAD {
            Bytes::new()
        } else {
            body::excerpt(response, self.client.bounds.idle, EXCERPT).await
        };
        let content = ResponseContent::Complete(Some(Blob::from_bytes(bytes)));
        FetchedResponse { headers: Arc::new(headers), content, ..bare(status, url) }
    }
}

/// Creates a response from this address, without its query. Relative links do not need the query.
/// After a redirect, the query may contain a signature that grants temporary access and must not be
/// stored.
fn bare(status: u16, url: &Url) -> FetchedResponse {
    let mut address = url.clone();
    address.set_query(None);
    FetchedResponse::bare(status, address.as_str())
}
