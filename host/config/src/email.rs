//! E-mail addresses as they are kept and compared: two that are kept apart are told apart by people, and two that are written
//! differently are one only where mail would treat them so.
//!
//! Of ASCII, upper and lower case are one. Other letters are taken as they stand for themselves: a character that compatibility or
//! canonical normalization turns into others (the Kelvin sign U+212A is one for `k`, as are full-width letters and ligatures) is
//! refused, for folded it would be another's address. So are characters that show nothing, and parts that mix scripts, of which one
//! letter looks like another's (UTS #39).

use unicode_normalization::UnicodeNormalization as _;
use unicode_security::{GeneralSecurityProfile as _, MixedScript as _};

/// The longest address, in bytes (RFC 5321, section 4.5.3.1).
const LONGEST: usize = 254;

/// An e-mail address as it is kept, in lower case and normalized (NFKC); none when it is none. Only the shape is judged: one `@` with
/// something on both sides, no space or control character, at most 254 bytes.
pub fn email(text: &str) -> Option<String> {
    let text = text.trim();
    let (local, domain) = text.split_once('@')?;
    let shaped = !local.is_empty() && !domain.is_empty() && !domain.contains('@');
    let plain = !text.chars().any(|letter| letter.is_whitespace() || letter.is_control() || letter == ':');
    if !shaped || !plain || text.len() > LONGEST {
        return None;
    }
    fold(text).filter(|folded| folded.len() <= LONGEST)
}

/// A domain as the addresses in it are kept; none when it is none.
pub fn email_domain(text: &str) -> Option<String> {
    let plain = text.trim() == text;
    let address = plain.then(|| email(&format!("x@{text}")))??;
    address.strip_prefix("x@").map(str::to_owned)
}

fn fold(text: &str) -> Option<String> {
    if text.is_ascii() {
        return Some(text.to_ascii_lowercase());
    }
    let folded: String = text.nfkc().collect::<String>().to_lowercase().nfkc().collect();
    // Of some letters the lower case is none that identifiers have.
    (is_plain(text) && is_plain(&folded)).then_some(folded)
}

/// Whether each letter stands for itself, and no part mixes scripts.
fn is_plain(text: &str) -> bool {
    let for_itself =
        |letter: char| letter.identifier_allowed() && std::iter::once(letter).nfkc().eq([letter]);
    text.chars().all(|letter| letter.is_ascii() || for_itself(letter))
        && text.split(['@', '.']).all(|part| part.is_single_script())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn case_is_folded_and_shape_is_judged() {
        for (text, kept) in [
            ("Me@Example.COM", "me@example.com"),
            (" me+tag@example.com ", "me+tag@example.com"),
            ("MÜLLER@Bücher.example", "müller@bücher.example"),
            ("Mu\u{308}ller@example.com", "müller@example.com"),
            ("ΔΈΛΤΑ@example.com", "δέλτα@example.com"),
            ("почта@пример.рф", "почта@пример.рф"),
        ] {
            assert_eq!(email(text).as_deref(), Some(kept), "{text}");
        }
        for text in ["", "@", "a@", "@b", "a@b@c", "a b@c", "a\u{7}@b", "a:b@c", "a", &"a".repeat(250)] {
            assert_eq!(email(text), None, "{text}");
        }
        assert_eq!(email(&format!("{}@b", "a".repeat(253))), None);
    }

    #[test]
    fn nobody_is_taken_for_another() {
        for text in [
            "\u{212a}elvin@example.com",
            "kelvin@\u{212a}elvin.example",
            "\u{ff4b}elvin@example.com",
            "\u{17f}am@example.com",
            "o\u{fb03}ce@example.com",
            "a\u{200b}b@example.com",
            "ab\u{200d}@example.com",
            "ab@exa\u{ad}mple.com",
            "\u{feff}ab@example.com",
            "ab\u{2060}@example.com",
            "ab\u{202e}@example.com",
            "ab\u{fe0f}@example.com",
            "\u{430}dmin@example.com",
            "admin@ex\u{430}mple.com",
            "ab@\u{10cd}",
        ] {
            assert_eq!(email(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_domain_is_kept_as_its_addresses_are() {
        assert_eq!(email_domain("Example.COM").as_deref(), Some("example.com"));
        for text in ["", " example.com", "a@b", "\u{212a}elvin.example", "a b"] {
            assert_eq!(email_domain(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_kept_is_kept_as_it_is(text in "\\PC{1,8}@\\PC{1,8}") {
            if let Some(kept) = email(&text) {
                prop_assert_eq!(email(&kept), Some(kept.clone()));
                // What is ASCII when it is kept was ASCII when it was written.
                prop_assert!(!kept.is_ascii() || text.trim().is_ascii());
            }
        }
    }
}
