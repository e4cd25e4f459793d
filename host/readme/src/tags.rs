//! Splits streamed HTML into tags and texts and passes them to the writer. The stream may be cut
//! into pieces of any length. At most one tag is buffered, of at most [`MAX_TAG`] bytes.

use std::fmt;

use crate::Bounds;
use crate::elements::{self, Element};
use crate::writer::{Attribute, HtmlWriter, Stop};

/// Maximum size of a tag in bytes. A longer one, such as an image with embedded data, is dropped.
const MAX_TAG: usize = 8 * 1024;

/// State of the parser at the next byte.
enum ParserState {
    Text,
    /// Inside a tag, with its bytes from `<` on, and the quote that is open.
    Tag {
        bytes: String,
        quote: Option<u8>,
    },
    /// Inside a tag that is too long, until the next `>`.
    LongTag,
    /// Inside a comment, after this number of dashes.
    Comment {
        dashes: usize,
    },
}

/// Parses HTML piece by piece and writes the elements and texts that are permitted.
pub(crate) struct Sanitiser<'a> {
    writer: HtmlWriter<'a>,
    state: ParserState,
    /// The open element whose content is dropped.
    hidden: Option<&'static str>,
    stop: Option<Stop>,
}

impl<'a> Sanitiser<'a> {
    pub(crate) fn new(bounds: Bounds<'a>) -> Self {
        Self { writer: HtmlWriter::new(bounds), state: ParserState::Text, hidden: None, stop: None }
    }

    /// The HTML, and the reason if it ended early.
    pub(crate) fn finish(self) -> (String, Option<Stop>) {
        (self.writer.finish(), self.stop)
    }

    /// Reads until the state changes. Returns the rest of the piece.
    fn step<'t>(&mut self, piece: &'t str) -> Result<&'t str, Stop> {
        match &mut self.state {
            ParserState::Text => self.in_text(piece),
            ParserState::Tag { .. } => self.in_tag(piece),
            ParserState::LongTag => {
                let Some((_, rest)) = piece.split_once('>') else { return Ok("") };
                self.state = ParserState::Text;
                Ok(rest)
            }
            ParserState::Comment { dashes } => {
                for (at, byte) in piece.bytes().enumerate() {
                    match byte {
                        b'-' => *dashes += 1,
                        b'>' if *dashes >= 2 => {
                            self.state = ParserState::Text;
                            return Ok(piece.get(at + 1..).unwrap_or_default());
                        }
                        _ => *dashes = 0,
                    }
                }
                Ok("")
            }
        }
    }

    fn in_text<'t>(&mut self, piece: &'t str) -> Result<&'t str, Stop> {
        let (text, rest) = piece.split_at(piece.find('<').unwrap_or(piece.len()));
        self.text(text)?;
        let Some(rest) = rest.strip_prefix('<') else { return Ok("") };
        self.state = ParserState::Tag { bytes: "<".to_owned(), quote: None };
        Ok(rest)
    }

    fn text(&mut self, text: &str) -> Result<(), Stop> {
        if self.hidden.is_some() { Ok(()) } else { self.writer.text(text) }
    }

    fn in_tag<'t>(&mut self, piece: &'t str) -> Result<&'t str, Stop> {
        let hidden = self.hidden.is_some();
        let ParserState::Tag { bytes, quote } = &mut self.state else { return Ok(piece) };
        for (at, letter) in piece.char_indices() {
            if bytes == "<" && !begins_tag(letter, hidden) {
                self.state = ParserState::Text;
                self.text("<")?;
                return Ok(piece.get(at..).unwrap_or_default());
            }
            bytes.push(letter);
            let rest = piece.get(at + letter.len_utf8()..).unwrap_or_default();
            if bytes == "<!--" {
                self.state = ParserState::Comment { dashes: 0 };
                return Ok(rest);
            }
            match *quote {
                Some(open) if letter == char::from(open) => *quote = None,
                Some(_) => {}
                None if letter == '>' => {
                    let tag = std::mem::take(bytes);
                    self.state = ParserState::Text;
                    self.tag(&tag)?;
                    return Ok(rest);
                }
                None => *quote = quote_of(letter, bytes),
            }
            if bytes.len() > MAX_TAG {
                self.state = ParserState::LongTag;
                return Ok(rest);
            }
        }
        Ok("")
    }

    /// Handles a complete tag, with its angle brackets.
    fn tag(&mut self, tag: &str) -> Result<(), Stop> {
        let tag = tag.trim_start_matches('<').trim_end_matches('>');
        let (is_end, tag) = match tag.strip_prefix('/') {
            Some(tag) => (true, tag),
            None => (false, tag),
        };
        let end = tag.find(|letter: char| letter.is_ascii_whitespace() || letter == '/').unwrap_or(tag.len());
        let (name, attributes) = tag.split_at(end);
        if let Some(hidden) = self.hidden {
            if is_end && name.eq_ignore_ascii_case(hidden) {
                self.hidden = None;
            }
            return Ok(());
        }
        match elements::named(name) {
            Some(element) if is_end => self.writer.end(element),
            Some(element) => self.writer.begin(element, &known(element, attributes)),
            None if is_end || attributes.ends_with('/') => Ok(()),
            None => {
                self.hidden = elements::hidden(name);
                Ok(())
            }
        }
    }
}

