//! Names of gems, and the names of their files, which do not tell where one part ends and the other begins.

use crate::version;
use packhouse_sdk::Intent;

/// Bytes of a name, of a version and of a platform.
const LONGEST: usize = 120;
/// Ways to cut a file's name that are looked at.
const WAYS: usize = 16;

/// Whether a gem may be called that: ASCII letters, digits, `-`, `_` and `.`, a letter among them, and no mark at its start.
pub(crate) fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let start = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let letter = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    start && letter && text.len() <= LONGEST && text.bytes().all(inside)
}

/// Whether a platform may be called that, as `x86_64-linux`.
pub(crate) fn is_platform(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let start = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte.is_ascii_digit());
    start && text.len() <= LONGEST && text.bytes().all(inside)
}

/// A version with its platform, as the indexes call it: `1.0.0`, `1.0.0-java`.
pub(crate) fn number(version: &str, platform: &str) -> String {
    if platform == "ruby" { version.to_owned() } else { format!("{version}-{platform}") }
}

/// Version and platform of a number; none for what is none.
pub(crate) fn parts(number: &str) -> Option<(&str, &str)> {
    let (version, platform) = number.split_once('-').unwrap_or((number, "ruby"));
    (version::is_version(version) && is_platform(platform)).then_some((version, platform))
}

/// The gem and the number that a file's stem may be of, in each way in which it can be cut.
pub(crate) fn cuts(stem: &str) -> Vec<(&str, &str)> {
    let cuts = stem.match_indices('-').filter_map(|(at, _)| {
        let (name, rest) = stem.split_at_checked(at)?;
        Some((name, rest.strip_prefix('-')?))
    });
    cuts.filter(|(name, number)| is_name(name) && parts(number).is_some()).take(WAYS).collect()
}

/// Says which gems an intent about a file is about.
pub(crate) fn about_stem(intent: Intent, stem: &str) -> Intent {
    cuts(stem).into_iter().fold(intent, |intent, (name, _)| intent.about_package(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_files_name_is_cut_in_each_way() {
        assert_eq!(cuts("rake-13.0.6"), [("rake", "13.0.6")]);
        assert_eq!(
            cuts("net-http-2-1.0-x86_64-linux"),
            [("net-http", "2-1.0-x86_64-linux"), ("net-http-2", "1.0-x86_64-linux")]
        );
        for none in ["rake", "-1.0", "", "1-2", "rake-x"] {
            assert!(cuts(none).is_empty(), "{none}");
        }
        assert!(!is_name("../x") && !is_name("_x") && !is_name("123") && is_name("a"));
        assert_eq!((number("1.0", "ruby"), number("1.0", "java")), ("1.0".to_owned(), "1.0-java".to_owned()));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in ".{0,40}") {
            let _ = (is_name(&text), is_platform(&text), parts(&text), cuts(&text));
        }
    }
}
