//! Bearers: short-lived tokens that a token service issues for a credential. A bearer is valid for
//! some minutes and carries the rights that the client requested. It names its credential, and the
//! server looks up the state of this credential with each request.
//!
//! A bearer is `pkb_`, the claims as JSON in base64url, a dot, and an HMAC-SHA-256 of everything
//! before the dot. There is only this algorithm: a bearer has no header that could name another.
//! The key is derived from the sealing key, which all servers of a database share, and from a salt
//! in the database. So each server accepts the bearers of the other servers, and reading the
//! database is not enough to sign.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use packhouse_store::{MemberRow, Store, StoreError};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::OnceCell;

use crate::access::AccessAction;
use crate::boxed;
use crate::{SealError, Sealer, Secret};

/// Lifetime of a bearer, in seconds.
pub const LIFETIME_S: u32 = 300;
/// Prefix that marks a text as a bearer.
pub(crate) const PREFIX: &str = "pkb_";
/// Separates this use of the key from any other.
const DOMAIN: &[u8] = b"packhouse bearer 1\0";
/// Purpose for which the key is derived from the sealing key.
const PURPOSE: &str = "bearers";
/// Name of the salt in the database. The salt is not secret.
const SALT: &str = "bearer_salt";

/// Error of signing or checking a bearer.
#[derive(Debug, thiserror::Error)]
pub enum BearerError {
    /// The salt could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no sealing key.
    #[error(transparent)]
    Key(#[from] SealError),
}

/// The credential that a bearer stands for.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum BearerHolder {
    /// No credential: the bearer gives access to public repositories.
    #[serde(rename = "n")]
    Nobody,
    /// A token, by its SHA-256 in hexadecimal.
    #[serde(rename = "t")]
    Token(String),
    /// A member who signed in with a password: the member's id, and a fingerprint of the password.
    #[serde(rename = "m")]
    Member(i64, String),
}

impl BearerHolder {
    /// The holder for a token with this fingerprint.
    pub fn token(fingerprint: &[u8; 32]) -> Self {
        Self::Token(hex::encode(fingerprint))
    }

    /// The holder for a member. The holder changes when the member's password changes.
    pub fn member(member: &MemberRow) -> Self {
        Self::Member(member.id.0, password_fingerprint(member))
    }

    /// Reports whether the bearer was issued to this member, with the member's current password.
    pub fn is(&self, member: &MemberRow) -> bool {
        *self == Self::member(member)
    }
}

fn password_fingerprint(member: &MemberRow) -> String {
    let hash = Sha256::new_with_prefix(DOMAIN).chain_update(&member.password_hash).finalize();
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Rights of a bearer in one repository. The rights of the credential itself limit them further.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ScopeGrant {
    /// Name of the repository that the rights are for.
    #[serde(rename = "r")]
    pub repository: String,
    /// Package or other subject in the repository. `None` covers all subjects.
    #[serde(rename = "s")]
    pub subject: Option<String>,
    #[serde(rename = "f")]
    pub read: bool,
    #[serde(rename = "p")]
    pub publish: bool,
    #[serde(rename = "d")]
    pub delete: bool,
}

impl ScopeGrant {
    /// Reports whether the grant covers this action on this repository and subject.
    pub fn covers(&self, repository: &str, subject: Option<&str>, action: AccessAction) -> bool {
        let about = self.repository == repository
            && self.subject.as_deref().is_none_or(|granted| subject == Some(granted));
        about
            && match action {
                AccessAction::Open => true,
                AccessAction::Read { for_publish } => self.read || (for_publish && self.publish),
                AccessAction::Publish => self.publish,
                AccessAction::Delete => self.delete,
            }
    }

    /// Reports whether the grant contains no right.
    pub fn is_empty(&self) -> bool {
        !(self.read || self.publish || self.delete)
    }
}

/// The claims of a bearer.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Bearer {
    /// Id of the organization in which the bearer is valid.
    #[serde(rename = "o")]
    pub organization: i64,
    /// Format on whose claimed paths the bearer is valid.
    #[serde(rename = "a")]
    pub format: String,
    #[serde(rename = "h")]
    pub holder: BearerHolder,
    #[serde(rename = "g")]
    pub grants: Vec<ScopeGrant>,
    /// Expiry in ms since 1970.
    #[serde(rename = "e")]
    pub expires_at: i64,
}

/// Reports whether a text has the prefix of a bearer.
pub fn says_bearer(presented: &str) -> bool {
    presented.starts_with(PREFIX)
}

/// Signs and checks bearers. The key is derived once, from the sealing key and from the salt in the
/// database. The first server to need a salt creates it.
#[derive(Default)]
pub struct Bearers {
    key: OnceCell<[u8; 32]>,
}

