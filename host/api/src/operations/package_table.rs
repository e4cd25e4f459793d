//! Packages of a repository as a table with descriptions and downloads, in the order that the
//! reader chose.

use packhouse_store::{PackageNote, PackageSummary};

use super::packages::{self, Packages, Search};
use super::{Actor, repositories};
use crate::error::ApiError;

/// Maximum number of packages that are sorted, because sorting reads all of them. A larger
/// repository lists its packages by name.
pub const SORTABLE: u32 = 500;

/// Column by which a table is sorted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PackageColumn {
    Name,
    Downloads,
    Published,
}

/// Order of a table. Packages with the same value are in the order of their names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PackageOrder {
    pub column: PackageColumn,
    /// True if the largest or newest value comes first.
    pub descending: bool,
}

#[derive(Clone, Debug, Default)]
pub struct TableRequest {
    /// Words that must all occur in the name, the summary or the keywords; empty for all packages.
    pub words: String,
    /// The [`PackageTable::next`] of the previous page.
    pub after: Option<String>,
    /// `None` for the order of [`packages::list`].
    pub order: Option<PackageOrder>,
    /// Maximum number of rows.
    pub limit: u32,
}

/// Row of the table.
#[derive(Clone, Debug)]
pub struct PackageRow {
    pub summary: PackageSummary,
    pub note: PackageNote,
}

#[derive(Debug)]
pub struct PackageTable {
    pub rows: Vec<PackageRow>,
    /// Start of the next page.
    pub next: Option<String>,
    /// Order of the rows; `None` if no order was requested, or if there are more than [`SORTABLE`]
    /// packages.
    pub order: Option<PackageOrder>,
}

/// Returns a page of the table. The number of store calls does not depend on the number of rows.
/// 400 `invalid_request` for an invalid `after`. Needs read access to the repository.
pub async fn table(actor: &Actor, id: &str, request: TableRequest) -> Result<PackageTable, ApiError> {
    let TableRequest { words, after, order, limit } = request;
    if let Some(order) = order {
        let all = packages::list(actor, id, search(&words, None), SORTABLE).await?;
        if all.next.is_none() {
            let rows = with_notes(actor, id, all.summaries).await?;
            return page(sorted(rows, order), order, after.as_deref(), limit);
        }
    }
    // A position in a sorted table is not a position in the list by name.
    let after = after.filter(|_| order.is_none());
    let Packages { summaries, next } = packages::list(actor, id, search(&words, after), limit).await?;
    Ok(PackageTable { rows: with_notes(actor, id, summaries).await?, next, order: None })
}

fn search(words: &str, after: Option<String>) -> Search {
    match words {
        "" => Search::Names { after: after.unwrap_or_default() },
        words => Search::Words { words: words.to_owned(), after },
    }
}

async fn with_notes(
    actor: &Actor,
    id: &str,
    summaries: Vec<PackageSummary>,
) -> Result<Vec<PackageRow>, ApiError> {
    let repository = repositories::readable(actor, id).await?;
    let names: Vec<String> = summaries.iter().map(|one| one.name.clone()).collect();
    let notes = actor.app.store.package_notes(repository.id, &names).await?;
    Ok(summaries.into_iter().zip(notes).map(|(summary, note)| PackageRow { summary, note }).collect())
}

fn sorted(mut rows: Vec<PackageRow>, order: PackageOrder) -> Vec<PackageRow> {
    rows.sort_by(|one, other| {
        let (first, second) = if order.descending { (other, one) } else { (one, other) };
        let by_column = match order.column {
            PackageColumn::Name => first.summary.name.cmp(&second.summary.name),
            PackageColumn::Downloads => first.note.downloads.cmp(&second.note.downloads),
            PackageColumn::Published => first.summary.updated_at.cmp(&second.summary.updated_at),
        };
        by_column.then_with(|| one.summary.name.cmp(&other.summary.name))
    });
    rows
}

/// Cuts a page out of all sorted rows. Its position is the number of rows before it.
fn page(
    rows: Vec<PackageRow>,
    order: PackageOrder,
    after: Option<&str>,
    limit: u32,
) -> Result<PackageTable, ApiError> {
    let wrong = || ApiError::invalid("The position in the list is invalid. Go back to the first page.");
    let begin = after.map_or(Ok(0), str::parse::<usize>).map_err(|_| wrong())?;
    let end = begin.saturating_add(limit as usize);
    let next = (end < rows.len()).then(|| end.to_string());
    let rows = rows.into_iter().skip(begin).take(limit as usize).collect();
    Ok(PackageTable { rows, next, order: Some(order) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<PackageRow> {
        let row = |name: &str, downloads, updated_at| PackageRow {
            summary: PackageSummary { name: name.to_owned(), updated_at, ..PackageSummary::default() },
            note: PackageNote { downloads, ..PackageNote::default() },
        };
        vec![row("a", 1, Some(3)), row("b", 7, None), row("c", 7, Some(9))]
    }

    fn names(column: PackageColumn, descending: bool) -> String {
        sorted(rows(), PackageOrder { column, descending })
            .iter()
            .map(|row| row.summary.name.as_str())
            .collect()
    }

    #[test]
    fn equal_values_are_in_the_order_of_names() {
        assert_eq!(names(PackageColumn::Name, true), "cba");
        assert_eq!(names(PackageColumn::Downloads, true), "bca");
        assert_eq!(names(PackageColumn::Downloads, false), "abc");
        assert_eq!(names(PackageColumn::Published, true), "cab");
    }

    #[test]
    fn pages_continue_after_each_other() {
        let order = PackageOrder { column: PackageColumn::Name, descending: false };
        let first = page(rows(), order, None, 2).unwrap();
        assert_eq!((first.rows.len(), first.next.as_deref()), (2, Some("2")));
        let last = page(rows(), order, Some("2"), 2).unwrap();
        assert_eq!((last.rows.len(), last.next), (1, None));
        assert!(page(rows(), order, Some("x"), 2).is_err());
    }
}
