//! Tables, drawn with `+---+` or ruled with `=== ===`. One in which cells reach over others, or that has none, is shown as it was drawn.

use crate::Stop;
use crate::blocks::Reader;
use crate::lines::{dedented, together};

/// The most columns.
const COLUMNS: usize = 60;

/// A cell: its lines.
type Cell<'a> = Vec<&'a str>;

/// The rows of a table, and how many of them are its head.
struct Table<'a> {
    rows: Vec<Vec<Cell<'a>>>,
    head: usize,
}

impl Reader {
    /// A table that begins at this line; how many lines it has.
    pub(crate) fn table(&mut self, lines: &[&str], at: usize) -> Result<Option<usize>, Stop> {
        let line = lines.get(at).copied().unwrap_or_default();
        let (taken, table) = if is_border(line) {
            let taken = together(lines, at);
            (taken, grid(lines.get(at..at + taken).unwrap_or_default()))
        } else if let Some(columns) = ruled(line) {
            let Some(taken) = length(lines, at) else { return Ok(None) };
            (taken, Some(simple(lines.get(at..at + taken).unwrap_or_default(), &columns)))
        } else {
            return Ok(None);
        };
        match table.filter(|table| !table.rows.is_empty()) {
            Some(table) => self.rows(&table)?,
            None => self.literal(lines.get(at..at + taken).unwrap_or_default())?,
        }
        Ok(Some(taken))
    }

    fn rows(&mut self, table: &Table<'_>) -> Result<(), Stop> {
        let (head, body) = table.rows.split_at(table.head.min(table.rows.len()));
        self.writer.html("<table>\n")?;
        for (section, cell, rows) in [("thead", "th", head), ("tbody", "td", body)] {
            if rows.is_empty() {
                continue;
            }
            self.writer.html(&format!("<{section}>\n"))?;
            for row in rows {
                self.row(row, cell)?;
            }
            self.writer.html(&format!("</{section}>\n"))?;
        }
        self.writer.html("</table>\n")
    }

    fn row(&mut self, row: &[Cell<'_>], element: &str) -> Result<(), Stop> {
        self.writer.html("<tr>")?;
        for cell in row {
            self.writer.html(&format!("<{element}>"))?;
            let since = self.writer.len();
            self.body(&dedented(cell, usize::MAX))?;
            self.writer.unwrap_paragraph(since);
            self.writer.html(&format!("</{element}>"))?;
        }
        self.writer.html("</tr>\n")
    }
}

/// `+---+---+`, or with `=` below a head.
fn is_border(line: &str) -> bool {
    line.len() > 2
        && line.starts_with('+')
        && line.ends_with('+')
        && (line.bytes().all(|byte| byte == b'+' || byte == b'-')
            || line.bytes().all(|byte| byte == b'+' || byte == b'='))
}

/// A table with lines round its cells. None where cells are joined.
fn grid<'a>(lines: &[&'a str]) -> Option<Table<'a>> {
    let first = lines.first()?;
    let corners: Vec<usize> = first.match_indices('+').map(|(at, _)| at).collect();
    if corners.len() > COLUMNS || !is_border(lines.last()?) {
        return None;
    }
    let mut table = Table { rows: Vec::new(), head: 0 };
    let mut row: Vec<Cell<'a>> = Vec::new();
    for line in lines {
        if is_border(line) {
            if !line.match_indices('+').map(|(at, _)| at).eq(corners.iter().copied()) {
                return None;
            }
            if !row.is_empty() {
                table.rows.push(std::mem::take(&mut row));
            }
            if line.contains('=') {
                table.head = table.rows.len();
            }
            continue;
        }
        let places = letters(line);
        let at = |column: usize| {
            if column == places.len() { Some(line.len()) } else { places.get(column).copied() }
        };
        for (number, pair) in corners.windows(2).enumerate() {
            let [left, right] = pair else { continue };
            let (left, right) = (at(*left)?, at(*right)?);
            let cell = line.get(left..right)?.strip_prefix('|')?;
            if row.len() <= number {
                row.push(Vec::new());
            }
            row.get_mut(number)?.push(cell.trim_end());
        }
        if !line.ends_with('|') {
            return None;
        }
    }
    Some(table)
}

/// Where each letter of a line begins: columns are letters, not bytes.
fn letters(line: &str) -> Vec<usize> {
    line.char_indices().map(|(at, _)| at).collect()
}

/// The columns of `==== ===`: where each begins and ends. None: it is no such line.
fn ruled(line: &str) -> Option<Vec<(usize, usize)>> {
    let is_ruler =
        line.starts_with('=') && line.contains(' ') && line.bytes().all(|byte| byte == b'=' || byte == b' ');
    if !is_ruler {
        return None;
    }
    let mut columns = Vec::new();
    let mut at = 0;
    for part in line.split(' ') {
        if !part.is_empty() {
            columns.push((at, at + part.len()));
        }
        at += part.len() + 1;
    }
    (columns.len() <= COLUMNS).then_some(columns)
}

/// The lines of a ruled table: up to the ruler with a blank line, or nothing, below it.
fn length(lines: &[&str], at: usize) -> Option<usize> {
    let rest = lines.get(at..)?;
    let is_last = |number: usize| rest.get(number + 1).is_none_or(|below| below.is_empty());
    let mut ends =
        rest.iter().enumerate().skip(1).filter(|(number, line)| ruled(line).is_some() && is_last(*number));
    // The ruler below the head may have a blank line below it; then the one after it ends the table.
    let first = ends.next().map(|(number, _)| number)?;
    let rulers = rest.iter().take(first).filter(|line| ruled(line).is_some()).count();
    let end = if rulers == 1 && first == 2 { ends.next().map_or(first, |(number, _)| number) } else { first };
    Some(end + 1)
}

/// A table with rulers above and below, and maybe below its head. A line whose first cell is empty goes on with the row above.
fn simple<'a>(lines: &[&'a str], columns: &[(usize, usize)]) -> Table<'a> {
    let mut table = Table { rows: Vec::new(), head: 0 };
    let last = lines.len().saturating_sub(1);
    for (number, line) in lines.iter().enumerate().skip(1).filter(|(number, _)| *number != last) {
        if ruled(line).is_some() {
            if table.head == 0 && number > 1 {
                table.head = table.rows.len();
            }
            continue;
        }
        // A line of `-` joins the columns above it, which are shown apart.
        if line.is_empty() || line.bytes().all(|byte| byte == b'-' || byte == b' ') {
            continue;
        }
        let cells = cells(line, columns);
        let goes_on = cells.first().is_some_and(|cell| cell.is_empty());
        match table.rows.last_mut().filter(|_| goes_on) {
            Some(row) => row.iter_mut().zip(cells).for_each(|(cell, more)| cell.push(more)),
            None => table.rows.push(cells.into_iter().map(|cell| vec![cell]).collect()),
        }
    }
    table
}

/// The cells of a line; the last reaches to its end.
fn cells<'a>(line: &'a str, columns: &[(usize, usize)]) -> Vec<&'a str> {
    let places = letters(line);
    let at = |column: usize| places.get(column).copied().unwrap_or(line.len());
    let last = columns.len().saturating_sub(1);
    let cell = |(number, (from, to)): (usize, &(usize, usize))| {
        let to = if number == last { line.len() } else { at(*to) };
        line.get(at(*from)..to).unwrap_or_default().trim()
    };
    columns.iter().enumerate().map(cell).collect()
}
