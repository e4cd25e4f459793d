//! Statements of a search. Each statement contains the permissions, so that it never reads rows of
//! repositories that the caller may not read.

use super::grams::{of_words, pattern};
use super::{Numbered, SearchPlace, SearchQuery};
use crate::db::Value;

/// Greater than every continuation of a text.
const END: char = char::MAX;

/// Group of packages that a statement searches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tier {
    /// Names that begin with the text.
    Prefix,
    /// The first names that do not begin with the text, at most this many.
    Walk(u32),
    /// Names that do not begin with the text, found by the index of texts.
    Grams,
}

impl Tier {
    /// True if the group has no results after the position.
    pub(super) fn is_done(self, words: &[String], after: Option<&SearchPlace>) -> bool {
        match self {
            Tier::Prefix => after.is_some_and(|after| after.beyond_prefixes),
            // Every name begins with an empty text.
            Tier::Walk(_) | Tier::Grams => words.is_empty(),
        }
    }
}

/// The statement that finds at most `limit` packages of a group, with its values.
pub(super) fn statement(
    query: &SearchQuery,
    words: &[String],
    tier: Tier,
    limit: u32,
    postgres: bool,
) -> (String, Vec<Value>) {
    let mut values = Numbered::default();
    let found = match tier {
        Tier::Prefix => by_prefix(query, words, limit, &mut values),
        Tier::Walk(most) => by_walk(query, words, limit, most, &mut values),
        Tier::Grams => by_grams(query, words, limit, postgres, &mut values),
    };
    (format!("{DETAILS_BEFORE}{found}{DETAILS_AFTER}"), values.0)
}

/// SQL around the found packages that adds the details of each.
const DETAILS_BEFORE: &str = "SELECT w.repository, w.name, w.folded, w.latest, w.versions, r.name AS repository_name, r.format, \
    v.summary, v.state, COALESCE(v.published, v.shown_at) AS updated_at FROM (SELECT f.repository, f.name, f.folded, \
    (SELECT COUNT(*) FROM versions c WHERE c.repository = f.repository AND c.name = f.name) AS versions, \
    (SELECT l.version FROM versions l WHERE l.repository = f.repository AND l.name = f.name \
     ORDER BY COALESCE(l.published, l.shown_at) DESC, l.version DESC LIMIT 1) AS latest FROM (";
const DETAILS_AFTER: &str = ") f) w JOIN repositories r ON r.id = w.repository \
    LEFT JOIN versions v ON v.repository = w.repository AND v.name = w.name AND v.version = w.latest \
    ORDER BY w.folded, w.repository, w.name";

const COLUMNS: &str = "SELECT d.repository, d.name, d.folded";
const PACKAGE: &str = "JOIN packages p ON p.repository = d.repository AND p.name = d.name";
const ORDER: &str = "ORDER BY d.folded, d.repository, d.name";

fn by_prefix(query: &SearchQuery, words: &[String], limit: u32, values: &mut Numbered) -> String {
    let whole = words.join(" ");
    let organization = values.add(query.organization.0);
    // The index seeks this bound: the start of the page, or of the prefix.
    let first = query.after.as_ref().map_or("", |after| after.folded.as_str()).max(&whole);
    let (from, to) = (values.add(first), values.add(format!("{whole}{END}")));
    let (behind, readable) = (behind(query, query.after.as_ref(), values), readable(query, values));
    let limit = values.add(i64::from(limit));
    format!(
        "{COLUMNS} FROM search_documents d {PACKAGE} WHERE d.organization = {organization} AND d.folded >= {from} \
         AND d.folded < {to}{behind} AND {readable} {ORDER} LIMIT {limit}"
    )
}

fn by_walk(query: &SearchQuery, words: &[String], limit: u32, most: u32, values: &mut Numbered) -> String {
    let organization = values.add(query.organization.0);
    let (behind, readable) = (rest_behind(query, values), readable(query, values));
    let most = values.add(i64::from(most));
    let matching = matching("f", words, values);
    let limit = values.add(i64::from(limit));
    format!(
        "SELECT f.repository, f.name, f.folded FROM ({COLUMNS} FROM search_documents d \
         WHERE d.organization = {organization}{behind} AND {readable} {ORDER} LIMIT {most}) f \
         JOIN packages p ON p.repository = f.repository AND p.name = f.name WHERE {matching} \
         ORDER BY f.folded, f.repository, f.name LIMIT {limit}"
    )
}

fn by_grams(
    query: &SearchQuery,
    words: &[String],
    limit: u32,
    postgres: bool,
    values: &mut Numbered,
) -> String {
    let pieces = of_words(words);
    let matches = if postgres {
        format!("g.grams @@ CAST({} AS TSQUERY)", values.add(pieces.join(" & ")))
    } else {
        format!("search_grams MATCH {}", values.add(pieces.join(" ")))
    };
    let organization = values.add(query.organization.0);
    let (behind, readable) = (rest_behind(query, values), readable(query, values));
    let matching = matching("d", words, values);
    let limit = values.add(i64::from(limit));
    // CROSS makes SQLite join in this order. Otherwise SQLite would scan all documents by name and
    // search the index again for each document.
    let (from, join) = if postgres { ("search_grams g", "JOIN") } else { ("search_grams", "CROSS JOIN") };
    let row = if postgres { "g.rowid" } else { "search_grams.rowid" };
    format!(
        "{COLUMNS} FROM {from} {join} search_documents d ON d.id = {row} {PACKAGE} WHERE {matches} \
         AND d.organization = {organization}{behind} AND {readable} AND {matching} {ORDER} LIMIT {limit}"
    )
}

