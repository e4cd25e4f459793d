//! Small building blocks of pages.

use maud::{Markup, html};
use packhouse_identity::mint_poll;

use crate::fields::Fields;
use crate::page_context::PageContext;

/// An error sentence that screen readers announce.
pub(crate) fn alert(text: &str) -> Markup {
    html! { p role="alert" { (text) } }
}

/// Hidden field with the CSRF token.
pub(crate) fn csrf(token: &str) -> Markup {
    html! { input type="hidden" name="csrf" value=(token); }
}

/// Hidden fields of a member's form: the CSRF token and the unique number of the form.
pub(crate) fn form_tokens(ctx: &PageContext) -> Markup {
    html! { (csrf(&ctx.csrf)) input type="hidden" name="once" value=(mint_poll()); }
}

pub(crate) fn hidden(name: &str, value: &str) -> Markup {
    html! { input type="hidden" name=(name) value=(value); }
}

/// Submitted fields as hidden fields, without the member's own password and code.
pub(crate) fn hidden_fields(fields: &Fields) -> Markup {
    let own =
        |name: &str| matches!(name, "csrf" | "once" | "password" | "current_password" | "code" | "confirm");
    html! { @for (name, value) in fields.0.iter().filter(|(name, _)| !own(name)) { (hidden(name, value)) } }
}

/// A form with a single button that performs an action.
pub(crate) fn action_button(
    ctx: &PageContext,
    action: &str,
    fields: &[(&str, &str)],
    button: &Markup,
) -> Markup {
    html! {
        form method="post" action=(action) {
            (csrf(&ctx.csrf))
            @for (name, value) in fields { (hidden(name, value)) }
            (button)
        }
    }
}

/// A form with two buttons that deletes or revokes something. The first button only reveals the
/// second one, which acts, so that a single click loses nothing. `name` tells screen readers what
/// the buttons apply to; it is empty if the page already says this.
pub(crate) fn two_step_button(
    ctx: &PageContext,
    action: &str,
    fields: &[(&str, &str)],
    verb: &str,
    name: &str,
) -> Markup {
    let of = html! { @if !name.is_empty() { span.away { " " (isolated(name)) } } };
    let button = html! { button.bad type="submit" { "Yes, " (verb.to_lowercase()) (of) } };
    html! {
        details.twice {
            summary.button.bad { (verb) (of) }
            (action_button(ctx, action, fields, &button))
        }
    }
}

/// A button that leads to another page and changes nothing.
pub(crate) fn navigation_button(action: &str, name: &str, value: &str, button: &Markup) -> Markup {
    html! { form method="get" action=(action) { (hidden(name, value)) (button) } }
}

/// An untrusted text, isolated from the text direction around it.
pub(crate) fn isolated(text: &str) -> Markup {
    html! { bdi { (text) } }
}

/// The beginning of an untrusted text, at most 240 characters.
pub(crate) fn short(text: &str) -> Markup {
    const MAX_CHARACTERS: usize = 240;
    match text.char_indices().nth(MAX_CHARACTERS) {
        None => isolated(text),
        Some((end, _)) => html! { bdi { (text.get(..end).unwrap_or_default()) "…" } },
    }
}

/// Removes control characters, also those that change the text direction. This is for places where
/// HTML allows no element, such as the title.
pub(crate) fn strip_bidi(text: &str) -> String {
    let turns = |letter: &char| {
        letter.is_control()
            || matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().filter(|letter| !turns(letter)).collect()
}

/// A label that shows a state.
pub(crate) fn tag(word: &str) -> Markup {
    html! { span class={ "tag " (word) } { (word) } }
}

/// A size in bytes with a unit, in steps of 1000.
pub(crate) fn size(bytes: u64) -> Markup {
    let mut unit = "B";
    let mut value = bytes as f64;
    for larger in ["kB", "MB", "GB", "TB", "PB"] {
        if value < 1000.0 {
            break;
        }
        (value, unit) = (value / 1000.0, larger);
    }
    let text = match unit {
        "B" => format!("{bytes} B"),
        _ if value < 10.0 => format!("{value:.2} {unit}"),
        _ if value < 100.0 => format!("{value:.1} {unit}"),
        _ => format!("{value:.0} {unit}"),
    };
    html! { span title={ (bytes) " bytes" } { (text) } }
}

/// A number with its noun in singular or plural.
pub(crate) fn count(number: u64, one: &str, many: &str) -> Markup {
    html! { span { (number) " " (if number == 1 { one } else { many }) } }
}

/// Percent-encodes a text as one path segment.
pub(crate) fn segment(text: &str) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    const UNESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(text, UNESCAPED).to_string()
}

/// Returns the path of a repository's pages. The name `new` is percent-encoded, because
/// `/repositories/new` is another page.
pub(crate) fn repository(name: &str) -> String {
    match name {
        "new" => "/repositories/%6Eew".to_owned(),
        name => format!("/repositories/{}", segment(name)),
    }
}

/// Returns the path of a package's page.
pub(crate) fn package(repository: &str, package: &str) -> String {
    format!("{}/packages/{}", self::repository(repository), segment(package))
}

/// Returns the path of a version's page.
pub(crate) fn version(repository: &str, package: &str, version: &str) -> String {
    format!("{}/versions/{}", self::package(repository, package), segment(version))
}

/// Says how many rows a list has, or how many of them this page shows if the list goes on.
pub(crate) fn list_length(ctx: &PageContext, rows: usize, more: bool, one: &str, many: &str) -> Markup {
    let noun = if rows == 1 { one } else { many };
    html! {
        p.soft.small {
            @match (ctx.query.has("after"), more) {
                (false, false) => { (rows) " " (noun) }
                (false, true) => { "The first " (rows) " " (noun) "; more are on the next page" }
                (true, true) => { "The next " (rows) " " (noun) "; more are on the next page" }
                (true, false) => { "The last " (rows) " " (noun) }
            }
        }
    }
}

/// Link to the next page of a list, if there is one.
pub(crate) fn next_page_link(path: &str, query: &[(&str, &str)], next: Option<&str>) -> Markup {
    let Some(next) = next else { return Markup::default() };
    let mut pairs = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in query.iter().filter(|(_, value)| !value.is_empty()) {
        pairs.append_pair(name, value);
    }
    pairs.append_pair("after", next);
    html! { p { a.button rel="next" href={ (path) "?" (pairs.finish()) } { "Next page" } } }
}

/// A table that scrolls sideways if it is wider than the screen. `name` is its accessible name.
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

/// A text with a button that copies it. `id` is the id of the element that contains the text.
pub(crate) fn copyable(id: &str, text: &Markup, button: &str) -> Markup {
    html! {
        div.copied {
            (text)
            button type="button" data-copies=(id) hidden aria-label=[(button != "Copy").then_some(button)] { "Copy" }
            span.soft.small data-said aria-live="polite" {}
        }
    }
}

/// A secret that the portal shows only once.
pub(crate) fn secret(secret: &str) -> Markup {
    let code = html! { code id="secret" data-secret="" { (secret) } };
    html! {
        p { strong { "Copy it now." } " It will not be shown again." }
        (copyable("secret", &code, "Copy"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_encoded_as_one_path_segment() {
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
    fn a_title_has_no_bidi_controls() {
        assert_eq!(strip_bidi("a\u{202e}b\u{2066}c\u{200f}\n"), "abc");
    }
}
