//! Calendar times: conversion between Unix time in ms, parts of a date, and RFC 3339.

const DAY: u64 = 86_400_000;
/// Names of months in HTTP dates.
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Time in UTC, in parts of the Gregorian calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Year, from 1970.
    pub year: u64,
    /// 1 to 12.
    pub month: u64,
    /// 1 to 31.
    pub day: u64,
    /// 0 to 23.
    pub hour: u64,
    /// 0 to 59.
    pub minute: u64,
    /// 0 to 59.
    pub second: u64,
    /// 0 to 999.
    pub ms: u64,
}

impl Timestamp {
    /// Converts a Unix time in ms.
    #[must_use]
    pub fn from_ms(ms: u64) -> Self {
        let (year, month, day) = date(ms / DAY);
        let rest = ms % DAY;
        Self {
            year,
            month,
            day,
            hour: rest / 3_600_000,
            minute: rest / 60_000 % 60,
            second: rest / 1000 % 60,
            ms: rest % 1000,
        }
    }

    /// Converts to Unix time in ms. `None` for a day that does not exist, for hour 24, and for
    /// years before 1970 or after 9999.
    #[must_use]
    pub fn to_ms(self) -> Option<u64> {
        if !(1970..=9999).contains(&self.year) || !(1..=12).contains(&self.month) || self.day == 0 {
            return None;
        }
        let time = self.hour * 3_600_000 + self.minute * 60_000 + self.second * 1000 + self.ms;
        let ms = days(self.year, self.month, self.day) * DAY + time;
        (Self::from_ms(ms) == self).then_some(ms)
    }

    /// Parses RFC 3339: `2026-11-21T05:01:40.123Z` or `2026-11-21T07:01:40+02:00`. Digits after the
    /// second are optional; only the first three are used. `None` for any other text, and for a
    /// time before 1970 in UTC.
    #[must_use]
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
        if marks.iter().any(|(at, mark)| text.as_bytes().get(*at) != Some(mark)) {
            return None;
        }
        let (fraction, ahead) = zone(text.get(19..)?)?;
        let ms = match fraction.strip_prefix('.') {
            Some(digits) if !digits.is_empty() => {
                number(digits.get(..digits.len().min(15))?)?;
                number(format!("{digits:0<3}").get(..3)?)?
            }
            None if fraction.is_empty() => 0,
            _ => return None,
        };
        let part = |range: std::ops::Range<usize>| number(text.get(range)?);
        let (year, month, day) = (part(0..4)?, part(5..7)?, part(8..10)?);
        let (hour, minute, second) = (part(11..13)?, part(14..16)?, part(17..19)?);
        let there = Self { year, month, day, hour, minute, second, ms };
        there.to_ms()?.checked_add_signed(-ahead).map(Self::from_ms)
    }

    /// Parses an HTTP date (RFC 9110): `Sat, 21 Nov 2026 05:01:40 GMT`. `None` for any other text,
    /// and for a time before 1970.
    #[must_use]
    pub fn parse_http(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once(", ")?;
        let parts: Vec<&str> = rest.split(' ').collect();
        let [day, month, year, time, "GMT"] = parts.as_slice() else { return None };
        let month = MONTHS.iter().position(|known| known == month)? as u64 + 1;
        Self::parse_rfc3339(&format!("{year}-{month:02}-{day}T{time}Z"))
    }

    /// Formats as RFC 3339 in UTC with three digits after the second, like JavaScript:
    /// `2026-11-21T05:01:40.123Z`.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        self.written("Z")
    }

    /// Formats as RFC 3339 in UTC with six digits after the second, like Python:
    /// `2026-11-21T05:01:40.123000Z`.
    #[must_use]
    pub fn to_rfc3339_micros(self) -> String {
        self.written("000Z")
    }

    /// Formats the time, followed by `end` after the milliseconds. Digits are written one by one,
    /// because lists of versions contain hundreds of times and `format!` with a width is much
    /// slower.
    fn written(self, end: &str) -> String {
        let Self { year, month, day, hour, minute, second, ms } = self;
        let mut text = String::with_capacity(TO_THE_MS + end.len());
        let parts = [
            (year, 4, '-'),
            (month, 2, '-'),
            (day, 2, 'T'),
            (hour, 2, ':'),
            (minute, 2, ':'),
            (second, 2, '.'),
        ];
        for (number, width, after) in parts {
            push_digits(&mut text, number, width);
            text.push(after);
        }
        push_digits(&mut text, ms, 3);
        text.push_str(end);
        text
    }
}

/// Length of `2026-11-21T05:01:40.123`.
const TO_THE_MS: usize = 23;

/// Appends a number with leading zeros up to `width` digits, four at most. A longer number is
/// written in full.
fn push_digits(text: &mut String, number: u64, width: u32) {
    if number >= 10_u64.pow(width) {
        text.push_str(&number.to_string());
        return;
    }
    for place in (0..width).rev() {
        let digit = number / 10_u64.pow(place) % 10;
        text.push(char::from(b'0' + u8::try_from(digit).unwrap_or_default()));
    }
}

