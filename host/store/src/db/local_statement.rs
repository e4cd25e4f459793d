//! Binding of values to SQLite statements, and reading of their rows.

use std::sync::Arc;

use rusqlite::Statement;
use rusqlite::types::{ToSql, ToSqlOutput, Value as SqliteValue, ValueRef};

use super::local_row::LocalRow;
use super::value::Value;

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Int(Some(number)) => ValueRef::Integer(*number),
            Value::Text(Some(text)) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(Some(bytes)) => ValueRef::Blob(bytes),
            Value::Int(None) | Value::Text(None) | Value::Bytes(None) => ValueRef::Null,
        }))
    }
}

/// Runs a statement to its end and returns its rows.
pub(super) fn rows_of(statement: &mut Statement<'_>, values: &[Value]) -> rusqlite::Result<Vec<LocalRow>> {
    let mut rows = Vec::new();
    each_row(statement, values, |row| {
        rows.push(row);
        true
    })?;
    Ok(rows)
}

/// Returns rows while the bytes of a column (counted from 0) add up to at most `most`.
pub(super) fn rows_within(
    statement: &mut Statement<'_>,
    values: &[Value],
    column: usize,
    most: u64,
) -> rusqlite::Result<Vec<LocalRow>> {
    let (mut rows, mut bytes) = (Vec::new(), 0);
    each_row(statement, values, |row| {
        bytes += row.bytes(column);
        let fits = bytes <= most;
        if fits {
            rows.push(row);
        }
        fits
    })?;
    Ok(rows)
}

/// Runs a statement and passes each row to `take` until that returns false.
pub(super) fn each_row(
    statement: &mut Statement<'_>,
    values: &[Value],
    mut take: impl FnMut(LocalRow) -> bool,
) -> rusqlite::Result<()> {
    for parameter in 1..=statement.parameter_count() {
        let value = values.get(place(statement, parameter) - 1);
        statement.raw_bind_parameter(parameter, value)?;
    }
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    let mut names: Option<Arc<[String]>> = None;
    while let Some(row) = rows.next()? {
        let names =
            names.get_or_insert_with(|| row.as_ref().column_names().into_iter().map(str::to_owned).collect());
        let values =
            (0..columns).map(|column| row.get::<_, SqliteValue>(column)).collect::<Result<_, _>>()?;
        if !take(LocalRow { names: Arc::clone(names), values }) {
            break;
        }
    }
    Ok(())
}

/// Returns the number (from 1) of the value that a parameter stands for: `$7` for the seventh, `?`
/// for the next. SQLite itself numbers both kinds in order of appearance.
fn place(statement: &Statement<'_>, parameter: usize) -> usize {
    let named = statement.parameter_name(parameter).and_then(|name| name.strip_prefix('$')?.parse().ok());
    named.unwrap_or(parameter).max(1)
}
