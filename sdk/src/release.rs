//! Verdicts on an upstream's releases, with the reasons of policies.

use crate::ReleaseVerdict;

/// Verdict on a release, with a reason.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReasonedVerdict {
    /// Verdict on the release.
    pub verdict: ReleaseVerdict,
    /// Reason why a policy withholds the release, as a sentence for the client. `None` if the
    /// release is offered, or withheld for another reason.
    pub because: Option<String>,
}

/// Offered releases, and releases that policies withhold. Releases that are withheld for another
/// reason are in neither list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SortedOut<T> {
    /// Offered releases, in their order.
    pub offered: Vec<T>,
    /// Releases that policies withhold, in their order.
    pub denied: Vec<Denied<T>>,
}

/// Release that a policy withholds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Denied<T> {
    /// Release as the caller passed it.
    pub one: T,
    /// Reason, as a sentence for the client.
    pub because: String,
}
