//! Names and versions of charts, and the names of their files. A file name does not show where the
//! name of the chart ends and its version begins.

use packhouse_sdk::Intent;
use semver::Version;

/// The length limit of a name and of a version, in bytes. The limit keeps record keys and file
/// names short.
const LONGEST: usize = 120;
/// The most splits of a file name that [`splits`] returns.
const MAX_SPLITS: usize = 16;

/// Returns true for a valid chart name: ASCII letters, digits, `-`, `_` and `.`, starting with a
/// letter or a digit.
pub(crate) fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let start = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    start && text.len() <= LONGEST && text.bytes().all(inside)
}

/// Parses a version like Helm: a semantic version that may have a leading `v`, and whose second and
/// third number may be missing. Returns `None` if the version is not valid.
pub(crate) fn version(text: &str) -> Option<Version> {
    let bare = text.strip_prefix('v').unwrap_or(text);
    let (numbers, rest) = bare.split_at(bare.find(['-', '+']).unwrap_or(bare.len()));
    let missing = match numbers.split('.').count() {
        1 => ".0.0",
        2 => ".0",
        3 => "",
        _ => return None,
    };
    let whole = format!("{numbers}{missing}{rest}");
    Version::parse(&whole).ok().filter(|_| text.len() <= LONGEST)
}

/// Returns the file name of a chart.
pub(crate) fn file(name: &str, version: &str) -> String {
    format!("{name}-{version}.tgz")
}

/// Returns each pair of a chart name and a version that has this file name.
pub(crate) fn splits(file: &str) -> Vec<(&str, &str)> {
    let Some(stem) = file.strip_suffix(".tgz") else { return Vec::new() };
    let splits = stem.match_indices('-').filter_map(|(at, _)| {
        let (name, rest) = stem.split_at_checked(at)?;
        Some((name, rest.strip_prefix('-')?))
    });
    splits.filter(|(name, number)| is_name(name) && version(number).is_some()).take(MAX_SPLITS).collect()
}

/// Adds all charts that may own the file to an intent.
pub(crate) fn about_file(intent: Intent, file: &str) -> Intent {
    let chart = file.strip_suffix(".prov").unwrap_or(file);
    splits(chart).into_iter().fold(intent, |intent, (name, _)| intent.about_package(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn versions_are_read_like_in_helm() {
        for (lower, higher) in [
            ("1.9.0", "1.10.0"),
            ("1.0.0-rc.1", "1.0.0"),
            ("v1.2.3", "1.2.4"),
            ("1.2", "v1.3"),
            ("1", "1.0.1"),
        ] {
            assert!(version(lower) < version(higher), "{lower} {higher}");
        }
        for text in ["", "v", "latest", "1.2.3.4", "01.0.0", "1.0.0/..", "1.0.0_1", "-1"] {
            assert_eq!(version(text), None, "{text}");
        }
        assert!(version("1.2-rc.1+build.7").is_some());
    }

    #[test]
    fn a_file_name_is_split_in_each_way() {
        assert_eq!(splits("nginx-1.0.0.tgz"), [("nginx", "1.0.0")]);
        assert_eq!(
            splits("cert-manager-v1.2.0-rc-1.tgz"),
            [("cert-manager", "v1.2.0-rc-1"), ("cert-manager-v1.2.0-rc", "1")]
        );
        for invalid in ["nginx.tgz", "nginx-1.0.0.zip", "-1.0.0.tgz", "", "nginx-x.tgz"] {
            assert!(splits(invalid).is_empty(), "{invalid}");
        }
    }

    proptest! {
        #[test]
        fn the_splits_include_the_right_one(name in "[a-z][a-z0-9-]{0,12}[a-z]", number in "[0-9]{1,2}\\.[0-9]{1,2}\\.[0-9]{1,2}") {
            prop_assume!(version(&number).is_some());
            let file = file(&name, &number);
            prop_assert!(splits(&file).contains(&(name.as_str(), number.as_str())));
        }

        #[test]
        fn any_text_is_handled(text in ".{0,40}") {
            let _ = (is_name(&text), version(&text), splits(&text));
        }
    }
}
