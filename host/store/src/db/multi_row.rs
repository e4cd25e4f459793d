//! Multi-row statements, which use one SQL text for all rows of a batch.
//!
//! PostgreSQL receives the rows as one array for each column. The text is then the same for any
//! number of rows, and a connection prepares and plans it once.

use super::arrays::{Arguments, Arrays};
use super::value::{Sql, Value};

/// Maximum number of variables, below the limits of SQLite (32,766) and PostgreSQL (65,535).
const MAX_VARIABLES: usize = 30_000;
/// Row limit for keeping a statement prepared if its text depends on the number of rows.
const MAX_PREPARED_ROWS: usize = 64;
/// Keyword before the tuples of a statement.
const VALUES: &str = "VALUES ";

/// Result column of a statement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ResultColumn {
    pub(crate) name: &'static str,
    /// Type of the column in PostgreSQL.
    pub(crate) kind: &'static str,
}

/// Lists result columns with their types, in the order of the statement.
macro_rules! found {
    ($($name:literal: $kind:ident),* $(,)?) => {
        [$($crate::db::ResultColumn { name: $name, kind: stringify!($kind) }),*]
    };
}
pub(crate) use found;

/// A statement in the form that PostgreSQL receives.
pub(super) struct Prepared {
    pub(super) sql: String,
    pub(super) arguments: Arguments,
    /// True if it is worth keeping prepared.
    pub(super) keep: bool,
}

/// A statement with a list of tuples. It is split into several parts if it has very many tuples,
/// and has no part without tuples.
pub(crate) struct MultiRow {
    before: Sql,
    width: usize,
    values: Vec<Value>,
    after: Sql,
    later: bool,
    finds: &'static [ResultColumn],
}

impl MultiRow {
    /// Creates a statement with the tuples of `rows` between `before` and `after`.
    pub(crate) fn new<const N: usize>(
        before: &'static str,
        rows: Vec<[Value; N]>,
        after: impl Into<Sql>,
    ) -> MultiRow {
        MultiRow {
            before: before.into(),
            width: N.max(1),
            values: rows.into_iter().flatten().collect(),
            after: after.into(),
            later: false,
            finds: &[],
        }
    }

    /// Declares the result columns of a statement that changes nothing. Several such statements can
    /// be sent to PostgreSQL as one.
    pub(crate) fn finding(self, finds: &'static [ResultColumn]) -> MultiRow {
        MultiRow { finds, ..self }
    }

    /// Same as [`new`](Self::new) for a table whose number of columns is only known at run time.
    /// Each row has `width` values.
    pub(crate) fn of_width(
        before: String,
        width: usize,
        rows: Vec<Vec<Value>>,
        after: &'static str,
    ) -> MultiRow {
        let values = rows.into_iter().flatten().collect();
        let (before, after) = (before.into(), after.into());
        MultiRow { before, width: width.max(1), values, after, later: false, finds: &[] }
    }

