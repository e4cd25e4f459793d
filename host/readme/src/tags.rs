//! HTML cut into tags and texts as it comes, in pieces of any length, and handed to the writer. Only one tag is ever held, and none
//! that is longer than [`MAX_TAG`].

use std::fmt;

use crate::Bounds;
use crate::elements::{self, Element};
use crate::writer::{Attribute, Stop, Writer};

/// Bytes of a tag. A longer one, such as a picture with its bytes in it, is left out.
const MAX_TAG: usize = 8 * 1024;

/// Where in the HTML the next byte stands.
enum Place {
    Text,
    /// Within a tag, whose bytes from `<` on these are. The byte is the quote that is open.
    Tag {
        bytes: String,
        quote: Option<u8>,
    },
    /// Within a tag that is too long: up to the next `>`.
    LongTag,
    /// Within a comment, behind so many dashes.
    Comment {
        dashes: usize,
    },
}

/// See the module.
pub(crate) struct Sanitiser<'a> {
    writer: Writer<'a>,
    place: Place,
    /// The element whose content is left out until it ends.
    hidden: Option<&'static str>,
    stop: Option<Stop>,
}

impl<'a> Sanitiser<'a> {
    /// One that has written nothing.
    pub(crate) fn new(bounds: Bounds<'a>) -> Self {
        Self { writer: Writer::new(bounds), place: Place::Text, hidden: None, stop: None }
    }

    /// The HTML, and why it ended early where it did.
    pub(crate) fn finish(self) -> (String, Option<Stop>) {
        (self.writer.finish(), self.stop)
    }

    /// Reads on up to where the place changes; returns what is left.
    fn step<'t>(&mut self, piece: &'t str) -> Result<&'t str, Stop> {
        match &mut self.place {
            Place::Text => self.in_text(piece),
            Place::Tag { .. } => self.in_tag(piece),
            Place::LongTag => {
                let Some((_, rest)) = piece.split_once('>') else { return Ok("") };
                self.place = Place::Text;
                Ok(rest)
            }
            Place::Comment { dashes } => {
                for (at, byte) in piece.bytes().enumerate() {
                    match byte {
                        b'-' => *dashes += 1,
                        b'>' if *dashes >= 2 => {
                            self.place = Place::Text;
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
        self.place = Place::Tag { bytes: "<".to_owned(), quote: None };
        Ok(rest)
    }

    fn text(&mut self, text: &str) -> Result<(), Stop> {
        if self.hidden.is_some() { Ok(()) } else { self.writer.text(text) }
    }

    fn in_tag<'t>(&mut self, piece: &'t str) -> Result<&'t str, Stop> {
        let hidden = self.hidden.is_some();
        let Place::Tag { bytes, quote } = &mut self.place else { return Ok(piece) };
        for (at, letter) in piece.char_indices() {
            if bytes == "<" && !begins_tag(letter, hidden) {
                self.place = Place::Text;
                self.text("<")?;
                return Ok(piece.get(at..).unwrap_or_default());
            }
            bytes.push(letter);
            let rest = piece.get(at + letter.len_utf8()..).unwrap_or_default();
            if bytes == "<!--" {
                self.place = Place::Comment { dashes: 0 };
                return Ok(rest);
            }
            match *quote {
                Some(open) if letter == char::from(open) => *quote = None,
                Some(_) => {}
                None if letter == '>' => {
                    let tag = std::mem::take(bytes);
                    self.place = Place::Text;
                    self.tag(&tag)?;
                    return Ok(rest);
                }
                None => *quote = quote_of(letter, bytes),
            }
            if bytes.len() > MAX_TAG {
                self.place = Place::LongTag;
                return Ok(rest);
            }
        }
        Ok("")
    }

    /// A whole tag, with its angle brackets.
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

/// Whether a tag, a comment or the like begins with `<` and this. Within an element whose content is left out only an end tag does.
fn begins_tag(letter: char, hidden: bool) -> bool {
    letter == '/' || (!hidden && (letter.is_ascii_alphabetic() || matches!(letter, '!' | '?')))
}

/// The quote that a letter opens behind these bytes of a tag, which it ends: one in which a value stands.
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

/// The attributes of a start tag that the element may have, each once.
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

/// The first attribute with its value, and what stands behind it.
fn next_attribute(attributes: &str) -> Option<(&str, &str, &str)> {
    let is_space = |letter: char| letter.is_ascii_whitespace() || letter == '/';
    let rest = attributes.trim_start_matches(is_space);
    if rest.is_empty() {
        return None;
    }
    // A name may begin with `=`.
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
