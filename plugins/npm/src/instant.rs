//! Times as JavaScript writes them: RFC 3339 with milliseconds, in UTC.

use packhouse_sdk::Moment;

/// `2026-11-21T05:01:40.000Z` of ms since 1970.
pub(crate) fn text(ms: u64) -> String {
    let Moment { year, month, day, hour, minute, second, ms } = Moment::of(ms);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Ms since 1970 of such a text, with or without milliseconds, in UTC or at an offset from it; none for what is none.
pub(crate) fn read(text: &str) -> Option<u64> {
    Moment::read(text)?.ms()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_written_as_javascript_does_it() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_001, "2000-02-29T00:00:00.001Z"),
            (1_795_237_300_000, "2026-11-21T05:01:40.000Z"),
        ] {
            assert_eq!(text(ms), expected);
        }
    }

    #[test]
    fn what_is_no_time_is_not_read() {
        for text in ["2026-11-21T05:01:40Z", "2026-11-21T06:31:40.000+01:30", "2026-11-20T21:01:40-08:00"] {
            assert_eq!(read(text), Some(1_795_237_300_000), "{text}");
        }
        for text in [
            "",
            "2026-11-21",
            "2026-13-21T05:01:40.000Z",
            "2026-11-21T05:01:40.000",
            "2026-11-21T05:01:40.000+0100",
            "2026-11-21T05:01:40.000+01:60",
            "1970-01-01T00:00:00+00:01",
            "2026-11-21T05:01:40.Z",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(ms in 0u64..250_000_000_000_000) {
            prop_assert_eq!(read(&text(ms)), Some(ms));
        }

        #[test]
        fn no_text_is_too_odd(text in ".{0,40}") {
            let _ = read(&text);
        }
    }
}
