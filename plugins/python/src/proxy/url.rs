//! File names in the URLs of an upstream's pages.

/// Returns the last path segment of a URL, percent-decoded. Returns the segment unchanged if it
/// cannot be decoded to UTF-8.
pub(super) fn last_segment(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let segment = path.rsplit('/').next().unwrap_or_default();
    decoded(segment).unwrap_or_else(|| segment.to_owned())
}

fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (hex, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(hex, 16).ok()?);
        bytes.extend(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::last_segment;
    use proptest::prelude::*;

    #[test]
    fn the_last_segment_is_a_name() {
        for (url, name) in [
            ("https://a.test/x/f-1.0%2Blocal.whl?a=/b", "f-1.0+local.whl"),
            ("https://a.test/x/", ""),
            ("https://a.test/f%2", "f%2"),
            ("https://a.test/f%zz", "f%zz"),
            ("https://a.test/f%ff", "f%ff"),
        ] {
            assert_eq!(last_segment(url), name, "{url}");
        }
    }

    proptest! {
        #[test]
        fn any_reference_is_read(reference in ".{0,30}") {
            let _ = last_segment(&reference);
        }
    }
}
