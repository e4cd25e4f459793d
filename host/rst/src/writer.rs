//! What is written: HTML in which every text is escaped, and no more of it than there is room for.

use crate::Stop;

/// HTML that is being written.
pub(crate) struct Writer {
    html: String,
    room: usize,
}

impl Writer {
    /// One that takes this many bytes.
    pub(crate) fn new(room: usize) -> Writer {
        Writer { html: String::new(), room }
    }

    /// Elements of our own. `Full` where there is no room.
    pub(crate) fn html(&mut self, html: &str) -> Result<(), Stop> {
        self.room = self.room.checked_sub(html.len()).ok_or(Stop::Full)?;
        self.html.push_str(html);
        Ok(())
    }

    /// A text from outside. `Full` where there is no room.
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

    /// A text within an element. `Full` where there is no room.
    pub(crate) fn element(&mut self, name: &str, text: &str) -> Result<(), Stop> {
        self.html("<")?;
        self.html(name)?;
        self.html(">")?;
        self.text(text)?;
        self.html("</")?;
        self.html(name)?;
        self.html(">")
    }

    /// A link, where the address is one that a page may lead to; else the text alone. `Full` where there is no room.
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

    /// How much was written.
    pub(crate) fn len(&self) -> usize {
        self.html.len()
    }

    /// Takes away the paragraph around what was written since, where it is one paragraph and nothing else: an item of a list that is
    /// one line long.
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

    /// Takes what was written out of it; the room stays what it is.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.html)
    }
}

/// Whether a link may lead there.
pub(crate) fn leads_out(address: &str) -> bool {
    let begins = |scheme: &str| {
        address.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
            && address.len() > scheme.len()
    };
    ["http://", "https://", "mailto:"].into_iter().any(begins)
        && !address.contains(|letter: char| letter.is_whitespace() || letter.is_control())
}
