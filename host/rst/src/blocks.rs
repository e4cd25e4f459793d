//! Recognizes the blocks of a text, and renders the blocks that consist of plain lines.

use std::collections::HashMap;

use crate::lines::{adornment, dedented, indent, indented, together};
use crate::names::Names;
use crate::writer::HtmlWriter;
use crate::{Bounds, Stop, inline};

/// Minimum length of a title's adornment in characters.
const ADORNED: usize = 3;

/// Reads blocks and writes them as HTML.
pub(crate) struct BlockReader {
    pub(crate) names: Names,
    pub(crate) writer: HtmlWriter,
    /// HTML of the finished top-level blocks.
    pub(crate) finished: Vec<String>,
    /// Number of nesting levels that remain.
    depth: usize,
    /// Rank of each style of title: the letter of its adornment, and whether it has an overline.
    ranks: HashMap<(char, bool), usize>,
}

impl BlockReader {
    pub(crate) fn new(names: Names, bounds: Bounds) -> BlockReader {
        let writer = HtmlWriter::new(bounds.bytes);
        BlockReader { names, writer, finished: Vec::new(), depth: bounds.depth, ranks: HashMap::new() }
    }

    /// Renders a whole text, each top-level block separately.
    pub(crate) fn top(&mut self, lines: &[&str]) -> Result<(), Stop> {
        let mut at = 0;
        while at < lines.len() {
            at += self.block(lines, at)?;
            if self.writer.len() > 0 {
                let block = self.writer.take();
                self.finished.push(block);
            }
        }
        Ok(())
    }

    /// Renders the blocks inside a block.
    pub(crate) fn body(&mut self, lines: &[&str]) -> Result<(), Stop> {
        self.depth = self.depth.checked_sub(1).ok_or(Stop::TooDeep)?;
        let mut at = 0;
        while at < lines.len() {
            at += self.block(lines, at)?;
        }
        self.depth += 1;
        Ok(())
    }

    pub(crate) fn inline(&mut self, text: &str) -> Result<(), Stop> {
        inline::write(text, &mut self.names, &mut self.writer)
    }

    /// Renders the block that begins at this line. Returns its number of lines.
    fn block(&mut self, lines: &[&str], at: usize) -> Result<usize, Stop> {
        let line = lines.get(at).copied().unwrap_or_default();
        if line.is_empty() {
            return Ok(1);
        }
        if indent(line) > 0 {
            return self.quote(lines, at);
        }
        let next = lines.get(at + 1).copied().unwrap_or_default();
        if line == ".." || line.starts_with(".. ") {
            return self.explicit(lines, at);
        }
        if line.starts_with("__ ") {
            return Ok(1);
        }
        if let Some(taken) = self.title(lines, at)? {
            return Ok(taken);
        }
        if adornment(line).is_some() && line.len() > ADORNED && next.is_empty() {
            self.writer.html("<hr>\n")?;
            return Ok(1);
        }
        if let Some(taken) = self.table(lines, at)? {
            return Ok(taken);
        }
        if let Some(taken) = self.list(lines, at)? {
            return Ok(taken);
        }
        if line == "|" || line.starts_with("| ") {
            return self.line_block(lines, at);
        }
        if line.starts_with(">>> ") {
            let taken = together(lines, at);
            self.literal(lines.get(at..at + taken).unwrap_or_default())?;
            return Ok(taken);
        }
        if indent(next) > 0 {
            return self.definitions(lines, at);
        }
        self.paragraph(lines, at)
    }

    /// Renders a title: a line with an underline of one repeated letter, and optionally an
    /// overline.
    fn title(&mut self, lines: &[&str], at: usize) -> Result<Option<usize>, Stop> {
        let line = |behind: usize| lines.get(at + behind).copied().unwrap_or_default();
        let (text, below, above) = match adornment(line(0)) {
            Some(_) if !line(1).is_empty() && line(2) == line(0) && adornment(line(1)).is_none() => {
                (line(1), line(2), true)
            }
            None | Some(_) => (line(0), line(1), false),
        };
        let Some(letter) = adornment(below) else { return Ok(None) };
        let long_enough = below.len() >= ADORNED || below.len() >= text.chars().count();
        if !long_enough || text.is_empty() || (adornment(text).is_some() && text.len() > ADORNED) {
            return Ok(None);
        }
        let known = self.ranks.len();
        let rank = *self.ranks.entry((letter, above)).or_insert(known);
        let element = ["h2", "h3", "h4", "h5"].get(rank).copied().unwrap_or("h6");
        self.writer.html(&format!("<{element}>"))?;
        self.inline(text.trim())?;
        self.writer.html(&format!("</{element}>\n"))?;
        Ok(Some(if above { 3 } else { 2 }))
    }

