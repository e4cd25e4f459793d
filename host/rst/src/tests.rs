//! Tests with examples, most of them from READMEs, and with random texts.

use proptest::prelude::*;

use super::*;

const BOUNDS: Bounds = Bounds { depth: 24, bytes: 200_000 };

fn html(text: &str) -> String {
    rendered(text, BOUNDS).unwrap().blocks.concat()
}

#[track_caller]
fn becomes(text: &str, parts: &[&str]) {
    let html = html(text);
    for part in parts {
        assert!(html.contains(part), "{part}\n in \n{html}");
    }
}

#[test]
fn titles_have_ranks_in_the_order_of_their_adornments() {
    let text =
        "=====\nTitle\n=====\n\nOne\n===\n\nTwo\n---\n\nThree *more*\n~~~~~~~~~~~~\n\nOne again\n=========\n";
    becomes(
        text,
        &[
            "<h2>Title</h2>",
            "<h3>One</h3>",
            "<h4>Two</h4>",
            "<h5>Three <em>more</em></h5>",
            "<h3>One again</h3>",
        ],
    );
    becomes("Before\n\n----\n\nBehind", &["<p>Before</p>\n<hr>\n<p>Behind</p>"]);
}

#[test]
fn inline_markup_becomes_elements() {
    becomes(
        "An *em*, a **strong**, a ``co*de``, `a title`, :sub:`2` and H\\ :sup:`3`.",
        &[
            "<em>em</em>",
            "<strong>strong</strong>",
            "<code>co*de</code>",
            "<em>a title</em>",
            "<sub>2</sub>",
            "H<sup>3</sup>.",
        ],
    );
    becomes(
        ":class:`~a.B` and `x`:code: see :pep:`8` and :rfc:`2119`.",
        &["<code>a.B</code>", "<code>x</code>", "see PEP 8 and", "rfc2119\">RFC 2119</a>"],
    );
    becomes("2 * 3 * 4, a*b*c, \\*not\\*, *open and **open", &["2 * 3 * 4, a*b*c, *not*, *open and **open"]);
    becomes("snake_case, __init__ and a_b_c stay", &["snake_case, __init__ and a_b_c stay"]);
    becomes("5 < 6 & \"so\"", &["5 &lt; 6 &amp; &quot;so&quot;"]);
}

#[test]
fn references_lead_where_their_targets_say() {
    let text = "A Docs_, `the code`_, `here <https://h.example/x>`_, `here`_, it__, `that <Docs_>`__ and nothing_.\n\n\
        .. _Docs: https://d.example/\n.. _the code:\n.. _other: https://c.example/\n   path\n__ https://a.example\n";
    becomes(
        text,
        &[
            "<a href=\"https://d.example/\">Docs</a>",
            "<a href=\"https://c.example/path\">the code</a>",
            "<a href=\"https://h.example/x\">here</a>, <a href=\"https://h.example/x\">here</a>",
            "<a href=\"https://a.example\">it</a>",
            "<a href=\"https://d.example/\">that</a> and nothing_.",
        ],
    );
    becomes(
        "See https://e.example/a_(b) (or http://f.example/x). <https://g.example>",
        &[
            "<a href=\"https://e.example/a_(b)\">",
            "<a href=\"http://f.example/x\">http://f.example/x</a>).",
            "&lt;<a href=\"https://g.example\">",
        ],
    );
    becomes(
        "A note [1]_ and [CIT2002]_.\n\n.. [1] Said *below*\n   on two lines.\n",
        &[
            "note <sup>[1]</sup> and <sup>[CIT2002]</sup>",
            "<p><sup>[1]</sup> Said <em>below</em>\non two lines.</p>",
        ],
    );
}

#[test]
fn images_become_their_descriptions() {
    let text = "|build| |what|\n\n.. |build| image:: https://ci.example/badge.svg\n    :target: https://ci.example/\n    :alt: Build status\n\
        .. |what| replace:: a *word*\n\n.. image:: https://evil.example/p.png\n\n.. figure:: x.png\n   :alt: The figure\n\n   Below it.\n";
    becomes(
        text,
        &[
            "<a href=\"https://ci.example/\">Build status</a>",
            "a *word*",
            "<em>p.png</em>",
            "<em>The figure</em>",
            "<p>Below it.</p>",
        ],
    );
    assert!(!html(text).contains("<img"));
}

