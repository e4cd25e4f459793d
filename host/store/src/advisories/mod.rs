//! Advisories as rows, found by package. The operator imports them; the caller interprets the
//! records.
//!
//! Each change increments `advisory_changes`, which tells servers that their cached results are
//! outdated.

mod change;
mod list;

pub use change::{AdvisoryPut, AdvisoryRow};
pub use list::{AdvisoryFilter, AdvisoryTotals, ListedAdvisory};

use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::store::Store;

/// Maximum number of advisories read for one package. Real packages have fewer.
const OF_PACKAGE: i64 = 5_000;

/// State of the stored advisories, cheap to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdvisoryState {
    /// Number of changes so far; 0 if nothing was ever imported.
    pub number: i64,
    /// Time of the last change, in ms since 1970.
    pub changed_at: Option<i64>,
}

/// Normalizes a package's name for look-ups. All ecosystems share one form: names that are equal in
/// any ecosystem have the same form.
fn folded(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '-' | '_' | '.' if folded.ends_with('-') => {}
            '-' | '_' | '.' => folded.push('-'),
            letter => folded.extend(letter.to_lowercase()),
        }
    }
    folded
}

impl Store {
    /// Number and time of the last change. The query is cheap enough for a call every half second.
    #[boxed]
    pub async fn advisory_state(&self) -> Result<AdvisoryState, StoreError> {
        let sql = "SELECT number, changed_at FROM advisory_changes WHERE id = 1";
        let rows = self.inner.db.fetch_uncounted(sql, values![]).await?;
        rows.first().map_or(Ok(AdvisoryState::default()), |row| {
            let mut columns = row.columns();
            let (number, changed_at) = (columns.int("number")?, columns.int("changed_at")?);
            Ok(AdvisoryState { number, changed_at: Some(changed_at) })
        })
    }

    /// Records that may be about this package of an ecosystem, ordered by id. Withdrawn ones are
    /// left out. Names with the same normalized form match too.
    #[boxed]
    pub async fn advisories_of(&self, ecosystem: &str, package: &str) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT a.record FROM advisory_packages p JOIN advisories a ON a.id = p.advisory \
                   WHERE p.ecosystem = $1 AND p.folded = $2 AND a.withdrawn IS NULL ORDER BY a.id LIMIT $3";
        let rows = self.inner.db.fetch(sql, values![ecosystem, folded(package), OF_PACKAGE]).await?;
        rows.iter().map(|row| row.columns().text("record")).collect()
    }

    /// Record of this id, including a withdrawn one.
    #[boxed]
    pub async fn advisory(&self, id: &str) -> Result<Option<String>, StoreError> {
        let row = self.inner.db.fetch_one("SELECT record FROM advisories WHERE id = $1", values![id]).await?;
        row.map(|row| row.columns().text("record")).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::folded;

    #[test]
    fn names_that_some_ecosystem_holds_equal_are_spelt_alike() {
        for (name, expected) in
            [("Zope._Interface", "zope-interface"), ("@Acme/lib", "@acme/lib"), ("a:b", "a:b")]
        {
            assert_eq!(folded(name), expected);
        }
    }
}
