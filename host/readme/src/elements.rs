//! The HTML elements that a README may have, and the open elements that each of them closes.

/// An element that may be written.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Element {
    pub(crate) name: &'static str,
    /// True if the element has neither content nor an end tag.
    pub(crate) is_void: bool,
    /// Open elements that the element's start tag closes.
    pub(crate) closes: &'static [&'static str],
    /// Boundaries: the start tag closes no element outside the innermost open element of this list.
    pub(crate) within: &'static [&'static str],
    /// Required ancestor. Without it, the element's tag is dropped.
    pub(crate) needs: Option<&'static str>,
}

const CELLS: &[&str] = &["table", "td", "th"];
const BLOCK: Element = Element { name: "", is_void: false, closes: &["p"], within: CELLS, needs: None };
const INLINE: Element = Element { name: "", is_void: false, closes: &[], within: &[], needs: None };
const HEADINGS: &[&str] = &["p", "h2", "h3", "h4", "h5", "h6"];

const fn block(name: &'static str) -> Element {
    Element { name, ..BLOCK }
}

const fn inline(name: &'static str) -> Element {
    Element { name, ..INLINE }
}

const fn heading(name: &'static str) -> Element {
    Element { name, closes: HEADINGS, ..BLOCK }
}

const fn item(
    name: &'static str,
    closes: &'static [&'static str],
    within: &'static [&'static str],
) -> Element {
    Element { name, closes, within, ..BLOCK }
}

const fn of_table(name: &'static str, closes: &'static [&'static str]) -> Element {
    Element { name, closes, within: &["table"], needs: Some("table"), ..BLOCK }
}

static ELEMENTS: [Element; 35] = [
    Element { name: "a", closes: &["a"], within: CELLS, ..INLINE },
    inline("b"),
    block("blockquote"),
    Element { name: "br", is_void: true, ..INLINE },
    inline("code"),
    item("dd", &["dd", "dt", "p"], &["dl", "table", "td", "th"]),
    inline("del"),
    block("details"),
    block("dl"),
    item("dt", &["dd", "dt", "p"], &["dl", "table", "td", "th"]),
    inline("em"),
    heading("h2"),
    heading("h3"),
    heading("h4"),
    heading("h5"),
    heading("h6"),
    Element { name: "hr", is_void: true, ..BLOCK },
    inline("i"),
    inline("kbd"),
    item("li", &["li", "p"], &["ul", "ol", "table", "td", "th"]),
    block("ol"),
    block("p"),
    block("pre"),
    inline("s"),
    inline("strong"),
    inline("sub"),
    block("summary"),
    inline("sup"),
    block("table"),
    of_table("tbody", &["thead", "tbody"]),
    of_table("td", &["td", "th"]),
    of_table("th", &["td", "th"]),
    of_table("thead", &["thead", "tbody"]),
    of_table("tr", &["tr"]),
    block("ul"),
];

/// Finds an element by its name, in any letter case.
pub(crate) fn named(name: &str) -> Option<&'static Element> {
    ELEMENTS.iter().find(|element| element.name.eq_ignore_ascii_case(name))
}

/// Elements whose content is not meant to be read.
const HIDDEN: [&str; 11] = [
    "iframe", "math", "noembed", "noframes", "object", "script", "select", "style", "svg", "template",
    "title",
];

/// Finds an element whose content is dropped, by its name in any letter case.
pub(crate) fn hidden(name: &str) -> Option<&'static str> {
    HIDDEN.into_iter().find(|hidden| hidden.eq_ignore_ascii_case(name))
}
