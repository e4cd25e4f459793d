//! Fields of bodies that have error codes of their own. Absent, null and a wrong type are different
//! errors, so fields keep their JSON value until they are checked.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::error::ApiError;
use packhouse_wire::catalogue;

/// JSON value of a field: `None` if it was absent, `Some(Null)` if it was null.
pub(crate) type Field = Option<Value>;

/// Deserializes a field so that null and absent differ.
pub(crate) fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Field, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads a name: 1 to 256 characters, without control characters and characters that reverse the
/// direction of text.
pub(crate) fn name(field: &Field) -> Result<String, ApiError> {
    match field.as_ref().and_then(Value::as_str) {
        Some(name) if is_name(name, 256) => Ok(name.to_owned()),
        _ => Err(ApiError::from(&catalogue::INVALID_NAME)),
    }
}

/// Returns whether a name has 1 to `most` characters, and neither control characters nor characters
/// that reverse the direction of text.
pub(crate) fn is_name(name: &str, most: usize) -> bool {
    let reverses = |letter: char| matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (1..=most).contains(&name.chars().count())
        && !name.chars().any(|letter| letter.is_control() || reverses(letter))
}

/// Reads an expiry in ms since 1970; null means never. The specification defines
/// `invalid_expires_at` and `expires_at_in_past`.
pub(crate) fn expiry(value: &Value, now: i64) -> Result<Option<i64>, ApiError> {
    if value.is_null() {
        return Ok(None);
    }
    let at = whole(value).filter(|at| *at <= END_OF_9999).ok_or(&catalogue::INVALID_EXPIRES_AT)?;
    if at <= now { Err(ApiError::from(&catalogue::EXPIRES_AT_IN_PAST)) } else { Ok(Some(at)) }
}

/// Reads a required expiry: `missing_expires_at` if it is absent.
pub(crate) fn stated_expiry(field: &Field, now: i64) -> Result<Option<i64>, ApiError> {
    expiry(field.as_ref().ok_or(&catalogue::MISSING_EXPIRES_AT)?, now)
}

/// Reads an expiry that the client read earlier and that may have passed. 400 `invalid_request` if
/// it is absent or malformed.
pub(crate) fn read_expiry(field: &Field) -> Result<Option<i64>, ApiError> {
    let wrong =
        || ApiError::invalid("`expected_expires_at` must be the `expires_at` of the key as you read it.");
    match field.as_ref().ok_or_else(wrong)? {
        Value::Null => Ok(None),
        value => whole(value).map(Some).ok_or_else(wrong),
    }
}

/// 9999-12-31T23:59:59.999Z in ms since 1970.
const END_OF_9999: i64 = 253_402_300_799_999;

/// Reads an integer, also in the notation `1.0` or `1e3`.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 9e15)?;
        Some(number as i64)
    })
}

/// Reads the hours of overlap; 24 by default.
pub(crate) fn overlap(field: &Field) -> Result<i64, ApiError> {
    match field {
        None | Some(Value::Null) => Ok(24),
        Some(value) => {
            let hours = whole(value).filter(|hours| (0..=168).contains(hours));
            hours.ok_or(ApiError::from(&catalogue::INVALID_OVERLAP_HOURS))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_counted_in_characters() {
        let named = |name: String| super::name(&Some(json!(name))).is_ok();
        assert!(named("é".repeat(256)));
        assert!(!named("é".repeat(257)));
        assert!(!named(String::new()));
        for bad in ["a\nb", "a\u{0}", "a\u{202e}b", "\u{2066}x", "a\u{7f}", "a\u{200f}"] {
            assert!(!named(bad.to_owned()), "{bad:?}");
        }
        assert!(super::name(&None).is_err());
        assert!(super::name(&Some(json!(7))).is_err());
    }

    #[test]
    fn an_expiry_is_a_whole_number_in_the_future_before_the_year_10000() {
        let code = |value: Value| match expiry(&value, 1000) {
            Ok(at) => Ok(at),
            Err(ApiError::Refused { code, .. }) => Err(code.code),
            Err(ApiError::Internal(_)) => Err("internal"),
        };
        assert_eq!(code(json!(null)), Ok(None));
        assert_eq!(code(json!(1001)), Ok(Some(1001)));
        assert_eq!(code(json!(1001.0)), Ok(Some(1001)));
        assert_eq!(code(json!(253_402_300_799_999_i64)), Ok(Some(END_OF_9999)));
        for wrong in
            [json!(253_402_300_800_000_i64), json!(u64::MAX), json!(1001.5), json!("1001"), json!([1])]
        {
            assert_eq!(code(wrong), Err("invalid_expires_at"));
        }
        for past in [json!(1000), json!(0), json!(-5)] {
            assert_eq!(code(past), Err("expires_at_in_past"));
        }
    }
}
