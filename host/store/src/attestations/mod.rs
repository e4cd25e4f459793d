//! Signed statements about versions. The store keeps, deletes and restores a statement together
//! with its version.
//!
//! The caller verifies the statements, and verifies them again when its trust configuration
//! changes.

pub(crate) mod rows;
pub(crate) mod statement;
mod verification;

pub use statement::{MAX_KIND_BYTES, MAX_STATEMENT_BYTES, MAX_STATEMENTS, SignedStatement};
pub use verification::{ToJudge, Verdict, VerificationResult};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::boxed;
use crate::db::{Row, values};
use crate::digest::{Digest, Sha256};
use crate::error::StoreError;
use crate::ids::{AttestationId, RepositoryId};
use crate::store::Store;

const COLUMNS: &str = "id, version, path, source, kind, subject, sha256, attested_at, verdict, reason, facts, judged_by, judged_at \
    FROM attestations WHERE repository = $1 AND name = $2";

/// Facts that a statement states about its signer and its build; unknown facts are empty. Anybody
/// could have made up the facts of an unverified statement.
#[derive(Clone, Default, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(default)]
pub struct AttestedFacts {
    pub identity: String,
    /// Issuer that vouches for the identity.
    pub issuer: String,
    /// Repository of the source code.
    pub source: String,
    /// Branch or tag of the source code.
    pub source_ref: String,
    /// Commit of the source code.
    pub commit: String,
    /// Workflow that made the package.
    pub workflow: String,
    pub run: String,
    /// Predicate type of the statement.
    pub predicate_type: String,
    /// Key that signed the statement, if it was signed with a key.
    pub key: String,
    /// Time of the signature, in ms since 1970.
    pub signed_at: Option<i64>,
}

/// A statement about a version, with its verification result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attestation {
    pub id: AttestationId,
    /// File of the version that the statement is about; empty for the whole version.
    pub path: String,
    /// Path in the repository from which the statement can be fetched.
    pub source: String,
    /// Format of the statement: a media type.
    pub kind: String,
    /// Digest of the expected subject.
    pub subject: Digest,
    pub sha256: Sha256,
    /// Time of arrival, in ms since 1970.
    pub attested_at: i64,
    pub verdict: Verdict,
    /// Reason for a verdict other than verified, as a sentence.
    pub reason: String,
    /// Facts that the statement states.
    pub facts: AttestedFacts,
    /// Fingerprint of the trust that the verification used; empty before the verification.
    pub judged_by: String,
    /// Time of the verification, in ms since 1970.
    pub judged_at: Option<i64>,
}

impl Store {
    /// Statements about a version, ordered by the file that they are about.
    #[boxed]
    pub async fn attestations_of(
        &self,
        repository: RepositoryId,
        name: &str,
        version: &str,
    ) -> Result<Vec<Attestation>, StoreError> {
        let sql = format!("SELECT {COLUMNS} AND version = $3 ORDER BY path, id");
        let rows = self.inner.db.fetch(sql, values![repository.0, name, version]).await?;
        rows.iter().map(|row| attestation(row).map(|(_, one)| one)).collect()
    }

    /// Statements about all versions of a package, by version.
    #[boxed]
    pub async fn attestations_of_package(
        &self,
        repository: RepositoryId,
        name: &str,
    ) -> Result<BTreeMap<String, Vec<Attestation>>, StoreError> {
        let sql = format!("SELECT {COLUMNS} ORDER BY version, path, id");
        let mut all: BTreeMap<String, Vec<Attestation>> = BTreeMap::new();
        for row in &self.inner.db.fetch(sql, values![repository.0, name]).await? {
            let (version, one) = attestation(row)?;
            all.entry(version).or_default().push(one);
        }
        Ok(all)
    }
}

fn attestation(row: &Row) -> Result<(String, Attestation), StoreError> {
    let mut columns = row.columns();
    let facts = columns.text("facts")?;
    let facts = serde_json::from_str(&facts)
        .map_err(|problem| StoreError::Corrupt(format!("facts of an attestation: {problem}")))?;
    let attestation = Attestation {
        id: AttestationId(columns.int("id")?),
        path: columns.text("path")?,
        source: columns.text("source")?,
        kind: columns.text("kind")?,
        subject: columns.text("subject")?.parse()?,
        sha256: Sha256(columns.hash("sha256")?),
        attested_at: columns.int("attested_at")?,
        verdict: columns.text("verdict")?.parse()?,
        reason: columns.text("reason")?,
        facts,
        judged_by: columns.text("judged_by")?,
        judged_at: columns.opt_int("judged_at")?,
    };
    Ok((columns.text("version")?, attestation))
}
