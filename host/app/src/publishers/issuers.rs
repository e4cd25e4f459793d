//! Issuers of ID tokens: their metadata and keys. The server fetches them under the same rules as
//! those of sign-in providers. It uses only allowed addresses, does not follow redirects, and
//! limits time and size.
//!
//! The server caches keys for ten minutes. If a token names an unknown key, the server fetches the
//! keys again. It limits the rate of these requests, because anyone can send forged tokens. While
//! an issuer is unreachable, its cached keys stay valid for an hour.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;
use tokio::sync::Mutex;

use super::id_token::{SignatureProblem, Unverified, Verified};
use super::refusal::IdTokenRefusal;
use crate::sso::{ProviderMetadata, Providers};
use crate::token_bucket::TokenBucket;

const FRESH: Duration = Duration::from_secs(600);
/// Lifetime of cached keys while the issuer is unreachable.
const STALE: Duration = Duration::from_secs(3600);
/// Interval in which one additional request is allowed, for an unknown key or after a failure.
const PAUSE: Duration = Duration::from_secs(10);
/// Maximum number of additional requests without a pause between them.
const BURST: u32 = 5;
/// Maximum number of cached issuers.
const MOST: usize = 256;

pub struct Issuers(Cache<String, Arc<Mutex<Issuer>>>);

impl Default for Issuers {
    fn default() -> Issuers {
        Issuers(Cache::new(MOST))
    }
}

struct Issuer {
    metadata: Option<(Instant, Arc<ProviderMetadata>)>,
    /// Limits the requests beyond one in ten minutes.
    rate: TokenBucket,
}

impl Issuer {
    fn new() -> Issuer {
        Issuer { metadata: None, rate: TokenBucket::new(PAUSE, BURST) }
    }

    fn younger_than(&self, age: Duration) -> Option<Arc<ProviderMetadata>> {
        let (at, metadata) = self.metadata.as_ref()?;
        (at.elapsed() < age).then(|| Arc::clone(metadata))
    }
}

impl Issuers {
    /// Verifies an ID token with its issuer's keys. Callers must ensure that a publisher names this
    /// issuer.
    pub(super) async fn verify(
        &self,
        providers: &Providers,
        token: &Unverified,
        audiences: &[String],
        now: i64,
    ) -> Result<Verified, IdTokenRefusal> {
        for fresh in [false, true] {
            let metadata = self.metadata(providers, token.issuer(), fresh).await?;
            match token.verify(&metadata.keys, audiences, now) {
                Ok(verified) => return Ok(verified),
                Err(SignatureProblem::Refused(refused)) => return Err(refused),
                Err(SignatureProblem::NoKey) => {}
            }
        }
        Err(IdTokenRefusal::invalid("it is not signed by its issuer: the issuer does not publish its key"))
    }

    /// Returns an issuer's metadata with its keys. `fresh` fetches them again if the rate limit
    /// allows. Sends one request at a time to an issuer.
    async fn metadata(
        &self,
        providers: &Providers,
        issuer: &str,
        fresh: bool,
    ) -> Result<Arc<ProviderMetadata>, IdTokenRefusal> {
        let empty = || Ok::<_, std::convert::Infallible>(Arc::new(Mutex::new(Issuer::new())));
        let Ok(known) = self.0.get_or_insert_with(issuer, empty);
        let mut known = known.lock().await;
        if let Some(metadata) = known.younger_than(FRESH).filter(|_| !fresh) {
            return Ok(metadata);
        }
        if known.rate.take().is_err() {
            let later = || {
                IdTokenRefusal::Issuer(
                    "the last request to it failed; the server tries again in a few seconds".to_owned(),
                )
            };
            return known.younger_than(STALE).ok_or_else(later);
        }
        match providers.discover(issuer).await {
            Ok(metadata) => {
                known.metadata = Some((Instant::now(), Arc::clone(&metadata)));
                Ok(metadata)
            }
            Err(problem) => {
                tracing::warn!(issuer, %problem, "could not fetch the keys of an ID token issuer");
                known.younger_than(STALE).ok_or(IdTokenRefusal::Issuer(problem.0))
            }
        }
    }
}