    /// Marks a statement that must see the effects of earlier statements, so that it is never
    /// merged with them.
    pub(crate) fn later(self) -> MultiRow {
        MultiRow { later: true, ..self }
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

    /// Returns the text of the statement for a single row.
    pub(super) fn of_one_row(&self) -> String {
        format!("{}{}{}", self.before, anonymous(self.width), self.after)
    }

    /// Returns the values of each row.
    pub(super) fn tuples(&self) -> impl Iterator<Item = &[Value]> {
        self.values.chunks(self.width)
    }

    /// Returns each part with numbered placeholders (`$1`, `$2`, …), its values, and whether it is
    /// worth keeping prepared.
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

    /// Returns each part in the form for PostgreSQL.
    pub(super) fn prepared(self) -> Vec<Prepared> {
        if self.rows() == 0 {
            return Vec::new();
        }
        let mut arrays = Arrays::default();
        if self.rows() <= self.most()
            && let Some(sql) = self.over_arrays(&mut arrays)
        {
            return vec![Prepared { sql, arguments: Arguments::Arrays(arrays), keep: true }];
        }
        let placed = |(sql, values, keep)| Prepared { sql, arguments: Arguments::Values(values), keep };
        self.numbered().map(placed).collect()
    }

    /// Returns the text with its rows in arrays, which are added to `arrays`. Returns `None`, and
    /// adds nothing, if the values cannot be in arrays.
    fn over_arrays(&self, arrays: &mut Arrays) -> Option<String> {
        let before =
            self.before.strip_suffix(VALUES).or(Some(&*self.before).filter(|text| text.ends_with('(')))?;
        let names = arrays.add(&self.values, self.width)?;
        Some(format!("{before}SELECT * FROM unnest({names}){}", self.after))
    }
}

/// Merges statements that change different rows into as few as possible, because each statement
/// costs a round trip to PostgreSQL. The merged parts do not see each other's effects. The schema's
/// constraints are checked at the end of the merged statement.
pub(super) fn merge_changes(statements: impl IntoIterator<Item = MultiRow>) -> Vec<Prepared> {
    let (mut all, mut group): (_, Vec<MultiRow>) = (Vec::new(), Vec::new());
    for statement in statements.into_iter().filter(|statement| !statement.values.is_empty()) {
        let variables: usize = group.iter().map(|part| part.values.len()).sum();
        if statement.later || variables + statement.values.len() > MAX_VARIABLES {
            all.extend(one_of(std::mem::take(&mut group)));
        }
        group.push(statement);
    }
    all.extend(one_of(group));
    all
}

fn one_of(mut group: Vec<MultiRow>) -> Vec<Prepared> {
    if group.len() < 2 {
        return group.pop().into_iter().flat_map(MultiRow::prepared).collect();
    }
    let (mut parts, mut arrays) = (Vec::with_capacity(group.len()), Arrays::default());
    for (number, statement) in group.iter().enumerate() {
        match statement.over_arrays(&mut arrays) {
            Some(sql) => parts.push(format!("p{number} AS ({sql})")),
            None => return group.into_iter().flat_map(MultiRow::prepared).collect(),
        }
    }
    // PostgreSQL executes changing parts of a `WITH` even if nothing selects from them.
    let sql = format!("WITH {} SELECT 1", parts.join(", "));
    vec![Prepared { sql, arguments: Arguments::Arrays(arrays), keep: true }]
}

/// Result column with the number of the statement that found a row.
pub(super) const PART: &str = "part";

/// Merges statements that declare their result columns into one. Its rows tell which statement
/// found them. Returns `None` if a statement declares no columns, or if fewer than two have rows.
pub(super) fn merge_queries(statements: &[MultiRow]) -> Option<Prepared> {
    let with_rows = || statements.iter().enumerate().filter(|(_, statement)| statement.rows() > 0);
    if with_rows().count() < 2 || with_rows().any(|(_, one)| one.finds.is_empty() || one.rows() > one.most())
    {
        return None;
    }
    let mut all: Vec<ResultColumn> = Vec::new();
    for found in with_rows().flat_map(|(_, statement)| statement.finds) {
        if !all.contains(found) {
            all.push(*found);
        }
    }
    let (mut with, mut parts, mut arrays) = (Vec::new(), Vec::new(), Arrays::default());
    for (number, statement) in with_rows() {
        with.push(format!("q{number} AS ({})", statement.over_arrays(&mut arrays)?));
        let column = |found: &ResultColumn| {
            let ResultColumn { name, kind } = found;
            if statement.finds.contains(found) {
                (*name).to_owned()
            } else {
                format!("CAST(NULL AS {kind}) AS {name}")
            }
        };
        let columns: Vec<String> = all.iter().map(column).collect();
        parts.push(format!(
            "SELECT CAST({number} AS BIGINT) AS {PART}, {} FROM q{number}",
            columns.join(", ")
        ));
    }
    let sql = format!("WITH {} {}", with.join(", "), parts.join(" UNION ALL "));
    Some(Prepared { sql, arguments: Arguments::Arrays(arrays), keep: true })
}

/// Returns `(?,?)` for a row of two.
fn anonymous(width: usize) -> String {
    format!("({})", vec!["?"; width].join(","))
}

/// Returns `($1,$2),($3,$4)` for two rows of two.
pub(crate) fn placeholders(rows: usize, width: usize) -> String {
    let tuple = |row: usize| {
        let names: Vec<String> = (1..=width).map(|column| format!("${}", row * width + column)).collect();
        format!("({})", names.join(","))
    };
    (0..rows).map(tuple).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(before: &'static str, rows: i64) -> MultiRow {
        MultiRow::new(before, (0..rows).map(|row| [Value::from(row), Value::from("a")]).collect(), " END")
    }

    #[test]
    fn statements_are_merged_unless_one_must_see_the_effects_of_others() {
        let all = |times: i64| {
            vec![
                statement("A VALUES ", times),
                statement("B VALUES ", 0),
                statement("C VALUES ", 2 * times),
                statement("D IN (", times).later(),
                statement("E VALUES ", 0).later(),
                statement("F VALUES ", times),
                statement("G VALUES ", times).later(),
            ]
        };
        let texts = |times| merge_changes(all(times)).into_iter().map(|made| made.sql).collect::<Vec<_>>();
        let rows = |first: usize| {
            let second = first + 1;
            format!("SELECT * FROM unnest(CAST(${first} AS BIGINT[]), CAST(${second} AS TEXT[])) END")
        };
        let (one, three) = (rows(1), rows(3));
        assert_eq!(
            texts(1),
            [
                format!("WITH p0 AS (A {one}), p1 AS (C {three}) SELECT 1"),
                format!("WITH p0 AS (D IN ({one}), p1 AS (F {three}) SELECT 1"),
                format!("G {one}")
            ]
        );
        assert_eq!(texts(1), texts(50), "the text is the same for any number of rows");
    }

    #[test]
    fn values_that_cannot_be_in_arrays_stay_in_a_statement_of_their_own() {
        let mixed = MultiRow::new("A VALUES ", vec![[Value::from(1_i64)], [Value::from("a")]], "");
        let made = merge_changes(vec![statement("B VALUES ", 1), mixed, statement("C ", 1)]);
        let texts: Vec<_> = made.iter().map(|made| made.sql.as_str()).collect();
        assert!(texts[0].starts_with("B SELECT * FROM unnest("), "{texts:?}");
        assert_eq!(texts[1..], ["A VALUES ($1),($2)", "C ($1,$2) END"]);
    }

    #[test]
    fn a_statement_stays_below_the_most_variables() {
        let many = i64::try_from(MAX_VARIABLES).unwrap();
        let made = merge_changes(vec![statement("A ", 1), statement("B ", many), statement("C ", 1)]);
        let values = |made: &Prepared| match &made.arguments {
            Arguments::Values(values) => values.len(),
            Arguments::Arrays(_) => 0,
        };
        assert!(made.iter().all(|made| values(made) <= MAX_VARIABLES));
        assert_eq!(made.iter().map(values).sum::<usize>(), 2 * MAX_VARIABLES + 4);
    }

    #[test]
    fn queries_that_declare_their_columns_are_merged() {
        const ONE: [ResultColumn; 2] = found!["id": BIGINT, "key": TEXT];
        const OTHER: [ResultColumn; 2] = found!["key": TEXT, "data": BYTEA];
        let queries = |rows| {
            vec![statement("A VALUES ", 1).finding(&ONE), statement("B VALUES ", rows).finding(&OTHER)]
        };
        let made = merge_queries(&queries(2)).unwrap();
        let parts = made.sql.split(" SELECT CAST(").collect::<Vec<_>>();
        assert_eq!(parts[1], "0 AS BIGINT) AS part, id, key, CAST(NULL AS BYTEA) AS data FROM q0 UNION ALL");
        assert_eq!(parts[2], "1 AS BIGINT) AS part, CAST(NULL AS BIGINT) AS id, key, data FROM q1");
        assert!(merge_queries(&queries(0)).is_none(), "one alone is not changed");
        assert!(
            merge_queries(&[statement("A VALUES ", 1).finding(&ONE), statement("B VALUES ", 1)]).is_none()
        );
    }
}
