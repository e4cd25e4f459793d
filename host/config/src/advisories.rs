//! Settings for imported advisories.

use super::config_error::ConfigError;
use super::{SettingsReader, values};

#[derive(Clone, Copy, Debug)]
pub struct AdvisoryRules {
    /// Blocks malware: proxies do not offer versions that are malware, and clients cannot publish
    /// them.
    pub block_malware: bool,
    /// Lets clients query advisories without a session.
    pub public: bool,
}

impl SettingsReader<'_> {
    pub(super) fn advisories(&self) -> Result<AdvisoryRules, ConfigError> {
        Ok(AdvisoryRules {
            block_malware: self.parse("advisories.block_malware", values::switch)?,
            public: self.parse("advisories.public", values::switch)?,
        })
    }
}
