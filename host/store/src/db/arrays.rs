//! Arguments of a PostgreSQL statement: single values, or rows passed as one array for each column.

use sqlx::Arguments as _;
use sqlx::postgres::PgArguments;

use super::value::Value;
use crate::error::StoreError;

/// Arrays in the order of their `$n` placeholders.
#[derive(Clone, Default)]
pub(super) struct Arrays(Vec<Array>);

#[derive(Clone)]
pub(super) enum Array {
    Ints(Vec<Option<i64>>),
    Texts(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Array {
    fn like(value: &Value, rows: usize) -> Array {
        match value {
            Value::Int(_) => Array::Ints(Vec::with_capacity(rows)),
            Value::Text(_) => Array::Texts(Vec::with_capacity(rows)),
            Value::Bytes(_) => Array::Bytes(Vec::with_capacity(rows)),
        }
    }

    /// Appends a value. Returns false if the value has another type than the array.
    fn push(&mut self, value: &Value) -> bool {
        match (self, value) {
            (Array::Ints(all), Value::Int(one)) => all.push(*one),
            (Array::Texts(all), Value::Text(one)) => all.push(one.clone()),
            (Array::Bytes(all), Value::Bytes(one)) => all.push(one.clone()),
            _ => return false,
        }
        true
    }

    /// Returns PostgreSQL's name for the type of the values.
    fn kind(&self) -> &'static str {
        match self {
            Array::Ints(_) => "BIGINT",
            Array::Texts(_) => "TEXT",
            Array::Bytes(_) => "BYTEA",
        }
    }
}

impl Arrays {
    /// Adds one array for each column of rows of this width, and returns their list for the
    /// statement. Returns `None`, and adds nothing, if a column has values of several types.
    pub(super) fn add(&mut self, values: &[Value], width: usize) -> Option<String> {
        let (first, rows) = (values.get(..width)?, values.len() / width.max(1));
        let mut columns: Vec<Array> = first.iter().map(|value| Array::like(value, rows)).collect();
        for row in values.chunks(width) {
            if !columns.iter_mut().zip(row).all(|(column, value)| column.push(value)) {
                return None;
            }
        }
        let before = self.0.len();
        let name = |(number, column): (usize, &Array)| {
            format!("CAST(${} AS {}[])", before + number + 1, column.kind())
        };
        let names: Vec<String> = columns.iter().enumerate().map(name).collect();
        self.0.extend(columns);
        Some(names.join(", "))
    }

    pub(super) fn into_each(self) -> impl Iterator<Item = Array> {
        self.0.into_iter()
    }
}

/// Arguments for the `$n` placeholders of a PostgreSQL statement.
#[derive(Clone)]
pub(super) enum Arguments {
    Values(Vec<Value>),
    Arrays(Arrays),
}

impl From<Vec<Value>> for Arguments {
    fn from(values: Vec<Value>) -> Arguments {
        Arguments::Values(values)
    }
}

pub(super) fn postgres_arguments(of: impl Into<Arguments>) -> Result<PgArguments, StoreError> {
    let mut arguments = PgArguments::default();
    match of.into() {
        Arguments::Values(values) => {
            for value in values {
                let added = match value {
                    Value::Int(value) => arguments.add(value),
                    Value::Text(value) => arguments.add(value),
                    Value::Bytes(value) => arguments.add(value),
                };
                added.map_err(StoreError::database)?;
            }
        }
        Arguments::Arrays(arrays) => {
            for array in arrays.into_each() {
                let added = match array {
                    Array::Ints(values) => arguments.add(values),
                    Array::Texts(values) => arguments.add(values),
                    Array::Bytes(values) => arguments.add(values),
                };
                added.map_err(StoreError::database)?;
            }
        }
    }
    Ok(arguments)
}
