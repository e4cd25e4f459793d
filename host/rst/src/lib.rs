//! Renders the reStructuredText of READMEs as HTML. It supports the sections, paragraphs, lists,
//! tables and literal blocks of the docutils specification, and the directives that a page can
//! show. The parser is written by hand because the input is untrusted: the crates that know the
//! whole language may abort the process, or recurse as deeply as the text demands.
//!
//! The time grows at most with the length of the text multiplied by the permitted depth. The size
//! of the HTML is bounded. All text is escaped, and links lead only to `http`, `https` and
//! `mailto`. Images are replaced by their descriptions; files and raw HTML are dropped. A mistake
//! in the markup loses the formatting and not the words.
//!
//! `lines` splits the text, and `names` resolves its references. `blocks` recognizes the blocks,
//! some of which are in `lists`, `tables` and `directives`. `inline` renders markup inside lines,
//! and `writer` writes HTML.

mod blocks;
mod directives;
mod inline;
mod lines;
mod lists;
mod names;
mod tables;
mod writer;

use blocks::BlockReader;
use names::Names;

/// Limits for a single rendering.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Maximum nesting depth of blocks.
    pub depth: usize,
    /// Maximum size of the HTML in bytes.
    pub bytes: usize,
}

/// HTML that was rendered from a text.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Rendered {
    /// HTML of the top-level blocks, each well formed by itself.
    pub blocks: Vec<String>,
    /// True if the blocks have the whole text, false if the limit was reached before.
    pub whole: bool,
}

/// Reason why a rendering ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stop {
    /// Blocks are nested too deeply.
    TooDeep,
    /// The limit for the HTML is reached.
    Full,
}

/// Renders a text as HTML. `None` if its blocks are nested too deeply.
pub fn rendered(text: &str, bounds: Bounds) -> Option<Rendered> {
    let expanded = lines::expanded(text);
    let lines: Vec<&str> = expanded.lines().map(str::trim_end).collect();
    let mut reader = BlockReader::new(Names::of(&lines), bounds);
    let whole = match reader.top(&lines) {
        Ok(()) => true,
        Err(Stop::Full) => false,
        Err(Stop::TooDeep) => return None,
    };
    Some(Rendered { blocks: reader.finished, whole })
}

#[cfg(test)]
mod tests;
