//! Normalisation of e-mail addresses for storage and comparison. Any two stored addresses look
//! different to people. Two spellings are equal only if mail servers would treat them alike.
//!
//! ASCII letters are case-insensitive. An address is refused if Unicode normalization (canonical or
//! compatibility) would change any other letter, because the result could be another person's
//! address. Examples of such letters are the Kelvin sign U+212A, which becomes `k`, full-width
//! letters and ligatures.
//!
//! An address is also refused if it contains invisible characters or a part that mixes scripts:
//! letters of different scripts may look alike (UTS #39).

use unicode_normalization::UnicodeNormalization as _;
use unicode_security::{GeneralSecurityProfile as _, MixedScript as _};

/// Maximum length of an address, in bytes (RFC 5321, section 4.5.3.1).
const LONGEST: usize = 254;

/// Normalises an e-mail address: lower case, NFKC. Returns `None` unless the address has text on
/// both sides of one `@`, at most 254 bytes, and no space, colon or control character.
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

/// Normalises a domain in the same way as the domain of an address.
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
    // The check covers both texts: the lower case of some letters is not allowed in identifiers.
    (is_plain(text) && is_plain(&folded)).then_some(folded)
}

/// Returns whether normalization leaves every letter unchanged and no part mixes scripts.
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
    fn case_is_folded_and_the_shape_is_checked() {
        for (text, normalised) in [
            ("Me@Example.COM", "me@example.com"),
            (" me+tag@example.com ", "me+tag@example.com"),
            ("MÜLLER@Bücher.example", "müller@bücher.example"),
            ("Mu\u{308}ller@example.com", "müller@example.com"),
            ("ΔΈΛΤΑ@example.com", "δέλτα@example.com"),
            ("почта@пример.рф", "почта@пример.рф"),
        ] {
            assert_eq!(email(text).as_deref(), Some(normalised), "{text}");
        }
        for text in ["", "@", "a@", "@b", "a@b@c", "a b@c", "a\u{7}@b", "a:b@c", "a", &"a".repeat(250)] {
            assert_eq!(email(text), None, "{text}");
        }
        assert_eq!(email(&format!("{}@b", "a".repeat(253))), None);
    }

    #[test]
    fn confusable_addresses_are_refused() {
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
    fn a_domain_is_normalised_like_its_addresses() {
        assert_eq!(email_domain("Example.COM").as_deref(), Some("example.com"));
        for text in ["", " example.com", "a@b", "\u{212a}elvin.example", "a b"] {
            assert_eq!(email_domain(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing(text in "\\PC{1,8}@\\PC{1,8}") {
            if let Some(normalised) = email(&text) {
                prop_assert_eq!(email(&normalised), Some(normalised.clone()));
                // If the normalised form is ASCII, the original was ASCII.
                prop_assert!(!normalised.is_ascii() || text.trim().is_ascii());
            }
        }
    }
}
