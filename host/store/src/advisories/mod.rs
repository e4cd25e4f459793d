//! Advisories as rows: what the operator brought in, found by package. What a record says is read by the caller.
//!
//! Each change takes the number of `advisory_changes` on, so that servers see that what they remember is old.

mod change;
mod list;

pub use change::{AdvisoryPut, AdvisoryRow};
pub use list::{AdvisoryFilter, AdvisoryTotals, ListedAdvisory};

use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::store::Store;

/// Advisories of one package that are read; nobody has more.
const OF_PACKAGE: i64 = 5_000;

/// Which advisories there are, as far as it can be told at a glance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdvisoryState {
    /// The number of changes until now; 0 where none was ever brought in.
    pub number: i64,
    /// When the last one was made, in ms since 1970.
    pub changed_at: Option<i64>,
}

/// A package's name as it is looked for, in one spelling for all ecosystems: what any of them holds to be the same name has the same.
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
    /// How often advisories were changed, and when last: cheap enough to be asked every half second.
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

    /// The records that may be about this package of an ecosystem, withdrawn ones left out, by id: names that are spelt alike are found
    /// too.
    #[boxed]
    pub async fn advisories_of(&self, ecosystem: &str, package: &str) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT a.record FROM advisory_packages p JOIN advisories a ON a.id = p.advisory \
                   WHERE p.ecosystem = $1 AND p.folded = $2 AND a.withdrawn IS NULL ORDER BY a.id LIMIT $3";
        let rows = self.inner.db.fetch(sql, values![ecosystem, folded(package), OF_PACKAGE]).await?;
        rows.iter().map(|row| row.columns().text("record")).collect()
    }

    /// The record of this id, whether it was withdrawn or not.
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