#[test]
fn lists_hold_blocks() {
    becomes(
        "* one\n* two\n  goes on\n\n  - in it\n\n* three\n",
        &[
            "<ul>\n<li>one</li>\n<li><p>two\ngoes on</p>\n<ul>\n<li>in it</li>\n</ul>\n</li>\n<li>three</li>\n</ul>",
        ],
    );
    becomes("1. one\n2. two\n\n#. more\n", &["<ol>\n<li>one</li>\n<li>two</li>\n<li>more</li>\n</ol>"]);
    becomes("3) three\n", &["<ol start=\"3\">\n<li>three</li>"]);
    becomes("A. Einstein was\nhere", &["<p>A. Einstein was\nhere</p>"]);
    becomes(
        "term\n  What it is.\n\nother : kind\n  Another.\n",
        &["<dl>\n<dt>term</dt><dd>What it is.</dd>\n<dt>other</dt><dd>Another.</dd>\n</dl>"],
    );
    becomes(
        ":Author: Me\n:Licence: MIT\n  or so\n",
        &["<dt>Author</dt><dd>Me</dd>", "<dt>Licence</dt><dd>MIT\nor so</dd>"],
    );
    becomes(
        "-a, --all  does all\n--file FILE  reads it\n",
        &["<dt><code>-a, --all</code></dt><dd>does all</dd>", "<dt><code>--file FILE</code></dt>"],
    );
    becomes("| one\n| two\n", &["<p>one<br>\ntwo</p>"]);
}

#[test]
fn literal_blocks_stay_as_they_are() {
    becomes(
        "So::\n\n    a *b*\n      <c>\n\nBehind",
        &["<p>So:</p>\n<pre>a *b*\n  &lt;c&gt;\n</pre>\n<p>Behind</p>"],
    );
    becomes("::\n\n  x\n", &["<pre>x\n</pre>"]);
    becomes("Like ::\n\n> quoted\n> more\n", &["<p>Like</p>\n<pre>&gt; quoted\n&gt; more\n</pre>"]);
    becomes(
        ".. code-block:: python\n   :linenos:\n\n   print(\"x\")\n\nBehind",
        &["<pre>print(&quot;x&quot;)\n</pre>\n<p>Behind</p>"],
    );
    becomes(">>> 1 + 1\n2\n", &["<pre>&gt;&gt;&gt; 1 + 1\n2\n</pre>"]);
    becomes("Above\n\n  Quoted *text*.\n", &["<blockquote>\n<p>Quoted <em>text</em>.</p>\n</blockquote>"]);
}

#[test]
fn tables_have_rows() {
    let grid =
        "+-----+------+\n| a   | b    |\n+=====+======+\n| 1   | *2*  |\n|     | more |\n+-----+------+\n";
    becomes(
        grid,
        &[
            "<table>\n<thead>\n<tr><th>a</th><th>b</th></tr>\n</thead>\n<tbody>\n<tr><td>1</td><td><em>2</em>\nmore</td></tr>\n</tbody>\n</table>",
        ],
    );
    let simple =
        "====  =====\nName  What\n====  =====\nä     one\nb     two is\n      long\n====  =====\n\nBehind";
    becomes(
        simple,
        &[
            "<tr><th>Name</th><th>What</th></tr>\n</thead>",
            "<tr><td>ä</td><td>one</td></tr>",
            "<td>two is\nlong</td>",
            "<p>Behind</p>",
        ],
    );
    becomes("* +-+", &["<li><pre>+-+\n</pre>\n</li>"]);
    becomes("+-+\n|a|\n+=+\n", &["<thead>\n<tr><th>a</th></tr>\n</thead>\n</table>"]);
    becomes("+---+---+\n| joined|\n+---+---+\n", &["<pre>+---+---+"]);
    becomes("== ==\na  b\n== ==\n", &["<tbody>\n<tr><td>a</td><td>b</td></tr>\n</tbody>"]);
}

#[test]
fn directives_are_rendered_or_dropped() {
    becomes(
        ".. note:: Mind *this*.\n\n   More.\n",
        &[
            "<blockquote>\n<p><strong>Note</strong></p>\n<p>Mind <em>this</em>.</p>\n<p>More.</p>\n</blockquote>",
        ],
    );
    becomes(".. admonition:: By the way\n\n   So.\n", &["<strong>By the way</strong>", "<p>So.</p>"]);
    for text in [
        ".. raw:: html\n\n   <script>alert(1)</script>\n",
        ".. include:: /etc/passwd\n",
        ".. contents::\n   :local:\n",
        ".. a comment\n   of two lines\n",
        "..\n   a comment too\n",
        ".. role:: raw-html(raw)\n   :format: html\n",
    ] {
        assert_eq!(html(text), "", "{text}");
    }
    becomes(".. unknown:: x\n\n   its <content>\n", &["<pre>its &lt;content&gt;\n</pre>"]);
}

