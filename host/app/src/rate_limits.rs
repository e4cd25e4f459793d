//! Limits for the request rates of organizations and credentials. Each server counts on its own.
//! There are no limits by default.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use packhouse_config::Limits;
use packhouse_config::client_network::ClientNetwork;
use packhouse_config::live::Live;
use packhouse_store::OrganizationId;
use quick_cache::sync::Cache;

use crate::token_bucket::TokenBucket;

/// Size of a burst, in seconds of the rate. Clients fetch everything for a build at once, and then
/// nothing for a long time.
const BURST_S: u32 = 10;
/// Maximum number of organizations, and maximum number of requesters, that the server tracks.
/// Beyond it, the least recently used one is dropped and starts again with a full burst.
const REMEMBERED: usize = 20_000;

/// The party for which a request is counted.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Requester {
    /// A credential, identified by its name.
    Credential(OrganizationId, Arc<str>),
    /// The client network of a request without a valid credential.
    Unauthenticated(ClientNetwork),
}

/// The limit that a request exceeded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RateExceeded {
    /// `organization` or `credential`.
    pub of: &'static str,
    /// Seconds until another request is allowed.
    pub retry_after: u64,
}

/// Rate limits. All clones share them.
#[derive(Clone)]
pub struct RateLimits(Live<RateBounds>);

struct RateBounds {
    rates: [u32; 2],
    organizations: Option<KeyedBuckets<OrganizationId>>,
    requesters: Option<KeyedBuckets<Requester>>,
}

struct KeyedBuckets<K> {
    rate: u32,
    each: Cache<K, Arc<TokenBucket>>,
}

impl RateLimits {
    /// Creates the limits from the settings.
    pub fn new(limits: &Limits) -> RateLimits {
        RateLimits(Live::new(RateBounds::new(rates(limits))))
    }

    /// Applies new settings. If the rates are unchanged, the counts continue.
    pub fn set(&self, limits: &Limits) {
        if self.0.get().rates != rates(limits) {
            self.0.set(RateBounds::new(rates(limits)));
        }
    }

    /// Counts a request, or refuses it. An unauthenticated request is not counted for an
    /// organization: otherwise outsiders could use up the organization's rate.
    pub fn count(&self, requester: impl FnOnce() -> Requester) -> Result<(), RateExceeded> {
        let bounds = self.0.get();
        if bounds.rates == [0, 0] {
            return Ok(());
        }
        let requester = requester();
        let organization = match &requester {
            Requester::Credential(organization, _) => Some(*organization),
            Requester::Unauthenticated(_) => None,
        };
        // Check the narrower limit first, so that a request that it refuses does not use up the
        // organization's rate.
        let mut exceeded = bounds.requesters.as_ref().and_then(|counted| counted.exceeded(&requester));
        let mut of = "credential";
        if let (None, Some(organization)) = (exceeded, organization) {
            exceeded = bounds.organizations.as_ref().and_then(|counted| counted.exceeded(&organization));
            of = "organization";
        }
        let Some(wait) = exceeded else { return Ok(()) };
        metrics::counter!("packhouse_rate_limited_total", "of" => of).increment(1);
        Err(RateExceeded { of, retry_after: wait.as_secs_f64().ceil().max(1.0) as u64 })
    }
}

fn rates(limits: &Limits) -> [u32; 2] {
    [limits.organization_request_rate, limits.credential_request_rate]
}

impl RateBounds {
    fn new(rates: [u32; 2]) -> RateBounds {
        let [organization, credential] = rates;
        RateBounds {
            rates,
            organizations: KeyedBuckets::new(organization),
            requesters: KeyedBuckets::new(credential),
        }
    }
}

impl<K: Clone + Eq + Hash> KeyedBuckets<K> {
    fn new(rate: u32) -> Option<KeyedBuckets<K>> {
        (rate > 0).then(|| KeyedBuckets { rate, each: Cache::new(REMEMBERED) })
    }

    /// Counts a request for this key. Returns the time to wait if the key has reached its limit.
    fn exceeded(&self, who: &K) -> Option<Duration> {
        let fresh = || {
            let interval = Duration::from_secs(1) / self.rate;
            let bucket = TokenBucket::new(interval, self.rate.saturating_mul(BURST_S));
            Ok::<_, std::convert::Infallible>(Arc::new(bucket))
        };
        let Ok(bucket) = self.each.get_or_insert_with(who, fresh);
        bucket.take().err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(organization: u32, credential: u32) -> RateLimits {
        RateLimits(Live::new(RateBounds::new([organization, credential])))
    }

    fn by(name: &str) -> Requester {
        Requester::Credential(OrganizationId(1), name.into())
    }

    #[test]
    fn nothing_is_counted_unless_it_is_set() {
        let limits = limits(0, 0);
        for _ in 0..100_000 {
            limits.count(|| unreachable!()).unwrap();
        }
    }

    #[test]
    fn a_credential_is_held_up_alone_and_its_organization_with_all_of_its_own() {
        let limits = limits(3, 2);
        let mut taken = 0;
        let refused = loop {
            match limits.count(|| by("a")) {
                Ok(()) => taken += 1,
                Err(refused) => break refused,
            }
        };
        // A few more permits may become available while the loop runs.
        assert!((20..25).contains(&taken), "{taken}");
        assert_eq!((refused.of, refused.retry_after), ("credential", 1));
        limits.count(|| by("b")).unwrap();
        let refused = (0..100).find_map(|_| limits.count(|| by("b")).err()).unwrap();
        assert_eq!(refused.of, "organization", "the other credential used 20 of the 30 requests");
        let unauthenticated = || Requester::Unauthenticated(ClientNetwork::of([192, 0, 2, 1].into()));
        limits.count(unauthenticated).unwrap();
        let another = || Requester::Credential(OrganizationId(2), "a".into());
        limits.count(another).unwrap();
    }
}
