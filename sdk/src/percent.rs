//! Percent-encoding.

/// Percent-encodes everything but letters, digits, `-`, `.`, `_` and `~` (RFC 3986, section 2.3).
/// Use it for one segment of a path or for a value in a query.
///
/// ```
/// assert_eq!(packhouse_sdk::percent_encode("a b/ü"), "a%20b%2F%C3%BC");
/// ```
#[must_use]
pub fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
