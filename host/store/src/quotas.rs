//! Quotas: maximum bytes in the catalogs of a repository, and of all repositories of an
//! organization.
//!
//! The commit enforces them in its transaction (`writer/quota.rs`). This module checks a publish
//! that announces its size before its bytes arrive.

use crate::boxed;
use crate::db::values;
use crate::error::{ExceededQuota, QuotaOf, StoreError};
use crate::ids::{OrganizationId, RepositoryId};
use crate::quota_setting::of_settings;
use crate::store::Store;

pub(crate) const ROOM: &str = "SELECT u.bytes, (SELECT MAX(f.size) FROM files f WHERE f.repository = u.repository AND f.path = $2) \
     AS there FROM repository_usage u WHERE u.repository = $1";
const TOTAL: &str = "SELECT CAST(COALESCE(SUM(u.bytes), 0) AS BIGINT) AS bytes FROM repositories r \
     JOIN repository_usage u ON u.repository = r.id WHERE r.organization = $1 AND r.deleted_at IS NULL";

/// Quotas that apply to a publish into a repository, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotasOf {
    /// Quota of the repository itself.
    pub repository: Option<u64>,
    /// Quota of all repositories of its organization together.
    pub organization: Option<u64>,
}

impl QuotasOf {
    /// Quotas of a repository with these stored settings, in an organization with this quota.
    #[must_use]
    pub fn new(settings: &str, organization: Option<u64>) -> QuotasOf {
        QuotasOf { repository: of_settings(settings), organization }
    }
}

impl Store {
    /// The quota that a new file at this path with at least this size would exceed now; `None` if
    /// it fits. No statement runs if there is no quota. The commit decides, and may still refuse a
    /// publish that passes here.
    #[boxed]
    pub async fn exceeded_by(
        &self,
        organization: OrganizationId,
        repository: RepositoryId,
        quotas: QuotasOf,
        path: &str,
        bytes: u64,
    ) -> Result<Option<ExceededQuota>, StoreError> {
        if quotas == QuotasOf::default() || path.contains('\0') {
            return Ok(None);
        }
        let Some(row) = self.inner.db.fetch_one(ROOM, values![repository.0, path]).await? else {
            return Ok(None);
        };
        let mut columns = row.columns();
        let used = columns.unsigned("bytes")?;
        let there = columns.opt_int("there")?.and_then(|size| u64::try_from(size).ok()).unwrap_or_default();
        let added = bytes.saturating_sub(there);
        let exceeded = exceeded(QuotaOf::Repository, quotas.repository, used, added);
        if exceeded.is_some() || quotas.organization.is_none() {
            return Ok(exceeded);
        }
        let row = self.inner.db.fetch_one(TOTAL, values![organization.0]).await?;
        let used = row.map_or(Ok(0), |row| row.columns().unsigned("bytes"))?;
        Ok(self::exceeded(QuotaOf::Organization, quotas.organization, used, added))
    }
}

fn exceeded(of: QuotaOf, quota: Option<u64>, used: u64, added: u64) -> Option<ExceededQuota> {
    let bytes = quota?;
    (added > 0 && used.saturating_add(added) > bytes).then_some(ExceededQuota { of, bytes, used, added })
}
