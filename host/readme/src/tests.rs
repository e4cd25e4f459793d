use proptest::prelude::*;

use super::*;

const BYTES: usize = 30_000;
const DEPTH: usize = 24;

fn bounded(kind: MarkupKind, text: &str, bytes: usize) -> Option<Rendered> {
    render(kind, text, Bounds { depth: DEPTH, bytes, is_over: &|| false })
}

fn markdown_of(text: &str) -> String {
    bounded(MarkupKind::Markdown, text, BYTES).map(|rendered| rendered.html).unwrap_or_default()
}

/// The elements of some HTML in the order of their start tags. Fails unless the HTML is well formed
/// and has only known elements and attributes.
#[track_caller]
fn elements_of(html: &str) -> Vec<&str> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    for piece in html.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').unwrap();
        assert!(!text.contains(['>', '"']), "{piece} in {html}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{html}");
            continue;
        }
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let element = elements::named(name).unwrap();
        assert_eq!(element.name, name);
        for attribute in attributes.split("\" ").filter(|attribute| !attribute.is_empty()) {
            let known = ["href=\"", "rel=\"nofollow", "start=\"", "dir=\""];
            assert!(known.iter().any(|known| attribute.starts_with(known)), "{tag} in {html}");
        }
        all.push(name);
        if !element.is_void {
            open.push(name);
        }
        assert!(open.len() <= DEPTH, "{html}");
    }
    assert!(open.is_empty(), "{open:?} are open in {html}");
    all
}

