//! Diagnosis of a failed statement over several tables: finds the part that cannot be read, with
//! one small statement for each table. It runs only after a failure.

use std::time::Duration;

use crate::boxed;
use crate::db::values;
use crate::error::{DatabasePart, StoreError};
use crate::ids::OrganizationId;
use crate::store::Store;

/// Time limit for all probes. The caller has already waited for the failed statement.
const PATIENCE: Duration = Duration::from_millis(500);

/// Tables without which no request can be authorized.
const NEEDED: [&str; 5] = ["organizations", "repositories", "tokens", "token_repositories", "sessions"];

/// Tables with the members and their rights.
const MEMBERS: [&str; 3] = ["members", "team_members", "teams"];

impl Store {
    /// Returns the one part that cannot be read while all other parts can. Returns `None` if all
    /// parts can be read, if several cannot, or if the database does not answer within half a
    /// second.
    #[boxed]
    pub async fn unreadable(&self) -> Option<DatabasePart> {
        tokio::time::timeout(PATIENCE, self.probe()).await.ok().flatten()
    }

    async fn probe(&self) -> Option<DatabasePart> {
        for table in NEEDED {
            if !self.readable(table).await {
                return None;
            }
        }
        let mut members = true;
        for table in MEMBERS {
            members &= self.readable(table).await;
        }
        match (members, self.readable("sso_settings").await) {
            (false, true) => Some(DatabasePart::Members),
            (true, false) => Some(DatabasePart::SignInSettings),
            _ => None,
        }
    }

    async fn readable(&self, table: &'static str) -> bool {
        self.inner.db.fetch(format!("SELECT 1 FROM {table} LIMIT 1"), vec![]).await.is_ok()
    }

    /// Replaces the error of a failed look-up by the part that cannot be read.
    /// `DatabasePart::Members` applies only to a request with a token that can still be found,
    /// because a token's owner is a member. Other requests keep the original error.
    pub(super) async fn explain_failure(
        &self,
        failed: StoreError,
        organization: OrganizationId,
        token_sha256: Option<&[u8; 32]>,
    ) -> StoreError {
        if !failed.is_unavailable() {
            return failed;
        }
        match (self.unreadable().await, token_sha256) {
            (Some(DatabasePart::SignInSettings), _) => StoreError::Unreadable(DatabasePart::SignInSettings),
            (Some(DatabasePart::Members), Some(sha256)) => {
                let sql = "SELECT 1 FROM tokens WHERE secret_sha256 = $1 AND organization = $2";
                let found = self.inner.db.fetch_one(sql, values![sha256, organization.0]).await;
                if matches!(found, Ok(Some(_))) {
                    StoreError::Unreadable(DatabasePart::Members)
                } else {
                    failed
                }
            }
            _ => failed,
        }
    }
}
