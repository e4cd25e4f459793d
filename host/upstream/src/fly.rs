//! The work of a flight: ask the upstream, tell the head, take the body in, check it, keep it.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::Method;
use packhouse_store::{Arrival, Arriving, Blob, CachedAnswer, ShownFile, StoreError, now_ms};
use reqwest::Response;
use tokio::sync::{SemaphorePermit, watch};
use url::Url;

use super::body::{self, Coding};
use super::exchange;
use super::flight::{Content, Flight, Landed, Wanted};
use super::plan::Plan;
use super::site::Site;
use super::trouble::Trouble;
use super::{Upstreams, negative};

/// Bytes of an answer without success that its plugin can look at.
const EXCERPT: usize = 64 * 1024;

/// All that a flight needs.
pub(crate) struct Crew {
    pub upstreams: Arc<Upstreams>,
    pub site: Arc<Site>,
    pub plan: Arc<Plan>,
    pub flight: Arc<Flight>,
}

/// An answer's head, and what is still to come of it.
enum Answer {
    Done(Landed),
    Body(Response, Coding, Landed),
}

impl Crew {
    /// Flies to the end.
    pub(crate) async fn fly(self, mut wanted: Wanted) {
        let mut is_wanted = false;
        let answer = {
            let mut head = std::pin::pin!(self.head());
            loop {
                tokio::select! {
                    biased;
                    answer = &mut head => break answer,
                    more = wanted.body(), if !is_wanted => match more {
                        true => is_wanted = true,
                        // Nobody is left who waits.
                        false => return,
                    },
                }
            }
        };
        match answer {
            Ok((Answer::Body(response, coding, landed), place)) => {
                let (bytes, content) = watch::channel(None);
                self.flight.land(Ok(Landed { content: Content::Body(content), ..landed.clone() }));
                // Whoever decides may have to ask the same upstream something else first: a place that is held meanwhile could be
                // the one which that question waits for.
                let place = place.filter(|_| is_wanted);
                if is_wanted || wanted.body().await {
                    self.take(response, coding, &landed, (place, &bytes)).await;
                }
            }
            Ok((Answer::Done(landed), _)) => self.flight.land(Ok(landed)),
            Err(trouble) => self.flight.land(Err(trouble)),
        }
    }

    /// Waits for a place, and asks. Whoever kept the answer in the meantime has spared it.
    async fn head(&self) -> Result<(Answer, Option<SemaphorePermit<'_>>), Trouble> {
        let Plan { policy, repository, name, freshness, .. } = &*self.plan;
        let known = match self.plan.is_kept() {
            true => self.upstreams.store.cached(*repository, name).await?,
            false => None,
        };
        let known = match known {
            Some(answer) if !body_is(&answer, &self.flight).await? => None,
            other => other,
        };
        if let Some(answer) = &known
            && policy.is_fresh(answer, *freshness, now_ms())
        {
            return Ok((Answer::Done(Landed { revalidated: true, ..landed(answer) }), None));
        }
        let place = self.site.place().await?;
        let asked = self.ask(known.as_ref()).await;
        match &asked {
            Ok(_) | Err(Trouble::Credentials) => self.site.breaker.answered(),
            Err(trouble) => self.failed(trouble),
        }
        let (response, url) = asked?;
        Ok((self.judge(response, &url, known).await?, Some(place)))
    }

    fn failed(&self, trouble: &Trouble) {
        let wait = if let Trouble::Failing(_, wait) = trouble { *wait } else { None };
        if trouble.is_failure() {
            self.site.breaker.failed(wait, Instant::now());
        }
    }

    async fn ask(&self, known: Option<&CachedAnswer>) -> Result<(Response, Url), Trouble> {
        self.site.breaker.admit(Instant::now()).map_err(Trouble::LeftAlone)?;
        let mut question = self.plan.question.clone();
        exchange::compressed(&mut question.headers, question.method == Method::GET && !self.plan.is_file());
        if let Some(answer) = known {
            exchange::validators(&mut question.headers, &answer.headers);
        }
        let access = self.upstreams.access(&self.site, &self.plan).await?;
        let (response, url) = exchange::ask(&self.site, &question, &access).await?;
        match response.status().as_u16() {
            status @ (408 | 425 | 429 | 500..) => {
                Err(Trouble::Failing(status, exchange::retry_after(response.headers())))
            }
            _ => Ok((response, url)),
        }
    }

