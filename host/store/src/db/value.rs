//! Values of statements and rows of results, for both databases.

use std::borrow::Cow;

use bytes::Bytes;
use sqlx::postgres::PgRow;
use sqlx::{Column, Row as _};

use super::local_row::LocalRow;
use crate::error::StoreError;

/// SQL text. It never contains external input, which is bound as values.
pub(crate) type Sql = Cow<'static, str>;

/// Value of a `$n` placeholder.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

macro_rules! from {
    ($($from:ty => $variant:ident($value:ident) $convert:expr;)*) => {$(
        impl From<$from> for Value {
            fn from($value: $from) -> Value {
                Value::$variant($convert)
            }
        }
    )*};
}

from! {
    i64 => Int(value) Some(value);
    Option<i64> => Int(value) value;
    bool => Int(value) Some(i64::from(value));
    &str => Text(value) Some(value.to_owned());
    String => Text(value) Some(value);
    Option<&str> => Text(value) value.map(str::to_owned);
    Option<String> => Text(value) value;
    &[u8] => Bytes(value) Some(value.to_vec());
    Vec<u8> => Bytes(value) Some(value);
    &[u8; 32] => Bytes(value) Some(value.to_vec());
    Option<&[u8]> => Bytes(value) value.map(<[u8]>::to_vec);
}

/// Creates the values of a statement in the order of its `$n` placeholders.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::db::Value::from($value)),*] };
}
pub(crate) use values;

pub(crate) enum Row {
    Local(LocalRow),
    Postgres(PgRow),
}

impl Row {
    /// Returns the columns by their names.
    pub(crate) fn columns(&self) -> Columns<'_> {
        Columns { row: self, table: "", next: 0 }
    }

    /// Returns the columns that [`columns_of`] named for this table.
    pub(crate) fn columns_of(&self, table: &'static str) -> Columns<'_> {
        Columns { row: self, table, next: 0 }
    }

    /// Returns the row of a LEFT JOIN from a table whose columns [`columns_of`] named; `None` if
    /// its `id` is NULL.
    pub(crate) fn joined<T>(
        &self,
        table: &'static str,
        read: impl FnOnce(&mut Columns<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut columns = self.columns_of(table);
        let there = columns.opt_int("id")?.is_some();
        // `read` begins with the column `id` again.
        columns.next = columns.next.saturating_sub(1);
        if there { read(&mut columns).map(Some) } else { Ok(None) }
    }

    /// Returns the bytes of a column, without a copy for SQLite; `None` for NULL.
    pub(crate) fn into_bytes(self, column: &str) -> Result<Option<Bytes>, StoreError> {
        let position = self.columns().find(column)?;
        match self {
            Row::Local(row) => row.into_vec(position).map_err(unreadable),
            Row::Postgres(row) => row.try_get(position).map_err(unreadable),
        }
        .map(|found: Option<Vec<u8>>| found.map(Bytes::from))
    }

    fn len(&self) -> usize {
        match self {
            Row::Local(row) => row.len(),
            Row::Postgres(row) => row.len(),
        }
    }

    /// Returns whether the column at this position has this name in this table.
    fn is_named(&self, position: usize, table: &str, name: &str) -> bool {
        let found = match self {
            Row::Local(row) => row.name(position),
            Row::Postgres(row) => row.columns().get(position).map(Column::name),
        };
        let Some(found) = found else { return false };
        if table.is_empty() {
            return found == name;
        }
        found.strip_prefix(table).and_then(|rest| rest.strip_prefix('_')) == Some(name)
    }
}

/// Returns the column list of a table with the alias `t`, such as `t.id AS t_id, t.name AS t_name`.
/// The prefix distinguishes these columns from those of other tables. [`Row::columns_of`] reads
/// them.
pub(crate) fn columns_of(table: &str, names: &[&str]) -> String {
    let named: Vec<String> = names.iter().map(|name| format!("{table}.{name} AS {table}_{name}")).collect();
    named.join(", ")
}

/// Reader of a row's columns by name.
///
/// It searches for a name after the last column that was read, and then from the first column.
/// Reads in the order of the statement cost one comparison for each column; another order is only
/// slower.
pub(crate) struct Columns<'a> {
    row: &'a Row,
    /// Alias of the table; empty for columns without a prefix.
    table: &'static str,
    next: usize,
}

macro_rules! read {
    ($($name:ident -> $type:ty;)*) => {$(
        pub(crate) fn $name(&mut self, column: &str) -> Result<$type, StoreError> {
            let position = self.find(column)?;
            self.next = position + 1;
            match self.row {
                Row::Local(row) => row.get(position).map_err(unreadable),
                Row::Postgres(row) => row.try_get(position).map_err(unreadable),
            }
        }
    )*};
}

