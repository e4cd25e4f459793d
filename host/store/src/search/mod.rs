//! Search over the catalogs of repositories. The index has the name of each package, and every
//! piece of one to three characters of its text. So the index finds any part of a word; a
//! comparison with the text confirms each match.
//!
//! Commits queue their changes, and a task applies the queue to the index. A search itself first
//! applies a few queued changes.

mod grams;
mod indexer;
mod statement;

use crate::boxed;
use crate::db::{Row, Value};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId};
use crate::store::Store;
use statement::{Tier, statement};

/// Position at which a page of a search ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchPlace {
    /// True if all names that begin with the search text are before the position.
    pub beyond_prefixes: bool,
    /// Name of the package in lower case.
    pub folded: String,
    pub repository: RepositoryId,
    /// Name of the package in the format's spelling.
    pub name: String,
}

/// Repositories that a caller may read.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Readable {
    /// True for all repositories of the organization.
    pub all: bool,
    /// Repositories in addition to the public ones.
    pub these: Vec<RepositoryId>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchQuery {
    /// Organization whose repositories are searched.
    pub organization: OrganizationId,
    /// Repositories that the caller may read.
    pub readable: Readable,
    /// Words that must all occur in the name, the summary or the keywords. An empty text matches
    /// all packages.
    pub text: String,
    /// Only repositories of this format.
    pub format: Option<String>,
    /// Restricts the search to this repository.
    pub repository: Option<RepositoryId>,
    /// Start of the page (excluded).
    pub after: Option<SearchPlace>,
    pub limit: u32,
}

/// A package that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundPackage {
    /// Position of the package in the results.
    pub place: SearchPlace,
    pub repository_name: String,
    pub format: String,
    /// Version that was published last.
    pub latest: Option<String>,
    pub summary: String,
    pub state: String,
    /// Publication time of that version, in ms since 1970.
    pub updated_at: Option<u64>,
    pub versions: u64,
}

/// Number of packages to examine by name before the index of texts is used. This finds frequent
/// matches faster.
const WALKED: u32 = 2_000;
/// Queued changes that a search itself applies to the index.
const CAUGHT_UP: u32 = 500;

impl Store {
    /// Matching packages, each group ordered by name. Packages whose name begins with the text come
    /// first, so an exact match is the first result. Costs a bounded number of statements, each
    /// with an index seek.
    #[boxed]
    pub async fn search_packages(&self, query: &SearchQuery) -> Result<Vec<FoundPackage>, StoreError> {
        if let Err(problem) = self.index_changes(CAUGHT_UP).await {
            tracing::warn!(%problem, "search index is behind");
        }
        let words = grams::words(&query.text);
        let mut found = Vec::new();
        for tier in [Tier::Prefix, Tier::Walk(WALKED), Tier::Grams] {
            let missing = query.limit.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
            if missing == 0 || tier.is_done(&words, query.after.as_ref()) {
                continue;
            }
            let (sql, values) = statement(query, &words, tier, missing, self.inner.db.is_shared());
            let rows = self.inner.db.fetch(sql, values).await?;
            let rows: Vec<FoundPackage> =
                rows.iter().map(|row| package(row, tier)).collect::<Result<_, _>>()?;
            // A walk that does not fill the page may have ended early. The index of texts then
            // finds these results again, and the rest.
            if !matches!(tier, Tier::Walk(_)) || rows.len() >= missing as usize {
                found.extend(rows);
            }
        }
        Ok(found)
    }
}

fn package(row: &Row, tier: Tier) -> Result<FoundPackage, StoreError> {
    let mut columns = row.columns();
    let (repository, name) = (RepositoryId(columns.int("repository")?), columns.text("name")?);
    let beyond_prefixes = !matches!(tier, Tier::Prefix);
    let place = SearchPlace { beyond_prefixes, folded: columns.text("folded")?, repository, name };
    Ok(FoundPackage {
        place,
        repository_name: columns.text("repository_name")?,
        format: columns.text("format")?,
        latest: columns.opt_text("latest")?,
        versions: columns.unsigned("versions")?,
        summary: columns.opt_text("summary")?.unwrap_or_default(),
        state: columns.opt_text("state")?.unwrap_or_default(),
        updated_at: columns.opt_int("updated_at")?.and_then(|at| u64::try_from(at).ok()),
    })
}

/// Values of a statement, numbered in order.
#[derive(Default)]
struct Numbered(Vec<Value>);

impl Numbered {
    /// Adds a value and returns its placeholder.
    fn add(&mut self, value: impl Into<Value>) -> String {
        self.0.push(value.into());
        format!("${}", self.0.len())
    }
}
