//! Renders READMEs as inert HTML. The input is Markdown, which may contain HTML, or
//! reStructuredText.
//!
//! A README is hostile input, so no tree of elements is ever built from it. `tags` splits HTML into
//! tags and texts while it streams. `writer` writes the few elements that it knows, closes each of
//! them itself, and stops when the output is full. So the output bounds the memory, and the length
//! of the input bounds the time. The output is well formed for any input, because each byte of it
//! is either written by `writer` or escaped.

mod elements;
mod tags;
mod writer;

use std::fmt::Write as _;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use tags::Sanitiser;
use writer::Stop;

/// Maximum size of a text in bytes.
pub const MAX_TEXT: usize = 64 * 1024;
/// Maximum number of table cells. The number includes cells that a row lacks, because the parser
/// adds them.
const MAX_CELLS: usize = 64 * 1024;

/// Markup language of a text.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum MarkupKind {
    /// CommonMark with tables, strikethrough and task lists.
    Markdown,
    /// The markup language of docutils.
    RestructuredText,
}

/// Limits for a single rendering.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    /// Maximum nesting depth of elements.
    pub depth: usize,
    /// Maximum size of the HTML in bytes.
    pub bytes: usize,
    /// Returns true if the rendering should stop early, because its time is over or its result is
    /// no longer needed.
    pub is_over: &'a dyn Fn() -> bool,
}

/// HTML that was rendered from a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rendered {
    /// Well-formed HTML whose elements only format text.
    pub html: String,
    /// True if the HTML has the whole text, false if only its beginning.
    pub whole: bool,
}

/// Renders a text of at most [`MAX_TEXT`] bytes. `None` if the text is too long, its elements are
/// nested too deeply, or nothing of it would be visible.
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
    let is_visible = html.split('<').any(|piece| {
        piece.split_once('>').map_or(piece, |(_, text)| text).contains(|letter: char| !letter.is_whitespace())
    });
    match stop {
        Some(Stop::TooDeep) => None,
        _ if !is_visible => None,
        Some(Stop::Full) => Some(Rendered { html, whole: false }),
        None => written.map(|whole| Rendered { html, whole }),
    }
}

/// Renders Markdown. Returns whether all of it was written, and never `None`. If some of it is
/// missing, the sanitiser has the reason.
fn markdown(text: &str, sanitiser: &mut Sanitiser<'_>) -> Option<bool> {
    let mut options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    if cells(text) <= MAX_CELLS {
        options |= Options::ENABLE_TABLES;
    }
    let events = Parser::new_ext(text, options).map(lower_headings);
    Some(pulldown_cmark::html::write_html_fmt(&mut *sanitiser, events).is_ok())
}

/// Renders reStructuredText. Returns whether all of it was written; `None` if its blocks are nested
/// too deeply.
fn restructured(text: &str, bounds: Bounds<'_>, sanitiser: &mut Sanitiser<'_>) -> Option<bool> {
    // A list item becomes two nested elements, so only half as many blocks may be nested.
    let within = packhouse_rst::Bounds { depth: bounds.depth / 2, bytes: 2 * bounds.bytes };
    let made = packhouse_rst::rendered(text, within)?;
    let written = made.blocks.iter().all(|block| sanitiser.write_str(block).is_ok());
    Some(made.whole && written)
}

/// Upper bound for the number of table cells in a text.
fn cells(text: &str) -> usize {
    let columns = text.lines().map(|line| line.matches('|').count() + 1).max().unwrap_or_default();
    columns.saturating_mul(text.lines().count())
}

/// Lowers headings by one level, because the page itself has the only `h1`. Replaces images, which
/// would be loaded from other servers, by their descriptions.
fn lower_headings(event: Event<'_>) -> Event<'_> {
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
