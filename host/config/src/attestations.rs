//! Trust settings for signed statements about packages.

use std::path::PathBuf;

use super::config_error::ConfigError;
use super::{SettingsReader, values};

/// Keys, roots and identities whose statements about packages the operator trusts.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AttestationTrust {
    /// Paths of `trusted_root.json` files of Sigstore instances.
    pub trusted_roots: Vec<PathBuf>,
    /// Paths of PEM files with public keys.
    pub trusted_keys: Vec<PathBuf>,
    /// Expected signers: issuer and identity, with `*` for any text. If the list is empty, every
    /// signer is accepted.
    pub identities: Vec<[String; 2]>,
}

impl SettingsReader<'_> {
    pub(super) fn attestations(&self) -> Result<AttestationTrust, ConfigError> {
        Ok(AttestationTrust {
            trusted_roots: self.paths("attestations.trusted_roots"),
            trusted_keys: self.paths("attestations.trusted_keys"),
            identities: self.parse("attestations.identities", values::identities)?,
        })
    }
}
