//! Patterns of names, as the host's settings have them (`claimed_names`, `min_release_age_except`).

/// Whether a name is as a pattern says, in which `*` stands for any text, none among them, and everything else for itself. The host,
/// which judges by these settings too, reads patterns in the same way.
///
/// ```
/// assert!(packhouse_sdk::fits("@acme/*", "@acme/lib"));
/// assert!(!packhouse_sdk::fits("lib", "lib2"));
/// ```
pub fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let (between, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in between.split('*') {
        match name.split_once(part) {
            Some((_, after)) => name = after,
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("app", "app", true),
            ("app", "apps", false),
            ("Demo", "demo", false),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("team/*", "team/a/b", true),
            ("team/*", "team", false),
            ("@acme/*", "@acme2/lib", false),
            ("*-internal", "a-internal", true),
            ("@*/own-*", "@acme/own-lib", true),
            ("@*/own-*", "@acme/lib", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "acb", false),
            ("a**b", "ab", true),
            ("ab*ba", "aba", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
