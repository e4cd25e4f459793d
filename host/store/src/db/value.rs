//! Values that go into a statement and rows that come out of it, the same for both databases.

use bytes::Bytes;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments, Row as _};

use crate::error::StoreError;

/// What a `$n` stands for.
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

/// The values of a statement in the order of its `$n`.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::db::Value::from($value)),*] };
}
pub(crate) use values;

pub(super) fn sqlite_arguments(values: Vec<Value>) -> Result<SqliteArguments, StoreError> {
    let mut arguments = SqliteArguments::default();
    for value in values {
        let added = match value {
            Value::Int(value) => arguments.add(value),
            Value::Text(value) => arguments.add(value),
            Value::Bytes(value) => arguments.add(value),
        };
        added.map_err(StoreError::database)?;
    }
    Ok(arguments)
}

pub(super) fn postgres_arguments(values: Vec<Value>) -> Result<PgArguments, StoreError> {
    let mut arguments = PgArguments::default();
    for value in values {
        let added = match value {
            Value::Int(value) => arguments.add(value),
            Value::Text(value) => arguments.add(value),
            Value::Bytes(value) => arguments.add(value),
        };
        added.map_err(StoreError::database)?;
    }
    Ok(arguments)
}

/// A row of an answer.
pub(crate) enum Row {
    Sqlite(SqliteRow),
    Postgres(PgRow),
}

impl Row {
    /// Its columns, to be taken in their order.
    pub(crate) fn columns(&self) -> Columns<'_> {
        Columns { row: self, next: 0 }
    }
}

/// Takes the columns of a row one after the other.
pub(crate) struct Columns<'a> {
    row: &'a Row,
    next: usize,
}

macro_rules! take {
    ($($(#[$doc:meta])* $name:ident -> $type:ty;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(&mut self) -> Result<$type, StoreError> {
            let column = self.next;
            self.next += 1;
            match self.row {
                Row::Sqlite(row) => row.try_get(column),
                Row::Postgres(row) => row.try_get(column),
            }
            .map_err(|problem| StoreError::Corrupt(format!("a row of the database: {problem}")))
        }
    )*};
}

impl Columns<'_> {
    take! {
        int -> i64;
        opt_int -> Option<i64>;
        text -> String;
        opt_text -> Option<String>;
        vec -> Vec<u8>;
        opt_vec -> Option<Vec<u8>>;
    }

    /// Passes over columns.
    pub(crate) fn skip(&mut self, columns: usize) {
        self.next += columns;
    }

    /// What a LEFT JOIN found: an identifier, or NULL, and then as many columns.
    pub(crate) fn optional<T>(
        &mut self,
        columns: usize,
        take: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        if self.opt_int()?.is_some() {
            return take(self).map(Some);
        }
        self.skip(columns);
        Ok(None)
    }

    pub(crate) fn bytes(&mut self) -> Result<Bytes, StoreError> {
        self.vec().map(Bytes::from)
    }

    pub(crate) fn bool(&mut self) -> Result<bool, StoreError> {
        Ok(self.int()? != 0)
    }

    /// A number that is never negative.
    pub(crate) fn unsigned(&mut self) -> Result<u64, StoreError> {
        let number = self.int()?;
        u64::try_from(number)
            .map_err(|_| StoreError::Corrupt(format!("a negative number in the database: {number}")))
    }

    /// A digest of 32 bytes.
    pub(crate) fn hash(&mut self) -> Result<[u8; 32], StoreError> {
        let bytes = self.vec()?;
        bytes.try_into().map_err(|_| StoreError::Corrupt("a hash in the database is not 32 bytes".to_owned()))
    }
}

/// As the database counts: BIGINT. What is larger does not occur, but must not wrap around.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