    fn quote(&mut self, lines: &[&str], at: usize) -> Result<usize, Stop> {
        let taken = indented(lines, at);
        self.within("blockquote", &dedented(lines.get(at..at + taken).unwrap_or_default(), usize::MAX))?;
        Ok(taken)
    }

    /// Renders blocks inside an element.
    pub(crate) fn within(&mut self, element: &str, lines: &[&str]) -> Result<(), Stop> {
        self.writer.html(&format!("<{element}>\n"))?;
        self.body(lines)?;
        self.writer.html(&format!("</{element}>\n"))
    }

    /// Renders lines verbatim, in a `pre` element.
    pub(crate) fn literal(&mut self, lines: &[&str]) -> Result<(), Stop> {
        self.writer.html("<pre>")?;
        for line in lines {
            self.writer.text(line)?;
            self.writer.html("\n")?;
        }
        self.writer.html("</pre>\n")
    }

    fn line_block(&mut self, lines: &[&str], at: usize) -> Result<usize, Stop> {
        let taken = together(lines, at);
        self.writer.html("<p>")?;
        for (number, line) in lines.get(at..at + taken).unwrap_or_default().iter().enumerate() {
            let begins = *line == "|" || line.starts_with("| ");
            if begins && number > 0 {
                self.writer.html("<br>\n")?;
            }
            self.inline(if begins { line.get(1..).unwrap_or_default().trim() } else { line.trim() })?;
        }
        self.writer.html("</p>\n")?;
        Ok(taken)
    }

    fn paragraph(&mut self, lines: &[&str], at: usize) -> Result<usize, Stop> {
        let together = together(lines, at);
        let all = lines.get(at..at + together).unwrap_or_default();
        // Indented lines below are a separate block.
        let taken = all.iter().skip(1).position(|line| indent(line) > 0).map_or(together, |at| at + 1);
        let text = all.get(..taken).unwrap_or_default().join("\n");
        let announces = text.ends_with("::");
        let visible = match text.strip_suffix("::") {
            Some(rest) if rest.is_empty() || rest.ends_with(char::is_whitespace) => rest.trim_end(),
            Some(_) => text.get(..text.len() - 1).unwrap_or_default(),
            None => &text,
        };
        if !visible.is_empty() {
            self.writer.html("<p>")?;
            self.inline(visible)?;
            self.writer.html("</p>\n")?;
        }
        if announces { Ok(taken + self.announced(lines, at + taken)?) } else { Ok(taken) }
    }

    /// Renders the literal block after `::`: indented lines, or lines that all begin with the same
    /// sign. Returns the number of its lines and of the blank lines above them.
    fn announced(&mut self, lines: &[&str], from: usize) -> Result<usize, Stop> {
        let rest = lines.get(from..).unwrap_or_default();
        let Some(blank) = rest.iter().position(|line| !line.is_empty()) else { return Ok(0) };
        let first = from + blank;
        let mut taken = indented(lines, first);
        let mut visible = dedented(lines.get(first..first + taken).unwrap_or_default(), usize::MAX);
        if taken == 0 {
            let sign =
                rest.get(blank).and_then(|line| line.chars().next()).filter(char::is_ascii_punctuation);
            let Some(sign) = sign.filter(|sign| matches!(sign, '>' | '$' | '#' | '%' | '|')) else {
                return Ok(0);
            };
            taken = lines.iter().skip(first).take_while(|line| line.starts_with(sign)).count();
            visible = lines.iter().skip(first).take(taken).copied().collect();
        }
        self.literal(&visible)?;
        Ok(blank + taken)
    }
}
