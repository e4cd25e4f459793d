//! Proof of a backup's origin. Without a proof, anyone who can write to the location could replace
//! a backup by a forged one.
//!
//! A proof authenticates a statement: a text with the digests of the location's header and of the
//! manifest. The manifest in turn has the digests of all other files. With a passphrase, the proof
//! has a MAC of the statement that only the passphrase can produce. If the server has a signing
//! key, the proof also has the server's signature. The proof is a file of its own beside the
//! manifest; earlier versions of the program ignore it.

use age::secrecy::ExposeSecret as _;
use age::x25519::Identity;
use anyhow::{Context, bail, ensure};
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use packhouse_store::Sha256;
use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use crate::keys::Encryption;

/// Prefix of a public key's text.
const KEY: &str = "packhouse-backup-";
const MAC: &[u8] = b"packhouse backup mac 1";
/// First line of every statement.
const STATEMENT: &str = "packhouse backup 1";
/// Hint for operators who accept the risk.
const ANYWAY: &str = "use --unauthenticated only if you trust everyone who can write to this location";

/// Ed25519 key with which a server signs its backups.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// Derives the key pair from its secret seed.
    pub fn from_seed(seed: &[u8; 32]) -> anyhow::Result<SigningKey> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed);
        pair.map(SigningKey).map_err(|_| anyhow::anyhow!("failed to derive the key that signs backups"))
    }

    /// The public key as text, for `--signed-by`.
    #[must_use]
    pub fn public(&self) -> String {
        format!("{KEY}{}", hex::encode(self.0.public_key()))
    }
}

/// MAC key of a location, derived from the key that its passphrase opens.
#[derive(Clone)]
pub(crate) struct MacKey(hmac::Key);

impl MacKey {
    /// Derives the MAC key from the location's own key, which only the passphrase opens.
    pub(crate) fn of(identity: &Identity) -> MacKey {
        let text = identity.to_string();
        let secret = hmac::Key::new(hmac::HMAC_SHA256, text.expose_secret().as_bytes());
        MacKey(hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&secret, MAC).as_ref()))
    }
}

/// Proof of origin that the reader requires.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// The public key of the server that must have signed.
    pub signed_by: Option<String>,
    /// True if no proof is required, because the operator vouches for the location.
    pub unauthenticated: bool,
}

/// A proof as it is stored.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Proof {
    /// HMAC-SHA256 of the statement, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
    /// Public key of the server that signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signed_by: Option<String>,
    /// Ed25519 signature of the statement by this server, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

/// The text that a proof authenticates: the digests of the location's header and of the manifest,
/// as both are stored.
pub(crate) fn statement(header: &[u8], manifest: &[u8]) -> String {
    let digest = |bytes: &[u8]| Sha256(sha2::Sha256::digest(bytes).into());
    format!("{STATEMENT}\n{}\n{}\n", digest(header), digest(manifest))
}

impl Proof {
    pub(crate) fn make(statement: &str, mac: Option<&MacKey>, key: Option<&SigningKey>) -> Proof {
        Proof {
            mac: mac.map(|mac| hex::encode(hmac::sign(&mac.0, statement.as_bytes()))),
            signed_by: key.map(SigningKey::public),
            signature: key.map(|key| hex::encode(key.0.sign(statement.as_bytes()))),
        }
    }

    /// Checks that this proof gives the statement the authenticity that the reader requires. The
    /// error says what is missing.
    pub(crate) fn check(
        &self,
        statement: &str,
        encryption: &Encryption,
        mac: Option<&MacKey>,
        demand: &Demand,
    ) -> anyhow::Result<()> {
        if demand.unauthenticated {
            return Ok(());
        }
        if let Encryption::Passphrase { .. } = encryption {
            let mac = mac.context("this location was opened without its passphrase")?;
            self.check_mac(statement, mac)?;
        }
        match (&demand.signed_by, encryption) {
            (Some(key), _) => self.check_signature(statement, key),
            (None, Encryption::Recipients { .. }) => bail!(
                "anyone can encrypt for these recipients, so nothing shows that this server made the backup: pass its public key, \
                 which `packhouse backup key` prints, with --signed-by; {ANYWAY}"
            ),
            (None, _) => Ok(()),
        }
    }

