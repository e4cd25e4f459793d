//! Explicit markup, which begins with `.. `: directives, footnotes, targets, substitutions,
//! comments.

use crate::blocks::BlockReader;
use crate::inline::unescaped;
use crate::lines::{dedented, indented};
use crate::names::named;
use crate::{Stop, inline};

/// Directives that are dropped: they load files, or control how a document is processed.
const LEFT_OUT: [&str; 15] = [
    "raw",
    "include",
    "contents",
    "sectnum",
    "section-numbering",
    "meta",
    "role",
    "default-role",
    "class",
    "index",
    "toctree",
    "highlight",
    "target-notes",
    "title",
    "restructuredtext-test-directive",
];
/// Directives whose content is rendered verbatim.
const LITERAL: [&str; 8] =
    ["code", "code-block", "sourcecode", "parsed-literal", "math", "doctest", "testcode", "prompt"];
/// Directives whose content is a text under a fixed heading.
const ADMONITIONS: [&str; 14] = [
    "attention",
    "caution",
    "danger",
    "error",
    "hint",
    "important",
    "note",
    "tip",
    "warning",
    "seealso",
    "todo",
    "versionadded",
    "versionchanged",
    "deprecated",
];

impl BlockReader {
    /// Renders the explicit markup that begins at this line. Returns its number of lines.
    pub(crate) fn explicit(&mut self, lines: &[&str], at: usize) -> Result<usize, Stop> {
        let below = indented(lines, at + 1);
        let first = lines.get(at).and_then(|line| line.get(2..)).unwrap_or_default().trim_start();
        let body = lines.get(at + 1..at + 1 + below).unwrap_or_default();
        // A lone `..` above a blank line is an empty comment.
        if first.is_empty() && body.first().is_none_or(|line| line.is_empty()) {
            return Ok(1);
        }
        if let Some((label, text)) = footnote(first) {
            self.writer.html("<p>")?;
            self.writer.element("sup", label)?;
            self.writer.html(" ")?;
            let words = [&[text], dedented(body, usize::MAX).as_slice()].concat();
            self.inline(words.join("\n").trim())?;
            self.writer.html("</p>\n")?;
        } else if let Some((name, argument)) = directive(first) {
            self.directive(&name, argument, &dedented(body, usize::MAX))?;
        }
        Ok(1 + below)
    }

    fn directive(&mut self, name: &str, argument: &str, body: &[&str]) -> Result<(), Stop> {
        let (options, content) = split(body);
        let option = |name: &str| {
            let value =
                options.iter().find_map(|line| line.strip_prefix(':')?.strip_prefix(name)?.strip_prefix(':'));
            value.map(str::trim).filter(|value| !value.is_empty())
        };
        match name {
            _ if LEFT_OUT.contains(&name) => Ok(()),
            _ if LITERAL.contains(&name) => {
                let takes_words = matches!(name, "math" | "parsed-literal") && !argument.is_empty();
                let words = takes_words.then_some(argument);
                self.literal(&words.into_iter().chain(below(content).iter().copied()).collect::<Vec<_>>())
            }
            "image" | "figure" => {
                let words = option("alt").map_or_else(|| named(argument), str::to_owned);
                let target = option("target").map(|target| match target.strip_suffix('_') {
                    Some(name) if !target.contains(':') => {
                        self.names.target(name.trim_matches('`')).unwrap_or_default().to_owned()
                    }
                    _ => target.split_whitespace().collect(),
                });
                self.writer.html("<p><em>")?;
                self.writer.link(target.as_deref().unwrap_or_default(), &unescaped(&words))?;
                self.writer.html("</em></p>\n")?;
                if name == "figure" { self.body(content) } else { Ok(()) }
            }
            "rubric" | "centered" => self.strong(argument),
            _ if ADMONITIONS.contains(&name) => self.admonition(&heading_of(name), argument, content),
            "admonition" | "topic" | "sidebar" => self.admonition(argument, "", content),
            "container" | "compound" | "epigraph" | "highlights" | "pull-quote" | "only" | "details"
            | "tab" | "tabs" => self.within("blockquote", content),
            "list-table" | "table" | "csv-table" => {
                if !argument.is_empty() {
                    self.strong(argument)?;
                }
                if name == "csv-table" { self.literal(below(content)) } else { self.body(content) }
            }
            // The content of an unknown directive is rendered verbatim.
            _ if !below(content).is_empty() => self.literal(below(content)),
            _ => Ok(()),
        }
    }

    fn strong(&mut self, text: &str) -> Result<(), Stop> {
        self.writer.html("<p><strong>")?;
        inline::write(text, &mut self.names, &mut self.writer)?;
        self.writer.html("</strong></p>\n")
    }

    fn admonition(&mut self, title: &str, first: &str, content: &[&str]) -> Result<(), Stop> {
        self.writer.html("<blockquote>\n")?;
        self.strong(title)?;
        let lines = [&[first], content].concat();
        self.body(&lines)?;
        self.writer.html("</blockquote>\n")
    }
}

/// The heading for a directive.
fn heading_of(name: &str) -> String {
    match name {
        "seealso" => "See also".to_owned(),
        "versionadded" => "New in version".to_owned(),
        "versionchanged" => "Changed in version".to_owned(),
        name => name
            .chars()
            .take(1)
            .map(|letter| letter.to_ascii_uppercase())
            .chain(name.chars().skip(1))
            .collect(),
    }
}

/// Parses `name:: argument`. `None` for a comment, a target or a substitution.
fn directive(first: &str) -> Option<(String, &str)> {
    let (name, argument) = first.split_once("::")?;
    let name = name.trim_end();
    let named = name.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+:".contains(&byte));
    // The name of a directive may begin with the name of its domain, which is dropped.
    named.then(|| (name.rsplit(':').next().unwrap_or(name).to_ascii_lowercase(), argument.trim()))
}

/// Parses a footnote of the form `[1] text`.
fn footnote(first: &str) -> Option<(&str, &str)> {
    let end = first.bytes().take(64).position(|byte| byte == b']')?;
    let label = first.get(..=end).filter(|label| label.starts_with('[') && label.len() > 2)?;
    let text = first.get(end + 1..)?;
    (text.is_empty() || text.starts_with(' ')).then_some((label, text.trim()))
}

/// The content without its leading blank lines.
fn below<'a, 'b>(content: &'b [&'a str]) -> &'b [&'a str] {
    let blank = content.iter().take_while(|line| line.is_empty()).count();
    content.get(blank..).unwrap_or_default()
}

/// Splits the body of a directive into its options and its content.
fn split<'a, 'b>(body: &'b [&'a str]) -> (&'b [&'a str], &'b [&'a str]) {
    let is_option = |line: &&&str| {
        line.strip_prefix(':')
            .and_then(|rest| rest.split_once(':'))
            .is_some_and(|(name, _)| !name.is_empty() && !name.contains(' '))
    };
    let options = body.iter().take_while(is_option).count();
    let (options, content) = body.split_at(options.min(body.len()));
    (options, content)
}
