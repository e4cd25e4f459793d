//! Writes HTML: known elements, each of which is closed, and escaped text. The limit for the output
//! also bounds the number of elements, because the limit includes tags.

use crate::Bounds;
use crate::elements::Element;

/// Reason why the output ended early.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stop {
    /// Elements are nested too deeply.
    TooDeep,
    /// The output is full, or the rendering has to stop.
    Full,
}

/// Writer of well-formed HTML of bounded size.
pub(crate) struct HtmlWriter<'a> {
    html: String,
    /// Open elements, the outermost first.
    open: Vec<&'static Element>,
    /// Total size of the end tags of all open elements.
    closing: usize,
    bounds: Bounds<'a>,
}

impl<'a> HtmlWriter<'a> {
    pub(crate) fn new(bounds: Bounds<'a>) -> Self {
        Self { html: String::new(), open: Vec::new(), closing: 0, bounds }
    }

    /// Appends HTML if there is room for it and for all end tags.
    fn push(&mut self, html: &str) -> Result<(), Stop> {
        let needed = self.html.len() + html.len() + self.closing;
        if needed > self.bounds.bytes || (self.bounds.is_over)() {
            return Err(Stop::Full);
        }
        self.html.push_str(html);
        Ok(())
    }

    /// Appends as much as fits of a text that needs no escaping.
    fn push_text(&mut self, text: &str) -> Result<(), Stop> {
        let room = self.bounds.bytes.saturating_sub(self.html.len() + self.closing);
        let fits = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        self.push(fits)?;
        if fits.len() < text.len() { Err(Stop::Full) } else { Ok(()) }
    }

    /// Writes text, escaped. Character references in it are kept.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Stop> {
        let mut rest = text;
        while let Some(at) = rest.find(['<', '>', '&', '"', '\0']) {
            let (before, special) = rest.split_at(at);
            self.push_text(before)?;
            let length = reference(special).unwrap_or(1);
            let (head, tail) = special.split_at(length);
            self.push(escaped(head))?;
            rest = tail;
        }
        self.push_text(rest)
    }

    /// Begins an element, after closing the open elements that it ends. An element whose required
    /// ancestor is not open is dropped.
    pub(crate) fn begin(
        &mut self,
        element: &'static Element,
        attributes: &[Attribute<'_>],
    ) -> Result<(), Stop> {
        if element.needs.is_some_and(|outer| !self.open.iter().any(|open| open.name == outer)) {
            return Ok(());
        }
        self.make_room_for(element)?;
        if !element.is_void && self.open.len() >= self.bounds.depth {
            return Err(Stop::TooDeep);
        }
        let start = self.start_tag(element, attributes);
        if !element.is_void {
            self.closing += end_tag_length(element);
        }
        if let Err(stop) = self.push(&start) {
            if !element.is_void {
                self.closing -= end_tag_length(element);
            }
            return Err(stop);
        }
        if !element.is_void {
            self.open.push(element);
        }
        Ok(())
    }

    fn start_tag(&self, element: &'static Element, attributes: &[Attribute<'_>]) -> String {
        let mut tag = format!("<{}", element.name);
        for attribute in attributes {
            attribute.write(&mut tag);
        }
        tag.push('>');
        tag
    }

    /// Closes the open elements that the start of this one ends.
    fn make_room_for(&mut self, element: &'static Element) -> Result<(), Stop> {
        let inner = self.open.iter().rposition(|open| element.within.contains(&open.name));
        let from = inner.map_or(0, |at| at + 1);
        let closed = self.open.iter().skip(from).position(|open| element.closes.contains(&open.name));
        match closed {
            Some(at) => self.close_down_to(from + at),
            None => Ok(()),
        }
    }

    /// Closes the innermost open element of this name and all elements in it. Does nothing if no
    /// such element is open. Inside a table or a cell, an end tag closes nothing outside of it,
    /// unless the tag belongs to an element of tables.
    pub(crate) fn end(&mut self, element: &'static Element) -> Result<(), Stop> {
        let found = self.open.iter().rposition(|open| open.name == element.name);
        let cell = self.open.iter().rposition(|open| matches!(open.name, "table" | "td" | "th"));
        match found {
            Some(at) if element.needs.is_some() || cell.is_none_or(|cell| cell <= at) => {
                self.close_down_to(at)
            }
            _ => Ok(()),
        }
    }

    fn close_down_to(&mut self, depth: usize) -> Result<(), Stop> {
        while self.open.len() > depth {
            self.close_last();
        }
        if (self.bounds.is_over)() { Err(Stop::Full) } else { Ok(()) }
    }

    /// Closes the innermost element. Room for its end tag is reserved.
    fn close_last(&mut self) {
        let Some(element) = self.open.pop() else { return };
        self.closing -= end_tag_length(element);
        self.html.push_str("</");
        self.html.push_str(element.name);
        self.html.push('>');
    }

    /// Closes every element and returns the HTML.
    pub(crate) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close_last();
        }
        self.html
    }
}

