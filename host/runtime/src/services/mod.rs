//! What the server does for a plugin beyond storage: upstream, identity, signing and advisories, for one call and its caller.

mod advisories;
mod error;
mod identity;
mod policy;
mod signing;
mod upstream;

use std::sync::Arc;

pub use advisories::{AdvisoryService, MAX_TOLD_BYTES};
pub use error::{ServiceError, ServiceFuture};
pub use identity::{IdentityService, Login, LoginState, TokenView};
pub use policy::PolicyService;
pub use signing::{PublicKey, Signature, SigningService};
pub use upstream::{CacheUse, Fetch, Freshness, Reply, ReplyLifetime, UpstreamService};

/// The services of one call. The default offers none.
#[derive(Clone)]
pub struct Services {
    /// Upstreams of proxies.
    pub upstream: Arc<dyn UpstreamService>,
    /// The caller's sign-ins and tokens.
    pub identity: Arc<dyn IdentityService>,
    /// Signatures.
    pub signing: Arc<dyn SigningService>,
    /// Policies.
    pub policies: Arc<dyn PolicyService>,
    /// What is known to be wrong with packages.
    pub advisories: Arc<dyn AdvisoryService>,
}

impl Services {
    /// All of them by one value.
    pub fn of<S: UpstreamService + IdentityService + SigningService + PolicyService + AdvisoryService>(
        services: &Arc<S>,
    ) -> Services {
        Services {
            upstream: Arc::clone(services) as Arc<dyn UpstreamService>,
            identity: Arc::clone(services) as Arc<dyn IdentityService>,
            signing: Arc::clone(services) as Arc<dyn SigningService>,
            policies: Arc::clone(services) as Arc<dyn PolicyService>,
            advisories: Arc::clone(services) as Arc<dyn AdvisoryService>,
        }
    }
}

impl Default for Services {
    fn default() -> Services {
        Services::of(&Arc::new(NoServices))
    }
}

/// Offers nothing.
struct NoServices;

impl UpstreamService for NoServices {}
impl IdentityService for NoServices {}
impl SigningService for NoServices {}
impl PolicyService for NoServices {}
impl AdvisoryService for NoServices {}
