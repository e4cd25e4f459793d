//! What signed statements about packages are judged by, as the settings name it.

use std::path::PathBuf;

use super::mistake::Mistake;
use super::{Reader, values};

/// By what signed statements about packages are judged.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct AttestationTrust {
    /// `trusted_root.json` of instances of Sigstore.
    pub trusted_roots: Vec<PathBuf>,
    /// Public keys as PEM.
    pub trusted_keys: Vec<PathBuf>,
    /// Who is expected to sign: issuer and identity, with `*` for any text; none: anybody.
    pub identities: Vec<[String; 2]>,
}

impl Reader<'_> {
    pub(super) fn attestations(&self) -> Result<AttestationTrust, Mistake> {
        Ok(AttestationTrust {
            trusted_roots: self.paths("attestations.trusted_roots"),
            trusted_keys: self.paths("attestations.trusted_keys"),
            identities: self.parse("attestations.identities", values::identities)?,
        })
    }
}
