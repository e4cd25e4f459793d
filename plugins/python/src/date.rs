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

#[cfg(test)]
mod tests {
    use super::rfc3339;

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
