//! Times as the index writes them.

use packhouse_sdk::Moment;

/// `2026-11-21T05:01:40.123000Z`, of ms since 1970.
pub(crate) fn rfc3339(ms: u64) -> String {
    let Moment { year, month, day, hour, minute, second, ms } = Moment::of(ms);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}000Z")
}

/// Ms since 1970 of a time in UTC as an index writes it: `2024-01-17T16:53:12.779164Z`, or without a zone. None for what is written
/// otherwise.
pub(crate) fn parse(text: &str) -> Option<u64> {
    Moment::read(text).or_else(|| Moment::read(&format!("{text}Z")))?.ms()
}

#[cfg(test)]
mod tests {
    use super::{parse, rfc3339};

    #[test]
    fn times_are_read() {
        for ms in [0, 951_782_400_000, 951_868_800_000, 1_795_237_300_000, 1_735_689_599_000] {
            assert_eq!(parse(&rfc3339(ms)), Some(ms));
        }
        assert_eq!(parse("2026-11-21T05:01:40Z"), Some(1_795_237_300_000));
        assert_eq!(parse("2026-11-21T05:01:40.5+00:00"), Some(1_795_237_300_500));
        assert_eq!(parse("2026-11-21T05:01:40"), Some(1_795_237_300_000));
        assert_eq!(parse("2026-11-21T07:01:40+02:00"), Some(1_795_237_300_000));
        for text in ["", "2026-11-21", "2026-13-21T05:01:40Z", "1969-01-01T00:00:00Z", "2026-11-21 05:01:40Z"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_written() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000000Z"),
            (1_795_237_300_123, "2026-11-21T05:01:40.123000Z"),
            (1_735_689_599_999, "2024-12-31T23:59:59.999000Z"),
        ] {
            assert_eq!(rfc3339(ms), text);
        }
    }
}
