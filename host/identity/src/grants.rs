//! Grants of tokens from trusted publishers. A grant names packages in a repository that the token
//! may read, write, or both.

use std::sync::Arc;

use packhouse_store::{OrganizationId, RepositoryId, StoreError};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Maximum size of an ID token. Real ones have 1 to 3 KiB.
pub const MAX_ID_TOKEN_BYTES: usize = 16 * 1024;

/// Separates the hashes of ID tokens from those of other tokens.
const DOMAIN: &[u8] = b"packhouse id token 1\0";

/// The rights that one trusted publisher gives a token.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Grant {
    /// Id of the trusted publisher.
    pub publisher: i64,
    /// Id of the repository in the store.
    pub repository: i64,
    pub read: bool,
    /// Right to publish and to delete.
    pub write: bool,
    /// Patterns of package names, with `*` for any text.
    pub packages: Vec<String>,
    /// Fingerprint of the ID token in hex, if the ID token itself is the credential. `None` for a
    /// token that was issued in exchange.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_token: Option<String>,
}

/// All grants of a token. Empty by default.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Grants(Arc<[Grant]>);

impl Grants {
    /// Parses the grants in a token's row. Fails with `Corrupt` if the text is not a list of
    /// grants.
    pub fn read(text: &str) -> Result<Grants, StoreError> {
        let read: Result<Vec<Grant>, _> = serde_json::from_str(text);
        read.map(|grants| Grants(grants.into()))
            .map_err(|error| StoreError::Corrupt(format!("the grants of a token: {error}")))
    }

    /// Returns whether the token may read, and whether it may write, any package in this
    /// repository.
    #[must_use]
    pub fn scope(&self, repository: RepositoryId) -> (bool, bool) {
        let here = || self.of(repository);
        (here().any(|grant| grant.read), here().any(|grant| grant.write))
    }

    /// The patterns of packages that the token may write in this repository, or read if `write` is
    /// false.
    #[must_use]
    pub fn patterns(&self, repository: RepositoryId, write: bool) -> Vec<String> {
        let may =
            self.of(repository).filter(|grant| if write { grant.write } else { grant.read || grant.write });
        may.flat_map(|grant| grant.packages.iter().cloned()).collect()
    }

    fn of(&self, repository: RepositoryId) -> impl Iterator<Item = &Grant> {
        self.0.iter().filter(move |grant| grant.repository == repository.0)
    }
}

/// Reports whether a text looks like an ID token: three base64url words joined by dots, the first
/// of which begins a JSON object.
#[must_use]
pub fn says_id_token(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (40..=MAX_ID_TOKEN_BYTES).contains(&text.len())
        && text.starts_with("eyJ")
        && text.bytes().filter(|byte| *byte == b'.').count() == 2
        && text.bytes().all(plain)
}

/// Look-up key of an ID token that is itself used as a credential in this organization.
#[must_use]
pub fn id_token_fingerprint(organization: OrganizationId, id_token: &str) -> [u8; 32] {
    let hash = Sha256::new_with_prefix(DOMAIN).chain_update(organization.0.to_be_bytes());
    hash.chain_update(id_token).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_apply_to_their_own_repository() {
        let text = r#"[{"publisher": 1, "repository": 7, "read": false, "write": true, "packages": ["a"]},
            {"publisher": 2, "repository": 7, "read": true, "write": false, "packages": ["b-*"]}]"#;
        let grants = Grants::read(text).unwrap();
        assert_eq!(grants.scope(RepositoryId(7)), (true, true));
        assert_eq!(grants.scope(RepositoryId(8)), (false, false));
        assert_eq!(grants.patterns(RepositoryId(7), true), ["a"]);
        assert_eq!(grants.patterns(RepositoryId(7), false), ["a", "b-*"]);
        assert!(Grants::read("{}").is_err());
    }

    #[test]
    fn an_id_token_is_distinguished_from_other_secrets() {
        let body = "a".repeat(40);
        assert!(says_id_token(&format!("eyJhbGciOiJub25lIn0.{body}.")));
        for other in [
            "",
            "eyJ.a.b",
            &format!("pkh_{body}.a.b"),
            &format!("eyJ{body}.a.b.c"),
            &format!("eyJ{body}.a b.c"),
        ] {
            assert!(!says_id_token(other), "{other}");
        }
        assert!(!says_id_token(&format!("eyJ{}.a.b", "a".repeat(MAX_ID_TOKEN_BYTES))));
        let of = |organization| id_token_fingerprint(OrganizationId(organization), &body);
        assert_ne!(of(1), of(2));
    }
}
