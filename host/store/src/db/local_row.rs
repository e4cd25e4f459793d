//! Rows of SQLite.

use std::sync::Arc;

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, Value as Found};

/// A row of an answer.
pub(crate) struct LocalRow {
    pub(super) names: Arc<[String]>,
    pub(super) values: Vec<Found>,
}

impl LocalRow {
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn name(&self, position: usize) -> Option<&str> {
        self.names.get(position).map(String::as_str)
    }

    /// Bytes of a text or of bytes; 0 of anything else.
    pub(super) fn bytes(&self, position: usize) -> u64 {
        match self.values.get(position) {
            Some(Found::Text(text)) => text.len() as u64,
            Some(Found::Blob(bytes)) => bytes.len() as u64,
            _ => 0,
        }
    }

    /// The bytes of a column; none of a NULL.
    pub(super) fn into_vec(self, position: usize) -> FromSqlResult<Option<Vec<u8>>> {
        match self.values.into_iter().nth(position) {
            Some(Found::Blob(bytes)) => Ok(Some(bytes)),
            Some(Found::Null) => Ok(None),
            _ => Err(FromSqlError::InvalidType),
        }
    }

    pub(super) fn get<T: FromSql>(&self, position: usize) -> FromSqlResult<T> {
        T::column_result(self.values.get(position).ok_or(FromSqlError::InvalidType)?.into())
    }
}
