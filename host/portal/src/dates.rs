//! Times as pages show them, and days as forms say them. All of it is in UTC; a reader's own zone is the script's comfort.

use maud::{Markup, html};

/// A day in ms.
pub(crate) const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Year, month and day of a number of days since 1970 (Howard Hinnant's `civil_from_days`).
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Days since 1970 of a date; none where the calendar has no such day.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    let found = era * 146_097 + of_era - 719_468;
    (civil(found) == (year, month, day)).then_some(found)
}

/// The end of a day that a form says as `2030-01-31`: its last ms. None where it is no day.
pub(crate) fn end_of_day(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, '-').map(|part| part.parse::<u32>().ok());
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if year > 9999 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some((days(year.into(), month.into(), day.into())? + 1) * DAY_MS - 1)
}

/// The day of a time, as `2030-01-31`.
pub(crate) fn day(at: i64) -> String {
    let (year, month, day) = civil(at.div_euclid(DAY_MS));
    format!("{year:04}-{month:02}-{day:02}")
}

/// A time, as `2030-01-31T12:00:00Z`.
pub(crate) fn exact(at: i64) -> String {
    let seconds = at.rem_euclid(DAY_MS) / 1000;
    format!("{}T{:02}:{:02}:{:02}Z", day(at), seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A time for people: to the minute, the exact one on hover.
pub(crate) fn time(at: i64) -> Markup {
    let exact = exact(at);
    let seconds = at.rem_euclid(DAY_MS) / 1000;
    html! {
        time datetime=(exact) title=(exact) {
            (day(at)) " " (format!("{:02}:{:02}", seconds / 3600, seconds / 60 % 60)) " UTC"
        }
    }
}

/// The same of a count that is never negative.
pub(crate) fn moment(at: u64) -> Markup {
    time(i64::try_from(at).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
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
        fn a_day_that_is_shown_is_read_again(at in 0_i64..253_402_300_799_999) {
            let end = end_of_day(&day(at)).unwrap();
            prop_assert!(at <= end && end - at < DAY_MS);
        }
    }
}
