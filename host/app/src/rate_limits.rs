//! How many requests an organization and a credential may make, each server counting for itself. Nothing is bounded unless it is set.

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use packhouse_config::Limits;
use packhouse_config::client_network::ClientNetwork;
use packhouse_config::live::Live;
use packhouse_store::OrganizationId;
use quick_cache::sync::Cache;

use crate::token_bucket::TokenBucket;

/// So many seconds' requests may come at once: clients fetch what a build needs in one go, and then nothing for long.
const BURST_S: u32 = 10;
/// Organizations, and credentials and addresses, that are remembered at one time; who was not there for the longest time begins anew.
const REMEMBERED: usize = 20_000;

/// Whose request it is.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Requester {
    /// By the name of the credential.
    Credential(OrganizationId, Arc<str>),
    /// Without a credential that counts.
    Stranger(ClientNetwork),
}

/// Which bound a request met.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RateExceeded {
    /// `organization` or `credential`.
    pub of: &'static str,
    /// Seconds until one more is taken.
    pub retry_after: u64,
}

/// See the module. Clones are one.
#[derive(Clone)]
pub struct RateLimits(Live<Bounds>);

struct Bounds {
    rates: [u32; 2],
    organizations: Option<Counted<OrganizationId>>,
    requesters: Option<Counted<Requester>>,
}

struct Counted<K> {
    rate: u32,
    each: Cache<K, Arc<TokenBucket>>,
}

impl RateLimits {
    /// As the settings say.
    pub fn new(limits: &Limits) -> RateLimits {
        RateLimits(Live::new(Bounds::new(rates(limits))))
    }

    /// Takes other settings. What was counted by the same ones is counted on.
    pub fn set(&self, limits: &Limits) {
        if self.0.get().rates != rates(limits) {
            self.0.set(Bounds::new(rates(limits)));
        }
    }

    /// Counts a request, or refuses it. A stranger's counts for no organization: nobody could use it up from outside.
    pub fn count(&self, requester: impl FnOnce() -> Requester) -> Result<(), RateExceeded> {
        let bounds = self.0.get();
        if bounds.rates == [0, 0] {
            return Ok(());
        }
        let requester = requester();
        let organization = match &requester {
            Requester::Credential(organization, _) => Some(*organization),
            Requester::Stranger(_) => None,
        };
        // The narrower one first: who is refused by it takes nothing from the others of the organization.
        let mut met = bounds.requesters.as_ref().and_then(|counted| counted.met(&requester));
        let mut of = "credential";
        if let (None, Some(organization)) = (met, organization) {
            met = bounds.organizations.as_ref().and_then(|counted| counted.met(&organization));
            of = "organization";
        }
        let Some(wait) = met else { return Ok(()) };
        metrics::counter!("packhouse_rate_limited_total", "of" => of).increment(1);
        Err(RateExceeded { of, retry_after: wait.as_secs_f64().ceil().max(1.0) as u64 })
    }
}

fn rates(limits: &Limits) -> [u32; 2] {
    [limits.organization_request_rate, limits.credential_request_rate]
}

impl Bounds {
    fn new(rates: [u32; 2]) -> Bounds {
        let [organization, credential] = rates;
        Bounds { rates, organizations: Counted::new(organization), requesters: Counted::new(credential) }
    }
}

impl<K: Clone + Eq + Hash> Counted<K> {
    fn new(rate: u32) -> Option<Counted<K>> {
        (rate > 0).then(|| Counted { rate, each: Cache::new(REMEMBERED) })
    }

    /// How long to wait, where this one has made as many as it may.
    fn met(&self, who: &K) -> Option<Duration> {
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
        RateLimits(Live::new(Bounds::new([organization, credential])))
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
        // Some may be added while it counts.
        assert!((20..25).contains(&taken), "{taken}");
        assert_eq!((refused.of, refused.retry_after), ("credential", 1));
        limits.count(|| by("b")).unwrap();
        let refused = (0..100).find_map(|_| limits.count(|| by("b")).err()).unwrap();
        assert_eq!(refused.of, "organization", "of 30 together 20 were the other's");
        let stranger = || Requester::Stranger(ClientNetwork::of([192, 0, 2, 1].into()));
        limits.count(stranger).unwrap();
        let another = || Requester::Credential(OrganizationId(2), "a".into());
        limits.count(another).unwrap();
    }
}
