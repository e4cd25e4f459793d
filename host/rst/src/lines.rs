//! The lines of a text: their indentation and their grouping.

/// Width of a tab stop.
const TAB: usize = 8;

/// Replaces tabs, vertical tabs and form feeds by spaces.
pub(crate) fn expanded(text: &str) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut column = 0;
    for letter in text.chars() {
        match letter {
            '\t' => {
                let spaces = TAB - column % TAB;
                expanded.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
                continue;
            }
            '\u{b}' | '\u{c}' => expanded.push(' '),
            letter => expanded.push(letter),
        }
        column = if letter == '\n' { 0 } else { column + 1 };
    }
    expanded
}

/// Number of spaces at the beginning of a line.
pub(crate) fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Removes up to this number of spaces from the beginning of a line.
pub(crate) fn without(line: &str, spaces: usize) -> &str {
    line.get(spaces.min(indent(line))..).unwrap_or_default()
}

/// Number of consecutive blank or indented lines from this one on, without trailing blank ones.
pub(crate) fn indented(lines: &[&str], from: usize) -> usize {
    let rest = lines.get(from..).unwrap_or_default();
    let end = rest.iter().position(|line| !line.is_empty() && indent(line) == 0).unwrap_or(rest.len());
    let taken = rest.get(..end).unwrap_or_default();
    taken.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1)
}

/// Removes the indentation that all lines share, up to `most` spaces.
pub(crate) fn dedented<'a>(lines: &[&'a str], most: usize) -> Vec<&'a str> {
    let shared = lines.iter().filter(|line| !line.is_empty()).map(|line| indent(line)).min();
    let spaces = shared.unwrap_or_default().min(most);
    lines.iter().map(|line| without(line, spaces)).collect()
}

/// Number of lines from this one up to the next blank one.
pub(crate) fn together(lines: &[&str], from: usize) -> usize {
    let rest = lines.get(from..).unwrap_or_default();
    rest.iter().position(|line| line.is_empty()).unwrap_or(rest.len())
}

/// The punctuation mark that the whole line repeats, as the lines above and below a title do.
/// `None` for any other line.
pub(crate) fn adornment(line: &str) -> Option<char> {
    let first = line.chars().next().filter(char::is_ascii_punctuation)?;
    (line.len() >= 2 && line.bytes().all(|byte| char::from(byte) == first)).then_some(first)
}
