//! What is made of statements.

use std::fmt;
use std::str::FromStr;

use bytes::Bytes;

use super::AttestedFacts;
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::AttestationId;
use crate::store::Store;

/// Statements that are handed out to be judged at one time.
const AT_ONCE: i64 = 16;

const PENDING: &str =
    "SELECT id, kind, subject, bundle FROM attestations WHERE judged_by = '' ORDER BY id LIMIT $1";
const OTHERWISE: &str = "SELECT id, kind, subject, bundle FROM attestations WHERE id > $1 AND judged_by <> $2 ORDER BY id LIMIT $3";

/// What a statement is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It was not judged yet.
    Pending,
    /// It holds, is about what it is to be about, and who made it is expected.
    Verified,
    /// It holds, and who made it is not expected.
    OtherIdentity,
    /// It does not hold.
    Failed,
    /// Nothing here can tell.
    Unverifiable,
}

impl Verdict {
    const ALL: [Verdict; 5] =
        [Verdict::Pending, Verdict::Verified, Verdict::OtherIdentity, Verdict::Failed, Verdict::Unverifiable];

    /// As it is stored and shown.
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

    /// `Invalid` for a name that is none of them.
    fn from_str(text: &str) -> Result<Verdict, StoreError> {
        let found = Verdict::ALL.into_iter().find(|verdict| verdict.name() == text);
        found.ok_or_else(|| StoreError::Invalid(format!("no verdict: {text:?}")))
    }
}

/// A statement that is to be judged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToJudge {
    /// Its identifier.
    pub id: AttestationId,
    /// Its form: a media type.
    pub kind: String,
    /// What it is to be about, as digests are written.
    pub subject: String,
    /// The statement itself; empty where it is too large to be looked at.
    pub bundle: Bytes,
}

/// What a statement is worth.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judged {
    /// What it is worth.
    pub verdict: Verdict,
    /// Why it is not verified, as a sentence.
    pub reason: String,
    /// What it says.
    pub facts: AttestedFacts,
}

impl Store {
    /// Some of the statements that were not judged yet; none: all are.
    #[boxed]
    pub async fn attestations_pending(&self) -> Result<Vec<ToJudge>, StoreError> {
        let rows = self.inner.db.fetch_uncounted(PENDING, values![AT_ONCE]).await?;
        rows.iter().map(to_judge).collect()
    }

    /// This statement, as it is to be judged; none where it is gone.
    #[boxed]
    pub async fn attestation_to_judge(&self, id: AttestationId) -> Result<Option<ToJudge>, StoreError> {
        let sql = "SELECT id, kind, subject, bundle FROM attestations WHERE id = $1";
        let row = self.inner.db.find(sql, values![id.0]).await?;
        row.as_ref().map(to_judge).transpose()
    }

    /// The next statements behind this one that were not judged by what has this fingerprint.
    #[boxed]
    pub async fn attestations_judged_otherwise(
        &self,
        after: AttestationId,
        fingerprint: &str,
    ) -> Result<Vec<ToJudge>, StoreError> {
        let rows = self.inner.db.fetch_uncounted(OTHERWISE, values![after.0, fingerprint, AT_ONCE]).await?;
        rows.iter().map(to_judge).collect()
    }

    /// Writes what a statement is worth by what has this fingerprint. One that is gone is no fault.
    #[boxed]
    pub async fn judge_attestation(
        &self,
        id: AttestationId,
        fingerprint: &str,
        judged: &Judged,
    ) -> Result<(), StoreError> {
        let facts = serde_json::to_string(&judged.facts)
            .map_err(|problem| StoreError::Invalid(format!("facts of an attestation: {problem}")))?;
        let sql = "UPDATE attestations SET verdict = $2, reason = $3, facts = $4, judged_by = $5, judged_at = $6 WHERE id = $1";
        let text = |text: &str| text.replace('\0', "");
        let values =
            values![id.0, judged.verdict.name(), text(&judged.reason), facts, fingerprint, self.now_ms()];
        self.inner.db.execute(sql, values).await.map(drop)
    }

    /// Resolves once a commit through this handle has brought statements since this was asked last.
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
    #![allow(clippy::unwrap_used, reason = "test code: to fail is how it speaks")]

    use super::*;

    #[test]
    fn a_verdict_is_read_as_it_is_written() {
        for verdict in Verdict::ALL {
            assert_eq!(verdict.name().parse::<Verdict>().unwrap(), verdict);
        }
        assert!("good".parse::<Verdict>().is_err());
    }
}
