//! Keys alone: one level of a tree, however large the tree.

use super::range::{Range, just_after, next_char, successor};
use super::read::Dated;
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// Most keys of one answer.
pub(super) const MAX_KEYS: u32 = 10_000;
/// So many keys are read in less than a millisecond.
const FEW: i64 = 1000;

pub(crate) const KEYS: &str = "SELECT key, (SELECT p.revision FROM repositories p WHERE p.id = $1) AS at FROM records \
    WHERE repository = $1 AND key >= $2 AND key < $3 ORDER BY key LIMIT $4";

// Each step seeks the first key that is not below what the step before cut off: one seek for each answer. $5: the
// prefix's length in characters, $6: the delimiter, $7: the character after it, $8: the least character of a key.
pub(crate) const LEVEL: &str = "WITH RECURSIVE level (key, step) AS (\
    SELECT (SELECT r.key FROM records r WHERE r.repository = $1 AND r.key >= $2 AND r.key < $3 ORDER BY r.key LIMIT 1), \
        CAST(1 AS BIGINT) \
    UNION ALL \
    SELECT (SELECT r.key FROM records r WHERE r.repository = $1 AND r.key < $3 AND r.key >= \
        CASE WHEN {position}(substr(level.key, CAST($5 AS INTEGER) + 1), $6) > 0 \
        THEN substr(level.key, 1, CAST($5 AS INTEGER) \
            + {position}(substr(level.key, CAST($5 AS INTEGER) + 1), $6) - 1) || $7 \
        ELSE level.key || $8 END \
        ORDER BY r.key LIMIT 1), level.step + 1 \
    FROM level WHERE level.key IS NOT NULL AND level.step < $4) \
    SELECT key FROM level WHERE key IS NOT NULL ORDER BY step";

impl Store {
    /// Keys that begin with `prefix`, in the order of their bytes, after `after`, at most `limit` and 10,000. With a
    /// `delimiter`, what follows its first occurrence beyond `prefix` is cut off (the delimiter stays), and what then is equal
    /// stands once; `after` is then such a cut key. `Invalid` for NUL as a delimiter.
    #[boxed]
    pub async fn keys(
        &self,
        repository: RepositoryId,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<String>, StoreError> {
        Ok(self.dated_keys(repository, prefix, delimiter, after, limit).await?.found)
    }

    /// The same, and of which revision they are; with a `delimiter` that is not known.
    pub(super) async fn dated_keys(
        &self,
        repository: RepositoryId,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Dated<String>, StoreError> {
        let Some(range) = Range::new(prefix, after) else { return Ok(Dated::nothing()) };
        let limit = i64::from(limit.min(MAX_KEYS));
        if limit == 0 {
            return Ok(Dated::nothing());
        }
        let Some(delimiter) = delimiter else {
            let values = values![repository.0, range.from, range.end, limit];
            let rows = match limit <= FEW {
                true => self.inner.db.fetch_few(KEYS, values).await?,
                false => self.inner.db.fetch(KEYS, values).await?,
            };
            return Dated::of(&rows, |row| row.columns().text("key"));
        };
        let (false, Some(next)) = (delimiter == '\0', next_char(delimiter)) else {
            return Err(StoreError::Invalid(
                "a delimiter is a character other than the first and the last".to_owned(),
            ));
        };
        let from = after.map(|after| after_cut(prefix, delimiter, after)).unwrap_or_default();
        let Some(range) = range.starting_at(from) else { return Ok(Dated::nothing()) };
        let length = i64::try_from(prefix.chars().count()).unwrap_or(i64::MAX);
        let sql = LEVEL.replace("{position}", self.inner.db.position_function());
        let (delimiter_text, next, least) = (delimiter.to_string(), next.to_string(), just_after(""));
        let values = values![repository.0, range.from, range.end, limit, length, delimiter_text, next, least];
        let rows = self.inner.db.fetch(sql, values).await?;
        let cut_off = |row: &Row| {
            let key = row.columns().text("key")?;
            Ok(cut(prefix, delimiter, &key).map_or(key.clone(), str::to_owned))
        };
        Ok(Dated { found: rows.iter().map(cut_off).collect::<Result<_, StoreError>>()?, at: None })
    }
}

/// The key up to and with the first delimiter beyond the prefix; none when there is none.
fn cut<'a>(prefix: &str, delimiter: char, key: &'a str) -> Option<&'a str> {
    let rest = key.strip_prefix(prefix)?;
    let end = prefix.len() + rest.find(delimiter)? + delimiter.len_utf8();
    key.get(..end)
}

/// Where what is after this cut key begins.
fn after_cut(prefix: &str, delimiter: char, after: &str) -> String {
    match cut(prefix, delimiter, after) {
        Some(cut) => successor(cut).unwrap_or_default(),
        None => String::new(),
    }
}
