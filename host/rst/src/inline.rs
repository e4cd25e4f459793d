//! Inline markup: emphasis, literals, references, substitutions, addresses. It is never nested.
//!
//! A mark begins inline markup if the characters around it permit this (the specification's "inline
//! markup recognition rules") and if its end mark follows. A missing end mark is remembered, so
//! that the text is not searched for it again.

use crate::Stop;
use crate::names::Names;
use crate::writer::{HtmlWriter, leads_out};

/// Maximum length in letters of a role, a footnote label, a substitution name or a one-word
/// reference.
const NAME: usize = 128;

/// End marks of inline markup.
const ENDS: [&str; 5] = ["``", "**", "*", "`", "|"];

/// Renderer of one text with inline markup.
pub(crate) struct Inline<'a, 'n> {
    text: &'a str,
    names: &'n mut Names,
    writer: &'n mut HtmlWriter,
    /// Start of the plain text that is not written yet.
    plain: usize,
    /// True for each end mark that does not occur in the rest of the text.
    missing: [bool; ENDS.len()],
}

/// Renders a text with inline markup.
pub(crate) fn write(text: &str, names: &mut Names, writer: &mut HtmlWriter) -> Result<(), Stop> {
    let mut inline = Inline { text, names, writer, plain: 0, missing: [false; ENDS.len()] };
    let mut at = 0;
    while let Some(letter) = inline.rest(at).chars().next() {
        at = match inline.special(at, letter)? {
            Some(behind) => {
                inline.plain = behind;
                behind
            }
            None => at + letter.len_utf8(),
        };
    }
    inline.flush(text.len())
}

