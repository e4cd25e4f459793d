//! Names and versions of charts, and the names of their files, which do not tell where one ends and the other begins.

use packhouse_sdk::Intent;
use semver::Version;

/// Bytes of a name, and of a version: as much as a key and a file's name may well hold.
const LONGEST: usize = 120;
/// Ways to cut a file's name that are looked at.
const WAYS: usize = 16;

/// Whether a chart may be called that: ASCII letters, digits, `-`, `_` and `.`, with a letter or a digit at its start.
pub(crate) fn is_name(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let start = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    start && text.len() <= LONGEST && text.bytes().all(inside)
}

/// A version as Helm reads it: by semver, where `v` may stand before it and numbers may be missing. None for what is none.
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

/// The name of a chart's file.
pub(crate) fn file(name: &str, version: &str) -> String {
    format!("{name}-{version}.tgz")
}

/// The chart and the version that a file's name may be of, in each way in which it can be cut.
pub(crate) fn cuts(file: &str) -> Vec<(&str, &str)> {
    let Some(stem) = file.strip_suffix(".tgz") else { return Vec::new() };
    let cuts = stem.match_indices('-').filter_map(|(at, _)| {
        let (name, rest) = stem.split_at_checked(at)?;
        Some((name, rest.strip_prefix('-')?))
    });
    cuts.filter(|(name, number)| is_name(name) && version(number).is_some()).take(WAYS).collect()
}

/// Says which charts an intent about a file is about.
pub(crate) fn about_file(intent: Intent, file: &str) -> Intent {
    let chart = file.strip_suffix(".prov").unwrap_or(file);
    cuts(chart).into_iter().fold(intent, |intent, (name, _)| intent.about_package(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn versions_are_read_as_helm_does_it() {
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
    fn a_files_name_is_cut_in_each_way() {
        assert_eq!(cuts("nginx-1.0.0.tgz"), [("nginx", "1.0.0")]);
        assert_eq!(
            cuts("cert-manager-v1.2.0-rc-1.tgz"),
            [("cert-manager", "v1.2.0-rc-1"), ("cert-manager-v1.2.0-rc", "1")]
        );
        for none in ["nginx.tgz", "nginx-1.0.0.zip", "-1.0.0.tgz", "", "nginx-x.tgz"] {
            assert!(cuts(none).is_empty(), "{none}");
        }
    }

    proptest! {
        #[test]
        fn a_charts_own_cut_is_among_them(name in "[a-z][a-z0-9-]{0,12}[a-z]", number in "[0-9]{1,2}\\.[0-9]{1,2}\\.[0-9]{1,2}") {
            prop_assume!(version(&number).is_some());
            let file = file(&name, &number);
            prop_assert!(cuts(&file).contains(&(name.as_str(), number.as_str())));
        }

        #[test]
        fn any_text_is_read(text in ".{0,40}") {
            let _ = (is_name(&text), version(&text), cuts(&text));
        }
    }
}
