//! Lists: bullet lists, numbered lists, field lists, option lists and definition lists.

use crate::Stop;
use crate::blocks::BlockReader;
use crate::lines::{dedented, indent, indented};

/// Kind of a list item, by its beginning.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemKind {
    Bullet(char),
    Number,
    Field,
    Option,
}

/// The beginning of an item.
struct ListItem<'a> {
    kind: ItemKind,
    /// Name of a field, or the option.
    term: &'a str,
    /// Bytes before the text of the item.
    width: usize,
}

impl BlockReader {
    /// Renders a list that begins at this line. Returns its number of lines.
    pub(crate) fn list(&mut self, lines: &[&str], at: usize) -> Result<Option<usize>, Stop> {
        let Some(first) = item(lines, at) else { return Ok(None) };
        let (begin, end) = match first.kind {
            ItemKind::Bullet(_) => ("<ul>\n".to_owned(), "</ul>\n"),
            ItemKind::Number => (numbered(lines.get(at).copied().unwrap_or_default()), "</ol>\n"),
            ItemKind::Field | ItemKind::Option => ("<dl>\n".to_owned(), "</dl>\n"),
        };
        self.writer.html(&begin)?;
        let mut behind = at;
        while let Some(found) = item(lines, behind).filter(|found| found.kind == first.kind) {
            behind = self.item(lines, behind, &found)?;
            // Blank lines may precede the next item.
            let blank = lines.iter().skip(behind).take_while(|line| line.is_empty()).count();
            if item(lines, behind + blank).is_none_or(|next| next.kind != first.kind) {
                break;
            }
            behind += blank;
        }
        self.writer.html(end)?;
        Ok(Some(behind - at))
    }

    /// Renders an item. Returns the line after it.
    fn item(&mut self, lines: &[&str], at: usize, item: &ListItem<'_>) -> Result<usize, Stop> {
        let taken = indented(lines, at + 1);
        let first = lines.get(at).and_then(|line| line.get(item.width..)).unwrap_or_default().trim_start();
        let below = lines.get(at + 1..at + 1 + taken).unwrap_or_default();
        let own = matches!(item.kind, ItemKind::Field | ItemKind::Option);
        let mut body = vec![first];
        body.extend(dedented(below, if own { usize::MAX } else { item.width }));
        if own {
            self.writer.html(if item.kind == ItemKind::Option { "<dt><code>" } else { "<dt>" })?;
            self.writer.text(item.term)?;
            self.writer.html(if item.kind == ItemKind::Option { "</code></dt>" } else { "</dt>" })?;
        }
        self.writer.html(if own { "<dd>" } else { "<li>" })?;
        let since = self.writer.len();
        self.body(&body)?;
        self.writer.unwrap_paragraph(since);
        self.writer.html(if own { "</dd>\n" } else { "</li>\n" })?;
        Ok(at + 1 + taken)
    }

    /// Renders terms with indented definitions. Returns the number of lines.
    pub(crate) fn definitions(&mut self, lines: &[&str], at: usize) -> Result<usize, Stop> {
        self.writer.html("<dl>\n")?;
        let mut behind = at;
        loop {
            let term = lines.get(behind).copied().unwrap_or_default();
            // A classifier follows the term after " : " and is dropped.
            let term = term.split_once(" : ").map_or(term, |(term, _)| term);
            self.writer.html("<dt>")?;
            self.inline(term)?;
            self.writer.html("</dt><dd>")?;
            let taken = indented(lines, behind + 1);
            let since = self.writer.len();
            self.body(&dedented(lines.get(behind + 1..behind + 1 + taken).unwrap_or_default(), usize::MAX))?;
            self.writer.unwrap_paragraph(since);
            self.writer.html("</dd>\n")?;
            behind += 1 + taken;
            let blank = lines.iter().skip(behind).take_while(|line| line.is_empty()).count();
            let line = |at: usize| lines.get(at).copied().unwrap_or_default();
            let (next, below) = (behind + blank, line(behind + blank + 1));
            let goes_on =
                !line(next).is_empty() && indent(line(next)) == 0 && !below.is_empty() && indent(below) > 0;
            if !goes_on || item(lines, next).is_some() || line(next).starts_with("..") {
                break;
            }
            behind = next;
        }
        self.writer.html("</dl>\n")?;
        Ok(behind - at)
    }
}

