//! `Range` of RFC 9110 §14: one range of bytes. Several in one field are answered with the whole, which a server may always do.

use std::ops::Range;

/// What a request asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Wanted {
    /// Everything.
    Whole,
    /// These bytes; never empty.
    Part(Range<u64>),
    /// Bytes that are not there: 416.
    Unsatisfiable,
}

/// Reads the field for a content of `size` bytes. What is not understood asks for the whole; a range that ends before it begins is
/// rejected, as §14.2 allows and as registries of images are expected to do.
pub fn wanted(field: &[u8], size: u64) -> Wanted {
    let one = std::str::from_utf8(field).ok().and_then(bytes_unit).filter(|specs| !specs.contains(','));
    one.and_then(|spec| part(spec.trim(), size)).unwrap_or(Wanted::Whole)
}

fn bytes_unit(field: &str) -> Option<&str> {
    let (unit, specs) = field.split_once('=')?;
    unit.trim().eq_ignore_ascii_case("bytes").then_some(specs)
}

fn part(spec: &str, size: u64) -> Option<Wanted> {
    let (first, last) = spec.split_once('-')?;
    let (from, to) = match (first.trim(), last.trim()) {
        ("", suffix) => (size.saturating_sub(number(suffix)?), if number(suffix)? == 0 { 0 } else { size }),
        (first, "") => (number(first)?, size),
        (first, last) => (number(first)?, number(last)?.saturating_add(1).min(size)),
    };
    Some(if from < to { Wanted::Part(from..to) } else { Wanted::Unsatisfiable })
}

/// Digits alone: `+5` is no number here. One that is too large for us is larger than any content.
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
            ("bytes=0-4", 10, Wanted::Part(0..5)),
            ("bytes=0-99", 10, Wanted::Part(0..10)),
            ("bytes=9-", 10, Wanted::Part(9..10)),
            ("bytes=-3", 10, Wanted::Part(7..10)),
            ("bytes=-30", 10, Wanted::Part(0..10)),
            ("Bytes= 1-1", 10, Wanted::Part(1..2)),
            ("bytes=10-", 10, Wanted::Unsatisfiable),
            ("bytes=-0", 10, Wanted::Unsatisfiable),
            ("bytes=0-", 0, Wanted::Unsatisfiable),
            ("bytes=5-4", 10, Wanted::Unsatisfiable),
            ("bytes=0-1,3-4", 10, Wanted::Whole),
            ("bytes=+1-2", 10, Wanted::Whole),
            ("bytes=-", 10, Wanted::Whole),
            ("lines=0-4", 10, Wanted::Whole),
            ("bytes=99999999999999999999999-", 10, Wanted::Unsatisfiable),
            ("bytes=0-99999999999999999999999", 10, Wanted::Part(0..10)),
        ] {
            assert_eq!(wanted(field.as_bytes(), size), expected, "{field}");
        }
    }

    proptest! {
        #[test]
        fn a_part_lies_within_the_content(field in "bytes=[0-9,-]{0,12}", size in 0_u64..1000) {
            if let Wanted::Part(part) = wanted(field.as_bytes(), size) {
                prop_assert!(part.start < part.end && part.end <= size);
            }
        }
    }
}
