//! Iterates over the tags of an HTML page and ignores the rest. Only a window of the page is in
//! memory.

use packhouse_sdk::{Error, ReadAt};
use std::collections::BTreeMap;

/// Bytes that are read at a time.
const WINDOW: u64 = 256 << 10;
/// Maximum bytes of a tag with its label, or of a comment.
const LONGEST: usize = 1 << 20;

/// A tag.
pub(super) struct Tag {
    /// The lower-case name.
    pub(super) name: String,
    pub(super) attributes: BTreeMap<String, String>,
    /// The raw text after the tag.
    pub(super) label: String,
}

/// An iterator over the tags of a page.
pub(super) struct Markup<'a, S: ?Sized> {
    source: &'a S,
    next: u64,
    /// The start of a character whose remaining bytes were not read yet.
    cut: Vec<u8>,
    text: String,
    /// Number of bytes of `text` that were consumed.
    taken: usize,
    is_ended: bool,
}

/// The result of looking for the first tag of a text.
enum Scan {
    /// A tag, and the number of bytes up to its end.
    Tag(Tag, usize),
    /// No tag. The number of bytes that the reader can skip.
    Nothing(usize),
    /// The text ends within a tag or a comment.
    Incomplete,
}

impl<'a, S: ReadAt + ?Sized> Markup<'a, S> {
    pub(super) fn new(source: &'a S) -> Self {
        Self { source, next: 0, cut: Vec::new(), text: String::new(), taken: 0, is_ended: false }
    }

    /// Returns the next tag, or `None` after the last one. Bytes that are not UTF-8 are replaced.
    pub(super) fn next(&mut self) -> Result<Option<Tag>, Error> {
        loop {
            let rest = self.text.get(self.taken..).unwrap_or_default();
            match first(rest, self.is_ended) {
                Scan::Tag(tag, length) => {
                    self.taken += length;
                    return Ok(Some(tag));
                }
                Scan::Nothing(length) if length > 0 => self.taken += length,
                _ if self.is_ended => return Ok(None),
                _ if rest.len() > LONGEST => {
                    return Err(Error::Unavailable("an HTML tag is too long".to_owned()));
                }
                _ => self.read_on()?,
            }
        }
    }

    /// Drops the consumed text, and reads the next window.
    fn read_on(&mut self) -> Result<(), Error> {
        self.text.drain(..self.taken);
        self.taken = 0;
        let read = self.source.read_at(self.next, WINDOW as u32)?;
        self.next += read.len() as u64;
        self.is_ended = read.is_empty();
        let mut bytes = std::mem::take(&mut self.cut);
        bytes.extend(read);
        if let Err(error) = core::str::from_utf8(&bytes)
            && error.error_len().is_none()
            && !self.is_ended
        {
            self.cut = bytes.split_off(error.valid_up_to());
        }
        self.text.push_str(&String::from_utf8_lossy(&bytes));
        Ok(())
    }
}

fn first(text: &str, is_ended: bool) -> Scan {
    let Some(start) = text.find('<') else { return Scan::Nothing(text.len()) };
    let rest = text.get(start + 1..).unwrap_or_default();
    if let Some(comment) = rest.strip_prefix("!--") {
        let end = comment.find("-->").map(|at| start + 4 + at + 3);
        return end.map_or(Scan::Incomplete, Scan::Nothing);
    }
    if !is_ended && "!--".starts_with(rest) {
        return Scan::Incomplete;
    }
    let Some((name, attributes, after)) = element(rest) else { return Scan::Incomplete };
    let label = match after.find('<') {
        Some(end) => after.get(..end).unwrap_or_default(),
        None if is_ended => after,
        None => return Scan::Incomplete,
    };
    let tag = Tag { name: name.to_ascii_lowercase(), attributes, label: label.to_owned() };
    Scan::Tag(tag, text.len() - after.len())
}

/// Parses a tag. Returns its name, its attributes and the rest of the text. `None` if the text ends
/// within the tag.
fn element(text: &str) -> Option<(&str, BTreeMap<String, String>, &str)> {
    let end = text.find(|symbol: char| symbol.is_whitespace() || symbol == '>')?;
    let (tag, mut rest) = text.split_at_checked(end)?;
    let mut attributes = BTreeMap::new();
    loop {
        rest = rest.trim_start_matches(|symbol: char| symbol.is_whitespace() || symbol == '/');
        if let Some(after) = rest.strip_prefix('>') {
            return Some((tag, attributes, after));
        }
        let end = rest.find(|symbol: char| symbol.is_whitespace() || "=>/".contains(symbol))?;
        let (name, after) = rest.split_at_checked(end)?;
        rest = after.trim_start();
        let mut value = "";
        if let Some(after) = rest.strip_prefix('=') {
            (value, rest) = attribute(after.trim_start())?;
        } else if name.is_empty() {
            return None;
        }
        attributes.entry(name.to_ascii_lowercase()).or_insert_with(|| unescape(value));
    }
}

/// Parses an attribute's value, with or without quotes. Returns the value and the rest of the text.
fn attribute(text: &str) -> Option<(&str, &str)> {
    for quote in ['"', '\''] {
        if let Some(quoted) = text.strip_prefix(quote) {
            return quoted.split_once(quote);
        }
    }
    let end = text.find(|symbol: char| symbol.is_whitespace() || symbol == '>')?;
    text.split_at_checked(end)
}

/// Replaces the few HTML entities that index pages contain.
pub(super) fn unescape(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let named =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&#x27;", "'"), ("&#34;", "\"")];
    let text = named.iter().fold(text.to_owned(), |text, (entity, symbol)| text.replace(entity, symbol));
    text.replace("&amp;", "&")
}
