//! Issuers of ID tokens: what each says of itself and its keys, which are asked for as a provider of sign-ins is: where upstreams may be,
//! without redirects, within time and size.
//!
//! Keys are kept for ten minutes. One that is not among them is asked for anew at a bounded rate, so that made-up tokens cause no more
//! than a few requests; while an issuer cannot be reached, keys count for an hour.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;
use tokio::sync::Mutex;

use super::id_token::{SignatureProblem, Unverified, Verified};
use super::refusal::IdTokenRefusal;
use crate::sso::{Metadata, Providers};
use crate::token_bucket::TokenBucket;

/// How long keys are believed.
const FRESH: Duration = Duration::from_secs(600);
/// How long keys count while the issuer cannot be reached.
const STALE: Duration = Duration::from_secs(3600);
/// One more request in so much time, where keys are asked for anew or the issuer failed.
const PAUSE: Duration = Duration::from_secs(10);
/// Such requests that may come at once.
const BURST: u32 = 5;
/// Issuers that are remembered.
const MOST: usize = 256;

/// All issuers.
pub struct Issuers(Cache<String, Arc<Mutex<Issuer>>>);

impl Default for Issuers {
    fn default() -> Issuers {
        Issuers(Cache::new(MOST))
    }
}

struct Issuer {
    metadata: Option<(Instant, Arc<Metadata>)>,
    /// Bounds what is asked beyond once in ten minutes.
    rate: TokenBucket,
}

impl Issuer {
    fn new() -> Issuer {
        Issuer { metadata: None, rate: TokenBucket::new(PAUSE, BURST) }
    }

    fn younger_than(&self, age: Duration) -> Option<Arc<Metadata>> {
        let (at, metadata) = self.metadata.as_ref()?;
        (at.elapsed() < age).then(|| Arc::clone(metadata))
    }
}

impl Issuers {
    /// What an ID token claims, if its issuer has signed it. Ask only for issuers that a publisher names.
    pub(super) async fn verify(
        &self,
        providers: &Providers,
        token: &Unverified,
        audiences: &[String],
        now: i64,
    ) -> Result<Verified, IdTokenRefusal> {
        for anew in [false, true] {
            let metadata = self.metadata(providers, token.issuer(), anew).await?;
            match token.verify(&metadata.keys, audiences, now) {
                Ok(verified) => return Ok(verified),
                Err(SignatureProblem::Refused(refused)) => return Err(refused),
                Err(SignatureProblem::NoKey) => {}
            }
        }
        Err(IdTokenRefusal::invalid("it is not signed by its issuer: its key is none of the issuer's"))
    }

    /// An issuer's keys; with `anew` those that it has by now, if it may be asked. One request at a time for each.
    async fn metadata(
        &self,
        providers: &Providers,
        issuer: &str,
        anew: bool,
    ) -> Result<Arc<Metadata>, IdTokenRefusal> {
        let fresh = || Ok::<_, std::convert::Infallible>(Arc::new(Mutex::new(Issuer::new())));
        let Ok(known) = self.0.get_or_insert_with(issuer, fresh);
        let mut known = known.lock().await;
        if let Some(metadata) = known.younger_than(FRESH).filter(|_| !anew) {
            return Ok(metadata);
        }
        if known.rate.take().is_err() {
            let later = || {
                IdTokenRefusal::Issuer("it failed just now, and is asked again in some seconds".to_owned())
            };
            return known.younger_than(STALE).ok_or_else(later);
        }
        match providers.discover(issuer).await {
            Ok(metadata) => {
                known.metadata = Some((Instant::now(), Arc::clone(&metadata)));
                Ok(metadata)
            }
            Err(problem) => {
                tracing::warn!(issuer, %problem, "the keys of an issuer of ID tokens cannot be had");
                known.younger_than(STALE).ok_or(IdTokenRefusal::Issuer(problem.0))
            }
        }
    }
}