    async fn judge(
        &self,
        response: Response,
        url: &Url,
        known: Option<CachedAnswer>,
    ) -> Result<Answer, Trouble> {
        let status = response.status().as_u16();
        match (status, known) {
            (304, Some(answer)) => self.still_right(&answer).await.map(Answer::Done),
            (404 | 410, known) => self.nothing(response, url, known).await.map(Answer::Done),
            (400..500, _) => Ok(Answer::Done(self.excerpt(response, url).await)),
            (200 | 203, _) if self.plan.question.method == Method::HEAD => {
                let head =
                    Landed { headers: Arc::new(exchange::kept(response.headers())), ..self.bare(200, url) };
                self.keep(&head, None).await?;
                Ok(Answer::Done(head))
            }
            (200 | 203, _) => self.begin(response, 200, url),
            (201..300, _) if !self.plan.is_kept() => self.begin(response, status, url),
            _ => Err(Trouble::Unavailable(format!("the upstream answered with status {status}"))),
        }
    }

    /// Without the query of where it came from: links are not relative to that, and behind a redirect it may hold a signature
    /// that gives access for a while, which nobody should find among what is kept.
    fn bare(&self, status: u16, url: &Url) -> Landed {
        let mut address = url.clone();
        address.set_query(None);
        Landed::bare(status, address.as_str())
    }

    fn begin(&self, response: Response, status: u16, url: &Url) -> Result<Answer, Trouble> {
        let coding = Coding::of(response.headers(), url.path(), self.plan.is_file())?;
        let mut headers = exchange::kept(response.headers());
        if coding != Coding::Plain {
            headers.retain(|(name, _)| name != "content-encoding" && name != "content-length");
        }
        let landed = Landed { headers: Arc::new(headers), ..self.bare(status, url) };
        Ok(Answer::Body(response, coding, landed))
    }

    async fn still_right(&self, answer: &CachedAnswer) -> Result<Landed, Trouble> {
        let Plan { repository, name, .. } = &*self.plan;
        let now = now_ms();
        self.upstreams.store.cache_validated(*repository, name, now).await?;
        let answer = CachedAnswer { validated_at: now, ..answer.clone() };
        Ok(Landed { revalidated: true, ..landed(&answer) })
    }

    /// There is nothing, or no longer: that counts for a while.
    async fn nothing(
        &self,
        response: Response,
        url: &Url,
        known: Option<CachedAnswer>,
    ) -> Result<Landed, Trouble> {
        let Plan { repository, name, policy, target, .. } = &*self.plan;
        if let Some(answer) = known {
            if policy.keep_withdrawn {
                return self.still_right(&answer).await;
            }
            self.upstreams.store.uncache(*repository, name).await?;
        }
        let landed = self.excerpt(response, url).await;
        if self.plan.is_kept() {
            let until = now_ms().saturating_add(policy.negative_ms());
            self.upstreams.negatives.put(negative::Key(*repository, *name), target, until, &landed);
        }
        Ok(landed)
    }

    async fn excerpt(&self, response: Response, url: &Url) -> Landed {
        let (status, headers) = (response.status().as_u16(), exchange::kept(response.headers()));
        let bytes = match self.plan.question.method == Method::HEAD {
            true => Bytes::new(),
            false => body::excerpt(response, self.site.bounds.idle, EXCERPT).await,
        };
        let content = Content::Whole(Some(Blob::from_bytes(bytes)));
        Landed { headers: Arc::new(headers), content, ..self.bare(status, url) }
    }

