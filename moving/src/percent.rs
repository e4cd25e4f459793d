//! Text in addresses.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const KEPT: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// As one segment of a path, or a value in a query.
pub(crate) fn segment(text: &str) -> String {
    utf8_percent_encode(text, &KEPT).to_string()
}

/// A path, with its slashes left as they are.
pub(crate) fn path(text: &str) -> String {
    text.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// The text without its percent signs; what is no UTF-8 then is replaced.
pub(crate) fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}
