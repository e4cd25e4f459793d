//! Markdown of the generated pages.

/// Text of a paragraph on one line. Characters that would start HTML or emphasis are escaped
/// outside of code.
pub(super) fn prose(text: &str) -> String {
    let mut escaped = String::new();
    for (index, part) in text.split('`').enumerate() {
        if index > 0 {
            escaped.push('`');
        }
        if index % 2 == 0 {
            escaped.push_str(&part.replace('<', "\\<").replace('*', "\\*"));
        } else {
            escaped.push_str(part);
        }
    }
    escaped.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text of a cell of a table.
pub(super) fn cell(text: &str) -> String {
    prose(text).replace('|', "\\|")
}

/// Inline code; nothing if the text is empty.
pub(super) fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

/// A table, with cells that are Markdown already; nothing if it has no rows.
pub(super) fn table<const N: usize>(heads: [&str; N], rows: &[[String; N]]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!("| {} |\n|{}\n", heads.join(" | "), " --- |".repeat(N));
    for row in rows {
        text.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_only_outside_of_code() {
        assert_eq!(prose("a <b>\n and `<c> *` *"), "a \\<b> and `<c> *` \\*");
        assert_eq!(cell("`a|b`"), "`a\\|b`");
        assert_eq!((code(""), code("x")), (String::new(), "`x`".to_owned()));
    }

    #[test]
    fn a_table_has_a_line_for_each_row() {
        let rows = [["1".to_owned(), "2".to_owned()]];
        assert_eq!(table(["a", "b"], &rows), "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n");
        assert_eq!(table(["a", "b"], &[]), "");
    }
}
