//! Lists of keys. With a delimiter, a list has one level of a tree, at a cost independent of the
//! tree's size.

use super::range::{Range, just_after, next_char, successor};
use super::read::Dated;
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// Maximum keys of one result.
pub(super) const MAX_KEYS: u32 = 10_000;
/// Number of keys that one statement reads in less than a millisecond.
const FEW: i64 = 1000;

pub(crate) const KEYS: &str = "SELECT key, (SELECT p.revision FROM repositories p WHERE p.id = $1) AS at FROM records \
    WHERE repository = $1 AND key >= $2 AND key < $3 ORDER BY key LIMIT $4";

// Each step seeks the first key after the common prefix that the previous step cut off: one seek
// for each result. $5: length of the prefix in characters, $6: delimiter, $7: character after it,
// $8: least character of a key.
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
    /// Keys that begin with `prefix` and come after `after`, in byte order, at most `limit` and
    /// 10,000.
    ///
    /// With a `delimiter`, each key is cut after its first occurrence beyond `prefix` (the
    /// delimiter stays), and equal results are merged. Pass a cut key as `after` then. `Invalid`
    /// for NUL as a delimiter.
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

    /// Lists keys with their revision, as [`Store::keys`]. With a `delimiter` the revision is
    /// unknown.
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
                "a delimiter must not be the first or the last character".to_owned(),
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

/// Key up to and including the first delimiter beyond the prefix; `None` without a delimiter.
fn cut<'a>(prefix: &str, delimiter: char, key: &'a str) -> Option<&'a str> {
    let rest = key.strip_prefix(prefix)?;
    let end = prefix.len() + rest.find(delimiter)? + delimiter.len_utf8();
    key.get(..end)
}

/// Start of the keys after this cut key.
fn after_cut(prefix: &str, delimiter: char, after: &str) -> String {
    match cut(prefix, delimiter, after) {
        Some(cut) => successor(cut).unwrap_or_default(),
        None => String::new(),
    }
}
