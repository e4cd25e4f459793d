//! The server's services for a plugin beyond storage: upstream, identity, signing and advisories,
//! for one call and its caller.

mod advisories;
mod error;
mod identity;
mod policy;
mod signing;
mod upstream;

use std::sync::Arc;

pub use advisories::{AdvisoryService, MAX_ADVISORY_BYTES};
pub use error::{ServiceError, ServiceFuture};
pub use identity::{IdentityService, Login, LoginState, TokenView};
pub use policy::PolicyService;
pub use signing::{PublicKey, Signature, SigningService};
pub use upstream::{CacheUse, Fetch, Freshness, Reply, ReplyLifetime, UpstreamService};

/// Services of one call. The default offers none.
#[derive(Clone)]
pub struct Services {
    pub upstream: Arc<dyn UpstreamService>,
    pub identity: Arc<dyn IdentityService>,
    pub signing: Arc<dyn SigningService>,
    pub policies: Arc<dyn PolicyService>,
    pub advisories: Arc<dyn AdvisoryService>,
}

impl Services {
    /// Uses one value for all services.
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

struct NoServices;

impl UpstreamService for NoServices {}
impl IdentityService for NoServices {}
impl SigningService for NoServices {}
impl PolicyService for NoServices {}
impl AdvisoryService for NoServices {}
