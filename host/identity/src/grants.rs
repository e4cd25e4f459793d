//! What a token reaches that trusted publishers stand behind: in each repository some packages, to read, to write, or both.

use std::sync::Arc;

use packhouse_store::{OrganizationId, RepositoryId, StoreError};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Bytes of the longest ID token that is looked at: what services make has 1 to 3 KiB.
pub const MAX_ID_TOKEN_BYTES: usize = 16 * 1024;

/// Keeps the hashes of ID tokens apart from those of tokens.
const DOMAIN: &[u8] = b"packhouse id token 1\0";

/// What one publisher lets a token do.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Grant {
    /// The publisher's identifier.
    pub publisher: i64,
    /// The repository's identifier.
    pub repository: i64,
    /// Fetch.
    pub read: bool,
    /// Add and take away.
    pub write: bool,
    /// Patterns of packages, with `*` for any text.
    pub packages: Vec<String>,
    /// What the ID token is remembered by that is the credential itself, in hex; none for a token that was given out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id_token: Option<String>,
}

/// Grants as a token has them. By default none.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Grants(Arc<[Grant]>);

impl Grants {
    /// From a token's row. `Corrupt` for what is no list of grants.
    pub fn read(text: &str) -> Result<Grants, StoreError> {
        let read: Result<Vec<Grant>, _> = serde_json::from_str(text);
        read.map(|grants| Grants(grants.into()))
            .map_err(|error| StoreError::Corrupt(format!("the grants of a token: {error}")))
    }

    /// Whether it reads and whether it writes in this repository, of some package.
    #[must_use]
    pub fn scope(&self, repository: RepositoryId) -> (bool, bool) {
        let here = || self.of(repository);
        (here().any(|grant| grant.read), here().any(|grant| grant.write))
    }

    /// The patterns of packages that it may write, or else read, in this repository.
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

/// Whether a text looks like an ID token: three words of base64url joined by dots, of which the first begins a JSON object.
#[must_use]
pub fn says_id_token(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (40..=MAX_ID_TOKEN_BYTES).contains(&text.len())
        && text.starts_with("eyJ")
        && text.bytes().filter(|byte| *byte == b'.').count() == 2
        && text.bytes().all(plain)
}

/// What an ID token is looked up by that is used as a credential itself in this organization.
#[must_use]
pub fn id_token_fingerprint(organization: OrganizationId, id_token: &str) -> [u8; 32] {
    let hash = Sha256::new_with_prefix(DOMAIN).chain_update(organization.0.to_be_bytes());
    hash.chain_update(id_token).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_hold_where_they_were_given() {
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
    fn an_id_token_is_told_from_other_secrets() {
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
