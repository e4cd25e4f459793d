//! Table of the packages of a repository. The headings of its columns are links that sort it.

use maud::{Markup, html};
use packhouse_api::operations::package_table::{PackageColumn, PackageOrder, PackageRow, PackageTable};

use crate::{dates, parts};

/// Maximum rows of a page.
pub(super) const ROWS: u32 = 30;
/// Maximum characters of a description. The page of the package shows more.
const MAX_CHARACTERS: usize = 100;

/// The repository, the filter and the headings of a table of packages.
pub(super) struct TableView<'a> {
    /// Name of the repository that contains the packages.
    pub(super) repository: &'a str,
    /// Words of the filter; empty for all packages.
    pub(super) words: &'a str,
    /// `true` if the headings are links that sort the table.
    pub(super) sortable: bool,
}

/// Parses the order in the query: a column, with a minus sign before it if the largest or newest
/// value comes first. `None` for anything else.
pub(super) fn parse_order(text: &str) -> Option<PackageOrder> {
    let column = match text.trim_start_matches('-') {
        "name" => PackageColumn::Name,
        "downloads" => PackageColumn::Downloads,
        "published" => PackageColumn::Published,
        _ => return None,
    };
    Some(PackageOrder { column, descending: text.starts_with('-') })
}

/// Formats an order as [`parse_order`] reads it.
pub(super) fn order_text(order: PackageOrder) -> String {
    let column = match order.column {
        PackageColumn::Name => "name",
        PackageColumn::Downloads => "downloads",
        PackageColumn::Published => "published",
    };
    format!("{}{column}", if order.descending { "-" } else { "" })
}

/// Builds the table with a row for each package of this page.
pub(super) fn table(view: &TableView<'_>, list: &PackageTable) -> Markup {
    // Without an order and without words, the packages are listed by name.
    let by_name = PackageOrder { column: PackageColumn::Name, descending: false };
    let order = list.order.or(view.words.is_empty().then_some(by_name));
    html! {
        div.scroll role="region" aria-label="Packages" tabindex="0" {
            table.packages {
                thead {
                    tr {
                        (heading(view, order, PackageColumn::Name, "Name"))
                        th scope="col" { "Latest" }
                        th scope="col" { "Description" }
                        (heading(view, order, PackageColumn::Downloads, "Downloads (30 days)"))
                        (heading(view, order, PackageColumn::Published, "Published"))
                    }
                }
                tbody { @for row in &list.rows { (one(view.repository, row)) } }
            }
        }
    }
}

/// Builds the heading of a column that sorts the table, or reverses the order that it has.
fn heading(view: &TableView<'_>, order: Option<PackageOrder>, column: PackageColumn, title: &str) -> Markup {
    let here = order.filter(|order| order.column == column);
    let descending = here.map_or(column != PackageColumn::Name, |order| !order.descending);
    let direction = here.map(|order| if order.descending { "descending" } else { "ascending" });
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    if !view.words.is_empty() {
        query.append_pair("q", view.words);
    }
    query.append_pair("sort", &order_text(PackageOrder { column, descending }));
    html! {
        th scope="col" aria-sort=[direction] {
            @if view.sortable { a href={ (parts::repository(view.repository)) "?" (query.finish()) } { (title) } } @else { (title) }
        }
    }
}

fn one(repository: &str, row: &PackageRow) -> Markup {
    let PackageRow { summary, note } = row;
    html! {
        tr {
            th scope="row" { a href=(parts::package(repository, &summary.name)) { (parts::isolated(&summary.name)) } }
            td {
                @if let Some(latest) = &summary.latest {
                    a href=(parts::version(repository, &summary.name, latest)) { (parts::short(latest)) }
                }
                @if !note.state.is_empty() { " " (parts::tag(&note.state)) }
            }
            td { (brief(&note.summary)) }
            td.num { (note.downloads) }
            td.tight { @if let Some(at) = summary.updated_at { (dates::unsigned_time(at)) } }
        }
    }
}

/// The beginning of a description.
fn brief(text: &str) -> Markup {
    match text.char_indices().nth(MAX_CHARACTERS) {
        None => parts::isolated(text),
        Some((end, _)) => html! { bdi { (text.get(..end).unwrap_or_default()) "…" } },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_as_it_is_written() {
        for text in ["name", "-name", "downloads", "-downloads", "published", "-published"] {
            assert_eq!(parse_order(text).map(order_text).as_deref(), Some(text));
        }
        assert_eq!(parse_order(""), None);
        assert_eq!(parse_order("-size"), None);
    }

    #[test]
    fn the_heading_of_the_sorted_column_reverses_it() {
        let view = TableView { repository: "lib", words: "a&b", sortable: true };
        let order = parse_order("-downloads");
        let html = heading(&view, order, PackageColumn::Downloads, "Downloads").into_string();
        assert!(html.contains("aria-sort=\"descending\""), "{html}");
        assert!(html.contains("?q=a%26b&amp;sort=downloads\""), "{html}");
        let html = heading(&view, order, PackageColumn::Published, "Published").into_string();
        assert!(!html.contains("aria-sort") && html.contains("sort=-published\""), "{html}");
    }
}
