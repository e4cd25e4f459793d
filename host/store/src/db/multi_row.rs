//! Multi-row statements: one text for the rows of a whole batch.

use futures::{StreamExt as _, TryStreamExt as _, pin_mut};
use sqlx::{AssertSqlSafe, Either, Executor as _, SqliteConnection};

use super::value::{Row, Sql, Value, sqlite_arguments};
use crate::error::StoreError;

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

/// Several statements as SQLite takes them: one text, whose values follow one another. Parameters have no names in it, since
/// SQLite looks for each name among all those before.
pub(super) struct Script {
    sql: String,
    values: Vec<Value>,
    keep: bool,
    pub(super) statements: u64,
}

impl Script {
    pub(super) fn of(statements: Vec<MultiRow>) -> Script {
        let mut script = Script { sql: String::new(), values: Vec::new(), keep: true, statements: 0 };
        for statement in statements {
            let (most, tuple) = (statement.most(), anonymous(statement.width));
            let mut left = statement.rows();
            script.keep &= left <= MAX_PREPARED_ROWS;
            while left > 0 {
                let rows = left.min(most);
                left -= rows;
                script.sql.push_str(statement.before);
                for row in 0..rows {
                    script.sql.push_str(if row == 0 { "" } else { "," });
                    script.sql.push_str(&tuple);
                }
                script.sql.push_str(&statement.after);
                script.sql.push(';');
                script.statements += 1;
            }
            script.values.extend(statement.values);
        }
        script
    }

    /// The rows of each statement.
    pub(super) async fn fetch(self, connection: &mut SqliteConnection) -> Result<Vec<Vec<Row>>, StoreError> {
        let query = sqlx::query_with(AssertSqlSafe(self.sql), sqlite_arguments(self.values)?);
        let steps = connection.fetch_many(query.persistent(self.keep));
        pin_mut!(steps);
        let (mut found, mut rows) = (Vec::new(), Vec::new());
        while let Some(step) = steps.next().await {
            match step.map_err(StoreError::database)? {
                Either::Right(row) => rows.push(Row::Sqlite(row)),
                Either::Left(_) => found.push(std::mem::take(&mut rows)),
            }
        }
        Ok(found)
    }

    /// How many rows were changed together.
    pub(super) async fn execute(self, connection: &mut SqliteConnection) -> Result<u64, StoreError> {
        if self.statements == 0 {
            return Ok(0);
        }
        let query = sqlx::query_with(AssertSqlSafe(self.sql), sqlite_arguments(self.values)?);
        let done = connection.execute_many(query.persistent(self.keep));
        let changed = done.try_fold(0, |sum, done| async move { Ok(sum + done.rows_affected()) });
        changed.await.map_err(StoreError::database)
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
