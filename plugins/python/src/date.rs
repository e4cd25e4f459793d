//! Times as the index writes them.

/// `2026-11-21T05:01:40.123000Z`, of ms since 1970.
pub(crate) fn rfc3339(ms: u64) -> String {
    let (seconds, fraction) = (ms / 1000, ms % 1000);
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:03}000Z")
}

/// The day in the Gregorian calendar that is so many days after 1970-01-01. Years begin in March here, so that a leap day is a
/// year's last.
fn date(days: u64) -> (u64, u64, u64) {
    let since_march_0000 = days + 719_468;
    let (era, day_of_era) = (since_march_0000 / 146_097, since_march_0000 % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Ms since 1970 of a time in UTC as an index writes it: `2024-01-17T16:53:12.779164Z`. None for what is written otherwise.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let marked = marks.iter().all(|(at, mark)| text.as_bytes().get(*at) == Some(mark));
    let rest = text.get(19..)?;
    let zone = rest.trim_start_matches(|symbol: char| symbol == '.' || symbol.is_ascii_digit());
    if !marked || !matches!(zone, "Z" | "+00:00" | "") {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let valid = year >= 1970 && (1..=12).contains(&month) && (1..=31).contains(&day);
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let seconds = days.checked_sub(719_468)? * 86_400 + hour * 3600 + minute * 60 + second;
    valid.then_some(seconds * 1000)
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
        assert_eq!(parse("2026-11-21T05:01:40.5+00:00"), Some(1_795_237_300_000));
        for text in [
            "",
            "2026-11-21",
            "2026-11-21T05:01:40+02:00",
            "2026-13-21T05:01:40Z",
            "1969-01-01T00:00:00Z",
            "2026-11-21 05:01:40Z",
        ] {
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
