//! Names of gems and of their files. A file name does not show where the name of the gem ends and
//! its version begins.

use crate::version;
use packhouse_sdk::Intent;

/// Longest name, version and platform, in bytes.
const LONGEST: usize = 120;
/// The most splits of a file name that [`splits`] returns.
const MAX_SPLITS: usize = 16;

/// Returns true for a valid gem name: ASCII letters, digits, `-`, `_` and `.`. The name starts with
/// a letter or digit and contains a letter.
pub(crate) fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let start = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let letter = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    start && letter && text.len() <= LONGEST && text.bytes().all(inside)
}

/// Returns true for a valid platform, such as `x86_64-linux`.
pub(crate) fn is_platform(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let start = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte.is_ascii_digit());
    start && text.len() <= LONGEST && text.bytes().all(inside)
}

/// Returns a version with its platform, as in indexes: `1.0.0` for the platform `ruby`, or
/// `1.0.0-java`.
pub(crate) fn number(version: &str, platform: &str) -> String {
    if platform == "ruby" { version.to_owned() } else { format!("{version}-{platform}") }
}

/// Splits a number into version and platform; `None` if it is invalid.
pub(crate) fn parts(number: &str) -> Option<(&str, &str)> {
    let (version, platform) = number.split_once('-').unwrap_or((number, "ruby"));
    (version::is_version(version) && is_platform(platform)).then_some((version, platform))
}

/// Returns each pair of a gem name and a number whose file name has this stem.
pub(crate) fn splits(stem: &str) -> Vec<(&str, &str)> {
    let splits = stem.match_indices('-').filter_map(|(at, _)| {
        let (name, rest) = stem.split_at_checked(at)?;
        Some((name, rest.strip_prefix('-')?))
    });
    splits.filter(|(name, number)| is_name(name) && parts(number).is_some()).take(MAX_SPLITS).collect()
}

/// Adds all gems that may own the file with this stem to an intent.
pub(crate) fn about_stem(intent: Intent, stem: &str) -> Intent {
    splits(stem).into_iter().fold(intent, |intent, (name, _)| intent.about_package(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_name_is_split_in_each_way() {
        assert_eq!(splits("rake-13.0.6"), [("rake", "13.0.6")]);
        assert_eq!(
            splits("net-http-2-1.0-x86_64-linux"),
            [("net-http", "2-1.0-x86_64-linux"), ("net-http-2", "1.0-x86_64-linux")]
        );
        for invalid in ["rake", "-1.0", "", "1-2", "rake-x"] {
            assert!(splits(invalid).is_empty(), "{invalid}");
        }
        assert!(!is_name("../x") && !is_name("_x") && !is_name("123") && is_name("a"));
        assert_eq!((number("1.0", "ruby"), number("1.0", "java")), ("1.0".to_owned(), "1.0-java".to_owned()));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".{0,40}") {
            let _ = (is_name(&text), is_platform(&text), parts(&text), splits(&text));
        }
    }
}
