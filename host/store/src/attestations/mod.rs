//! Signed statements about versions: kept with the version that they are about, and gone and back with it. What they are worth is
//! judged by the caller, who says by what; it is judged again when that changes.

mod judged;
pub(crate) mod rows;
pub(crate) mod statement;

pub use judged::{Judged, ToJudge, Verdict};
pub use statement::{MAX_KIND_BYTES, MAX_STATEMENT_BYTES, MAX_STATEMENTS, SignedStatement};

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

/// What a statement says of who made it and from what, each empty where it says nothing of it. Of one that is not verified it is a
/// claim that anybody could make.
#[derive(Clone, Default, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(default)]
pub struct AttestedFacts {
    /// Who made it.
    pub identity: String,
    /// Who vouched for that.
    pub issuer: String,
    /// The repository of the source.
    pub source: String,
    /// Its branch or tag.
    pub source_ref: String,
    /// Its commit.
    pub commit: String,
    /// What was run.
    pub workflow: String,
    /// The run.
    pub run: String,
    /// What kind of statement it is.
    pub predicate_type: String,
    /// The key, where it was signed by one.
    pub key: String,
    /// When it was signed, in ms since 1970.
    pub signed_at: Option<i64>,
}

/// A statement about a version, with what it is worth.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attestation {
    /// Its identifier.
    pub id: AttestationId,
    /// The file of the version that it is about; empty: the version.
    pub path: String,
    /// Where its bytes are fetched: a path in the repository.
    pub source: String,
    /// Its form: a media type.
    pub kind: String,
    /// What it is to be about.
    pub subject: Digest,
    /// Of the statement.
    pub sha256: Sha256,
    /// When it came, in ms since 1970.
    pub attested_at: i64,
    /// What it is worth.
    pub verdict: Verdict,
    /// Why it is not verified, as a sentence.
    pub reason: String,
    /// What it says.
    pub facts: AttestedFacts,
    /// By what it was judged: the fingerprint of what was trusted; empty before that.
    pub judged_by: String,
    /// When it was judged, in ms since 1970.
    pub judged_at: Option<i64>,
}

impl Store {
    /// The statements about a version, by the file that they are about.
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

    /// Those about all versions of a package, by version.
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
