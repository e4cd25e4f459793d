//! Search over what is shown of repositories. An index holds the name of each package and of its text every piece of one to three
//! characters, so that any part of a word is found by it; what it finds is judged by the text itself. It follows the commits by a
//! queue, which a search empties first as far as it is short.

mod grams;
mod indexer;
mod statement;

use crate::boxed;
use crate::db::{Row, Value};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId};
use crate::store::Store;
use statement::{Tier, statement};

/// Where a page of a search ends, and the next begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchPlace {
    /// Whether all names that begin with what is looked for are behind it.
    pub beyond_prefixes: bool,
    /// The package's name in lower case.
    pub folded: String,
    /// Where the package is.
    pub repository: RepositoryId,
    /// Its name.
    pub name: String,
}

/// Which repositories somebody may read.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Readable {
    /// All of the organization.
    pub all: bool,
    /// These; public ones besides.
    pub these: Vec<RepositoryId>,
}

/// What is looked for, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SearchQuery {
    /// In its repositories alone.
    pub organization: OrganizationId,
    /// In those of them that the asker may read.
    pub readable: Readable,
    /// Words, each of which must stand in the name, the summary or the keywords. All packages where there is none.
    pub text: String,
    /// In repositories of this format.
    pub format: Option<String>,
    /// In this repository.
    pub repository: Option<RepositoryId>,
    /// Behind this place.
    pub after: Option<SearchPlace>,
    /// At most so many.
    pub limit: u32,
}

/// A package that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundPackage {
    /// Where it stands among what is found.
    pub place: SearchPlace,
    /// The repository's name.
    pub repository_name: String,
    /// The repository's format.
    pub format: String,
    /// The version that was published last.
    pub latest: Option<String>,
    /// That one's summary.
    pub summary: String,
    /// That one's state.
    pub state: String,
    /// When it was published, in ms since 1970.
    pub updated_at: Option<u64>,
    /// How many versions there are.
    pub versions: u64,
}

/// How many packages are walked through by name before the index of texts is asked: what is frequent is found so.
const WALKED: u32 = 2_000;
/// Changes that a search itself takes into the index.
const CAUGHT_UP: u32 = 500;

impl Store {
    /// Packages that match, those whose name begins with the text first (so one whose name it is before all), each group by name.
    /// Costs a bounded number of statements, each of which seeks in an index.
    #[boxed]
    pub async fn search_packages(&self, query: &SearchQuery) -> Result<Vec<FoundPackage>, StoreError> {
        if let Err(problem) = self.index_changes(CAUGHT_UP).await {
            tracing::warn!(%problem, "the index of packages is behind");
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
            // A walk that does not fill the page may have ended early: the index of texts knows the rest, and these too.
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

/// Values of a statement, numbered as they come.
#[derive(Default)]
struct Numbered(Vec<Value>);

impl Numbered {
    /// The placeholder of this value.
    fn add(&mut self, value: impl Into<Value>) -> String {
        self.0.push(value.into());
        format!("${}", self.0.len())
    }
}