impl Columns<'_> {
    read! {
        int -> i64;
        opt_int -> Option<i64>;
        text -> String;
        opt_text -> Option<String>;
        vec -> Vec<u8>;
        opt_vec -> Option<Vec<u8>>;
    }

    /// Returns the position of the column with this name. `Corrupt` if it does not exist, and in
    /// debug builds also if there are two.
    fn find(&self, name: &str) -> Result<usize, StoreError> {
        let mut found = (self.next..self.row.len())
            .chain(0..self.next)
            .filter(|position| self.row.is_named(*position, self.table, name));
        let first = found.next().ok_or_else(|| self.wrong(name, "no column"))?;
        if cfg!(debug_assertions) && found.next().is_some() {
            return Err(self.wrong(name, "two columns"));
        }
        Ok(first)
    }

    fn wrong(&self, name: &str, what: &str) -> StoreError {
        let separator = if self.table.is_empty() { "" } else { "_" };
        StoreError::Corrupt(format!("a row of the database has {what} `{}{separator}{name}`", self.table))
    }

    pub(crate) fn bytes(&mut self, column: &str) -> Result<Bytes, StoreError> {
        self.vec(column).map(Bytes::from)
    }

    pub(crate) fn bool(&mut self, column: &str) -> Result<bool, StoreError> {
        Ok(self.int(column)? != 0)
    }

    /// Returns a number that is never negative.
    pub(crate) fn unsigned(&mut self, column: &str) -> Result<u64, StoreError> {
        let number = self.int(column)?;
        u64::try_from(number)
            .map_err(|_| StoreError::Corrupt(format!("a negative number in the database: {number}")))
    }

    /// Returns a digest of 32 bytes.
    pub(crate) fn hash(&mut self, column: &str) -> Result<[u8; 32], StoreError> {
        let bytes = self.vec(column)?;
        bytes.try_into().map_err(|_| StoreError::Corrupt("a hash in the database is not 32 bytes".to_owned()))
    }
}

fn unreadable(problem: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("a row of the database: {problem}"))
}

/// Returns the number as a BIGINT. Larger numbers do not occur, but must not wrap around.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StoreConfig;
    use crate::db::Database;

    async fn row(sql: &'static str) -> Row {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&StoreConfig::new(folder.path())).await.unwrap();
        let row = database.fetch_one(sql, values![]).await.unwrap().unwrap();
        database.close().await;
        row
    }

    fn corrupt<T>(read: Result<T, StoreError>) -> String {
        match read {
            Err(StoreError::Corrupt(what)) => what,
            _ => String::new(),
        }
    }

    #[tokio::test]
    async fn columns_are_read_by_name_in_any_order() {
        let row = row("SELECT 1 AS one, 'b' AS two, 3 AS three").await;
        let mut columns = row.columns();
        assert_eq!(columns.int("three").unwrap(), 3);
        assert_eq!(columns.text("two").unwrap(), "b");
        assert_eq!(columns.unsigned("one").unwrap(), 1);
        assert!(columns.bool("one").unwrap());
    }

    #[tokio::test]
    async fn a_wrong_name_is_an_error() {
        let row = row("SELECT 1 AS one, 2 AS t_two, 3 AS double, 4 AS double").await;
        assert_eq!(corrupt(row.columns().int("on")), "a row of the database has no column `on`");
        assert_eq!(corrupt(row.columns().int("two")), "a row of the database has no column `two`");
        assert_eq!(corrupt(row.columns_of("t").int("one")), "a row of the database has no column `t_one`");
        assert_eq!(corrupt(row.joined("t", |_| Ok(()))), "a row of the database has no column `t_id`");
        if cfg!(debug_assertions) {
            assert_eq!(
                corrupt(row.columns().int("double")),
                "a row of the database has two columns `double`"
            );
        }
    }

    #[tokio::test]
    async fn tables_of_a_join_stay_apart() {
        let row =
            row("SELECT 1 AS t_id, 'a' AS t_name, NULL AS m_id, NULL AS m_name, 2 AS token, 3 AS id").await;
        let read = |columns: &mut Columns<'_>| Ok((columns.int("id")?, columns.text("name")?));
        assert_eq!(row.joined("t", read).unwrap(), Some((1, "a".to_owned())));
        assert_eq!(row.joined("m", read).unwrap(), None);
        assert_eq!(row.columns().int("id").unwrap(), 3);
    }

    #[test]
    fn columns_carry_their_tables_name() {
        assert_eq!(columns_of("t", &["id", "name"]), "t.id AS t_id, t.name AS t_name");
    }
}
