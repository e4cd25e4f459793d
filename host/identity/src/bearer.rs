//! Bearers: what a token service gives out for a credential. A bearer lives for some minutes, names its credential, whose
//! state is looked up again with each request, and carries what of its rights was asked for.
//!
//! `pkb_`, the claims as JSON in base64url, a dot, and HMAC-SHA-256 over what stands before it. There is one algorithm and no
//! header that could name another. The key is derived from the sealing key, which every server of a database has in common, and a
//! salt that the database keeps: so each accepts what another gave out, and whoever reads the database can sign nothing.

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

/// How long one lives, in seconds.
pub const LIFETIME_S: u32 = 300;
/// What every bearer begins with.
pub(crate) const PREFIX: &str = "pkb_";
/// Keeps this use of the key apart from any other.
const DOMAIN: &[u8] = b"packhouse bearer 1\0";
/// For what the sealing key is used here.
const PURPOSE: &str = "bearers";
/// Under which name the database keeps the salt, which is no secret.
const SALT: &str = "bearer_salt";

/// Why a bearer could be neither signed nor checked.
#[derive(Debug, thiserror::Error)]
pub enum BearerError {
    /// The salt could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no sealing key.
    #[error(transparent)]
    Key(#[from] SealError),
}

/// Whose credential a bearer stands for.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Holder {
    /// Nobody's: it opens what anyone may read.
    #[serde(rename = "n")]
    Nobody,
    /// That of this SHA-256, in hexadecimal.
    #[serde(rename = "t")]
    Token(String),
    /// A member who signed in with a password: which, and a mark of the password.
    #[serde(rename = "m")]
    Member(i64, String),
}

impl Holder {
    /// A token's, by what it is looked up by.
    pub fn token(fingerprint: &[u8; 32]) -> Self {
        Self::Token(hex::encode(fingerprint))
    }

    /// A member's, as long as the password is the same.
    pub fn member(member: &MemberRow) -> Self {
        Self::Member(member.id.0, mark(member))
    }

    /// Whether a member still is who this was given to.
    pub fn is(&self, member: &MemberRow) -> bool {
        *self == Self::member(member)
    }
}

fn mark(member: &MemberRow) -> String {
    let hash = Sha256::new_with_prefix(DOMAIN).chain_update(&member.password_hash).finalize();
    hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// What a bearer lets its holder do in one repository, as far as the credential itself may.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ScopeGrant {
    /// By its name.
    #[serde(rename = "r")]
    pub repository: String,
    /// What in it; none for all.
    #[serde(rename = "s")]
    pub subject: Option<String>,
    /// Fetch.
    #[serde(rename = "f")]
    pub read: bool,
    /// Add.
    #[serde(rename = "p")]
    pub publish: bool,
    /// Take away.
    #[serde(rename = "d")]
    pub delete: bool,
}

impl ScopeGrant {
    /// Whether a request of this repository and subject is within it.
    pub fn covers(&self, repository: &str, subject: Option<&str>, wanted: AccessAction) -> bool {
        let about = self.repository == repository
            && self.subject.as_deref().is_none_or(|granted| subject == Some(granted));
        about
            && match wanted {
                AccessAction::Open => true,
                AccessAction::Read { for_publish } => self.read || (for_publish && self.publish),
                AccessAction::Publish => self.publish,
                AccessAction::Delete => self.delete,
            }
    }

    /// Whether it grants anything.
    pub fn is_empty(&self) -> bool {
        !(self.read || self.publish || self.delete)
    }
}

/// A bearer's claims.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Bearer {
    /// Where it is good.
    #[serde(rename = "o")]
    pub organization: i64,
    /// On which format's claims.
    #[serde(rename = "a")]
    pub format: String,
    /// Whose credential it stands for.
    #[serde(rename = "h")]
    pub holder: Holder,
    /// What it grants.
    #[serde(rename = "g")]
    pub grants: Vec<ScopeGrant>,
    /// In ms since 1970.
    #[serde(rename = "e")]
    pub expires_at: i64,
}

/// Whether a text says that it is a bearer.
pub fn says_bearer(presented: &str) -> bool {
    presented.starts_with(PREFIX)
}

/// Signs and checks bearers. The key is made once, of the sealing key and of the salt in the database, which is given one when
/// it has none.
#[derive(Default)]
pub struct Bearers {
    key: OnceCell<[u8; 32]>,
}

impl Bearers {
    /// The bearer of these claims.
    #[boxed]
    pub async fn sign(&self, store: &Store, sealer: &Sealer, bearer: &Bearer) -> Result<Secret, BearerError> {
        let claims = serde_json::to_vec(bearer)
            .map_err(|error| StoreError::Corrupt(format!("a bearer's claims: {error}")))?;
        let body = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(claims));
        let mac = mac(self.key(store, sealer).await?, &body)?.finalize().into_bytes();
        Ok(Secret::new(format!("{body}.{}", URL_SAFE_NO_PAD.encode(mac))))
    }

    /// The claims of a bearer that was signed with this key for this database and that has not expired at `now`; else none.
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
            holder: Holder::token(&[7; 32]),
            grants: vec![grant],
            expires_at: 1_000,
        }
    }

    #[tokio::test]
    async fn only_what_this_key_signed_for_this_database_is_taken() {
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
        // A copy of the database without the key is none that signs.
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