/// Splits off the zone. Returns the text before the zone, and how many ms the zone is ahead of UTC.
fn zone(text: &str) -> Option<(&str, i64)> {
    if let Some(before) = text.strip_suffix('Z') {
        return Some((before, 0));
    }
    let (before, zone) = text.split_at_checked(text.len().checked_sub("+00:00".len())?)?;
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let ahead = i64::try_from((hours * 60 + minutes) * 60_000).ok()?;
    let fits = hours < 24 && minutes < 60;
    match zone.get(..1)? {
        "+" if fits => Some((before, ahead)),
        "-" if fits => Some((before, -ahead)),
        _ => None,
    }
}

/// Parses digits only; a sign is not accepted.
fn number(digits: &str) -> Option<u64> {
    let plain = digits.bytes().all(|digit| digit.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// Returns the date this many days after 1970-01-01, by Howard Hinnant's algorithm. The years of
/// the algorithm begin in March, so that a leap day is the last day of its year.
fn date(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

/// Returns the days from 1970-01-01 to this date; the inverse of `date`.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::Timestamp;
    use proptest::prelude::*;

    #[test]
    fn dates_of_http_are_read() {
        let read = |text: &str| Timestamp::parse_http(text).and_then(Timestamp::to_ms);
        assert_eq!(read("Sat, 21 Nov 2026 05:01:40 GMT"), Some(1_795_237_300_000));
        for text in ["", "Sat, 21 Nov 2026 05:01:40", "Sat, 21 Foo 2026 05:01:40 GMT", "2026-11-21T05:01:40Z"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_is_the_one_after_the_day_before() {
        let mut before = Timestamp::from_ms(0);
        for day in 1..=140_000 {
            let ms = day * super::DAY + 1;
            let time = Timestamp::from_ms(ms);
            assert!(time > before && time.to_ms() == Some(ms), "{time:?}");
            assert!(
                time.day == 1
                    || (time.year, time.month, time.day) == (before.year, before.month, before.day + 1)
            );
            before = time;
        }
        assert_eq!((before.year, before.month, before.day), (2353, 4, 23));
    }

    #[test]
    fn each_part_has_its_width() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_795_237_300_023, "2026-11-21T05:01:40.023Z"),
            (253_402_300_800_000, "10000-01-01T00:00:00.000Z"),
        ] {
            let time = Timestamp::from_ms(ms);
            assert_eq!(time.to_rfc3339(), text);
            assert_eq!(time.to_rfc3339_micros(), text.replace('Z', "000Z"));
        }
    }

    #[test]
    fn common_time_formats_are_read() {
        for (text, ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-21T05:01:40Z", 1_795_237_300_000),
            ("2026-11-21T05:01:40.5+00:00", 1_795_237_300_500),
            ("2026-11-21T07:01:40+02:00", 1_795_237_300_000),
            ("2026-11-20T23:31:40-05:30", 1_795_237_300_000),
            ("2026-11-21T06:31:40.000+01:30", 1_795_237_300_000),
            ("2026-11-20T21:01:40-08:00", 1_795_237_300_000),
            ("2026-11-21T05:01:40.123456789Z", 1_795_237_300_123),
            ("2000-02-29T23:59:59.999Z", 951_868_799_999),
        ] {
            assert_eq!(Timestamp::parse_rfc3339(text).and_then(Timestamp::to_ms), Some(ms), "{text}");
        }
    }

    #[test]
    fn invalid_times_are_refused() {
        for text in [
            "",
            "2026-11-21",
            "2026-11-21T05:01:40",
            "2026-11-21 05:01:40Z",
            "2026-11-21T05:01:40+0200",
            "2026-11-21T05:01:40+24:00",
            "2026-11-21T05:01:40+01:60",
            "2026-11-21T05:01:40*02:00",
            "1970-01-01T00:00:00+00:01",
            "2026-11-21T05:01:40.Z",
            "2026-11-21T05:01:40.1x1Z",
            "2026-13-21T05:01:40Z",
            "2026-02-29T05:01:40Z",
            "2026-11-00T05:01:40Z",
            "2026-11-21T24:00:00Z",
            "2026-+1-21T05:01:40Z",
            "1969-12-31T23:59:59Z",
            "ä026-11-21T05:01:40Z",
        ] {
            assert_eq!(Timestamp::parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn times_are_written_in_utc() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_001, "2000-02-29T00:00:00.001Z"),
            (1_735_689_599_999, "2024-12-31T23:59:59.999Z"),
            (1_795_237_300_000, "2026-11-21T05:01:40.000Z"),
        ] {
            let time = Timestamp::from_ms(ms);
            assert_eq!(time.to_rfc3339(), expected);
            assert_eq!(time.to_rfc3339_micros(), expected.replace('Z', "000Z"));
        }
    }

    proptest! {
        #[test]
        fn formatted_times_can_be_parsed(ms in 0u64..250_000_000_000_000) {
            let time = Timestamp::from_ms(ms);
            prop_assert_eq!(Timestamp::parse_rfc3339(&time.to_rfc3339()), Some(time));
        }

        #[test]
        fn any_text_is_read(text in ".{0,40}") {
            let _ = Timestamp::parse_rfc3339(&text);
        }
    }
}