impl fmt::Write for Sanitiser<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let mut rest = piece;
        while !rest.is_empty() && self.stop.is_none() {
            match self.step(rest) {
                Ok(left) => rest = left,
                Err(stop) => self.stop = Some(stop),
            }
        }
        self.stop.map_or(Ok(()), |_| Err(fmt::Error))
    }
}

/// Reports whether `<` and this letter begin a tag or a comment. Inside an element whose content is
/// dropped, only an end tag is recognized.
fn begins_tag(letter: char, hidden: bool) -> bool {
    letter == '/' || (!hidden && (letter.is_ascii_alphabetic() || matches!(letter, '!' | '?')))
}

/// The quote that the letter opens, if it begins an attribute value. `bytes` is the tag so far,
/// including the letter.
fn quote_of(letter: char, bytes: &str) -> Option<u8> {
    let quote = match letter {
        '"' => b'"',
        '\'' => b'\'',
        _ => return None,
    };
    let before = bytes.get(..bytes.len() - 1).unwrap_or_default().trim_end();
    let is_start_tag = !["</", "<!", "<?"].iter().any(|other| before.starts_with(other));
    (is_start_tag && before.ends_with('=')).then_some(quote)
}

/// The permitted attributes of a start tag, without duplicates.
fn known<'t>(element: &Element, attributes: &'t str) -> Vec<Attribute<'t>> {
    let mut found: Vec<Attribute<'t>> = Vec::new();
    let mut rest = attributes;
    while let Some((name, value, left)) = next_attribute(rest) {
        rest = left;
        let attribute = Attribute::of(element, name, value);
        let is_new = |new: &Attribute<'t>| {
            !found.iter().any(|old| std::mem::discriminant(old) == std::mem::discriminant(new))
        };
        found.extend(attribute.filter(is_new));
    }
    found
}

/// The first attribute, its value, and the rest.
fn next_attribute(attributes: &str) -> Option<(&str, &str, &str)> {
    let is_space = |letter: char| letter.is_ascii_whitespace() || letter == '/';
    let rest = attributes.trim_start_matches(is_space);
    if rest.is_empty() {
        return None;
    }
    // The name of an attribute may begin with `=`.
    let from = rest.chars().next().map_or(0, char::len_utf8);
    let tail = rest.get(from..).unwrap_or_default();
    let end = from + tail.find(|letter| is_space(letter) || letter == '=').unwrap_or(tail.len());
    let (name, rest) = rest.split_at(end);
    let Some(value) = rest.trim_start().strip_prefix('=').map(str::trim_start) else {
        return Some((name, "", rest));
    };
    for quote in ['"', '\''] {
        if let Some(quoted) = value.strip_prefix(quote) {
            let (value, rest) = quoted.split_once(quote).unwrap_or((quoted, ""));
            return Some((name, value, rest));
        }
    }
    let end = value.find(|letter: char| letter.is_ascii_whitespace()).unwrap_or(value.len());
    let (value, rest) = value.split_at(end);
    Some((name, value, rest))
}