#[test]
fn markdown_becomes_html() {
    let html = markdown_of(
        "# One\n\nA *b* `c` [d](https://example.com/x?a=1&b=2).\n\n|a|b|\n|-|-|\n|1|2|\n\n- [x] done\n",
    );
    elements_of(&html);
    for part in [
        "<h2>One</h2>",
        "<em>b</em>",
        "<code>c</code>",
        "<table><thead><tr><th>a</th>",
        "<td>2</td></tr>",
        "rel=\"nofollow noopener noreferrer\"",
        "href=\"https://example.com/x?a=1&amp;b=2\"",
        "done</li>",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
}

#[test]
fn html_within_markdown_keeps_its_known_elements() {
    for (text, expected) in [
        ("<p align=center>A<br/>b &amp; &copy; & c</p>", "<p>A<br>b &amp; &copy; &amp; c</p>"),
        ("<DIV><B>x</b></DIV>", "<b>x</b>"),
        (
            "<a title='a > b' href=https://example.com>x</a>",
            "<p><a href=\"https://example.com\" rel=\"nofollow noopener noreferrer\">x</a></p>",
        ),
        ("<p>one<p>two", "<p>one</p><p>two</p>"),
        ("<ul><li>1<li>2</ul>", "<ul><li>1</li><li>2</li></ul>"),
        (
            "<table><tr><td>1<td>2<tr><td>3</table>",
            "<table><tr><td>1</td><td>2</td></tr><tr><td>3</td></tr></table>",
        ),
        ("<table><tr><td></b></p>x</td></tr></table>", "<table><tr><td>x</td></tr></table>"),
        ("<td>x</td>", "x"),
        ("<p>x<!-- <b>no</b> -- > --> y</p>", "<p>x y</p>"),
        ("<p><svg><path d='M'/></svg>x</p>", "<p>x</p>"),
        ("<p dir=RTL lang=x>x</p>", "<p dir=\"rtl\">x</p>"),
    ] {
        let html = markdown_of(text);
        elements_of(&html);
        assert_eq!(html.trim_end(), expected, "{text}");
    }
    let written = markdown_of("a < b and <http-x> <p-x> <hrx> c");
    assert_eq!(written.trim_end(), "<p>a &lt; b and    c</p>");
}

#[test]
fn details_hold_the_blocks_between_their_tags() {
    let html = markdown_of("<details>\n<summary>More</summary>\n\nA *b*.\n\n</details>\n\nEnd.\n");
    let expected =
        ["<details>", "<summary>More</summary>", "<p>A <em>b</em>.</p>", "</details>", "<p>End.</p>"];
    assert_eq!(html.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>(), expected);
}

#[test]
fn active_content_is_removed() {
    for text in [
        "<script>alert(1)</script>x",
        "<img src=x onerror=alert(1)>x",
        "![x](https://evil.example/pixel.png)",
        "[x](javascript:alert(1))",
        "<a href=\"javascript&colon;alert(1)\">x</a>",
        "<a href=\" java\tscript:alert(1)\">x</a>",
        "<a href=\"data:text/html,<script>alert(1)</script>\">x</a>",
        "<a href=\"/tokens\" onclick=alert(1)>x</a>",
        "<a href='https://x\"onclick=alert(1) '>x</a>",
        "<form action=/tokens method=post><input name=do><button>Confirm</button></form>",
        "<style>*{display:none}</style>x",
        "<p style=\"position:fixed\" class=card id=main data-secret role=alert>x</p>",
        "<iframe src=https://evil.example></iframe><object></object><embed><base href=//evil.example>x",
        "<svg><script>alert(1)</script></svg><math><mtext></mtext></math>x",
        "<meta http-equiv=refresh content='0;url=https://evil.example'><link rel=stylesheet href=//evil.example>x",
        "<h1>Sign in again</h1>",
        "</section></main><b>x",
        "<b/onclick=alert(1)>x",
        "<<b>script>alert(1)<</b>/script>",
    ] {
        let html = markdown_of(text);
        assert!(!html.is_empty(), "{text}");
        elements_of(&html);
    }
    assert_eq!(markdown_of("<h1>Sign in again</h1>").trim_end(), "Sign in again");
}

#[test]
fn deep_nesting_gives_nothing_and_long_text_gives_its_beginning() {
    for text in ["> ".repeat(30_000), "<div>".repeat(10_000), "<b>".repeat(10_000), "* ".repeat(30_000)] {
        assert!(bounded(MarkupKind::Markdown, &text, BYTES).is_none());
    }
    assert!(bounded(MarkupKind::RestructuredText, &"* ".repeat(30_000), BYTES).is_none());
    for (kind, text) in [
        (MarkupKind::Markdown, "A *paragraph*.\n\n".repeat(4000)),
        (MarkupKind::RestructuredText, "A *paragraph*.\n\n".repeat(4000)),
        (MarkupKind::Markdown, "> - <b>a *paragraph* without an end ".repeat(20)),
    ] {
        let rendered = bounded(kind, &text, 500).unwrap();
        assert!(!rendered.whole && rendered.html.len() <= 500);
        elements_of(&rendered.html);
    }
    let words = bounded(MarkupKind::Markdown, &"é".repeat(1000), 500).unwrap();
    assert!(!words.whole && (490..=500).contains(&words.html.len()), "{}", words.html);
    assert!(bounded(MarkupKind::Markdown, &"x".repeat(MAX_TEXT + 1), BYTES).is_none());
}

/// End tags of elements that are not open close nothing, and many attributes do not add elements.
#[test]
fn a_memory_bomb_stays_within_the_bounds() {
    let open: String = (0..2600).map(|number| format!("<b a{number}></x>")).collect();
    let bomb = format!("<p>{open}{}", "</p><p>x".repeat(4050));
    assert!(bounded(MarkupKind::Markdown, &bomb[..bomb.len().min(MAX_TEXT)], BYTES).is_none());
    let shallow: String = (0..20).map(|number| format!("<b a{number}></x>")).collect();
    let bomb = format!("<p>{shallow}{}", "</p><p>x".repeat(7000));
    let rendered = bounded(MarkupKind::Markdown, &bomb, BYTES).unwrap();
    assert!(!rendered.whole && elements_of(&rendered.html).len() < BYTES / "<p></p>".len());
}

#[test]
fn a_table_with_too_many_missing_cells_is_text() {
    let columns = 4000;
    let table = format!("{}\n{}\n{}", "|a".repeat(columns), "|-".repeat(columns), "a\n".repeat(10_000));
    assert!(!elements_of(&bounded(MarkupKind::Markdown, &table, BYTES).unwrap().html).contains(&"table"));
}

#[test]
fn a_rendering_stops_when_its_time_is_over() {
    let (polls, text) = (std::cell::Cell::new(0), "A paragraph.\n\n".repeat(4000));
    let is_over = || {
        polls.set(polls.get() + 1);
        polls.get() > 10
    };
    let bounds = Bounds { depth: DEPTH, bytes: BYTES, is_over: &is_over };
    let rendered = render(MarkupKind::Markdown, &text, bounds).unwrap();
    assert!(!rendered.whole && rendered.html.len() < 200, "{}", rendered.html);
}

/// Random sequences of hostile markup.
fn markup() -> impl Strategy<Value = String> {
    let pieces = vec![
        "<",
        ">",
        "</",
        "/>",
        "<!--",
        "-->",
        "<p>",
        "</p>",
        "<b a1>",
        "</b>",
        "</x>",
        "<table>",
        "<td>",
        "<tr>",
        "</table>",
        "<a href=\"https://a.b/",
        "\"",
        "'",
        "=",
        "<script>",
        "</script>",
        "&",
        "&lt;",
        "&#0;",
        "\0",
        "\n\n",
        "> ",
        "- ",
        "1. ",
        "`",
        "```\n",
        "|a|b|\n|-|-|\n",
        "[x](",
        "https://x ",
        ")",
        "*",
        "<li>",
        "<pre>",
        "<details>",
        "x",
        "é",
        "\u{202e}",
        " ",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_markup_gives_well_formed_html_of_known_elements(text in markup(), bytes in 0_usize..2000) {
        for kind in [MarkupKind::Markdown, MarkupKind::RestructuredText] {
            if let Some(rendered) = bounded(kind, &text, bytes) {
                elements_of(&rendered.html);
                prop_assert!(rendered.html.len() <= bytes);
            }
        }
    }

    #[test]
    fn the_size_of_the_pieces_does_not_matter(text in markup(), size in 1_usize..10) {
        let bounds = Bounds { depth: DEPTH, bytes: BYTES, is_over: &|| false };
        let (mut whole, mut cut) = (Sanitiser::new(bounds), Sanitiser::new(bounds));
        let _ = whole.write_str(&text);
        let letters: Vec<char> = text.replace('&', "").chars().collect();
        let mut also = Sanitiser::new(bounds);
        let _ = also.write_str(&text.replace('&', ""));
        for piece in letters.chunks(size) {
            let _ = cut.write_str(&piece.iter().collect::<String>());
        }
        elements_of(&whole.finish().0);
        prop_assert_eq!(also.finish(), cut.finish());
    }
}
