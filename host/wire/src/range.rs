//! `Range` header (RFC 9110 §14) with one range of bytes. A header with several ranges gets the
//! whole content, which a server may always send.

use std::ops::Range;

/// Part of a content that a request asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RequestedRange {
    /// The whole content, with status 200.
    Whole,
    /// A range of bytes, never empty.
    Part(Range<u64>),
    /// A range outside the content: 416.
    Unsatisfiable,
}

/// Parses the header for a content of `size` bytes. A header that is not understood requests the
/// whole content. A range that ends before it begins is unsatisfiable: §14.2 allows this, and
/// clients of image registries expect it.
pub fn requested_range(field: &[u8], size: u64) -> RequestedRange {
    let one = std::str::from_utf8(field).ok().and_then(bytes_unit).filter(|specs| !specs.contains(','));
    one.and_then(|spec| part(spec.trim(), size)).unwrap_or(RequestedRange::Whole)
}

fn bytes_unit(field: &str) -> Option<&str> {
    let (unit, specs) = field.split_once('=')?;
    unit.trim().eq_ignore_ascii_case("bytes").then_some(specs)
}

fn part(spec: &str, size: u64) -> Option<RequestedRange> {
    let (first, last) = spec.split_once('-')?;
    let (from, to) = match (first.trim(), last.trim()) {
        ("", suffix) => (size.saturating_sub(number(suffix)?), if number(suffix)? == 0 { 0 } else { size }),
        (first, "") => (number(first)?, size),
        (first, last) => (number(first)?, number(last)?.saturating_add(1).min(size)),
    };
    Some(if from < to { RequestedRange::Part(from..to) } else { RequestedRange::Unsatisfiable })
}

/// Parses digits only: `+5` is refused. A number that overflows becomes `u64::MAX`, which is larger
/// than any content.
fn number(digits: &str) -> Option<u64> {
    let only_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    only_digits.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_read_as_the_rfc_says() {
        for (field, size, expected) in [
            ("bytes=0-4", 10, RequestedRange::Part(0..5)),
            ("bytes=0-99", 10, RequestedRange::Part(0..10)),
            ("bytes=9-", 10, RequestedRange::Part(9..10)),
            ("bytes=-3", 10, RequestedRange::Part(7..10)),
            ("bytes=-30", 10, RequestedRange::Part(0..10)),
            ("Bytes= 1-1", 10, RequestedRange::Part(1..2)),
            ("bytes=10-", 10, RequestedRange::Unsatisfiable),
            ("bytes=-0", 10, RequestedRange::Unsatisfiable),
            ("bytes=0-", 0, RequestedRange::Unsatisfiable),
            ("bytes=5-4", 10, RequestedRange::Unsatisfiable),
            ("bytes=0-1,3-4", 10, RequestedRange::Whole),
            ("bytes=+1-2", 10, RequestedRange::Whole),
            ("bytes=-", 10, RequestedRange::Whole),
            ("lines=0-4", 10, RequestedRange::Whole),
            ("bytes=99999999999999999999999-", 10, RequestedRange::Unsatisfiable),
            ("bytes=0-99999999999999999999999", 10, RequestedRange::Part(0..10)),
        ] {
            assert_eq!(requested_range(field.as_bytes(), size), expected, "{field}");
        }
    }

    proptest! {
        #[test]
        fn a_part_lies_within_the_content(field in "bytes=[0-9,-]{0,12}", size in 0_u64..1000) {
            if let RequestedRange::Part(part) = requested_range(field.as_bytes(), size) {
                prop_assert!(part.start < part.end && part.end <= size);
            }
        }
    }
}
