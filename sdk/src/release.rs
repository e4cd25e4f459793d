//! Verdicts on an upstream's releases, with why policies withhold some.

use crate::ReleaseVerdict;

/// What becomes of a release, and why.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReasonedVerdict {
    /// What becomes of it.
    pub verdict: ReleaseVerdict,
    /// Why a policy withholds it, in a sentence for whoever asks; none where it is offered, or withheld for another reason.
    pub because: Option<String>,
}

/// What is offered, and what policies withhold. What is withheld for another reason is in neither.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SortedOut<T> {
    /// In their order.
    pub offered: Vec<T>,
    /// In their order.
    pub denied: Vec<Denied<T>>,
}

/// What a policy withholds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Denied<T> {
    /// What it is.
    pub one: T,
    /// Why, in a sentence for whoever asks.
    pub because: String,
}
