//! Package names that repositories hold, in the catalog or in the keys of records.

use std::collections::BTreeSet;

use crate::boxed;
use crate::db::Value;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::range::Range;
use crate::store::Store;

/// Packages looked up in one statement.
const NAMES: usize = 1_000;
/// Packages looked up in one statement that also searches records. Each package is then a part of
/// the statement.
const PARTS: usize = 100;

/// A package, and the prefixes of record keys by which a repository also holds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PackageName {
    /// Name of the package in the catalog.
    pub name: String,
    /// Prefixes of record keys; empty if the catalog is sufficient.
    pub keys: Vec<String>,
}

impl Store {
    /// Returns the packages that one of the repositories holds. A look-up costs one index seek for
    /// each package and repository. One statement handles up to a thousand packages (a hundred with
    /// keys). No statement runs if either list is empty.
    #[boxed]
    pub async fn held_names(
        &self,
        repositories: &[RepositoryId],
        packages: &[PackageName],
    ) -> Result<BTreeSet<String>, StoreError> {
        let mut held = BTreeSet::new();
        if repositories.is_empty() {
            return Ok(held);
        }
        // No database stores text with NUL, so such a name cannot exist.
        let possible = packages.iter().filter(|package| !package.name.contains('\0'));
        let (with_keys, plain): (Vec<&PackageName>, Vec<&PackageName>) =
            possible.partition(|package| !package.keys.is_empty());
        for page in plain.chunks(NAMES) {
            let mut values: Vec<Value> = repositories.iter().map(|id| Value::from(id.0)).collect();
            values.extend(page.iter().map(|package| Value::from(package.name.as_str())));
            let rows = self.inner.db.fetch(catalog_sql(repositories.len(), page.len()), values).await?;
            for row in &rows {
                held.insert(row.columns().text("name")?);
            }
        }
        for page in with_keys.chunks(PARTS) {
            let mut statement = HeldNamesQuery::new(repositories);
            page.iter().enumerate().for_each(|(at, package)| statement.add(at, package));
            let rows = self.inner.db.fetch(statement.sql, statement.values).await?;
            for row in &rows {
                let at = usize::try_from(row.columns().int("number")?).unwrap_or(usize::MAX);
                held.extend(page.get(at).map(|package| package.name.clone()));
            }
        }
        Ok(held)
    }
}

/// SQL that looks up `names` names in the catalogs of `repositories` repositories.
pub(crate) fn catalog_sql(repositories: usize, names: usize) -> String {
    let (repositories, names) = (places(1, repositories), places(repositories + 1, names));
    format!("SELECT DISTINCT name FROM packages WHERE repository IN ({repositories}) AND name IN ({names})")
}

fn places(from: usize, count: usize) -> String {
    let places: Vec<String> = (from..from + count).map(|at| format!("${at}")).collect();
    places.join(",")
}

/// Statement that looks up packages by catalog and records. It returns the numbers of the held
/// packages.
pub(crate) struct HeldNamesQuery {
    pub(crate) sql: String,
    values: Vec<Value>,
    repositories: String,
}

impl HeldNamesQuery {
    pub(crate) fn new(repositories: &[RepositoryId]) -> Self {
        let values = repositories.iter().map(|id| Value::from(id.0)).collect();
        Self { sql: String::new(), values, repositories: places(1, repositories.len()) }
    }

    pub(crate) fn add(&mut self, number: usize, package: &PackageName) {
        let repositories = self.repositories.clone();
        let mut place = |value: Value| {
            self.values.push(value);
            format!("${}", self.values.len())
        };
        let name = place(Value::from(package.name.as_str()));
        let mut held =
            format!("EXISTS (SELECT 1 FROM packages WHERE repository IN ({repositories}) AND name = {name})");
        for range in package.keys.iter().filter_map(|prefix| Range::new(prefix, None)) {
            let (from, end) = (place(Value::from(range.from)), place(Value::from(range.end)));
            held += &format!(
                " OR EXISTS (SELECT 1 FROM records WHERE repository IN ({repositories}) AND key >= {from} AND key < {end})"
            );
        }
        let union = if self.sql.is_empty() { "" } else { " UNION ALL " };
        self.sql += &format!("{union}SELECT CAST({number} AS BIGINT) AS number WHERE {held}");
    }
}
