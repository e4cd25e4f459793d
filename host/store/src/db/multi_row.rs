//! Multi-row statements: one text for the rows of a whole batch.

use super::value::{Sql, Value};

/// Below the limits of SQLite (32,766) and PostgreSQL (65,535).
const MAX_VARIABLES: usize = 30_000;
/// Statements over more rows than this are not kept prepared: each number of rows is a text of its own.
const MAX_PREPARED_ROWS: usize = 64;

/// A statement with a list of tuples in it; in several parts where they are very many, in none where there are none.
pub(crate) struct MultiRow {
    before: &'static str,
    width: usize,
    values: Vec<Value>,
    after: Sql,
}

impl MultiRow {
    /// The tuples of `rows` stand between `before` and `after`.
    pub(crate) fn new<const N: usize>(
        before: &'static str,
        rows: Vec<[Value; N]>,
        after: impl Into<Sql>,
    ) -> MultiRow {
        MultiRow {
            before,
            width: N.max(1),
            values: rows.into_iter().flatten().collect(),
            after: after.into(),
        }
    }

    fn most(&self) -> usize {
        (MAX_VARIABLES / self.width).max(1)
    }

    fn rows(&self) -> usize {
        self.values.len() / self.width
    }

    pub(super) fn parts(&self) -> usize {
        self.rows().div_ceil(self.most())
    }

    /// The statement over a single row.
    pub(super) fn of_one_row(&self) -> String {
        format!("{}{}{}", self.before, anonymous(self.width), self.after)
    }

    /// The values of each row.
    pub(super) fn tuples(&self) -> impl Iterator<Item = &[Value]> {
        self.values.chunks(self.width)
    }

    /// Each part as a text of its own with `$1`, `$2`, …, its values, and whether it is worth keeping prepared.
    pub(super) fn numbered(self) -> impl Iterator<Item = (String, Vec<Value>, bool)> {
        let (most, width) = (self.most(), self.width);
        let MultiRow { before, after, values, .. } = self;
        let mut values = values.into_iter();
        std::iter::from_fn(move || {
            let values: Vec<Value> = values.by_ref().take(most * width).collect();
            let rows = values.len() / width;
            let sql = || format!("{before}{}{after}", placeholders(rows, width));
            (rows > 0).then(|| (sql(), values, rows <= MAX_PREPARED_ROWS))
        })
    }
}

/// `(?,?)` for a row of two.
fn anonymous(width: usize) -> String {
    format!("({})", vec!["?"; width].join(","))
}

/// `($1,$2),($3,$4)` for two rows of two.
pub(crate) fn placeholders(rows: usize, width: usize) -> String {
    let tuple = |row: usize| {
        let names: Vec<String> = (1..=width).map(|column| format!("${}", row * width + column)).collect();
        format!("({})", names.join(","))
    };
    (0..rows).map(tuple).collect::<Vec<_>>().join(",")
}