    /// Takes a body in. What went wrong is told to its readers.
    async fn take(
        &self,
        response: Response,
        coding: Coding,
        landed: &Landed,
        (place, bytes): (Option<SemaphorePermit<'_>>, &watch::Sender<Option<Arriving>>),
    ) {
        let algorithms = body::algorithms(&self.flight.expected());
        let declared = body::declared(response.headers(), coding);
        let limit = self.plan.limit;
        let (mut arrival, arriving) = self.upstreams.store.arrive(&algorithms, limit, declared);
        arrival = arrival.of(self.plan.repository);
        bytes.send_replace(Some(arriving));
        let taken = match declared.filter(|length| *length > limit) {
            Some(observed) => Err(StoreError::TooLarge { limit, observed }),
            None => self.receive(response, coding, &mut arrival, place).await,
        };
        match self.check_and_keep(taken, landed).await {
            Ok(blob) => arrival.end(blob),
            Err(error) => {
                tracing::warn!(target = self.plan.target, %error, "an upstream's answer is not kept");
                if let StoreError::BrokenOff(why) = &error {
                    self.failed(&Trouble::Unavailable(why.clone()));
                }
                arrival.fail(&error);
            }
        }
        self.upstreams.make_room(&self.site, &self.plan).await;
    }

    async fn receive(
        &self,
        response: Response,
        coding: Coding,
        arrival: &mut Arrival,
        place: Option<SemaphorePermit<'_>>,
    ) -> Result<Blob, StoreError> {
        let _place = match place {
            Some(place) => place,
            None => self.site.place().await.map_err(|busy| StoreError::BrokenOff(busy.to_string()))?,
        };
        body::receive(response, coding, arrival, (self.plan.limit, self.site.bounds.idle)).await
    }

    async fn check_and_keep(
        &self,
        taken: Result<Blob, StoreError>,
        landed: &Landed,
    ) -> Result<Blob, StoreError> {
        let blob = taken?;
        body::verify(&blob, &self.flight.to_compare()).await?;
        if self.plan.is_kept() {
            self.keep(landed, Some(blob.clone())).await?;
        }
        Ok(blob)
    }

    async fn keep(&self, landed: &Landed, blob: Option<Blob>) -> Result<(), StoreError> {
        let Plan { repository, name, question, target, show_as, .. } = &*self.plan;
        let shown = match (&blob, show_as) {
            (Some(blob), Some((name, version, path))) => {
                Some(ShownFile::of(blob, name, version, path).await?)
            }
            _ => None,
        };
        let now = now_ms();
        let answer = CachedAnswer {
            name: *name,
            method: question.method.to_string(),
            target: target.clone(),
            status: landed.status,
            headers: landed.headers.to_vec(),
            address: landed.address.clone(),
            blob,
            fetched_at: now,
            validated_at: now,
        };
        let store = &self.upstreams.store;
        if self.plan.is_on_trial() {
            let (key, candidate) = (negative::Key(*repository, *name), &self.flight.candidate);
            return self.upstreams.candidates.came(store, key, candidate, (answer, shown)).await;
        }
        store.cache(*repository, &answer, shown).await
    }
}

/// A kept answer as one that has landed. `age` tells a plugin that it is one, and since how many seconds.
pub(crate) fn landed(answer: &CachedAnswer) -> Landed {
    let age = now_ms().saturating_sub(answer.validated_at).max(0) / 1000;
    let headers = answer.headers.iter().cloned().chain([("age".to_owned(), age.to_string())]);
    Landed { headers: Arc::new(headers.collect()), ..new(answer) }
}

/// One that came and is not kept yet.
pub(crate) fn new(answer: &CachedAnswer) -> Landed {
    Landed {
        status: answer.status,
        headers: Arc::new(answer.headers.clone()),
        address: answer.address.clone(),
        content: Content::Whole(answer.blob.clone()),
        revalidated: false,
    }
}

/// Whether a kept answer's bytes are what those who wait expect.
async fn body_is(answer: &CachedAnswer, flight: &Flight) -> Result<bool, StoreError> {
    let Some(blob) = &answer.blob else { return Ok(true) };
    match body::verify(blob, &flight.expected()).await {
        Err(StoreError::BrokenOff(_) | StoreError::Corrupt(_)) => Ok(false),
        verified => verified.map(|()| true),
    }
}
