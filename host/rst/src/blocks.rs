//! The blocks of a text: which kind each is, and those that are no more than lines.

use std::collections::HashMap;

use crate::lines::{adornment, dedented, indent, indented, together};
use crate::names::Names;
use crate::writer::Writer;
use crate::{Bounds, Stop, inline};

/// The lines of a title's adornment, at least.
const ADORNED: usize = 3;

/// Reads blocks and writes them.
pub(crate) struct Reader {
    pub(crate) names: Names,
    pub(crate) writer: Writer,
    /// Blocks that are written.
    pub(crate) finished: Vec<String>,
    /// How much deeper blocks may stand.
    depth: usize,
    /// Which rank a title has that is adorned so: letter below it, and whether the same stands above.
    ranks: HashMap<(char, bool), usize>,
}

impl Reader {
    /// One that has read nothing.
    pub(crate) fn new(names: Names, bounds: Bounds) -> Reader {
        let writer = Writer::new(bounds.bytes);
        Reader { names, writer, finished: Vec::new(), depth: bounds.depth, ranks: HashMap::new() }
    }

    /// The whole text, each of its blocks by itself.
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

    /// Blocks within a block.
    pub(crate) fn body(&mut self, lines: &[&str]) -> Result<(), Stop> {
        self.depth = self.depth.checked_sub(1).ok_or(Stop::TooDeep)?;
        let mut at = 0;
        while at < lines.len() {
            at += self.block(lines, at)?;
        }
        self.depth += 1;
        Ok(())
    }

    /// What stands within a line, or within several.
    pub(crate) fn inline(&mut self, text: &str) -> Result<(), Stop> {
        inline::write(text, &mut self.names, &mut self.writer)
    }

    /// The block that begins at this line; how many lines it has.
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

    /// A title, with a line of one letter below it and maybe above it.
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

    /// Blocks within an element.
    pub(crate) fn within(&mut self, element: &str, lines: &[&str]) -> Result<(), Stop> {
        self.writer.html(&format!("<{element}>\n"))?;
        self.body(lines)?;
        self.writer.html(&format!("</{element}>\n"))
    }

    /// Lines that are shown as they are.
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
        // What is indented below is a block of its own.
        let taken = all.iter().skip(1).position(|line| indent(line) > 0).map_or(together, |at| at + 1);
        let text = all.get(..taken).unwrap_or_default().join("\n");
        let announces = text.ends_with("::");
        let shown = match text.strip_suffix("::") {
            Some(rest) if rest.is_empty() || rest.ends_with(char::is_whitespace) => rest.trim_end(),
            Some(_) => text.get(..text.len() - 1).unwrap_or_default(),
            None => &text,
        };
        if !shown.is_empty() {
            self.writer.html("<p>")?;
            self.inline(shown)?;
            self.writer.html("</p>\n")?;
        }
        if announces { Ok(taken + self.announced(lines, at + taken)?) } else { Ok(taken) }
    }

    /// The literal block behind `::`: what is indented, or each of whose lines begins with the same sign. How many lines it has.
    fn announced(&mut self, lines: &[&str], from: usize) -> Result<usize, Stop> {
        let rest = lines.get(from..).unwrap_or_default();
        let Some(blank) = rest.iter().position(|line| !line.is_empty()) else { return Ok(0) };
        let first = from + blank;
        let mut taken = indented(lines, first);
        let mut shown = dedented(lines.get(first..first + taken).unwrap_or_default(), usize::MAX);
        if taken == 0 {
            let sign =
                rest.get(blank).and_then(|line| line.chars().next()).filter(char::is_ascii_punctuation);
            let Some(sign) = sign.filter(|sign| matches!(sign, '>' | '$' | '#' | '%' | '|')) else {
                return Ok(0);
            };
            taken = lines.iter().skip(first).take_while(|line| line.starts_with(sign)).count();
            shown = lines.iter().skip(first).take(taken).copied().collect();
        }
        self.literal(&shown)?;
        Ok(blank + taken)
    }
}
