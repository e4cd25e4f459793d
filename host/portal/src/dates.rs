//! Formatting of times on pages and parsing of days in forms, in UTC. The script shows the reader's
//! own time zone.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::Offset;
use maud::{Markup, html};

/// Length of a day in ms.
pub(crate) const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Converts Unix ms to a timestamp. A time beyond the supported years becomes the last supported
/// time.
fn timestamp(at: i64) -> Timestamp {
    Timestamp::from_millisecond(at).unwrap_or(Timestamp::MAX)
}

/// Returns the last ms of a day written as `2030-01-31`; `None` if the text is not a date.
pub(crate) fn end_of_day(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, '-').map(|part| part.parse::<u16>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let date = Date::new(year.try_into().ok()?, month.try_into().ok()?, day.try_into().ok()?).ok()?;
    let begin = Offset::UTC.to_timestamp(date.at(0, 0, 0, 0)).ok()?;
    Some(begin.as_millisecond() + DAY_MS - 1)
}

/// Formats the day of a time, as in `2030-01-31`.
pub(crate) fn day(at: i64) -> String {
    Offset::UTC.to_datetime(timestamp(at)).date().to_string()
}

/// Formats a time, as in `2030-01-31T12:00:00Z`.
pub(crate) fn exact(at: i64) -> String {
    format!("{:.0}", timestamp(at))
}

/// Shows a time to the minute, with the exact time on hover.
pub(crate) fn time(at: i64) -> Markup {
    let exact = exact(at);
    let seconds = at.rem_euclid(DAY_MS) / 1000;
    html! {
        time datetime=(exact) title=(exact) {
            (day(at)) " " (format!("{:02}:{:02}", seconds / 3600, seconds / 60 % 60)) " UTC"
        }
    }
}

/// Shows an unsigned time in ms like [`time`].
pub(crate) fn unsigned_time(at: u64) -> Markup {
    time(i64::try_from(at).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn days_follow_the_calendar() {
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(exact(951_827_696_000), "2000-02-29T12:34:56Z");
        assert_eq!(end_of_day("1970-01-01"), Some(DAY_MS - 1));
        assert_eq!(end_of_day("2024-02-29").map(day).as_deref(), Some("2024-02-29"));
        for none in
            ["2023-02-29", "2030-13-01", "2030-00-10", "", "2030-1", "x-y-z", "99999-01-01", "2030-04-31"]
        {
            assert_eq!(end_of_day(none), None, "{none}");
        }
    }

    proptest! {
        #[test]
        fn a_formatted_day_parses_back(at in 0_i64..253_402_300_799_999) {
            let end = end_of_day(&day(at)).unwrap();
            prop_assert!(at <= end && end - at < DAY_MS);
        }
    }
}
