//! Package names: `vendor/package`, in lower case.

use packhouse_sdk::{Intent, Params};

/// The length limit, in bytes, of each half of a name: the vendor and the package.
const LONGEST: usize = 100;

/// True if this is a valid package name.
pub(crate) fn is_name(text: &str) -> bool {
    text.split_once('/').is_some_and(|(vendor, package)| is_half(vendor) && is_half(package))
}

fn is_half(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let at = |byte: Option<u8>| byte.is_some_and(plain);
    text.len() <= LONGEST
        && at(text.bytes().next())
        && at(text.bytes().next_back())
        && text.bytes().all(|byte| plain(byte) || b"._-".contains(&byte))
        && !text.contains("..")
}

/// The package in a path's `{vendor}/{package}`.
pub(crate) fn of(params: &Params<'_>) -> String {
    format!("{}/{}", params.segment("vendor"), params.segment("package"))
}

/// Adds the package to an intent, if its name is valid.
pub(crate) fn about(intent: Intent, name: &str) -> Intent {
    let intent = intent.subject(name);
    if is_name(name) { intent.about_package(name) } else { intent }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_have_two_halves_in_lower_case() {
        for name in ["acme/demo", "a/b", "my-org/lib_two.x", "a/b--c"] {
            assert!(is_name(name), "{name}");
        }
        let long = format!("a/{}", "b".repeat(101));
        for name in [
            "",
            "demo",
            "Acme/demo",
            "a/b/c",
            "../b",
            "a/..",
            "-a/b",
            "a/b-",
            "a/",
            "ä/b",
            "a/b c",
            "a/b\n",
            &long,
        ] {
            assert!(!is_name(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_handled(text in "\\PC{0,30}") {
            let _ = is_name(&text);
        }
    }
}
