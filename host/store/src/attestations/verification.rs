//! Statements to be verified, and the results of their verification.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use super::AttestedFacts;
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::AttestationId;
use crate::store::Store;

/// Number of statements returned for verification at one time.
const AT_ONCE: i64 = 16;

const PENDING: &str =
    "SELECT id, kind, subject, bundle FROM attestations WHERE judged_by = '' ORDER BY id LIMIT $1";
const OTHERWISE: &str = "SELECT id, kind, subject, bundle FROM attestations WHERE id > $1 AND judged_by <> $2 ORDER BY id LIMIT $3";

/// Verification result of a statement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The statement was not verified yet.
    Pending,
    /// The signature is valid, the subject matches, and the signer is expected.
    Verified,
    /// The signature is valid, but the signer is not expected.
    OtherIdentity,
    /// The statement is not valid.
    Failed,
    /// This server cannot verify the statement.
    Unverifiable,
}

impl Verdict {
    const ALL: [Verdict; 5] =
        [Verdict::Pending, Verdict::Verified, Verdict::OtherIdentity, Verdict::Failed, Verdict::Unverifiable];

    /// Name that is stored and displayed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Pending => "pending",
            Verdict::Verified => "verified",
            Verdict::OtherIdentity => "other_identity",
            Verdict::Failed => "failed",
            Verdict::Unverifiable => "unverifiable",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Verdict {
    type Err = StoreError;

    /// Returns `Invalid` for an unknown name.
    fn from_str(text: &str) -> Result<Verdict, StoreError> {
        let found = Verdict::ALL.into_iter().find(|verdict| verdict.name() == text);
        found.ok_or_else(|| StoreError::Invalid(format!("not a verdict: {text:?}")))
    }
}

/// A statement that must be verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToJudge {
    pub id: AttestationId,
    /// Format of the statement: a media type.
    pub kind: String,
    /// Digest of the expected subject, in text form.
    pub subject: String,
    /// The statement itself; empty if it is too large to be verified.
    pub bundle: Bytes,
}

/// Verification result, with its reason and facts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerificationResult {
    pub verdict: Verdict,
    /// Reason for a verdict other than verified, as a sentence.
    pub reason: String,
    /// Facts that the statement states.
    pub facts: AttestedFacts,
}

impl Store {
    /// At most `AT_ONCE` statements that were not verified yet; empty if all are verified.
    #[boxed]
    pub async fn attestations_pending(&self) -> Result<Vec<ToJudge>, StoreError> {
        let rows = self.inner.db.fetch_uncounted(PENDING, values![AT_ONCE]).await?;
        rows.iter().map(to_judge).collect()
    }

    /// This statement for verification; `None` if it does not exist.
    #[boxed]
    pub async fn attestation_to_judge(&self, id: AttestationId) -> Result<Option<ToJudge>, StoreError> {
        let sql = "SELECT id, kind, subject, bundle FROM attestations WHERE id = $1";
        let row = self.inner.db.find(sql, values![id.0]).await?;
        row.as_ref().map(to_judge).transpose()
    }

    /// The next statements after this one whose last verification used a different trust
    /// fingerprint.
    #[boxed]
    pub async fn attestations_judged_otherwise(
        &self,
        after: AttestationId,
        fingerprint: &str,
    ) -> Result<Vec<ToJudge>, StoreError> {
        let rows = self.inner.db.fetch_uncounted(OTHERWISE, values![after.0, fingerprint, AT_ONCE]).await?;
        rows.iter().map(to_judge).collect()
    }

    /// Stores the verification result of a statement and the fingerprint of the trust that was
    /// used. It is not an error if the statement is gone.
    #[boxed]
    pub async fn judge_attestation(
        &self,
        id: AttestationId,
        fingerprint: &str,
        judged: &VerificationResult,
    ) -> Result<(), StoreError> {
        let facts = serde_json::to_string(&judged.facts)
            .map_err(|problem| StoreError::Invalid(format!("facts of an attestation: {problem}")))?;
        let sql = "UPDATE attestations SET verdict = $2, reason = $3, facts = $4, judged_by = $5, judged_at = $6 WHERE id = $1";
        let text = |text: &str| text.replace('\0', "");
        let values =
            values![id.0, judged.verdict.name(), text(&judged.reason), facts, fingerprint, self.now_ms()];
        self.inner.db.execute(sql, values).await.map(drop)
    }

    /// Waits until a commit through this handle has added statements since the last call.
    #[boxed]
    pub async fn attested(&self) {
        self.inner.attested.notified().await;
    }
}

fn to_judge(row: &Row) -> Result<ToJudge, StoreError> {
    let mut columns = row.columns();
    Ok(ToJudge {
        id: AttestationId(columns.int("id")?),
        kind: columns.text("kind")?,
        subject: columns.text("subject")?,
        bundle: columns.bytes("bundle")?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::*;

    #[test]
    fn a_verdict_is_read_as_it_is_written() {
        for verdict in Verdict::ALL {
            assert_eq!(verdict.name().parse::<Verdict>().unwrap(), verdict);
        }
        assert!("good".parse::<Verdict>().is_err());
    }
}