fn end_tag_length(element: &Element) -> usize {
    element.name.len() + "</>".len()
}

/// A permitted attribute of an element.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Attribute<'a> {
    /// Address that a link leads to.
    Href(&'a str),
    /// First number of a list.
    Start(&'a str),
    /// Direction of a text: `ltr`, `rtl` or `auto`.
    Dir(&'a str),
}

impl Attribute<'_> {
    /// The attribute of this name, if the element may have it with this value.
    pub(crate) fn of<'a>(element: &Element, name: &str, value: &'a str) -> Option<Attribute<'a>> {
        let value = value.trim_matches(|letter: char| letter.is_ascii_whitespace());
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match element.name {
            _ if is("dir") => ["ltr", "rtl", "auto"]
                .into_iter()
                .find(|known| known.eq_ignore_ascii_case(value))
                .map(Attribute::Dir),
            "a" if is("href") && leads_out(value) => Some(Attribute::Href(value)),
            "ol" if is("start") && value.len() <= 9 && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(Attribute::Start(value))
            }
            _ => None,
        }
    }

    fn write(self, tag: &mut String) {
        let (name, value, behind) = match self {
            Self::Href(value) => ("href", value, " rel=\"nofollow noopener noreferrer\""),
            Self::Start(value) => ("start", value, ""),
            Self::Dir(value) => ("dir", value, ""),
        };
        tag.push(' ');
        tag.push_str(name);
        tag.push_str("=\"");
        let mut rest = value;
        while let Some(at) = rest.find(['<', '>', '&', '"', '\0', ' ']) {
            let (before, special) = rest.split_at(at);
            tag.push_str(before);
            let (head, tail) = special.split_at(reference(special).unwrap_or(1));
            tag.push_str(if head == " " { "%20" } else { escaped(head) });
            rest = tail;
        }
        tag.push_str(rest);
        tag.push('"');
        tag.push_str(behind);
    }
}

/// Reports whether links to this address are permitted. The scheme must be spelled out, so that
/// character references cannot hide another scheme.
fn leads_out(address: &str) -> bool {
    let begins = |scheme: &str| {
        address.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
            && address.len() > scheme.len()
    };
    ["http://", "https://", "mailto:"].into_iter().any(begins) && !address.contains(char::is_control)
}

/// Size of the character reference at the beginning of a text.
fn reference(text: &str) -> Option<usize> {
    /// Maximum size of the name in bytes.
    const LONGEST: usize = 40;
    let name = text.strip_prefix('&')?;
    let end = name.bytes().take(LONGEST).position(|byte| byte == b';')?;
    let name = name.get(..end)?;
    let plain = name.strip_prefix('#').unwrap_or(name);
    let is_name = !plain.is_empty() && plain.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_name.then_some(end + "&;".len())
}

/// Escapes a single character. A character reference is returned unchanged.
fn escaped(special: &str) -> &str {
    match special {
        "<" => "&lt;",
        ">" => "&gt;",
        "&" => "&amp;",
        "\"" => "&quot;",
        "\0" => "\u{fffd}",
        reference => reference,
    }
}