impl Bearers {
    /// Signs a bearer with these claims.
    #[boxed]
    pub async fn sign(&self, store: &Store, sealer: &Sealer, bearer: &Bearer) -> Result<Secret, BearerError> {
        let claims = serde_json::to_vec(bearer)
            .map_err(|error| StoreError::Corrupt(format!("a bearer's claims: {error}")))?;
        let body = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(claims));
        let mac = mac(self.key(store, sealer).await?, &body)?.finalize().into_bytes();
        Ok(Secret::new(format!("{body}.{}", URL_SAFE_NO_PAD.encode(mac))))
    }

    /// Returns the claims of a bearer that was signed with this key for this database and has not
    /// expired at `now`. Any other text gives `None`.
    #[boxed]
    pub async fn verify(
        &self,
        store: &Store,
        sealer: &Sealer,
        presented: &str,
        now: i64,
    ) -> Result<Option<Bearer>, BearerError> {
        let Some((body, signature)) = presented.split_once('.') else { return Ok(None) };
        let Ok(signature) = URL_SAFE_NO_PAD.decode(signature) else { return Ok(None) };
        if mac(self.key(store, sealer).await?, body)?.verify_slice(&signature).is_err() {
            return Ok(None);
        }
        let claims = body.strip_prefix(PREFIX).and_then(|claims| URL_SAFE_NO_PAD.decode(claims).ok());
        let bearer: Option<Bearer> = claims.and_then(|claims| serde_json::from_slice(&claims).ok());
        Ok(bearer.filter(|bearer| bearer.expires_at > now))
    }

    async fn key(&self, store: &Store, sealer: &Sealer) -> Result<&[u8; 32], BearerError> {
        let make = async || {
            let fresh: [u8; 32] = rand::random();
            let salt = store.agreed(SALT, &hex::encode(fresh)).await?;
            Ok(sealer.derive(PURPOSE, &salt)?)
        };
        self.key.get_or_try_init(make).await
    }
}

fn mac(key: &[u8], body: &str) -> Result<Hmac<Sha256>, StoreError> {
    let mac = Hmac::<Sha256>::new_from_slice(key)
        .map_err(|error| StoreError::Corrupt(format!("the key of bearers: {error}")))?;
    Ok(mac.chain_update(DOMAIN).chain_update(body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use packhouse_store::StoreConfig;

    fn bearer() -> Bearer {
        let grant = ScopeGrant { repository: "r".to_owned(), read: true, ..ScopeGrant::default() };
        Bearer {
            organization: 1,
            format: "f".to_owned(),
            holder: BearerHolder::token(&[7; 32]),
            grants: vec![grant],
            expires_at: 1_000,
        }
    }

    #[tokio::test]
    async fn only_bearers_signed_with_this_key_for_this_database_are_accepted() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let here = Store::open(StoreConfig::new(folders[0].path())).await.unwrap();
        let elsewhere = Store::open(StoreConfig::new(folders[1].path())).await.unwrap();
        let sealer = |key: &str| Sealer::new(Some(Secret::new(key)), folders[0].path());
        let (own, other) = (sealer("the key of this database"), sealer("another key than this"));
        let signed = Bearers::default().sign(&here, &own, &bearer()).await.unwrap();
        let text = signed.reveal();
        // Another process of the same database.
        let bearers = Bearers::default();
        assert_eq!(bearers.verify(&here, &own, text, 999).await.unwrap(), Some(bearer()));
        assert_eq!(bearers.verify(&here, &own, text, 1_000).await.unwrap(), None);
        assert_eq!(Bearers::default().verify(&elsewhere, &own, text, 0).await.unwrap(), None);
        // A copy of the database does not help to sign without the sealing key.
        assert_eq!(Bearers::default().verify(&here, &other, text, 0).await.unwrap(), None);

        let (body, mac) = text.split_once('.').unwrap();
        let more = Bearer { expires_at: i64::MAX, ..bearer() };
        let more = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&more).unwrap());
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        let key_inside = URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256","jwk":{"kty":"EC"}}"#);
        for forged in [
            body.to_owned(),
            format!("{body}."),
            format!("{PREFIX}{more}.{mac}"),
            format!("{PREFIX}{more}."),
            format!("{none}.{more}."),
            format!("{key_inside}.{more}.{mac}"),
            format!("{body}.{}", URL_SAFE_NO_PAD.encode([0; 32])),
            String::new(),
            PREFIX.to_owned(),
        ] {
            assert_eq!(bearers.verify(&here, &own, &forged, 0).await.unwrap(), None, "{forged}");
        }
    }

    #[test]
    fn a_grant_covers_what_it_names() {
        let read = AccessAction::Read { for_publish: false };
        let grant = ScopeGrant {
            repository: "r".to_owned(),
            subject: Some("a".to_owned()),
            read: true,
            ..ScopeGrant::default()
        };
        assert!(grant.covers("r", Some("a"), read) && !grant.covers("r", Some("b"), read));
        assert!(!grant.covers("s", Some("a"), read) && !grant.covers("r", None, read));
        assert!(!grant.covers("r", Some("a"), AccessAction::Publish) && !grant.is_empty());
        let push = ScopeGrant { read: false, publish: true, ..grant };
        assert!(push.covers("r", Some("a"), AccessAction::Read { for_publish: true }));
        assert!(!push.covers("r", Some("a"), read) && !push.covers("r", Some("a"), AccessAction::Delete));
        assert!(ScopeGrant::default().is_empty());
    }
}
