//! Version numbers and tags, by npm's rules for semver.

use semver::Version;

/// Normalizes a version number as npm does: removes a prefix such as `v` and the build metadata.
/// Returns `None` if the text is not a version number.
pub(crate) fn clean(text: &str) -> Option<String> {
    let text = text.trim().trim_start_matches(['v', '=']).trim_start();
    let mut version = Version::parse(text).ok().filter(|_| text.len() <= 256)?;
    version.build = semver::BuildMetadata::EMPTY;
    Some(version.to_string())
}

/// Returns the version that `latest` names if nothing else determines it. This is the highest
/// release, or the highest pre-release if there is no release.
pub(crate) fn highest<'a>(versions: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let parsed = versions.filter_map(|text| Version::parse(text).ok().map(|version| (version, text)));
    parsed.max_by_key(|(version, _)| (version.pre.is_empty(), version.clone())).map(|(_, text)| text)
}

/// Returns true for a pre-release; `None` if the text is not a version number.
pub(crate) fn is_prerelease(text: &str) -> Option<bool> {
    Version::parse(text).ok().map(|version| !version.pre.is_empty())
}

/// Returns the reason why a tag may not have this name, or `None` if it may. Clients could never
/// request a tag that looks like a range of versions, because `npm install name@1.2` requests a
/// version.
pub(crate) fn tag_objection(tag: &str) -> Option<&'static str> {
    let printable = |byte: u8| byte.is_ascii_graphic() && byte != b'/' && byte != b'%';
    match () {
        () if tag.is_empty() || tag.len() > 128 => Some("a tag has 1 to 128 characters"),
        () if !tag.bytes().all(printable) => {
            Some("a tag consists of visible ASCII characters other than / and %")
        }
        () if is_range(tag) => Some("a tag must not look like a version or a range of versions"),
        () => None,
    }
}

/// Returns true if the text looks like a version or a range. Such a text has a part between `||`
/// that is empty, or that has one to three places joined by dots. A place is a number, `x` or `*`.
/// Operators such as `>=` may precede the places, and a pre-release may follow them.
fn is_range(text: &str) -> bool {
    text.split("||").any(|part| {
        let number = part.trim_start_matches(['v', '=', '<', '>', '~', '^']);
        let number = number.split(['-', '+']).next().unwrap_or_default();
        let place = |place: &str| {
            matches!(place, "x" | "X" | "*")
                || (!place.is_empty() && place.bytes().all(|b| b.is_ascii_digit()))
        };
        let places = number.split('.').count() <= 3 && number.split('.').all(place);
        places || part.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_numbers_are_normalized_as_in_npm() {
        for (text, cleaned) in [
            ("1.0.0", Some("1.0.0")),
            (" v1.0.0 ", Some("1.0.0")),
            ("=1.2.3-rc.1+build.5", Some("1.2.3-rc.1")),
            ("1.0", None),
            ("01.0.0", None),
            ("1.0.0/..", None),
            ("", None),
        ] {
            assert_eq!(clean(text).as_deref(), cleaned, "{text}");
        }
    }

    #[test]
    fn the_highest_release_wins_over_a_higher_pre_release() {
        assert_eq!(highest(["1.9.0", "1.10.0", "2.0.0-rc.1", "nonsense"].into_iter()), Some("1.10.0"));
        assert_eq!(highest(["2.0.0-rc.1", "2.0.0-rc.2"].into_iter()), Some("2.0.0-rc.2"));
        assert_eq!(highest([].into_iter()), None);
    }

    #[test]
    fn a_tag_is_not_a_range() {
        for tag in ["latest", "next", "beta-1", "v", "release-1.2", "xyz", "1a", "x.y"] {
            assert_eq!(tag_objection(tag), None, "{tag}");
        }
        for tag in [
            "",
            "1",
            "1.0.0",
            "v1.0.0",
            "1.x",
            "x",
            "*",
            "^1",
            ">=1.2",
            "1.0.0-rc.1",
            "a b",
            "a/b",
            "1||2",
            "é",
        ] {
            assert!(tag_objection(tag).is_some(), "{tag}");
        }
    }
}
