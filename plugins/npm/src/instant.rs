//! Times as JavaScript writes them: RFC 3339 with milliseconds, in UTC.

const DAY: u64 = 86_400_000;

/// `2026-11-21T05:01:40.000Z` of ms since 1970.
pub(crate) fn text(ms: u64) -> String {
    let (days, rest) = (ms / DAY, ms % DAY);
    let (year, month, day) = civil(days);
    let (hours, minutes, seconds) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{:03}Z", rest % 1000)
}

/// The date so many days after 1970-01-01, by Howard Hinnant's algorithm: years begin in March, so that leap days end them.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
