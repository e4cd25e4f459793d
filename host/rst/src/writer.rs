//! Writes HTML of bounded size in which all text is escaped.

use crate::Stop;

/// Writer of HTML. Its methods fail with `Full` when the limit is reached.
pub(crate) struct HtmlWriter {
    html: String,
    room: usize,
}

impl HtmlWriter {
    /// Creates a writer for at most this many bytes.
    pub(crate) fn new(room: usize) -> HtmlWriter {
        HtmlWriter { html: String::new(), room }
    }

    /// Writes HTML from this crate unchanged.
    pub(crate) fn html(&mut self, html: &str) -> Result<(), Stop> {
        self.room = self.room.checked_sub(html.len()).ok_or(Stop::Full)?;
        self.html.push_str(html);
        Ok(())
    }

    /// Writes text from the input, escaped.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Stop> {
        let mut rest = text;
        while let Some(at) = rest.find(['<', '>', '&', '"', '\'']) {
            let (before, special) = rest.split_at(at);
            self.html(before)?;
            let mut letters = special.chars();
            self.html(match letters.next() {
                Some('<') => "&lt;",
                Some('>') => "&gt;",
                Some('&') => "&amp;",
                Some('"') => "&quot;",
                _ => "&#39;",
            })?;
            rest = letters.as_str();
        }
        self.html(rest)
    }

    /// Writes a text inside an element.
    pub(crate) fn element(&mut self, name: &str, text: &str) -> Result<(), Stop> {
        self.html("<")?;
        self.html(name)?;
        self.html(">")?;
        self.text(text)?;
        self.html("</")?;
        self.html(name)?;
        self.html(">")
    }

    /// Writes a link, or only the text if links to the address are not permitted.
    pub(crate) fn link(&mut self, address: &str, text: &str) -> Result<(), Stop> {
        if !leads_out(address) {
            return self.text(text);
        }
        self.html("<a href=\"")?;
        self.text(address)?;
        self.html("\">")?;
        self.text(text)?;
        self.html("</a>")
    }

    /// Bytes written since the last [`take`](Self::take).
    pub(crate) fn len(&self) -> usize {
        self.html.len()
    }

    /// Removes the paragraph tags around the HTML after `since`, if that is a single paragraph.
    /// This is for list items of one line.
    pub(crate) fn unwrap_paragraph(&mut self, since: usize) {
        let written = self.html.get(since..).unwrap_or_default();
        let Some(inner) = written.strip_prefix("<p>").and_then(|rest| rest.strip_suffix("</p>\n")) else {
            return;
        };
        if !inner.contains("<p>") && !inner.contains("</p>") {
            let inner = inner.to_owned();
            self.html.truncate(since);
            self.html.push_str(&inner);
        }
    }

    /// Takes the HTML written so far. The remaining room does not change.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.html)
    }
}

/// Reports whether links to this address are permitted.
pub(crate) fn leads_out(address: &str) -> bool {
    let begins = |scheme: &str| {
        address.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
            && address.len() > scheme.len()
    };
    ["http://", "https://", "mailto:"].into_iter().any(begins)
        && !address.contains(|letter: char| letter.is_whitespace() || letter.is_control())
}
