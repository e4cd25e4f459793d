//! What shows that a backup is the one that was taken: whoever can write to the place of backups could otherwise put another one there.
//!
//! The statement names the place's header and the manifest, and the manifest has the digests of everything else. With a passphrase the
//! statement carries a MAC that only the passphrase can make; in any case it is signed by the server, where the server has a key. The proof
//! is a file of its own beside the manifest, which programs of earlier versions pass over.

use age::secrecy::ExposeSecret as _;
use age::x25519::Identity;
use anyhow::{Context, bail, ensure};
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use packhouse_store::Sha256;
use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use crate::keys::Encryption;

/// Begins the text of a public key.
const KEY: &str = "packhouse-backup-";
const MAC: &[u8] = b"packhouse backup mac 1";
/// Begins every statement.
const STATEMENT: &str = "packhouse backup 1";
/// How an operator takes the responsibility.
const ANYWAY: &str = "use --unauthenticated only if you trust everybody who can write to this place";

/// The key with which a server signs its backups.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// The key of these secret bytes.
    pub fn from_seed(seed: &[u8; 32]) -> anyhow::Result<SigningKey> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed);
        pair.map(SigningKey).map_err(|_| anyhow::anyhow!("the key for signing backups cannot be made"))
    }

    /// The public key as a text, for `--signed-by`.
    #[must_use]
    pub fn public(&self) -> String {
        format!("{KEY}{}", hex::encode(self.0.public_key()))
    }
}

/// The key of a place's MACs, which follows from its passphrase.
#[derive(Clone)]
pub(crate) struct MacKey(hmac::Key);

impl MacKey {
    /// Derives it from the place's own key, which only the passphrase opens.
    pub(crate) fn of(identity: &Identity) -> MacKey {
        let text = identity.to_string();
        let secret = hmac::Key::new(hmac::HMAC_SHA256, text.expose_secret().as_bytes());
        MacKey(hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&secret, MAC).as_ref()))
    }
}

/// What a reader demands.
#[derive(Clone, Debug, Default)]
pub struct Demand {
    /// The public key of the server that must have signed.
    pub signed_by: Option<String>,
    /// Nothing at all: the operator vouches for the place.
    pub unauthenticated: bool,
}

/// A proof as it is stored.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Proof {
    /// HMAC-SHA256 of the statement, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mac: Option<String>,
    /// The server's public key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signed_by: Option<String>,
    /// Its Ed25519 signature of the statement, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
}

/// Everything that a proof is about: the header of the place, and the manifest, as both are stored.
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

    /// Passes a statement that this proof shows to be what the reader demands. The error says what is missing.
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
            let mac = mac.context("this place was opened without its passphrase")?;
            self.check_mac(statement, mac)?;
        }
        match (&demand.signed_by, encryption) {
            (Some(key), _) => self.check_signature(statement, key),
            (None, Encryption::Recipients { .. }) => bail!(
                "anyone can encrypt for these recipients, so nothing shows that this server made the backup: name its public key, \
                 which `packhouse backup key` prints, with --signed-by; {ANYWAY}"
            ),
            (None, _) => Ok(()),
        }
    }

    fn check_mac(&self, statement: &str, key: &MacKey) -> anyhow::Result<()> {
        let Some(mac) = &self.mac else {
            bail!(
                "nothing shows that the backup was made with this passphrase: an earlier version of the program made it, or somebody \
                 forged it; {ANYWAY}"
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
            format!("{key:?} is not a public key of backups, as `packhouse backup key` prints it")
        })?;
        let (Some(signed_by), Some(signature)) = (&self.signed_by, &self.signature) else {
            bail!(
                "the backup is not signed: an earlier version of the program made it, or somebody forged it; {ANYWAY}"
            )
        };
        ensure!(signed_by == key, "the backup is signed by another server: {signed_by}");
        let signature = hex::decode(signature).unwrap_or_default();
        let signed = UnparsedPublicKey::new(&ED25519, public).verify(statement.as_bytes(), &signature);
        signed.map_err(|_| anyhow::anyhow!("the backup was changed after {key} had signed it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passphrase() -> Encryption {
        Encryption::Passphrase { recipient: String::new(), key: String::new() }
    }

    #[test]
    fn a_mac_is_of_one_statement_and_one_passphrase() {
        let (own, other) = (MacKey::of(&Identity::generate()), MacKey::of(&Identity::generate()));
        let said = statement(b"header", b"manifest");
        let proof = Proof::make(&said, Some(&own), None);
        let check =
            |proof: &Proof, said: &str, key| proof.check(said, &passphrase(), Some(key), &Demand::default());
        check(&proof, &said, &own).unwrap();
        assert!(check(&proof, &said, &other).is_err());
        assert!(check(&proof, &statement(b"header", b"other"), &own).is_err());
        assert!(check(&proof, &statement(b"other", b"manifest"), &own).is_err());
        assert!(check(&Proof::default(), &said, &own).is_err());
        let anyway = Demand { unauthenticated: true, ..Demand::default() };
        Proof::default().check(&said, &passphrase(), Some(&own), &anyway).unwrap();
    }

    #[test]
    fn a_signature_is_of_one_statement_and_one_server() {
        let (own, other) =
            (SigningKey::from_seed(&[1; 32]).unwrap(), SigningKey::from_seed(&[2; 32]).unwrap());
        let said = statement(b"header", b"manifest");
        let recipients = Encryption::Recipients { recipients: Vec::new() };
        let by = |key: &SigningKey| Demand { signed_by: Some(key.public()), unauthenticated: false };
        for place in [Encryption::None, recipients.clone()] {
            let proof = Proof::make(&said, None, Some(&own));
            proof.check(&said, &place, None, &by(&own)).unwrap();
            assert!(proof.check(&said, &place, None, &by(&other)).is_err());
            assert!(proof.check(&statement(b"header", b"other"), &place, None, &by(&own)).is_err());
            let forged = Proof { signed_by: Some(own.public()), ..Proof::make(&said, None, Some(&other)) };
            assert!(forged.check(&said, &place, None, &by(&own)).is_err());
            assert!(Proof::default().check(&said, &place, None, &by(&own)).is_err());
        }
        let proof = Proof::make(&said, None, Some(&own));
        assert!(proof.check(&said, &recipients, None, &Demand::default()).is_err());
        let nonsense = Demand { signed_by: Some("x".to_owned()), unauthenticated: false };
        assert!(proof.check(&said, &recipients, None, &nonsense).is_err());
    }
}
