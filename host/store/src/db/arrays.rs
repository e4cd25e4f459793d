//! The rows of a statement by their columns: an array for each, as PostgreSQL takes them.

use super::value::Value;

/// Arrays in the order of their `$n`.
#[derive(Clone, Default)]
pub(super) struct Arrays(Vec<Array>);

/// The values of a column.
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

    /// False when it is of another type.
    fn push(&mut self, value: &Value) -> bool {
        match (self, value) {
            (Array::Ints(all), Value::Int(one)) => all.push(*one),
            (Array::Texts(all), Value::Text(one)) => all.push(one.clone()),
            (Array::Bytes(all), Value::Bytes(one)) => all.push(one.clone()),
            _ => return false,
        }
        true
    }

    /// As PostgreSQL calls the type of its values.
    fn kind(&self) -> &'static str {
        match self {
            Array::Ints(_) => "BIGINT",
            Array::Texts(_) => "TEXT",
            Array::Bytes(_) => "BYTEA",
        }
    }
}

impl Arrays {
    /// Adds the columns of rows of this width; their names in the statement. None, and nothing is added, when a column has values
    /// of several types.
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
