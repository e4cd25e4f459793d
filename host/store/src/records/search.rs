//! Search for packages of a repository.

use crate::boxed;
use crate::db::{Value, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::Matches;
use crate::store::Store;

/// Maximum names of one result.
const MAX_MATCHES: u32 = 250;
/// Number of words that are used; further ones are ignored.
const MAX_WORDS: usize = 8;

const WHERE: &str = "FROM packages WHERE repository = $1 AND search LIKE $2 ESCAPE '!' AND search LIKE $3 ESCAPE '!' \
    AND search LIKE $4 ESCAPE '!' AND search LIKE $5 ESCAPE '!' AND search LIKE $6 ESCAPE '!' \
    AND search LIKE $7 ESCAPE '!' AND search LIKE $8 ESCAPE '!' AND search LIKE $9 ESCAPE '!'";
// `search` is the name, a line feed, the summary and the keywords. Names that equal the text come
// first, then names that begin with it, then names that contain it. Packages that match only by
// single words come last.
const ORDER: &str = "ORDER BY CASE WHEN search LIKE $10 ESCAPE '!' THEN 0 WHEN search LIKE $11 ESCAPE '!' THEN 1 \
    WHEN search LIKE $12 ESCAPE '!' THEN 2 ELSE 3 END, name LIMIT $13 OFFSET $14";

impl Store {
    /// Packages whose name, summary or keywords contain every word of `text`, ignoring case, the
    /// best match first. An empty text matches all packages, ordered by name. At most `limit` and
    /// 250 of them, after the first `offset`.
    #[boxed]
    pub async fn search(
        &self,
        repository: RepositoryId,
        text: &str,
        offset: u32,
        limit: u32,
    ) -> Result<Matches, StoreError> {
        let words = words(text);
        let mut matching: Vec<Value> = values![repository.0];
        matching.extend(
            (0..MAX_WORDS)
                .map(|at| Value::from(words.get(at).map_or("%".to_owned(), |word| format!("%{word}%")))),
        );
        let count = format!("SELECT COUNT(*) AS total {WHERE}");
        let row = self.inner.db.fetch_one(count, matching.clone()).await?;
        let total = row.map_or(Ok(0), |row| row.columns().unsigned("total"))?;
        if u64::from(offset) >= total || limit == 0 {
            return Ok(Matches { names: Vec::new(), total });
        }
        let whole = words.join(" ");
        matching.extend(ranks(&whole).map(Value::from));
        matching.extend(values![i64::from(limit.min(MAX_MATCHES)), i64::from(offset)]);
        let rows = self.inner.db.fetch(format!("SELECT name {WHERE} {ORDER}"), matching).await?;
        let names = rows.iter().map(|row| row.columns().text("name")).collect::<Result<_, _>>()?;
        Ok(Matches { names, total })
    }
}

/// Words as patterns of LIKE: in lower case, with special characters escaped.
fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace('\0', " ");
    let escape = |word: &str| word.replace('!', "!!").replace('%', "!%").replace('_', "!_");
    text.split_whitespace().take(MAX_WORDS).map(escape).collect()
}

/// Patterns of names that equal, begin with or contain the whole text.
fn ranks(whole: &str) -> [String; 3] {
    if whole.is_empty() {
        return ["%".to_owned(), "%".to_owned(), "%".to_owned()];
    }
    [format!("{whole}\n%"), format!("{whole}%"), format!("%{whole}%\n%")]
}