#[test]
fn links_have_only_permitted_schemes() {
    for text in [
        "`x <javascript:alert(1)>`_",
        "`x <data:text/html,a>`__",
        "x_\n\n.. _x: javascript:alert(1)\n",
        "`x <//evil.example>`_ `y </tokens>`_",
        ".. image:: x\n   :target: javascript:alert(1)\n",
        "`x <https://a.example/\u{1}\">`_",
    ] {
        assert!(!html(text).contains("<a "), "{}", html(text));
    }
    becomes("`x <https://a.example/\"onclick=\"a>`_", &["href=\"https://a.example/&quot;onclick=&quot;a\""]);
}

#[test]
fn depth_and_size_are_bounded() {
    let nested: String = (0..200).map(|depth| format!("{}* x\n\n", "  ".repeat(depth))).collect();
    assert_eq!(rendered(&nested, BOUNDS), None);
    assert_eq!(rendered(&"* ".repeat(30_000), BOUNDS), None);
    let target = format!(".. _x: https://e.example/{}\n\n{}", "a".repeat(2000), "x_ ".repeat(20_000));
    let full = rendered(&target, Bounds { depth: 24, bytes: 50_000 }).unwrap();
    assert!(!full.whole && full.blocks.concat().len() <= 50_000);
    let words = format!(".. |x| replace:: {}\n\n{}", "|x| ".repeat(400), "|x| ".repeat(10_000));
    assert!(!rendered(&words, Bounds { depth: 24, bytes: 50_000 }).unwrap().whole);
    let whole = rendered("One.\n\nTwo.\n", BOUNDS).unwrap();
    assert_eq!((whole.blocks.len(), whole.whole), (2, true));
}

/// These texts would take minutes if the parser searched the same text repeatedly.
#[test]
fn hostile_texts_take_no_longer_than_others() {
    for piece in [
        "*a ",
        "**a ",
        "`a ",
        "``a ",
        "|a ",
        "[a ",
        ":a",
        ":a:`",
        "_`a ",
        "a_ ",
        "https://\u{1}/",
        "<https://",
        "|a|",
        "`a <b>`_ ",
        "`a`__ ",
        "\\",
        "a::\n\n",
        "+-",
        "== ",
        "==\n",
        "* a\n",
        "a\n b\n",
        ".. _a:\n",
        ".. |a| image:: b\n",
        "-a  b\n",
        ":a: b\n",
        "+--+\n| a|\n",
        "== ==\n",
        "(",
        "..\n",
        "\t",
        "  a\n",
        "| a\n",
        "== ==\n\n",
    ] {
        let text = piece.repeat(64 * 1024 / piece.len());
        for ending in ["", "a|", "*", "`", "\n"] {
            let begun = std::time::Instant::now();
            rendered(&format!("{text}{ending}"), BOUNDS);
            assert!(
                begun.elapsed() < std::time::Duration::from_secs(4),
                "{piece:?} takes {:?}",
                begun.elapsed()
            );
        }
    }
}

/// Reports whether the elements are correctly nested and among those that the renderer writes.
fn is_sound(html: &str) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for piece in html.split('<').skip(1) {
        let Some((tag, _)) = piece.split_once('>') else { return false };
        let name = tag.split(' ').next().unwrap_or_default();
        match name.strip_prefix('/') {
            Some(name) if open.pop() != Some(name) => return false,
            Some(_) => {}
            None if matches!(name, "br" | "hr") => {}
            None => open.push(name),
        }
        let known = [
            "a",
            "blockquote",
            "br",
            "code",
            "dd",
            "dl",
            "dt",
            "em",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "hr",
            "li",
            "ol",
            "p",
            "pre",
            "strong",
            "sub",
            "sup",
            "table",
            "tbody",
            "td",
            "th",
            "thead",
            "tr",
            "ul",
        ];
        if !known.contains(&name.trim_start_matches('/')) {
            return false;
        }
    }
    open.is_empty()
}

proptest! {
    #[test]
    fn any_text_gives_sound_elements(text in "([*`|_:\\[\\]<>.=+ \\-\\\\#a1\n\t\\PC]|\n|  |\\.\\. |::|`_|:a:|\\* |==|\\+-|\\| ){0,80}") {
        if let Some(rendered) = rendered(&text, BOUNDS) {
            for block in &rendered.blocks {
                prop_assert!(is_sound(block), "{:?} becomes {}", text, block);
            }
        }
    }

    #[test]
    fn plain_words_stay_unchanged(words in proptest::collection::vec("[a-z]{1,8}", 1..30)) {
        let text = words.join(" ");
        prop_assert_eq!(html(&text), format!("<p>{text}</p>\n"));
    }
}
