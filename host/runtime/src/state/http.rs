//! Objects behind the handles of `http`.

#![allow(unreachable_pub, reason = "named by the generated code, which is public")]

use crate::request::BodyPlan;

/// The call's one request. Its data is in the call's state.
pub struct RequestRep;

/// An intent that the guest is making. The host validates the intent once `route` has returned it.
#[derive(Default)]
pub struct IntentRep {
    pub(crate) action: String,
    pub(crate) subject: Option<String>,
    pub(crate) body: BodyPlan,
    pub(crate) limit: Option<String>,
    pub(crate) digests: Vec<String>,
    pub(crate) also_read: Vec<String>,
    pub(crate) check: bool,
    pub(crate) for_publish: bool,
    pub(crate) packages: Vec<String>,
    pub(crate) many_packages: bool,
}

/// Optional properties of an answer.
#[derive(Default)]
pub struct ResponseOptionsRep {
    pub(crate) modified: Option<u64>,
}
