//! Which part cannot be read when a statement over several tables failed: asked only then, by one small statement a table.

use std::time::Duration;

use crate::boxed;
use crate::db::values;
use crate::error::{Part, StoreError};
use crate::ids::OrganizationId;
use crate::store::Store;

/// How long the tables are probed: the caller has waited already.
const PATIENCE: Duration = Duration::from_millis(500);

/// Without these nothing can be judged.
const NEEDED: [&str; 5] = ["organizations", "repositories", "tokens", "token_repositories", "sessions"];

impl Store {
    /// The one part that cannot be read while everything else can; none when all can be read, or more is missing, or the
    /// database does not answer within half a second.
    #[boxed]
    pub async fn unreadable(&self) -> Option<Part> {
        tokio::time::timeout(PATIENCE, self.probe()).await.ok().flatten()
    }

    async fn probe(&self) -> Option<Part> {
        for table in NEEDED {
            if !self.readable(table).await {
                return None;
            }
        }
        match (self.readable("members").await, self.readable("sso_settings").await) {
            (false, true) => Some(Part::Members),
            (true, false) => Some(Part::SignInSettings),
            _ => None,
        }
    }

    async fn readable(&self, table: &'static str) -> bool {
        self.inner.db.fetch(format!("SELECT 1 FROM {table} LIMIT 1"), vec![]).await.is_ok()
    }

    /// What a look-up's failure was. That of the members concerns a token alone, whose owner is among them: the token is still
    /// found. Everybody else is told that the store is unavailable.
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
            (Some(Part::SignInSettings), _) => StoreError::Unreadable(Part::SignInSettings),
            (Some(Part::Members), Some(sha256)) => {
                let sql = "SELECT 1 FROM tokens WHERE secret_sha256 = $1 AND organization = $2";
                let found = self.inner.db.fetch_one(sql, values![sha256, organization.0]).await;
                if matches!(found, Ok(Some(_))) { StoreError::Unreadable(Part::Members) } else { failed }
            }
            _ => failed,
        }
    }
}
