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

    pub(super) fn get<T: FromSql>(&self, position: usize) -> FromSqlResult<T> {
        T::column_result(self.values.get(position).ok_or(FromSqlError::InvalidType)?.into())
    }
}
