//! READMEs made into HTML that does nothing: Markdown and reStructuredText, with the HTML that stands in them.
//!
//! A README is hostile input. No tree of elements is ever built of it. `tags` cuts HTML into tags and
//! texts as they come, and `writer` writes the few elements that it knows, closes each of them itself
//! and stops at the first byte that has no room. So memory is bounded by the output, and time by the
//! length of the input. The output is well formed whatever the input was, because every byte of it is
//! either written by `writer` or escaped.

mod elements;
mod tags;
mod writer;

use std::fmt::Write as _;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use tags::Sanitiser;
use writer::Stop;

/// Bytes of a text that are read.
pub const MAX_TEXT: usize = 64 * 1024;
/// Cells that tables may have, with those that a row lacks. The parser makes up the lacking ones.
const MAX_CELLS: usize = 64 * 1024;

/// The markup of a text.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum MarkupKind {
    /// CommonMark with tables, strikethrough and task lists.
    Markdown,
    /// The markup of docutils.
    RestructuredText,
}

/// Bounds of one rendering.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    /// Elements within each other.
    pub depth: usize,
    /// Bytes of HTML.
    pub bytes: usize,
    /// Says that the work is to end early, where it is: its time is over, or nobody waits for it.
    pub is_over: &'a dyn Fn() -> bool,
}

/// A text as HTML.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rendered {
    /// Well-formed HTML of elements that only hold text.
    pub html: String,
    /// Whether it is all of the text; else it is its beginning.
    pub whole: bool,
}

/// Renders a text of at most [`MAX_TEXT`] bytes. `None` where its elements stand too deep in each other,
/// where it is too long, and where nothing of it would be seen.
#[must_use]
pub fn render(kind: MarkupKind, text: &str, bounds: Bounds<'_>) -> Option<Rendered> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let mut sanitiser = Sanitiser::new(bounds);
    let written = match kind {
        MarkupKind::Markdown => markdown(text, &mut sanitiser),
        MarkupKind::RestructuredText => restructured(text, bounds, &mut sanitiser),
    };
    let (html, stop) = sanitiser.finish();
    let is_seen = html.split('<').any(|piece| {
        piece.split_once('>').map_or(piece, |(_, text)| text).contains(|letter: char| !letter.is_whitespace())
    });
    match stop {
        Some(Stop::TooDeep) => None,
        _ if !is_seen => None,
        Some(Stop::Full) => Some(Rendered { html, whole: false }),
        None => written.map(|whole| Rendered { html, whole }),
    }
}

/// Writes Markdown as HTML. The sanitiser knows why it ended early.
fn markdown(text: &str, sanitiser: &mut Sanitiser<'_>) -> Option<bool> {
    let mut options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    if cells(text) <= MAX_CELLS {
        options |= Options::ENABLE_TABLES;
    }
    let events = Parser::new_ext(text, options).map(lowered);
    Some(pulldown_cmark::html::write_html_fmt(&mut *sanitiser, events).is_ok())
}

/// Writes reStructuredText as HTML. `None` where its blocks stand too deep in each other.
fn restructured(text: &str, bounds: Bounds<'_>, sanitiser: &mut Sanitiser<'_>) -> Option<bool> {
    // An item of a list is two elements.
    let within = packhouse_rst::Bounds { depth: bounds.depth / 2, bytes: 2 * bounds.bytes };
    let made = packhouse_rst::rendered(text, within)?;
    let written = made.blocks.iter().all(|block| sanitiser.write_str(block).is_ok());
    Some(made.whole && written)
}

/// The most cells that tables of this text can have.
fn cells(text: &str) -> usize {
    let columns = text.lines().map(|line| line.matches('|').count() + 1).max().unwrap_or_default();
    columns.saturating_mul(text.lines().count())
}

/// A page has one heading of the first rank, its own, and no picture from elsewhere: the words that
/// describe a picture stand for it.
fn lowered(event: Event<'_>) -> Event<'_> {
    use pulldown_cmark::HeadingLevel::{H1, H2, H3, H4, H5, H6};
    let below = |level| match level {
        H1 => H2,
        H2 => H3,
        H3 => H4,
        H4 => H5,
        H5 | H6 => H6,
    };
    match event {
        Event::Start(Tag::Heading { level, id, classes, attrs }) => {
            Event::Start(Tag::Heading { level: below(level), id, classes, attrs })
        }
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(below(level))),
        Event::Start(Tag::Image { .. }) => Event::Start(Tag::Emphasis),
        Event::End(TagEnd::Image) => Event::End(TagEnd::Emphasis),
        other => other,
    }
}

#[cfg(test)]
mod tests;
