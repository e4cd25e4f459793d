//! Lists of advisories for the portal and the API.

use super::folded;
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::store::Store;

/// Filter of a list of advisories.
#[derive(Clone, Debug, Default)]
pub struct AdvisoryFilter {
    /// Only advisories about this package (ecosystem and name); `None` for all.
    pub package: Option<(String, String)>,
    /// Lists only ids after this one; empty for the first page.
    pub after: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAdvisory {
    pub id: String,
    /// Time of the last change, in ms since 1970.
    pub modified: i64,
    /// Time of the withdrawal, in ms since 1970.
    pub withdrawn: Option<i64>,
    /// Severity from 0 (unknown) to 4 (critical).
    pub severity: i64,
    /// True for an advisory about malware.
    pub malware: bool,
    /// Summary that fits on one line.
    pub summary: String,
}

/// Totals of all stored advisories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdvisoryTotals {
    pub advisories: u64,
    /// Number of advisories about malware.
    pub malware: u64,
    /// Time of the newest change, in ms since 1970.
    pub modified: Option<i64>,
}

impl Store {
    /// Lists at most `limit` advisories, ordered by id.
    #[boxed]
    pub async fn list_advisories(
        &self,
        filter: &AdvisoryFilter,
        limit: u32,
    ) -> Result<Vec<ListedAdvisory>, StoreError> {
        let (after, limit) = (filter.after.as_str(), i64::from(limit));
        let rows = match &filter.package {
            None => {
                let sql = "SELECT id, modified, withdrawn, severity, malware, summary FROM advisories \
                           WHERE id > $1 ORDER BY id LIMIT $2";
                self.inner.db.fetch(sql, values![after, limit]).await?
            }
            Some((ecosystem, name)) => {
                let sql = "SELECT a.id, a.modified, a.withdrawn, a.severity, a.malware, a.summary FROM advisory_packages p \
                           JOIN advisories a ON a.id = p.advisory WHERE p.ecosystem = $3 AND p.folded = $4 \
                           AND p.advisory > $1 ORDER BY p.advisory LIMIT $2";
                let values = values![after, limit, ecosystem.as_str(), folded(name)];
                self.inner.db.fetch(sql, values).await?
            }
        };
        rows.iter().map(listed).collect()
    }

    /// Returns the totals of all advisories. The query reads every row.
    #[boxed]
    pub async fn advisory_totals(&self) -> Result<AdvisoryTotals, StoreError> {
        let sql = "SELECT COUNT(*) AS advisories, CAST(COALESCE(SUM(malware), 0) AS BIGINT) AS malware, MAX(modified) AS modified FROM advisories";
        let row = self.inner.db.fetch_one(sql, values![]).await?;
        row.map_or(Ok(AdvisoryTotals::default()), |row| {
            let mut columns = row.columns();
            let (advisories, malware) = (columns.unsigned("advisories")?, columns.unsigned("malware")?);
            Ok(AdvisoryTotals { advisories, malware, modified: columns.opt_int("modified")? })
        })
    }
}

fn listed(row: &Row) -> Result<ListedAdvisory, StoreError> {
    let mut columns = row.columns();
    Ok(ListedAdvisory {
        id: columns.text("id")?,
        modified: columns.int("modified")?,
        withdrawn: columns.opt_int("withdrawn")?,
        severity: columns.int("severity")?,
        malware: columns.int("malware")? != 0,
        summary: columns.text("summary")?,
    })
}