    fn check_mac(&self, statement: &str, key: &MacKey) -> anyhow::Result<()> {
        let Some(mac) = &self.mac else {
            bail!(
                "nothing shows that the backup was made with this passphrase: an earlier version of the program made it, or it is \
                 forged; {ANYWAY}"
            )
        };
        let mac = hex::decode(mac).unwrap_or_default();
        let made = hmac::verify(&key.0, statement.as_bytes(), &mac);
        made.map_err(|_| {
            anyhow::anyhow!("the backup was not made with this passphrase, or was changed afterwards")
        })
    }

    fn check_signature(&self, statement: &str, key: &str) -> anyhow::Result<()> {
        let public = key.strip_prefix(KEY).and_then(|key| hex::decode(key).ok()).with_context(|| {
            format!("{key:?} is not a public key of backups: pass what `packhouse backup key` prints")
        })?;
        let (Some(signed_by), Some(signature)) = (&self.signed_by, &self.signature) else {
            bail!(
                "the backup is not signed: an earlier version of the program made it, or it is forged; {ANYWAY}"
            )
        };
        ensure!(signed_by == key, "the backup is signed by another server: {signed_by}");
        let signature = hex::decode(signature).unwrap_or_default();
        let signed = UnparsedPublicKey::new(&ED25519, public).verify(statement.as_bytes(), &signature);
        signed.map_err(|_| anyhow::anyhow!("the backup was changed after {key} signed it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passphrase() -> Encryption {
        Encryption::Passphrase { recipient: String::new(), key: String::new() }
    }

    #[test]
    fn a_mac_holds_for_one_statement_and_one_passphrase() {
        let (own, other) = (MacKey::of(&Identity::generate()), MacKey::of(&Identity::generate()));
        let signed_text = statement(b"header", b"manifest");
        let proof = Proof::make(&signed_text, Some(&own), None);
        let check = |proof: &Proof, signed_text: &str, key| {
            proof.check(signed_text, &passphrase(), Some(key), &Demand::default())
        };
        check(&proof, &signed_text, &own).unwrap();
        assert!(check(&proof, &signed_text, &other).is_err());
        assert!(check(&proof, &statement(b"header", b"other"), &own).is_err());
        assert!(check(&proof, &statement(b"other", b"manifest"), &own).is_err());
        assert!(check(&Proof::default(), &signed_text, &own).is_err());
        let anyway = Demand { unauthenticated: true, ..Demand::default() };
        Proof::default().check(&signed_text, &passphrase(), Some(&own), &anyway).unwrap();
    }

    #[test]
    fn a_signature_holds_for_one_statement_and_one_server() {
        let (own, other) =
            (SigningKey::from_seed(&[1; 32]).unwrap(), SigningKey::from_seed(&[2; 32]).unwrap());
        let signed_text = statement(b"header", b"manifest");
        let recipients = Encryption::Recipients { recipients: Vec::new() };
        let by = |key: &SigningKey| Demand { signed_by: Some(key.public()), unauthenticated: false };
        for location in [Encryption::None, recipients.clone()] {
            let proof = Proof::make(&signed_text, None, Some(&own));
            proof.check(&signed_text, &location, None, &by(&own)).unwrap();
            assert!(proof.check(&signed_text, &location, None, &by(&other)).is_err());
            assert!(proof.check(&statement(b"header", b"other"), &location, None, &by(&own)).is_err());
            let forged =
                Proof { signed_by: Some(own.public()), ..Proof::make(&signed_text, None, Some(&other)) };
            assert!(forged.check(&signed_text, &location, None, &by(&own)).is_err());
            assert!(Proof::default().check(&signed_text, &location, None, &by(&own)).is_err());
        }
        let proof = Proof::make(&signed_text, None, Some(&own));
        assert!(proof.check(&signed_text, &recipients, None, &Demand::default()).is_err());
        let nonsense = Demand { signed_by: Some("x".to_owned()), unauthenticated: false };
        assert!(proof.check(&signed_text, &recipients, None, &nonsense).is_err());
    }
}
