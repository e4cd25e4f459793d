use std::sync::Arc;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, Value as SqliteValue};

pub(crate) struct LocalRow {
    pub(super) names: Arc<[String]>,
    pub(super) values: Vec<SqliteValue>,
}

impl LocalRow {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn name(&self, position: usize) -> Option<&str> {
        self.names.get(position).map(String::as_str)
    }

    /// Returns the length of a text or blob in bytes; 0 for any other value.
    pub(super) fn bytes(&self, position: usize) -> u64 {
        match self.values.get(position) {
            Some(SqliteValue::Text(text)) => text.len() as u64,
            Some(SqliteValue::Blob(bytes)) => bytes.len() as u64,
            _ => 0,
        }
    }

    /// Returns the bytes of a column; `None` for NULL.
    pub(super) fn into_vec(self, position: usize) -> FromSqlResult<Option<Vec<u8>>> {
        match self.values.into_iter().nth(position) {
            Some(SqliteValue::Blob(bytes)) => Ok(Some(bytes)),
            Some(SqliteValue::Null) => Ok(None),
            _ => Err(FromSqlError::InvalidType),
        }
    }

    pub(super) fn get<T: FromSql>(&self, position: usize) -> FromSqlResult<T> {
        T::column_result(self.values.get(position).ok_or(FromSqlError::InvalidType)?.into())
    }
}
