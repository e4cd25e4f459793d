//! Patterns like in the settings of the host: `*` stands for any text.

/// Returns true if a text matches a pattern.
#[must_use]
pub fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part).and_then(|at| rest.get(at + part.len()..)) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    false
}

/// Returns true if a text matches one of these patterns.
#[must_use]
pub fn fits_any<P: AsRef<str>>(patterns: &[P], text: &str) -> bool {
    patterns.iter().any(|pattern| fits(pattern.as_ref(), text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*", "", true),
            ("a*b*c", "a--b--c", true),
            ("a*b*c", "a--c", false),
            ("a*a", "a", false),
            ("*a", "ba", true),
            ("@acme/*", "@acme/x", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
        assert!(fits_any(&["b", "a*"], "ab") && !fits_any::<&str>(&[], ""));
    }
}
