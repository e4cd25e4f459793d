//! Tables: grid tables (`+---+`) and simple tables (`=== ===`). A grid table with joined cells, or
//! a table without cells, is rendered verbatim.

use crate::Stop;
use crate::blocks::BlockReader;
use crate::lines::{dedented, together};

/// Maximum number of columns of a table.
const COLUMNS: usize = 60;

/// The lines of a cell.
type Cell<'a> = Vec<&'a str>;

/// Rows of a table. The first `head` rows are its header.
struct ParsedTable<'a> {
    rows: Vec<Vec<Cell<'a>>>,
    head: usize,
}

impl BlockReader {
    /// Renders a table that begins at this line. Returns its number of lines.
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

    fn rows(&mut self, table: &ParsedTable<'_>) -> Result<(), Stop> {
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

/// Recognizes `+---+---+`, or the same with `=` below a header.
fn is_border(line: &str) -> bool {
    line.len() > 2
        && line.starts_with('+')
        && line.ends_with('+')
        && (line.bytes().all(|byte| byte == b'+' || byte == b'-')
            || line.bytes().all(|byte| byte == b'+' || byte == b'='))
}

/// Parses a grid table. `None` if cells are joined.
fn grid<'a>(lines: &[&'a str]) -> Option<ParsedTable<'a>> {
    let first = lines.first()?;
    let corners: Vec<usize> = first.match_indices('+').map(|(at, _)| at).collect();
    if corners.len() > COLUMNS || !is_border(lines.last()?) {
        return None;
    }
    let mut table = ParsedTable { rows: Vec::new(), head: 0 };
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
        let offsets = letters(line);
        let at = |column: usize| {
            if column == offsets.len() { Some(line.len()) } else { offsets.get(column).copied() }
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

/// Byte offset of each letter of a line. The width of a column is a number of letters and not of
/// bytes.
fn letters(line: &str) -> Vec<usize> {
    line.char_indices().map(|(at, _)| at).collect()
}

/// Start and end of each column of a ruler `==== ===`. `None` if the line is not a ruler.
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

/// Number of lines of a simple table. The table ends with a ruler before a blank line or the end of
/// the text.
fn length(lines: &[&str], at: usize) -> Option<usize> {
    let rest = lines.get(at..)?;
    let is_last = |number: usize| rest.get(number + 1).is_none_or(|below| below.is_empty());
    let mut ends =
        rest.iter().enumerate().skip(1).filter(|(number, line)| ruled(line).is_some() && is_last(*number));
    // A blank line may also follow the ruler below the header. Then the next ruler ends the table.
    let first = ends.next().map(|(number, _)| number)?;
    let rulers = rest.iter().take(first).filter(|line| ruled(line).is_some()).count();
    let end = if rulers == 1 && first == 2 { ends.next().map_or(first, |(number, _)| number) } else { first };
    Some(end + 1)
}

/// Parses a simple table, with rulers above and below, and optionally below the header. A line
/// whose first cell is empty continues the row above.
fn simple<'a>(lines: &[&'a str], columns: &[(usize, usize)]) -> ParsedTable<'a> {
    let mut table = ParsedTable { rows: Vec::new(), head: 0 };
    let last = lines.len().saturating_sub(1);
    for (number, line) in lines.iter().enumerate().skip(1).filter(|(number, _)| *number != last) {
        if ruled(line).is_some() {
            if table.head == 0 && number > 1 {
                table.head = table.rows.len();
            }
            continue;
        }
        // A line of `-` joins columns of the row above. The joint is ignored.
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

/// Splits a line into cells. The last one extends to the end of the line.
fn cells<'a>(line: &'a str, columns: &[(usize, usize)]) -> Vec<&'a str> {
    let offsets = letters(line);
    let at = |column: usize| offsets.get(column).copied().unwrap_or(line.len());
    let last = columns.len().saturating_sub(1);
    let cell = |(number, (from, to)): (usize, &(usize, usize))| {
        let to = if number == last { line.len() } else { at(*to) };
        line.get(at(*from)..to).unwrap_or_default().trim()
    };
    columns.iter().enumerate().map(cell).collect()
}
