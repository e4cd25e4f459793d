//! Issuers of ID tokens: what each says of itself and its keys, which are asked for as a provider of sign-ins is: where upstreams may be,
//! without redirects, within time and size.
//!
//! Keys are kept for ten minutes. One that is not among them is asked for anew at a bounded rate, so that made-up tokens cause no more
//! than a few requests; while an issuer cannot be reached, keys count for an hour.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::ACCEPT;
use openidconnect::HttpRequest;
use openidconnect::core::CoreJsonWebKeySet;
use quick_cache::sync::Cache;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;

use super::id_token::{SignatureProblem, Unverified, Verified};
use super::refusal::IdTokenRefusal;
use crate::sso::Providers;
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
/// Keys of one issuer.
const MOST_KEYS: usize = 200;

/// All issuers.
pub struct Issuers(Cache<String, Arc<Mutex<Issuer>>>);

impl Default for Issuers {
    fn default() -> Issuers {
        Issuers(Cache::new(MOST))
    }
}

struct Issuer {
    keys: Option<(Instant, CoreJsonWebKeySet)>,
    /// Bounds what is asked beyond once in ten minutes.
    rate: TokenBucket,
}

impl Issuer {
    fn new() -> Issuer {
        Issuer { keys: None, rate: TokenBucket::new(PAUSE, BURST) }
    }

    fn younger_than(&self, age: Duration) -> Option<CoreJsonWebKeySet> {
        let (at, keys) = self.keys.as_ref()?;
        (at.elapsed() < age).then(|| keys.clone())
    }
}

/// What an issuer says of itself, as far as it counts here.
#[derive(Deserialize)]
struct Discovered {
    issuer: String,
    jwks_uri: String,
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
            let keys = self.keys(providers, token.issuer(), anew).await?;
            match token.verify(keys, audiences, now) {
                Ok(verified) => return Ok(verified),
                Err(SignatureProblem::Refused(refused)) => return Err(refused),
                Err(SignatureProblem::NoKey) => {}
            }
        }
        Err(IdTokenRefusal::invalid("it is not signed by its issuer: its key is none of the issuer's"))
    }

    /// An issuer's keys; with `anew` those that it has by now, if it may be asked. One request at a time for each.
    async fn keys(
        &self,
        providers: &Providers,
        issuer: &str,
        anew: bool,
    ) -> Result<CoreJsonWebKeySet, IdTokenRefusal> {
        let fresh = || Ok::<_, std::convert::Infallible>(Arc::new(Mutex::new(Issuer::new())));
        let Ok(known) = self.0.get_or_insert_with(issuer, fresh);
        let mut known = known.lock().await;
        if let Some(keys) = known.younger_than(FRESH).filter(|_| !anew) {
            return Ok(keys);
        }
        if known.rate.take().is_err() {
            let later = || {
                IdTokenRefusal::Issuer("it failed just now, and is asked again in some seconds".to_owned())
            };
            return known.younger_than(STALE).ok_or_else(later);
        }
        match fetch(providers, issuer).await {
            Ok(keys) => {
                known.keys = Some((Instant::now(), keys.clone()));
                Ok(keys)
            }
            Err(problem) => {
                tracing::warn!(issuer, problem, "the keys of an issuer of ID tokens cannot be had");
                known.younger_than(STALE).ok_or(IdTokenRefusal::Issuer(problem))
            }
        }
    }
}

async fn fetch(providers: &Providers, issuer: &str) -> Result<CoreJsonWebKeySet, String> {
    let description = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let discovered: Discovered = get(providers, issuer, &description, "its description").await?;
    if discovered.issuer != issuer {
        return Err("its description is of another issuer".to_owned());
    }
    let keys: CoreJsonWebKeySet = get(providers, issuer, &discovered.jwks_uri, "its list of keys").await?;
    if keys.keys().len() > MOST_KEYS { Err("it has too many keys".to_owned()) } else { Ok(keys) }
}

async fn get<T: DeserializeOwned>(
    providers: &Providers,
    issuer: &str,
    address: &str,
    what: &str,
) -> Result<T, String> {
    let request = http::Request::get(address).header(ACCEPT, "application/json").body(Vec::new());
    let request: HttpRequest = request.map_err(|_| format!("the address of {what} is none"))?;
    let answer = providers.http(issuer)(request).await.map_err(|error| error.to_string())?;
    if !answer.status().is_success() {
        return Err(format!("{what} cannot be read: status {}", answer.status().as_u16()));
    }
    serde_json::from_slice(answer.body()).map_err(|_| format!("{what} cannot be read"))
}