/// Condition that the text contains all words, and that the name does not begin with the search
/// text.
fn matching(of: &str, words: &[String], values: &mut Numbered) -> String {
    let whole = words.join(" ");
    let (from, to) = (values.add(whole.as_str()), values.add(format!("{whole}{END}")));
    let mut conditions = vec![format!("NOT ({of}.folded >= {from} AND {of}.folded < {to})")];
    for word in words {
        conditions.push(format!("p.search LIKE {} ESCAPE '!'", values.add(pattern(word))));
    }
    conditions.join(" AND ")
}

/// Condition for results after the position, if that is beyond the names that begin with the search
/// text.
fn rest_behind(query: &SearchQuery, values: &mut Numbered) -> String {
    let Some(after) = query.after.as_ref().filter(|after| after.beyond_prefixes) else {
        return String::new();
    };
    let from = values.add(after.folded.as_str());
    format!(" AND d.folded >= {from}{}", behind(query, Some(after), values))
}

fn behind(query: &SearchQuery, after: Option<&SearchPlace>, values: &mut Numbered) -> String {
    let Some(SearchPlace { folded, repository, name, .. }) = after else { return String::new() };
    let folded = values.add(folded.as_str());
    if query.repository.is_some() {
        return format!(" AND (d.folded, d.name) > ({folded}, {})", values.add(name.as_str()));
    }
    let repository = values.add(repository.0);
    format!(" AND (d.folded, d.repository, d.name) > ({folded}, {repository}, {})", values.add(name.as_str()))
}

/// Condition that the package is in a searched repository that the caller may read.
fn readable(query: &SearchQuery, values: &mut Numbered) -> String {
    let organization = values.add(query.organization.0);
    let mut conditions = vec![format!("r.organization = {organization} AND r.deleted_at IS NULL")];
    if !query.readable.all {
        let these: Vec<String> = query.readable.these.iter().map(|id| values.add(id.0)).collect();
        conditions.push(match these.is_empty() {
            true => "r.public = 1".to_owned(),
            false => format!("(r.public = 1 OR r.id IN ({}))", these.join(",")),
        });
    }
    if let Some(format) = &query.format {
        conditions.push(format!("r.format = {}", values.add(format.as_str())));
    }
    let Some(repository) = query.repository else {
        // The plus prevents SQLite from scanning one repository after the other, because the
        // results must be in the order of all names.
        return format!(
            "+d.repository IN (SELECT r.id FROM repositories r WHERE {})",
            conditions.join(" AND ")
        );
    };
    let repository = values.add(repository.0);
    conditions.push(format!("r.id = {repository}"));
    let there = format!("EXISTS (SELECT 1 FROM repositories r WHERE {})", conditions.join(" AND "));
    format!("d.repository = {repository} AND {there}")
}

#[cfg(test)]
mod tests {
    use super::super::{Readable, grams};
    use super::*;
    use crate::config::StoreConfig;
    use crate::db::Database;
    use crate::ids::{OrganizationId, RepositoryId};

    /// Each page is found by an index seek; no table is scanned.
    #[tokio::test]
    async fn every_page_seeks() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&StoreConfig::new(folder.path())).await.unwrap();
        let place = SearchPlace {
            beyond_prefixes: true,
            folded: "lib".to_owned(),
            repository: RepositoryId(1),
            name: "Lib".to_owned(),
        };
        let words = grams::words("lib for all");
        for (after, repository) in
            [(None, None), (Some(place.clone()), None), (Some(place), Some(RepositoryId(1)))]
        {
            let query = SearchQuery {
                organization: OrganizationId(1),
                readable: Readable { all: false, these: vec![RepositoryId(1), RepositoryId(2)] },
                text: "lib for all".to_owned(),
                format: Some("npm".to_owned()),
                repository,
                after,
                limit: 50,
            };
            for tier in [Tier::Prefix, Tier::Walk(2_000), Tier::Grams] {
                let (sql, values) = statement(&query, &words, tier, 50, false);
                let rows = database.fetch(format!("EXPLAIN QUERY PLAN {sql}"), values).await.unwrap();
                let plan: Vec<String> =
                    rows.iter().map(|row| row.columns().text("detail").unwrap()).collect();
                let scans = |step: &&String| {
                    let of = step.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next());
                    of.is_some_and(|table| !["f", "w", "search_grams"].contains(&table))
                };
                assert_eq!(plan.iter().find(scans), None, "{tier:?} {sql}\n{plan:#?}");
                // The step that finds the documents comes before the steps for each document.
                let first = plan.iter().find(|step| step.starts_with("S") && !step.starts_with("SEARCH r"));
                let seeks = match tier {
                    Tier::Prefix | Tier::Walk(_) => "SEARCH d USING ",
                    Tier::Grams => "SCAN search_grams VIRTUAL TABLE INDEX",
                };
                assert!(first.is_some_and(|step| step.starts_with(seeks)), "{tier:?}\n{plan:#?}");
            }
        }
        database.close().await;
    }
}
