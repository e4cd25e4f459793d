//! Times as JavaScript writes them: RFC 3339 with milliseconds, in UTC.

const DAY: u64 = 86_400_000;

/// `2026-11-21T05:01:40.000Z` of ms since 1970.
pub(crate) fn text(ms: u64) -> String {
    let (days, rest) = (ms / DAY, ms % DAY);
    let (year, month, day) = civil(days);
    let (hours, minutes, seconds) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{:03}Z", rest % 1000)
}

/// Ms since 1970 of such a text, with or without milliseconds, in UTC or at an offset from it; none for what is none.
pub(crate) fn read(text: &str) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    let marks = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")];
    if !text.is_ascii() || marks.iter().any(|&(at, mark)| text.get(at..at + 1) != Some(mark)) {
        return None;
    }
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let fits = (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    let (rest, offset) = zone(text.get(19..)?)?;
    let ms = match rest.strip_prefix('.') {
        Some(digits) if !digits.is_empty() => format!("{digits:0<3}").get(..3)?.parse::<u64>().ok()?,
        None if rest.is_empty() => 0,
        _ => return None,
    };
    let time = number(11..13)? * 3_600_000 + number(14..16)? * 60_000 + number(17..19)? * 1000 + ms;
    let local = (fits && time < DAY + 1000).then(|| days(year, month, day) * DAY + time)?;
    local.checked_add_signed(-offset)
}

/// What stands before the zone, and by how many ms it is ahead of UTC.
fn zone(text: &str) -> Option<(&str, i64)> {
    if let Some(rest) = text.strip_suffix('Z') {
        return Some((rest, 0));
    }
    let at = text.rfind(['+', '-'])?;
    let (rest, zone) = text.split_at_checked(at)?;
    let (hours, minutes) = zone.get(1..)?.split_once(':').filter(|_| zone.len() == 6)?;
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    let ahead = (hours * 60 + minutes) * 60_000;
    (hours < 24 && minutes < 60).then_some((rest, if zone.starts_with('-') { -ahead } else { ahead }))
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

/// The other way round.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
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
