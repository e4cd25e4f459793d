//! Names of packages: `vendor/package`, in lower case.

use packhouse_sdk::Intent;

/// Bytes of each half.
const LONGEST: usize = 100;

/// Whether a package may be called that.
pub(crate) fn is_name(text: &str) -> bool {
    text.split_once('/').is_some_and(|(vendor, package)| is_half(vendor) && is_half(package))
}

fn is_half(text: &str) -> bool {
    let edge =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let bytes = text.as_bytes();
    let inside =
        bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(byte));
    edge(bytes.first()) && edge(bytes.last()) && inside && bytes.len() <= LONGEST && !text.contains("..")
}

/// Says which package an intent is about.
pub(crate) fn about(intent: Intent, name: &str) -> Intent {
    let intent = intent.subject(name);
    if is_name(name) { intent.about_package(name) } else { intent }
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn names_have_two_halves_in_lower_case() {
        for name in ["acme/demo", "a/b", "my-org/lib_two.x", "a/b--c"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "demo", "Acme/demo", "a/b/c", "../b", "a/..", "-a/b", "a/b-", "a/", "ä/b", "a/b c"]
        {
            assert!(!is_name(name), "{name}");
        }
    }
}
