//! Lists of advisories, for people.

use super::folded;
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::store::Store;

/// Which advisories are wanted.
#[derive(Clone, Debug, Default)]
pub struct AdvisoryFilter {
    /// About this package: its ecosystem and name. All where there is none.
    pub package: Option<(String, String)>,
    /// Behind this id; empty for the first page.
    pub after: String,
}

/// An advisory in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedAdvisory {
    /// Its identifier.
    pub id: String,
    /// When it was last changed, in ms since 1970.
    pub modified: i64,
    /// Since when it is withdrawn, in ms since 1970.
    pub withdrawn: Option<i64>,
    /// 0 (nobody says) to 4 (critical).
    pub severity: i64,
    /// Whether it is about malware.
    pub malware: bool,
    /// One line.
    pub summary: String,
}

/// How many advisories there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdvisoryTotals {
    /// All of them.
    pub advisories: u64,
    /// Those about malware.
    pub malware: u64,
    /// When the one that was changed last was, in ms since 1970.
    pub modified: Option<i64>,
}

impl Store {
    /// At most `limit` advisories, by id.
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

    /// How many advisories there are. Reads them all.
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
