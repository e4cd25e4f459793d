//! Percent encoding of text in addresses.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const UNRESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Encodes a text as one segment of a path, or as a value in a query.
pub(crate) fn segment(text: &str) -> String {
    utf8_percent_encode(text, &UNRESERVED).to_string()
}

/// Encodes a path. Its slashes are not encoded.
pub(crate) fn path(text: &str) -> String {
    text.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// Decodes a text. Invalid UTF-8 is replaced.
pub(crate) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
