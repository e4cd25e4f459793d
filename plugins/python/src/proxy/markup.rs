//! The tags of a page in HTML, one after the other, whatever stands around them: so that no more than a window of the page is in
//! memory.

use packhouse_sdk::{Error, ReadAt};
use std::collections::BTreeMap;

/// Bytes that are read at a time.
const WINDOW: u64 = 256 << 10;
/// Bytes of one tag with its label, or of a comment.
const LONGEST: usize = 1 << 20;

/// A tag.
pub(super) struct Tag {
    /// In lower case.
    pub(super) name: String,
    pub(super) attributes: BTreeMap<String, String>,
    /// The text behind it, as it stands there.
    pub(super) label: String,
}

/// A pass over the tags of a page.
pub(super) struct Markup<'a, S: ?Sized> {
    source: &'a S,
    next: u64,
    /// The beginning of a character whose end was not read yet.
    cut: Vec<u8>,
    text: String,
    /// Bytes of the text that were passed over.
    taken: usize,
    is_ended: bool,
}

/// What a text begins with.
enum Found {
    /// A tag, and how many bytes lie before what follows it.
    Tag(Tag, usize),
    /// So many bytes in which there is no tag.
    Nothing(usize),
    /// Less than one of both.
    Part,
}

impl<'a, S: ReadAt + ?Sized> Markup<'a, S> {
    pub(super) fn new(source: &'a S) -> Self {
        Self { source, next: 0, cut: Vec::new(), text: String::new(), taken: 0, is_ended: false }
    }

    /// The next tag; none behind the last. What is not UTF-8 is read as if other characters stood there.
    pub(super) fn next(&mut self) -> Result<Option<Tag>, Error> {
        loop {
            let rest = self.text.get(self.taken..).unwrap_or_default();
            match first(rest, self.is_ended) {
                Found::Tag(tag, length) => {
                    self.taken += length;
                    return Ok(Some(tag));
                }
                Found::Nothing(length) if length > 0 => self.taken += length,
                _ if self.is_ended => return Ok(None),
                _ if rest.len() > LONGEST => {
                    return Err(Error::Unavailable("a tag of a page is too long".to_owned()));
                }
                _ => self.read_on()?,
            }
        }
    }

    /// Drops what was passed over, and reads what follows.
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

fn first(text: &str, is_ended: bool) -> Found {
    let Some(start) = text.find('<') else { return Found::Nothing(text.len()) };
    let rest = text.get(start + 1..).unwrap_or_default();
    if let Some(comment) = rest.strip_prefix("!--") {
        let end = comment.find("-->").map(|at| start + 4 + at + 3);
        return end.map_or(Found::Part, Found::Nothing);
    }
    if !is_ended && "!--".starts_with(rest) {
        return Found::Part;
    }
    let Some((name, attributes, after)) = element(rest) else { return Found::Part };
    let label = match after.find('<') {
        Some(end) => after.get(..end).unwrap_or_default(),
        None if is_ended => after,
        None => return Found::Part,
    };
    let tag = Tag { name: name.to_ascii_lowercase(), attributes, label: label.to_owned() };
    Found::Tag(tag, text.len() - after.len())
}

/// A tag's name, its attributes, and what follows it.
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

/// A value, quoted or not, and what follows it.
fn attribute(text: &str) -> Option<(&str, &str)> {
    for quote in ['"', '\''] {
        if let Some(quoted) = text.strip_prefix(quote) {
            return quoted.split_once(quote);
        }
    }
    let end = text.find(|symbol: char| symbol.is_whitespace() || symbol == '>')?;
    text.split_at_checked(end)
}

/// The few entities that such pages hold.
pub(super) fn unescape(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let named =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&#x27;", "'"), ("&#34;", "\"")];
    let text = named.iter().fold(text.to_owned(), |text, (entity, symbol)| text.replace(entity, symbol));
    text.replace("&amp;", "&")
}
