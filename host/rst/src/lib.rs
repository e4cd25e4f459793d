//! reStructuredText as READMEs of packages have it, made into HTML: what docutils' specification of the markup calls sections, paragraphs,
//! lists, tables, literal blocks, and of directives those that a page can show. It is read by hand, line by line, because what is read was
//! written by strangers: the crates that know all of the language end the process, or recurse as deep as the text says.
//!
//! Whatever the text, the time is linear in it times the depth that is allowed, and the HTML is bounded. All of the text is escaped, links
//! lead to `http`, `https` and `mailto` alone, pictures are what they are called, and files and raw HTML are left out. What is wrong in a
//! text costs it its form and not its words.
//!
//! `lines` cuts the text up, `names` knows where its references lead; `blocks` tells the kinds of block apart, each in a file of its own:
//! `lists`, `tables`, `directives`. `inline` is what stands within a line, and `writer` what is written.

mod blocks;
mod directives;
mod inline;
mod lines;
mod lists;
mod names;
mod tables;
mod writer;

use blocks::Reader;
use names::Names;

/// How much is made of a text.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Blocks within each other.
    pub depth: usize,
    /// Bytes of HTML.
    pub bytes: usize,
}

/// A text as HTML.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Rendered {
    /// Its blocks, each of which stands by itself.
    pub blocks: Vec<String>,
    /// Whether they are all of it; else there was no room for more.
    pub whole: bool,
}

/// What ends the work early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    /// Blocks stand too deep in each other.
    TooDeep,
    /// There is no more room.
    Full,
}

/// A text as HTML. `None` where its blocks stand deeper in each other than is allowed.
pub fn rendered(text: &str, bounds: Bounds) -> Option<Rendered> {
    let expanded = lines::expanded(text);
    let lines: Vec<&str> = expanded.lines().map(str::trim_end).collect();
    let mut reader = Reader::new(Names::of(&lines), bounds);
    let whole = match reader.top(&lines) {
        Ok(()) => true,
        Err(Stop::Full) => false,
        Err(Stop::TooDeep) => return None,
    };
    Some(Rendered { blocks: reader.finished, whole })
}

#[cfg(test)]
mod tests;
