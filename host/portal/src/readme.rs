//! A README as HTML. It is hostile input: what is made of it is sanitised, loads nothing, leads out without vouching for where, and is
//! bounded in size, depth and time.

use std::time::{Duration, Instant};

use ammonia::Builder;
use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Makes HTML of a text, of at most so many bytes, until that moment; none where it would be more, or later.
type Make = fn(&str, usize, Instant) -> Option<Rendered>;

/// Bytes of a text that are looked at.
const MOST: usize = 64 * 1024;
/// How deep elements may stand in each other. What stands deeper is shown as text.
const DEPTH: usize = 24;
/// How long making one may take.
const TIME: Duration = Duration::from_secs(1);

/// What a page shows of it in at most `room` bytes: Markdown and reStructuredText as HTML, anything else as the text that it is.
pub(crate) async fn shown(media_type: &str, text: &str, room: usize) -> Markup {
    let (text, cut) = cut(text, MOST);
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let make: Option<Make> = match essence.to_ascii_lowercase().as_str() {
        "text/markdown" => Some(rendered),
        "text/x-rst" => Some(rendered_rst),
        _ => None,
    };
    if let Some(make) = make {
        let owned = text.to_owned();
        let made = tokio::task::spawn_blocking(move || make(&owned, room, Instant::now() + TIME));
        if let Ok(Some(Rendered { html, whole })) = made.await {
            return html! { (PreEscaped(html)) (more(cut || !whole)) };
        }
    }
    plain(text, cut, room)
}

fn plain(text: &str, cut: bool, room: usize) -> Markup {
    // Escaped, a text may grow: what is markup in it sixfold at most.
    let grows = text.matches(['<', '>', '&', '"']).count() > text.len() / 50;
    let (text, again) = self::cut(text, if grows { room / 6 } else { room * 9 / 10 });
    html! { pre tabindex="0" role="region" aria-label="The text of the README" { (text) } (more(cut || again)) }
}

fn more(cut: bool) -> Markup {
    html! { @if cut { p.soft { "It goes on; this is its beginning." } } }
}

fn cut(text: &str, most: usize) -> (&str, bool) {
    let end = text.floor_char_boundary(most.min(text.len()));
    (text.get(..end).unwrap_or_default(), end < text.len())
}

/// A text as HTML.
struct Rendered {
    html: String,
    /// Whether it is all of it.
    whole: bool,
}

/// Markdown as HTML that does nothing: as many of its blocks, from the first, as there is room and time for. None where elements stand
/// too deep in each other, and where not even the first block has room.
fn rendered(text: &str, room: usize, until: Instant) -> Option<Rendered> {
    if markup_depth(text) > DEPTH {
        return None;
    }
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let (sanitiser, mut safe) = (sanitiser(), String::new());
    let (mut depth, mut block, mut blocks) = (0_usize, Vec::new(), 0_u32);
    for event in Parser::new_ext(text, options) {
        match &event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH {
            return None;
        }
        block.push(lowered(event));
        if depth > 0 {
            continue;
        }
        let mut html = String::new();
        pulldown_cmark::html::push_html(&mut html, block.drain(..));
        if html.len() <= 2 * room {
            html = sanitiser.clean(&html).to_string();
        }
        if safe.len() + html.len() > room || Instant::now() > until {
            return (blocks > 0).then_some(Rendered { html: safe, whole: false });
        }
        safe.push_str(&html);
        blocks += 1;
    }
    Some(Rendered { html: safe, whole: true })
}

/// reStructuredText as HTML, as [`rendered`] has Markdown.
fn rendered_rst(text: &str, room: usize, until: Instant) -> Option<Rendered> {
    let made = packhouse_rst::rendered(text, packhouse_rst::Bounds { depth: DEPTH / 2, bytes: 2 * room })?;
    let (sanitiser, mut safe) = (sanitiser(), String::new());
    for (number, block) in made.blocks.iter().enumerate() {
        let html = sanitiser.clean(block).to_string();
        if safe.len() + html.len() > room || Instant::now() > until {
            return (number > 0).then_some(Rendered { html: safe, whole: false });
        }
        safe.push_str(&html);
    }
    Some(Rendered { html: safe, whole: made.whole })
}