impl<'a> Inline<'a, '_> {
    fn rest(&self, at: usize) -> &'a str {
        self.text.get(at..).unwrap_or_default()
    }

    fn between(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    fn before(&self, at: usize) -> Option<char> {
        self.text.get(..at)?.chars().next_back()
    }

    /// Writes the pending plain text up to this offset.
    fn flush(&mut self, to: usize) -> Result<(), Stop> {
        let text = self.between(self.plain, to);
        self.plain = to;
        self.writer.text(text)
    }

    /// Renders the markup that begins here and returns its end. `None` if the letter is plain text.
    fn special(&mut self, at: usize, letter: char) -> Result<Option<usize>, Stop> {
        match letter {
            '\\' => self.escaped(at).map(Some),
            '*' | '`' | '|' | ':' | '_' | '[' | 'h' | 'm' | '<' if self.may_begin(at) => {
                if let Some(behind) = self.marked(at, letter)? {
                    return Ok(Some(behind));
                }
                if letter == '_' { self.reference(at) } else { Ok(None) }
            }
            '_' => self.reference(at),
            _ => Ok(None),
        }
    }

    /// Handles a backslash: the next letter is plain text, and a space is dropped.
    fn escaped(&mut self, at: usize) -> Result<usize, Stop> {
        self.flush(at)?;
        let Some(letter) = self.rest(at + 1).chars().next() else { return Ok(at + 1) };
        let behind = at + 1 + letter.len_utf8();
        if !letter.is_whitespace() {
            self.writer.text(self.between(at + 1, behind))?;
        }
        Ok(behind)
    }

    /// Reports whether the letter before permits markup to begin here.
    fn may_begin(&self, at: usize) -> bool {
        self.before(at).is_none_or(|before| before.is_whitespace() || "'\"([{<-/:–—“‘«".contains(before))
    }

    fn marked(&mut self, at: usize, letter: char) -> Result<Option<usize>, Stop> {
        let rest = self.rest(at);
        match letter {
            '`' if rest.starts_with("``") => self.literal(at),
            '`' => self.phrase(at, at + 1, None),
            '*' if rest.starts_with("**") => self.simple(at, 1, "strong"),
            '*' => self.simple(at, 2, "em"),
            '|' => self.substituted(at),
            ':' => self.role(at),
            '_' if rest.starts_with("_`") => self.phrase(at, at + 2, Some("em")),
            '[' => self.footnote(at),
            'h' | 'm' | '<' => self.address(at),
            _ => Ok(None),
        }
    }

    /// Finds the end mark of this kind within `most` bytes. A valid end mark does not follow a
    /// space, and no word continues after it.
    fn end_within(&mut self, kind: usize, from: usize, most: usize) -> Option<usize> {
        let mark = ENDS.get(kind)?;
        if *self.missing.get(kind)? || self.rest(from).chars().next().is_none_or(char::is_whitespace) {
            return None;
        }
        let escapes = *mark != "``";
        let mut at = from;
        while let Some(letter) = self.rest(at).chars().next() {
            if at - from > most {
                return None;
            }
            if letter == '\\' && escapes {
                at += 1 + self.rest(at + 1).chars().next().map_or(0, char::len_utf8);
                continue;
            }
            if at > from && self.rest(at).starts_with(mark) && self.may_end(at, at + mark.len()) {
                return Some(at);
            }
            at += letter.len_utf8();
        }
        if let Some(missing) = self.missing.get_mut(kind) {
            *missing = true;
        }
        None
    }

    fn end(&mut self, kind: usize, from: usize) -> Option<usize> {
        self.end_within(kind, from, usize::MAX)
    }

    fn may_end(&self, at: usize, behind: usize) -> bool {
        let before = self.before(at).is_some_and(|before| !before.is_whitespace());
        let after = self.rest(behind).chars().next();
        before
            && after.is_none_or(|after| after.is_whitespace() || "'\")]}>-/:.,;!?\\_–—”’»…".contains(after))
    }

    fn literal(&mut self, at: usize) -> Result<Option<usize>, Stop> {
        let Some(end) = self.end(0, at + 2) else { return Ok(None) };
        self.flush(at)?;
        self.writer.element("code", self.between(at + 2, end))?;
        Ok(Some(end + 2))
    }

    fn simple(&mut self, at: usize, kind: usize, element: &str) -> Result<Option<usize>, Stop> {
        let mark = ENDS.get(kind).map_or(0, |mark| mark.len());
        let Some(end) = self.end(kind, at + mark) else { return Ok(None) };
        self.flush(at)?;
        self.writer.element(element, &unescaped(self.between(at + mark, end)))?;
        Ok(Some(end + mark))
    }

    /// Renders words in single backquotes: a reference, or a text with a role.
    fn phrase(&mut self, at: usize, from: usize, role: Option<&str>) -> Result<Option<usize>, Stop> {
        let Some(end) = self.end(3, from) else { return Ok(None) };
        self.flush(at)?;
        let (inner, behind) = (self.between(from, end), end + 1);
        let rest = self.rest(behind);
        if role.is_none() && rest.starts_with("__") {
            self.linked(inner, true)?;
            return Ok(Some(behind + 2));
        }
        if role.is_none() && rest.starts_with('_') {
            self.linked(inner, false)?;
            return Ok(Some(behind + 1));
        }
        let (role, behind) = match (role, role_name(rest)) {
            (None, Some(role)) => (Some(role), behind + role.len() + 2),
            (role, _) => (role, behind),
        };
        self.in_role(role, &unescaped(inner))?;
        Ok(Some(behind))
    }

    /// Renders `:role:` followed by words in backquotes.
    fn role(&mut self, at: usize) -> Result<Option<usize>, Stop> {
        let Some(role) = role_name(self.rest(at)) else { return Ok(None) };
        let behind = at + role.len() + 2;
        if !self.rest(behind).starts_with('`') || self.rest(behind).starts_with("``") {
            return Ok(None);
        }
        self.phrase(at, behind + 1, Some(role))
    }

    fn in_role(&mut self, role: Option<&str>, text: &str) -> Result<(), Stop> {
        let number = text.split('#').next().unwrap_or_default();
        let is_number =
            !number.is_empty() && number.len() <= 6 && number.bytes().all(|byte| byte.is_ascii_digit());
        // The name of a role may begin with the name of its domain, as in `py:class`. The domain is
        // dropped.
        match role.map(|role| role.rsplit(':').next().unwrap_or(role)) {
            None | Some("emphasis" | "title" | "title-reference" | "t" | "em" | "dfn") => {
                self.writer.element("em", text)
            }
            Some("strong") => self.writer.element("strong", text),
            Some("sub" | "subscript") => self.writer.element("sub", text),
            Some("sup" | "superscript") => self.writer.element("sup", text),
            Some("pep" | "PEP") if is_number => self.writer.text(&format!("PEP {number}")),
            Some("rfc" | "RFC") if is_number => {
                let address = format!("https://www.rfc-editor.org/rfc/rfc{number}");
                self.writer.link(&address, &format!("RFC {number}"))
            }
            Some("raw" | "raw-html") => Ok(()),
            Some(_) => self.writer.element("code", text.strip_prefix('~').unwrap_or(text)),
        }
    }

    /// Renders a reference by words, which may contain the address: `words <address>`.
    fn linked(&mut self, inner: &str, anonymous: bool) -> Result<(), Stop> {
        let within = inner.strip_suffix('>').and_then(|rest| rest.rsplit_once('<'));
        let Some((words, address)) =
            within.filter(|(words, _)| words.is_empty() || words.ends_with(char::is_whitespace))
        else {
            let words = unescaped(inner);
            let target = if anonymous {
                self.names.next_anonymous()
            } else {
                self.names.target(&words).map(str::to_owned)
            };
            return self.writer.link(target.as_deref().unwrap_or_default(), &words);
        };
        let address: String = unescaped(address).split_whitespace().collect();
        let words = unescaped(words.trim_end());
        let target = match address.strip_suffix('_') {
            Some(name) if !address.contains(':') => self.names.target(name).unwrap_or_default().to_owned(),
            _ => address,
        };
        if !anonymous && !words.is_empty() {
            self.names.add(&words, target.clone());
        }
        self.writer.link(&target, if words.is_empty() { &target } else { &words })
    }

    fn substituted(&mut self, at: usize) -> Result<Option<usize>, Stop> {
        let Some(end) = self.end_within(4, at + 1, NAME) else { return Ok(None) };
        let inner = self.between(at + 1, end);
        let Some(substitution) = self.names.substitution(inner).cloned() else { return Ok(None) };
        self.flush(at)?;
        let behind = end + 1;
        let underscores = self.rest(behind).bytes().take(2).take_while(|byte| *byte == b'_').count();
        let target = match underscores {
            0 => substitution.target,
            1 => self.names.target(inner).map(str::to_owned),
            _ => self.names.next_anonymous(),
        };
        self.writer.link(target.as_deref().unwrap_or_default(), &unescaped(&substitution.text))?;
        Ok(Some(behind + underscores))
    }

    /// Renders the footnote reference `[1]_` by its label.
    fn footnote(&mut self, at: usize) -> Result<Option<usize>, Stop> {
        let Some(end) = self.rest(at).bytes().take(NAME).position(|byte| byte == b']') else {
            return Ok(None);
        };
        let inner = self.between(at + 1, at + end);
        let named = !inner.is_empty()
            && inner.chars().all(|letter| letter.is_alphanumeric() || "#*-_.:+".contains(letter));
        if !named || !self.rest(at + end).starts_with("]_") {
            return Ok(None);
        }
        self.flush(at)?;
        self.writer.element("sup", self.between(at, at + end + 1))?;
        Ok(Some(at + end + 2))
    }

    /// Renders a standalone address as a link.
    fn address(&mut self, at: usize) -> Result<Option<usize>, Stop> {
        let from = at + usize::from(self.rest(at).starts_with('<'));
        let rest = self.rest(from);
        if !["http://", "https://", "mailto:"].iter().any(|scheme| rest.starts_with(scheme)) {
            return Ok(None);
        }
        let end = rest
            .find(|letter: char| {
                letter.is_whitespace() || letter.is_control() || "<>\"`|\\^{}".contains(letter)
            })
            .unwrap_or(rest.len());
        let address = rest
            .get(..end)
            .unwrap_or_default()
            .trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*', '_']);
        // A closing bracket without an opening one is not part of the address.
        let address = match address.strip_suffix([')', ']']) {
            Some(shorter) if !address.contains(['(', '[']) => shorter,
            _ => address,
        };
        if !leads_out(address) {
            return Ok(None);
        }
        self.flush(from)?;
        self.writer.link(address, address)?;
        Ok(Some(from + address.len()))
    }

    /// Renders the references `name_` and `name__`.
    fn reference(&mut self, at: usize) -> Result<Option<usize>, Stop> {
        let run = self.between(self.plain, at);
        let letters = |letter: char| letter.is_alphanumeric() || "-._:+".contains(letter);
        let from = run
            .char_indices()
            .rev()
            .take(NAME)
            .take_while(|(_, letter)| letters(*letter))
            .last()
            .map(|(from, _)| from);
        let Some(from) = from.map(|from| self.plain + from) else { return Ok(None) };
        let word = self.between(from, at);
        let anonymous = self.rest(at + 1).starts_with('_');
        let behind = at + 1 + usize::from(anonymous);
        let goes_on =
            self.rest(behind).chars().next().is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
        if goes_on || !word.starts_with(char::is_alphanumeric) || !word.ends_with(char::is_alphanumeric) {
            return Ok(None);
        }
        let target =
            if anonymous { self.names.next_anonymous() } else { self.names.target(word).map(str::to_owned) };
        let Some(target) = target else { return Ok(None) };
        self.flush(from)?;
        self.writer.link(&target, word)?;
        Ok(Some(behind))
    }
}

/// Parses the name in `:name:` at the beginning of a text.
fn role_name(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(':')?;
    let allowed = |letter: &char| letter.is_ascii_alphanumeric() || "-_.+:".contains(*letter);
    let length = rest.chars().take(NAME).take_while(allowed).map(char::len_utf8).sum::<usize>();
    let name = rest.get(..length)?.strip_suffix(':')?;
    name.starts_with(|letter: char| letter.is_ascii_alphabetic()).then_some(name)
}

/// Removes backslashes from a text, and the spaces after them.
pub(crate) fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => plain.extend(letters.next().filter(|letter| !letter.is_whitespace())),
            letter => plain.push(letter),
        }
    }
    plain
}