/// Recognizes the list item that begins at this line.
fn item<'a>(lines: &[&'a str], at: usize) -> Option<ListItem<'a>> {
    let line = lines.get(at).copied().unwrap_or_default();
    let letter = line.chars().next()?;
    match letter {
        '*' | '+' | '-' | '•' | '‣' if stands_alone(line, letter.len_utf8()) => {
            Some(ListItem { kind: ItemKind::Bullet(letter), term: "", width: letter.len_utf8() + 1 })
        }
        '-' | '/' => option(line),
        ':' => field(line),
        _ => number(line, lines.get(at + 1).copied().unwrap_or_default()),
    }
}

/// Reports whether a mark of this length is the whole line or is followed by a space.
fn stands_alone(line: &str, length: usize) -> bool {
    line.get(length..).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Recognizes `1.`, `1)`, `(1)` and `#.`, also with a letter instead of the number.
fn number<'a>(line: &'a str, next: &str) -> Option<ListItem<'a>> {
    let inner = line.strip_prefix('(').unwrap_or(line);
    let digits = inner.bytes().take_while(u8::is_ascii_digit).count();
    let length = match inner.chars().next()? {
        '#' => 1,
        letter if letter.is_ascii_alphabetic() => 1,
        _ if (1..=9).contains(&digits) => digits,
        _ => return None,
    };
    let behind = inner.get(length..)?;
    let closed = if line.starts_with('(') { behind.starts_with(')') } else { behind.starts_with(['.', ')']) };
    let width = line.len() - inner.len() + length + 1;
    if !closed || !stands_alone(line, width) || line.len() == width {
        return None;
    }
    // A line such as `A. Smith wrote` begins a sentence and not a list. So a letter begins a list
    // only if the next line is blank or indented.
    let is_list = digits > 0 || inner.starts_with('#') || next.is_empty() || indent(next) > 0;
    is_list.then_some(ListItem { kind: ItemKind::Number, term: "", width: width + 1 })
}

fn numbered(line: &str) -> String {
    let digits: String = line.trim_start_matches('(').chars().take_while(char::is_ascii_digit).collect();
    match digits.parse::<u32>() {
        Ok(first) if first != 1 => format!("<ol start=\"{first}\">\n"),
        _ => "<ol>\n".to_owned(),
    }
}

/// Recognizes a field: `:name: text`.
fn field(line: &str) -> Option<ListItem<'_>> {
    let rest = line.strip_prefix(':')?;
    let mut end = None;
    for (at, letter) in rest.char_indices().take(120) {
        if letter == ':' && at > 0 && stands_alone(rest, at + 1) {
            end = Some(at);
            break;
        }
    }
    let term = rest.get(..end?)?;
    // A role before words in backquotes is not a field.
    (!term.starts_with([' ', ':']) && !term.contains('`')).then_some(ListItem {
        kind: ItemKind::Field,
        term,
        width: term.len() + 2,
    })
}

/// Recognizes `-a, --all  text`. Two spaces or the end of the line end the option.
fn option(line: &str) -> Option<ListItem<'_>> {
    let is_option = |word: &str| {
        let name =
            word.strip_prefix("--").or_else(|| word.strip_prefix('-')).or_else(|| word.strip_prefix('/'));
        name.is_some_and(|name| {
            name.starts_with(|letter: char| letter.is_ascii_alphanumeric() || letter == '?')
        })
    };
    let (term, _) = line.split_once("  ").unwrap_or((line, ""));
    let mut words = term.split(", ");
    let each = words.all(|one| is_option(one) && one.split(' ').count() <= 2);
    (each && term.len() <= 120).then_some(ListItem { kind: ItemKind::Option, term, width: term.len() })
}