/// How deep elements of HTML in a text can stand at most: opening tags, which a parser would have to nest.
fn markup_depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    for piece in text.split('<').skip(1) {
        if piece.starts_with('/') {
            depth = depth.saturating_sub(1);
        } else if piece.starts_with(|letter: char| letter.is_ascii_alphabetic()) && !is_void(piece) {
            depth += 1;
            deepest = deepest.max(depth);
        }
    }
    deepest
}

/// Elements without an end, as READMEs have them by the dozen.
fn is_void(piece: &str) -> bool {
    let name: String = piece.chars().take_while(char::is_ascii_alphanumeric).collect();
    let known =
        ["img", "br", "hr", "input", "source", "link", "meta", "p", "li", "td", "th", "tr", "http", "https"];
    known.contains(&name.to_ascii_lowercase().as_str())
}

/// A page has one heading of the first rank, its own, and no picture of elsewhere: what one stands for is its text.
fn lowered(event: Event<'_>) -> Event<'_> {
    use pulldown_cmark::HeadingLevel::{H1, H2, H3, H4, H5, H6};
    let below = |level| match level {
        H1 => H2,
        H2 => H3,
        H3 => H4,
        H4 => H5,
        H5 | H6 => H6,
    };
    match event {
        Event::Start(Tag::Heading { level, id, classes, attrs }) => {
            Event::Start(Tag::Heading { level: below(level), id, classes, attrs })
        }
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(below(level))),
        Event::Start(Tag::Image { .. }) => Event::Start(Tag::Emphasis),
        Event::End(TagEnd::Image) => Event::End(TagEnd::Emphasis),
        other => other,
    }
}

