//! Multi-row statements: one text for the rows of a whole batch.

use super::value::{Sql, Value};

/// Below the limits of SQLite (32,766) and PostgreSQL (65,535).
const MAX_VARIABLES: usize = 30_000;
/// Statements over more rows than this are not kept prepared: each number of rows is a text of its own.
const MAX_PREPARED_ROWS: usize = 64;

/// A statement with a list of tuples in it; in several parts where they are very many, in none where there are none.
pub(crate) struct MultiRow {
    before: Sql,
    width: usize,
    values: Vec<Value>,
    after: Sql,
    later: bool,
}

impl MultiRow {
    /// The tuples of `rows` stand between `before` and `after`.
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
        }
    }

    /// The same of a table whose columns are not known before: each row has so many values.
    pub(crate) fn of_width(
        before: String,
        width: usize,
        rows: Vec<Vec<Value>>,
        after: &'static str,
    ) -> MultiRow {
        let values = rows.into_iter().flatten().collect();
        MultiRow { before: before.into(), width: width.max(1), values, after: after.into(), later: false }
    }

    /// The same as one that sees what those before it did: it is never a part of the same statement.
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

    /// The text with its placeholders from this number on.
    fn numbered_from(&self, first: usize) -> String {
        format!("{}{}{}", self.before, placeholders_from(first, self.rows(), self.width), self.after)
    }
}

/// Statements that change different rows, as the parts of as few statements as may be, in the form of [`MultiRow::numbered`]: what each
/// costs on PostgreSQL is the way there and back. None of a statement's parts sees what the others did, but for what the schema
/// says of them, which is judged at its end.
pub(super) fn together(statements: Vec<MultiRow>) -> Vec<(String, Vec<Value>, bool)> {
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

fn one_of(mut group: Vec<MultiRow>) -> Vec<(String, Vec<Value>, bool)> {
    if group.len() < 2 {
        return group.pop().into_iter().flat_map(MultiRow::numbered).collect();
    }
    let (mut parts, mut values) = (Vec::with_capacity(group.len()), Vec::new());
    let rows: usize = group.iter().map(MultiRow::rows).sum();
    for (number, statement) in group.into_iter().enumerate() {
        parts.push(format!("p{number} AS ({})", statement.numbered_from(values.len() + 1)));
        values.extend(statement.values);
    }
    // Parts that change something are carried out, whether anybody asks for them or not.
    vec![(format!("WITH {} SELECT 1", parts.join(", ")), values, rows <= MAX_PREPARED_ROWS * 2)]
}

/// `(?,?)` for a row of two.
fn anonymous(width: usize) -> String {
    format!("({})", vec!["?"; width].join(","))
}

/// `($1,$2),($3,$4)` for two rows of two.
pub(crate) fn placeholders(rows: usize, width: usize) -> String {
    placeholders_from(1, rows, width)
}

fn placeholders_from(first: usize, rows: usize, width: usize) -> String {
    let tuple = |row: usize| {
        let names: Vec<String> =
            (first..first + width).map(|column| format!("${}", row * width + column)).collect();
        format!("({})", names.join(","))
    };
    (0..rows).map(tuple).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(before: &'static str, rows: i64) -> MultiRow {
        MultiRow::new(before, (0..rows).map(|row| [Value::from(row), Value::from(row)]).collect(), " END")
    }

    #[test]
    fn statements_are_put_together_unless_one_must_see_what_others_did() {
        let all = vec![
            statement("A ", 1),
            statement("B ", 0),
            statement("C ", 2),
            statement("D ", 1).later(),
            statement("E ", 0).later(),
            statement("F ", 1),
            statement("G ", 1).later(),
        ];
        let made = together(all);
        let texts: Vec<_> = made.iter().map(|(text, ..)| text.as_str()).collect();
        let first = "WITH p0 AS (A ($1,$2) END), p1 AS (C ($3,$4),($5,$6) END) SELECT 1";
        let second = "WITH p0 AS (D ($1,$2) END), p1 AS (F ($3,$4) END) SELECT 1";
        assert_eq!(texts, [first, second, "G ($1,$2) END"]);
        assert_eq!(made.iter().map(|(_, values, _)| values.len()).collect::<Vec<_>>(), [6, 4, 2]);
    }

    #[test]
    fn a_statement_stays_below_the_most_variables() {
        let many = i64::try_from(MAX_VARIABLES).unwrap();
        let made = together(vec![statement("A ", 1), statement("B ", many), statement("C ", 1)]);
        assert!(made.iter().all(|(_, values, _)| values.len() <= MAX_VARIABLES));
        assert_eq!(made.iter().map(|(_, values, _)| values.len()).sum::<usize>(), 2 * MAX_VARIABLES + 4);
    }
}
