//! Daily numbers of publishes and downloads of a package, a repository or an organization.
//!
//! The database counts publishes with each commit; `write_behind` counts downloads later. The store
//! retains both numbers for [`ACTIVITY_DAYS`].

use std::collections::BTreeMap;

use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId};
use crate::store::Store;

/// Number of reported days, including today. The triggers of the schema ignore older publishes.
pub const ACTIVITY_DAYS: i64 = 30;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Rows of one transaction. The number is small so that publishes do not wait long.
const AT_ONCE: i64 = 400;

/// The subject of an activity report.
#[derive(Clone, Copy, Debug)]
pub enum ActivityOf<'a> {
    Organization(OrganizationId),
    Repository(RepositoryId),
    /// A package of a repository.
    Package(RepositoryId, &'a str),
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct DayOfActivity {
    /// Beginning of the day in UTC, in ms since 1970.
    pub begins: i64,
    /// Number of versions that were published.
    pub publishes: u64,
    /// Number of fetches of versions.
    pub downloads: u64,
}

/// Days since 1970 of a time in ms since 1970.
pub(crate) fn day_of(at: i64) -> i64 {
    at.div_euclid(DAY_MS)
}

const OF_ORGANIZATION: &str = "SELECT a.day, CAST(SUM(a.publishes) AS BIGINT) AS publishes, CAST(SUM(a.downloads) AS BIGINT) AS downloads \
    FROM repositories r JOIN activity a ON a.repository = r.id AND a.name = '' AND a.day >= $2 \
    WHERE r.organization = $1 AND r.deleted_at IS NULL GROUP BY a.day";
const OF_NAME: &str =
    "SELECT day, publishes, downloads FROM activity WHERE repository = $1 AND name = $2 AND day >= $3";
const PUBLISHES_OF_PACKAGE: &str = "SELECT COALESCE(published, shown_at) / 86400000 AS day, COUNT(*) AS publishes, CAST(0 AS BIGINT) AS downloads \
    FROM versions WHERE repository = $1 AND name = $2 AND COALESCE(published, shown_at) >= $3 \
    GROUP BY COALESCE(published, shown_at) / 86400000";
const FORGET: &str = "DELETE FROM activity WHERE (repository, name, day) IN \
    (SELECT repository, name, day FROM activity WHERE day < $1 ORDER BY day LIMIT $2)";

impl Store {
    /// Activity of the last [`ACTIVITY_DAYS`] days, the oldest first and today last. Days without
    /// activity are included. A subject that does not exist has no activity. `Unavailable` if the
    /// database failed.
    pub async fn activity(&self, of: ActivityOf<'_>) -> Result<Vec<DayOfActivity>, StoreError> {
        let today = day_of(self.now_ms());
        let first = today - ACTIVITY_DAYS + 1;
        let db = &self.inner.db;
        let rows = match of {
            ActivityOf::Organization(organization) => {
                db.fetch(OF_ORGANIZATION, values![organization.0, first]).await?
            }
            ActivityOf::Repository(repository) => db.fetch(OF_NAME, values![repository.0, "", first]).await?,
            ActivityOf::Package(_, "") => Vec::new(),
            ActivityOf::Package(repository, name) => {
                let name = name.replace('\0', "");
                let mut rows = db.fetch(OF_NAME, values![repository.0, name.as_str(), first]).await?;
                rows.extend(
                    db.fetch(PUBLISHES_OF_PACKAGE, values![repository.0, name, first * DAY_MS]).await?,
                );
                rows
            }
        };
        let mut days: BTreeMap<i64, DayOfActivity> = (first..=today).map(|day| (day, at(day))).collect();
        for row in &rows {
            let (day, publishes, downloads) = counted(row)?;
            if let Some(known) = days.get_mut(&day) {
                known.publishes = known.publishes.saturating_add(publishes);
                known.downloads = known.downloads.saturating_add(downloads);
            }
        }
        Ok(days.into_values().collect())
    }

    /// Deletes days that are no longer reported; returns the number of rows. It deletes in pieces,
    /// so that no publish waits long.
    #[boxed]
    pub async fn forget_activity(&self) -> Result<u64, StoreError> {
        let before = day_of(self.now_ms()) - ACTIVITY_DAYS + 1;
        self.inner.db.delete_in_pieces(FORGET, before, AT_ONCE).await
    }
}

fn at(day: i64) -> DayOfActivity {
    DayOfActivity { begins: day * DAY_MS, ..DayOfActivity::default() }
}

fn counted(row: &Row) -> Result<(i64, u64, u64), StoreError> {
    let mut columns = row.columns();
    let (day, publishes) = (columns.int("day")?, columns.int("publishes")?);
    // An undo subtracts the restored versions from their day's count. The count can become
    // negative, because the day's row may have been deleted in between.
    let publishes = u64::try_from(publishes).unwrap_or_default();
    Ok((day, publishes, columns.unsigned("downloads")?))
}