fn sanitiser() -> Builder<'static> {
    let tags = [
        "a",
        "b",
        "blockquote",
        "br",
        "code",
        "dd",
        "del",
        "details",
        "dl",
        "dt",
        "em",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "i",
        "kbd",
        "li",
        "ol",
        "p",
        "pre",
        "s",
        "strong",
        "sub",
        "summary",
        "sup",
        "table",
        "tbody",
        "td",
        "th",
        "thead",
        "tr",
        "ul",
    ];
    let mut builder = Builder::default();
    builder
        .tags(tags.into())
        .tag_attributes([("a", ["href"].into()), ("ol", ["start"].into())].into())
        .generic_attributes(["dir"].into())
        .url_schemes(["http", "https", "mailto"].into())
        .url_relative(ammonia::UrlRelative::Deny)
        .link_rel(Some("nofollow noopener noreferrer"));
    builder
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ROOM: usize = 30_000;

    fn of(text: &str) -> Option<String> {
        rendered(text, ROOM, Instant::now() + TIME).map(|rendered| rendered.html)
    }

    fn made(text: &str) -> String {
        of(text).unwrap_or_default()
    }

    #[test]
    fn markdown_becomes_html() {
        let html = made("# One\n\nA *b* `c` [d](https://example.com/x).\n\n|a|b|\n|-|-|\n|1|2|\n");
        for part in [
            "<h2>One</h2>",
            "<em>b</em>",
            "<code>c</code>",
            "<table>",
            "rel=\"nofollow noopener noreferrer\"",
            "href=\"https://example.com/x\"",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
    }

    #[test]
    fn nothing_in_it_does_anything() {
        let hostile = [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "![x](https://evil.example/pixel.png)",
            "<img src=\"https://evil.example/pixel.png\">",
            "[x](javascript:alert(1))",
            "<a href=\"data:text/html,<script>alert(1)</script>\">x</a>",
            "<a href=\"/tokens\" onclick=alert(1)>x</a>",
            "<form action=/tokens method=post><input name=do><button>Confirm</button></form>",
            "<style>*{display:none}</style>",
            "<p style=\"position:fixed\" class=card id=main data-secret role=alert>x</p>",
            "<iframe src=https://evil.example></iframe><object></object><embed><base href=//evil.example>",
            "<svg><script>alert(1)</script></svg><math><mtext></mtext></math>",
            "<meta http-equiv=refresh content='0;url=https://evil.example'><link rel=stylesheet href=//evil.example>",
            "<h1>Sign in again</h1>",
        ];
        for text in hostile {
            let html = made(text).to_lowercase();
            for part in [
                "<script",
                "<img",
                "onerror",
                "onclick",
                "javascript:",
                "data:",
                "<form",
                "<input",
                "<button",
                "<style",
                "style=",
                "class=",
                "id=",
                "data-",
                "role=",
                "<iframe",
                "<object",
                "<embed",
                "<base",
                "<svg",
                "<meta",
                "<link",
                "<h1",
                "href=\"/",
            ] {
                assert!(!html.contains(part), "{part} of {text} in {html}");
            }
        }
    }

    #[tokio::test]
    async fn restructured_text_becomes_html_that_does_nothing() {
        let text = "Title\n=====\n\nA *b* `c <https://example.com/x>`_ |badge|\n\n.. |badge| image:: https://evil.example/p.png\n   :alt: Badge\n\n\
            .. raw:: html\n\n   <script>alert(1)</script>\n\n`x <javascript:alert(1)>`_ <img src=x onerror=alert(1)>\n";
        let html = shown("text/x-rst; charset=UTF-8", text, ROOM).await.into_string();
        for part in [
            "<h2>Title</h2>",
            "<em>b</em>",
            "href=\"https://example.com/x\" rel=\"nofollow noopener noreferrer\"",
            "Badge",
            "&lt;img src=x",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
        for part in ["<script", "<img", "javascript:"] {
            assert!(!html.contains(part), "{part} in {html}");
        }
        let deep = shown("text/x-rst", &"* ".repeat(300_000), ROOM).await.into_string();
        assert!(deep.starts_with("<pre") && deep.len() < ROOM + 500, "what is too deep is text");
        let long = shown("text/x-rst", &"A paragraph.\n\n".repeat(4000), ROOM).await.into_string();
        assert!(
            long.contains("<p>A paragraph.</p>") && long.contains("It goes on") && long.len() < ROOM + 500
        );
    }

    #[test]
    fn what_is_too_deep_is_no_html_and_what_is_too_long_is_its_beginning() {
        assert!(of(&"> ".repeat(30_000)).is_none());
        assert!(of(&"<div>".repeat(10_000)).is_none());
        assert!(of(&"<b>".repeat(10_000)).is_none());
        let long = rendered(&"A paragraph.\n\n".repeat(4000), ROOM, Instant::now() + TIME).unwrap();
        assert!(!long.whole && long.html.len() <= ROOM && long.html.ends_with("<p>A paragraph.</p>\n"));
        assert!(of(&"[".repeat(60_000)).is_none_or(|html| html.len() <= ROOM));
    }

    #[tokio::test]
    async fn a_mebibyte_of_nesting_is_shown_as_text() {
        let shown = shown("text/markdown; charset=utf-8", &"> <b>".repeat(200_000), ROOM).await.into_string();
        assert!(shown.starts_with("<pre") && shown.contains("&gt; &lt;b&gt;"), "{}", &shown[..200]);
        assert!(shown.len() < ROOM + 500, "{}", shown.len());
    }

    proptest! {
        #[test]
        fn whatever_it_is_no_element_but_those_of_text_comes_out(text in "[\\PC<>\\[\\]()!\"'`*_#/a-z\n]{0,200}") {
            let html = made(&text).to_lowercase();
            for part in ["<script", "<img", "<form", "<style", "<iframe", "<svg", "<input"] {
                prop_assert!(!html.contains(part), "{} in {}", part, html);
            }
        }
    }
}
