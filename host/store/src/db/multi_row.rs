//! Multi-row statements: one text for the rows of a whole batch.
//!
//! For PostgreSQL the rows are handed over as an array for each column, so that the text is the same for any number of rows: it is
//! prepared and planned once on a connection.

use super::arrays::{Arguments, Arrays};
use super::value::{Sql, Value};

/// Below the limits of SQLite (32,766) and PostgreSQL (65,535).
const MAX_VARIABLES: usize = 30_000;
/// Statements over more rows than this are not kept prepared where each number of rows is a text of its own.
const MAX_PREPARED_ROWS: usize = 64;
/// What the tuples of a statement stand behind.
const VALUES: &str = "VALUES ";

/// A column of what a statement finds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Found {
    pub(crate) name: &'static str,
    /// As PostgreSQL calls it.
    pub(crate) kind: &'static str,
}

/// Names of columns by their types, in the order of the statement.
macro_rules! found {
    ($($name:literal: $kind:ident),* $(,)?) => {
        [$($crate::db::Found { name: $name, kind: stringify!($kind) }),*]
    };
}
pub(crate) use found;

/// A statement as PostgreSQL gets it.
pub(super) struct Prepared {
    pub(super) sql: String,
    pub(super) arguments: Arguments,
    /// Whether it is worth keeping prepared.
    pub(super) keep: bool,
}

/// A statement with a list of tuples in it; in several parts where they are very many, in none where there are none.
pub(crate) struct MultiRow {
    before: Sql,
    width: usize,
    values: Vec<Value>,
    after: Sql,
    later: bool,
    finds: &'static [Found],
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
            finds: &[],
        }
    }

    /// The same of one that finds these columns and changes nothing: several such are one question to PostgreSQL.
    pub(crate) fn finding(self, finds: &'static [Found]) -> MultiRow {
        MultiRow { finds, ..self }
    }

    /// The same of a table whose columns are not known before: each row has so many values.
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

    /// Each part as PostgreSQL gets it.
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

    /// The text with its rows in arrays that are added to these; none, and nothing added, where that cannot be.
    fn over_arrays(&self, arrays: &mut Arrays) -> Option<String> {
        let before =
            self.before.strip_suffix(VALUES).or(Some(&*self.before).filter(|text| text.ends_with('(')))?;
        let names = arrays.add(&self.values, self.width)?;
        Some(format!("{before}SELECT * FROM unnest({names}){}", self.after))
    }
}

/// Statements that change different rows, as the parts of as few statements as may be: what each costs on PostgreSQL is the way there
/// and back. None of a statement's parts sees what the others did, but for what the schema says of them, which is judged at its end.
pub(super) fn together(statements: impl IntoIterator<Item = MultiRow>) -> Vec<Prepared> {
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
    // Parts that change something are carried out, whether anybody asks for them or not.
    let sql = format!("WITH {} SELECT 1", parts.join(", "));
    vec![Prepared { sql, arguments: Arguments::Arrays(arrays), keep: true }]
}

/// The column that says which statement has found a row.
pub(super) const PART: &str = "part";

/// Statements that all say what they find, as one whose rows say which of them found them; none where one does not, or where there are
/// not several with rows.
pub(super) fn united(statements: &[MultiRow]) -> Option<Prepared> {
    let asked = || statements.iter().enumerate().filter(|(_, statement)| statement.rows() > 0);
    if asked().count() < 2 || asked().any(|(_, one)| one.finds.is_empty() || one.rows() > one.most()) {
        return None;
    }
    let mut all: Vec<Found> = Vec::new();
    for found in asked().flat_map(|(_, statement)| statement.finds) {
        if !all.contains(found) {
            all.push(*found);
        }
    }
    let (mut with, mut parts, mut arrays) = (Vec::new(), Vec::new(), Arrays::default());
    for (number, statement) in asked() {
        with.push(format!("q{number} AS ({})", statement.over_arrays(&mut arrays)?));
        let column = |found: &Found| {
            let Found { name, kind } = found;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(before: &'static str, rows: i64) -> MultiRow {
        MultiRow::new(before, (0..rows).map(|row| [Value::from(row), Value::from("a")]).collect(), " END")
    }

    #[test]
    fn statements_are_put_together_unless_one_must_see_what_others_did() {
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
        let texts = |times| together(all(times)).into_iter().map(|made| made.sql).collect::<Vec<_>>();
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
    fn what_cannot_be_in_arrays_is_by_itself() {
        let mixed = MultiRow::new("A VALUES ", vec![[Value::from(1_i64)], [Value::from("a")]], "");
        let made = together(vec![statement("B VALUES ", 1), mixed, statement("C ", 1)]);
        let texts: Vec<_> = made.iter().map(|made| made.sql.as_str()).collect();
        assert!(texts[0].starts_with("B SELECT * FROM unnest("), "{texts:?}");
        assert_eq!(texts[1..], ["A VALUES ($1),($2)", "C ($1,$2) END"]);
    }

    #[test]
    fn a_statement_stays_below_the_most_variables() {
        let many = i64::try_from(MAX_VARIABLES).unwrap();
        let made = together(vec![statement("A ", 1), statement("B ", many), statement("C ", 1)]);
        let values = |made: &Prepared| match &made.arguments {
            Arguments::Values(values) => values.len(),
            Arguments::Arrays(_) => 0,
        };
        assert!(made.iter().all(|made| values(made) <= MAX_VARIABLES));
        assert_eq!(made.iter().map(values).sum::<usize>(), 2 * MAX_VARIABLES + 4);
    }

    #[test]
    fn questions_that_say_what_they_find_are_one() {
        const ONE: [Found; 2] = found!["id": BIGINT, "key": TEXT];
        const OTHER: [Found; 2] = found!["key": TEXT, "data": BYTEA];
        let asked = |rows| {
            vec![statement("A VALUES ", 1).finding(&ONE), statement("B VALUES ", rows).finding(&OTHER)]
        };
        let made = united(&asked(2)).unwrap();
        let parts = made.sql.split(" SELECT CAST(").collect::<Vec<_>>();
        assert_eq!(parts[1], "0 AS BIGINT) AS part, id, key, CAST(NULL AS BYTEA) AS data FROM q0 UNION ALL");
        assert_eq!(parts[2], "1 AS BIGINT) AS part, CAST(NULL AS BIGINT) AS id, key, data FROM q1");
        assert!(united(&asked(0)).is_none(), "one alone is not changed");
        assert!(united(&[statement("A VALUES ", 1).finding(&ONE), statement("B VALUES ", 1)]).is_none());
    }
}
