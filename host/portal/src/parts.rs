//! Small pieces that pages are made of.

use maud::{Markup, html};
use packhouse_identity::mint_poll;

use crate::fields::Fields;
use crate::seat::Seat;

/// A sentence that says what was wrong.
pub(crate) fn alert(text: &str) -> Markup {
    html! { p role="alert" { (text) } }
}

/// The hidden field with the session's token.
pub(crate) fn csrf(token: &str) -> Markup {
    html! { input type="hidden" name="csrf" value=(token); }
}

/// What each form of a member carries: the session's token, and the form's own number.
pub(crate) fn guard(seat: &Seat) -> Markup {
    html! { (csrf(&seat.csrf)) input type="hidden" name="once" value=(mint_poll()); }
}

/// A hidden field.
pub(crate) fn hidden(name: &str, value: &str) -> Markup {
    html! { input type="hidden" name=(name) value=(value); }
}

/// What was filled in, carried along unseen; never a password of the member's own.
pub(crate) fn carried(fields: &Fields) -> Markup {
    let own = |name: &str| matches!(name, "csrf" | "once" | "password" | "current_password" | "confirm");
    html! { @for (name, value) in fields.0.iter().filter(|(name, _)| !own(name)) { (hidden(name, value)) } }
}

/// A form that is one button.
pub(crate) fn deed(seat: &Seat, action: &str, fields: &[(&str, &str)], button: &Markup) -> Markup {
    html! {
        form method="post" action=(action) {
            (csrf(&seat.csrf))
            @for (name, value) in fields { (hidden(name, value)) }
            (button)
        }
    }
}

/// A form that deletes or revokes: one button opens what the other does, so that nothing is lost at the first click. `name` is of what,
/// for those who do not see where it stands; empty where the page says it.
pub(crate) fn deed_in_two_steps(
    seat: &Seat,
    action: &str,
    fields: &[(&str, &str)],
    verb: &str,
    name: &str,
) -> Markup {
    let of = html! { @if !name.is_empty() { span.away { " " (said(name)) } } };
    let button = html! { button.bad type="submit" { "Yes, " (verb.to_lowercase()) (of) } };
    html! {
        details.twice {
            summary.button.bad { (verb) (of) }
            (deed(seat, action, fields, &button))
        }
    }
}

/// A form that is one button and changes nothing: the way to what is asked further.
pub(crate) fn ask(action: &str, name: &str, value: &str, button: &Markup) -> Markup {
    html! { form method="get" action=(action) { (hidden(name, value)) (button) } }
}

/// A text from outside, with a direction of its own.
pub(crate) fn said(text: &str) -> Markup {
    html! { bdi { (text) } }
}

/// A text from outside, of which a page shows no more than its beginning.
pub(crate) fn short(text: &str) -> Markup {
    const MOST: usize = 240;
    match text.char_indices().nth(MOST) {
        None => said(text),
        Some((end, _)) => html! { bdi { (text.get(..end).unwrap_or_default()) "…" } },
    }
}

/// A text without the characters that turn the direction of what follows: for where no element can hold it.
pub(crate) fn straight(text: &str) -> String {
    let turns = |letter: &char| {
        letter.is_control()
            || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().filter(|letter| !turns(letter)).collect()
}

/// A word for a state.
pub(crate) fn tag(word: &str) -> Markup {
    html! { span class={ "tag " (word) } { (word) } }
}

/// Bytes in units of 1000.
pub(crate) fn size(bytes: u64) -> Markup {
    let mut unit = "B";
    let mut shown = bytes as f64;
    for larger in ["kB", "MB", "GB", "TB", "PB"] {
        if shown < 1000.0 {
            break;
        }
        (shown, unit) = (shown / 1000.0, larger);
    }
    let text = match unit {
        "B" => format!("{bytes} B"),
        _ if shown < 10.0 => format!("{shown:.2} {unit}"),
        _ if shown < 100.0 => format!("{shown:.1} {unit}"),
        _ => format!("{shown:.0} {unit}"),
    };
    html! { span title={ (bytes) " bytes" } { (text) } }
}

/// A number with its noun.
pub(crate) fn count(number: u64, one: &str, many: &str) -> Markup {
    html! { span { (number) " " (if number == 1 { one } else { many }) } }
}

/// One segment of a path.
pub(crate) fn segment(text: &str) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(text, KEPT).to_string()
}

/// The path of a repository's pages. One that is called like the page that makes one is written otherwise.
pub(crate) fn repository(name: &str) -> String {
    match name {
        "new" => "/repositories/%6Eew".to_owned(),
        name => format!("/repositories/{}", segment(name)),
    }
}

/// The path of a package's page.
pub(crate) fn package(repository: &str, package: &str) -> String {
    format!("{}/packages/{}", self::repository(repository), segment(package))
}

/// The path of a version's page.
pub(crate) fn version(repository: &str, package: &str, version: &str) -> String {
    format!("{}/versions/{}", self::package(repository, package), segment(version))
}

/// The way to the page that follows, if one does.
pub(crate) fn further(path: &str, query: &[(&str, &str)], next: Option<&str>) -> Markup {
    let Some(next) = next else { return Markup::default() };
    let mut pairs = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in query.iter().filter(|(_, value)| !value.is_empty()) {
        pairs.append_pair(name, value);
    }
    pairs.append_pair("after", next);
    html! { p { a.button rel="next" href={ (path) "?" (pairs.finish()) } { "Next page" } } }
}

/// A table that is scrolled sideways where it is wider than the screen. `name` says what it is of.
pub(crate) fn table(name: &str, head: &[&str], rows: &Markup) -> Markup {
    html! {
        div.scroll role="region" aria-label=(name) tabindex="0" {
            table {
                thead { tr { @for title in head { th scope="col" { (title) } } } }
                tbody { (rows) }
            }
        }
    }
}

/// A text to be copied, in an element of this id, with the button that does.
pub(crate) fn copied(id: &str, text: &Markup, button: &str) -> Markup {
    html! {
        div.copied {
            (text)
            button type="button" data-copies=(id) hidden aria-label=[(button != "Copy").then_some(button)] { "Copy" }
            span.soft.small data-said aria-live="polite" {}
        }
    }
}

/// A secret that is shown this once.
pub(crate) fn secret(secret: &str) -> Markup {
    let shown = html! { code id="secret" data-secret="" { (secret) } };
    html! {
        p { strong { "Copy it now." } " It is shown this once, and kept nowhere." }
        (copied("secret", &shown, "Copy"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_segment_and_stays_where_it_is() {
        assert_eq!(package("js", "@scope/name"), "/repositories/js/packages/%40scope%2Fname");
        assert_eq!(version("a", "b?c", "1#2"), "/repositories/a/packages/b%3Fc/versions/1%232");
        assert_eq!(repository("new"), "/repositories/%6Eew");
    }

    #[test]
    fn sizes_have_units_of_1000() {
        let text = |bytes| size(bytes).into_string();
        assert!(text(999).contains(">999 B<") && text(1000).contains(">1.00 kB<"));
        assert!(text(12_345_678).contains(">12.3 MB<") && text(u64::MAX).contains("PB<"));
    }

    #[test]
    fn a_title_turns_nothing_round() {
        assert_eq!(straight("a\u{202e}b\u{2066}c\u{200f}\n"), "abc");
    }
}
