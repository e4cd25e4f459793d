//! What is done with advisories that the operator brings in.

use super::mistake::Mistake;
use super::{Reader, values};

/// What is done with advisories.
#[derive(Clone, Copy, Debug)]
pub struct AdvisoryRules {
    /// Whether versions that are malware are neither offered nor taken in.
    pub block_malware: bool,
    /// Whether anybody may ask which there are.
    pub public: bool,
}

impl Reader<'_> {
    pub(super) fn advisories(&self) -> Result<AdvisoryRules, Mistake> {
        Ok(AdvisoryRules {
            block_malware: self.parse("advisories.block_malware", values::switch)?,
            public: self.parse("advisories.public", values::switch)?,
        })
    }
}
