//! Target of a request: the path as segments, the query as pairs. Only this module decodes the
//! target, and only once, so that authorization, look-ups and plugins use the same value.

use std::fmt;

/// Maximum number of segments; no client sends more.
const MAX_SEGMENTS: usize = 256;
/// Maximum bytes of a decoded segment. File systems allow 255; this leaves room for escapes.
const MAX_SEGMENT_BYTES: usize = 1024;
/// Maximum number of pairs in a query; no client sends more.
const MAX_PAIRS: usize = 128;

/// Reason to refuse a request target: `TooLong` is 414, all others are 400.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PathError {
    /// Too many segments or query pairs, or one that is too long.
    TooLong,
    /// The path does not begin with `/`.
    NotAbsolute,
    /// An encoded slash at the start or end of a segment, or next to another encoded slash.
    EmptySegment,
    /// A segment `.` or `..`, in any encoding.
    DotSegment,
    /// A backslash, a control character or NUL.
    ForbiddenCharacter,
    /// A `%` that is not followed by two hexadecimal digits.
    BadEscape,
    /// Bytes that are not UTF-8, including overlong forms.
    NotUtf8,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the address is too long",
            Self::NotAbsolute => "the path does not begin with a slash",
            Self::EmptySegment => "the path has an empty segment",
            Self::DotSegment => "the path has a `.` or `..` segment",
            Self::ForbiddenCharacter => "the address contains a backslash or a control character",
            Self::BadEscape => {
                "the address contains a percent sign that is not followed by two hexadecimal digits"
            }
            Self::NotUtf8 => "the address is not valid UTF-8",
        })
    }
}

/// A path that was split at `/` before decoding.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Path {
    /// Segments, each decoded once. A trailing slash adds an empty last segment; `/` alone has no
    /// segments.
    pub segments: Vec<String>,
    /// True if a segment contains a slash that was encoded as `%2f`; only some formats allow it.
    pub encoded_slash: bool,
}

impl Path {
    /// Parses the path of a request target, without its query. Repeated slashes are read as one.
    /// This is safe, because all decisions about a path use its segments.
    pub fn parse(raw: &str) -> Result<Self, PathError> {
        let raw = raw.strip_prefix('/').ok_or(PathError::NotAbsolute)?;
        let mut path = Self::default();
        if raw.is_empty() {
            return Ok(path);
        }
        let slashes = raw.bytes().filter(|byte| *byte == b'/').count();
        path.segments.reserve_exact(MAX_SEGMENTS.min(slashes + 1));
        let mut pieces = raw.split('/').peekable();
        while let Some(piece) = pieces.next() {
            if piece.is_empty() && pieces.peek().is_some() {
                continue;
            }
            if path.segments.len() == MAX_SEGMENTS {
                return Err(PathError::TooLong);
            }
            let segment = decode_segment(piece)?;
            path.encoded_slash |= segment.contains('/');
            path.segments.push(segment);
        }
        if path.segments.len() == 1 && path.segments.iter().all(String::is_empty) {
            path.segments.clear();
        }
        Ok(path)
    }
}

/// Returns the rest of a path after `base`, or the whole path if `base` is empty. `None` if the
/// path is not below `base`. `base` begins with a slash and does not end with one.
pub fn below<'a>(raw: &'a str, base: &str) -> Option<&'a str> {
    if base.is_empty() {
        return Some(raw);
    }
    let first = raw.bytes().take_while(|byte| *byte == b'/').count().saturating_sub(1);
    match raw.get(first..)?.strip_prefix(base)? {
        "" => Some("/"),
        rest => rest.starts_with('/').then_some(rest),
    }
}

fn decode_segment(piece: &str) -> Result<String, PathError> {
    let segment = decode(piece, false)?;
    // An encoded slash must not hide a dot segment or an empty segment.
    let inner = || segment.split('/');
    if inner().any(|part| part == "." || part == "..") {
        return Err(PathError::DotSegment);
    }
    if segment.contains('/') && inner().any(str::is_empty) {
        return Err(PathError::EmptySegment);
    }
    Ok(segment)
}

/// Parses the pairs of a query, in their order. A name without `=` has an empty value, and `+` is a
/// space as in forms.
pub fn parse_query(raw: &str) -> Result<Vec<(String, String)>, PathError> {
    let mut pairs = Vec::new();
    for piece in raw.split('&').filter(|piece| !piece.is_empty()) {
        if pairs.len() == MAX_PAIRS {
            return Err(PathError::TooLong);
        }
        let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
        pairs.push((decode(name, true)?, decode(value, true)?));
    }
    Ok(pairs)
}

/// Returns whether a part of the target needs no decoding: it is short, and has only ASCII without
/// escapes and forbidden characters. Nearly all parts are like this.
fn is_plain(piece: &str, form: bool) -> bool {
    let plain =
        |byte: u8| matches!(byte, b' '..=b'~') && byte != b'%' && byte != b'\\' && !(form && byte == b'+');
    piece.len() <= MAX_SEGMENT_BYTES && piece.bytes().all(plain)
}

fn decode(piece: &str, form: bool) -> Result<String, PathError> {
    if is_plain(piece, form) {
        return Ok(piece.to_owned());
    }
    let mut bytes = Vec::with_capacity(piece.len());
    let mut rest = piece.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex_pair(rest.next(), rest.next())?,
            b'+' if form => b' ',
            other => other,
        });
    }
    let limit = if form { usize::MAX } else { MAX_SEGMENT_BYTES };
    if bytes.len() > limit {
        return Err(PathError::TooLong);
    }
    let text = String::from_utf8(bytes).map_err(|_| PathError::NotUtf8)?;
    let forbidden = |c: char| c.is_control() || (!form && c == '\\');
    if text.contains(forbidden) { Err(PathError::ForbiddenCharacter) } else { Ok(text) }
}

fn hex_pair(high: Option<u8>, low: Option<u8>) -> Result<u8, PathError> {
    let digit =
        |byte: Option<u8>| byte.and_then(|b| char::from(b).to_digit(16)).and_then(|d| u8::try_from(d).ok());
    match (digit(high), digit(low)) {
        (Some(high), Some(low)) => Ok(high << 4 | low),
        _ => Err(PathError::BadEscape),
    }
}

/// Returns whether this is a valid repository name: `[a-z0-9]+([._-][a-z0-9]+)*`, at most 64
/// characters.
pub fn is_repository_name(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    name.len() <= 64 && name.split(['.', '_', '-']).all(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn segments(raw: &str) -> Result<Vec<String>, PathError> {
        Path::parse(raw).map(|path| path.segments)
    }

    #[test]
    fn ordinary_paths_are_split_and_decoded_once() {
        for (raw, expected) in [
            ("/", vec![]),
            ("/a", vec!["a"]),
            ("/a/", vec!["a", ""]),
            ("/a/b%20c", vec!["a", "b c"]),
            ("/%252e%252e/", vec!["%2e%2e", ""]),
            ("/sha256:ab;c+d", vec!["sha256:ab;c+d"]),
            ("/..;/x", vec!["..;", "x"]),
            ("/public;/x", vec!["public;", "x"]),
            ("/trailing./space%20", vec!["trailing.", "space "]),
            ("/%C3%A9/e%CC%81", vec!["é", "e\u{301}"]),
            ("/...", vec!["..."]),
            ("//", vec![]),
            ("//a///b", vec!["a", "b"]),
            ("/a//", vec!["a", ""]),
        ] {
            assert_eq!(segments(raw).unwrap(), expected, "{raw}");
        }
    }

    #[test]
    fn hostile_paths_are_refused() {
        for (raw, expected) in [
            ("//a/../b", PathError::DotSegment),
            ("/a/../b", PathError::DotSegment),
            ("/./a", PathError::DotSegment),
            ("/%2e%2e/", PathError::DotSegment),
            ("/%2E./a", PathError::DotSegment),
            ("/..%5c", PathError::ForbiddenCharacter),
            ("/a\\b", PathError::ForbiddenCharacter),
            ("/.%00/", PathError::ForbiddenCharacter),
            ("/%0d%0aLocation:x", PathError::ForbiddenCharacter),
            ("/%7f", PathError::ForbiddenCharacter),
            ("/%C2%85", PathError::ForbiddenCharacter),
            ("/%c0%ae%c0%ae/", PathError::NotUtf8),
            ("/%ff", PathError::NotUtf8),
            ("/%", PathError::BadEscape),
            ("/%2", PathError::BadEscape),
            ("/%+1", PathError::BadEscape),
            ("/%2F%2F%2F..%2F..%2Fetc%2Fpasswd", PathError::DotSegment),
            ("/a%2F%2Fb", PathError::EmptySegment),
            ("/%2Fetc", PathError::EmptySegment),
            ("/%2F", PathError::EmptySegment),
            ("a", PathError::NotAbsolute),
            ("", PathError::NotAbsolute),
        ] {
            assert_eq!(segments(raw), Err(expected), "{raw}");
        }
    }

    #[test]
    fn a_path_lies_below_a_base() {
        for (raw, base, rest) in [
            ("/a/b", "", Some("/a/b")),
            ("/base/a", "/base", Some("/a")),
            ("/base/", "/base", Some("/")),
            ("/base", "/base", Some("/")),
            ("//base//a", "/base", Some("//a")),
            ("/based/a", "/base", None),
            ("/a", "/base", None),
            ("", "/base", None),
        ] {
            assert_eq!(below(raw, base), rest, "{raw} {base}");
        }
    }

    #[test]
    fn length_is_bounded() {
        assert_eq!(segments(&"/a".repeat(10_000)), Err(PathError::TooLong));
        assert_eq!(segments(&format!("/{}", "a".repeat(MAX_SEGMENT_BYTES + 1))), Err(PathError::TooLong));
        assert!(segments(&"/a".repeat(MAX_SEGMENTS)).is_ok());
        assert_eq!(parse_query(&"a&".repeat(MAX_PAIRS + 1)), Err(PathError::TooLong));
    }

    #[test]
    fn an_encoded_slash_is_marked() {
        let path = Path::parse("/@scope%2fname").unwrap();
        assert!(path.encoded_slash);
        assert_eq!(path.segments, ["@scope/name"]);
        assert!(!Path::parse("/@scope/name").unwrap().encoded_slash);
    }

    #[test]
    fn queries_keep_their_order() {
        let pairs = parse_query("b=1&a&c=%26+x=y&").unwrap();
        let expected = [("b", "1"), ("a", ""), ("c", "& x=y")];
        assert_eq!(pairs, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
        assert_eq!(parse_query("a=%0a"), Err(PathError::ForbiddenCharacter));
    }

    proptest! {
        #[test]
        fn accepted_paths_are_harmless(raw in "(/([a-z.;:@+\\\\]|%[0-9a-fA-F]{2}|%){0,6}){1,6}") {
            if let Ok(path) = Path::parse(&raw) {
                let last = path.segments.len().saturating_sub(1);
                for (at, segment) in path.segments.iter().enumerate() {
                    prop_assert!(segment != "." && segment != "..");
                    prop_assert!(at == last || !segment.is_empty());
                    prop_assert!(!segment.contains(|c: char| c.is_control() || c == '\\'));
                    prop_assert!(segment.split('/').all(|part| part != ".." && part != "."));
                }
            }
        }

        #[test]
        fn encoded_segments_decode_to_the_original(parts in proptest::collection::vec("[^/\\\\\\p{Cc}]{1,20}", 1..6)) {
            prop_assume!(parts.iter().all(|part| part != "." && part != ".."));
            let set = percent_encoding::NON_ALPHANUMERIC;
            let raw: String = parts.iter().map(|p| format!("/{}", percent_encoding::utf8_percent_encode(p, set))).collect();
            prop_assert_eq!(segments(&raw).unwrap(), parts);
        }

        #[test]
        fn a_character_may_come_encoded(first in "[ -$&-*,-~]", rest in "[ -$&-~]{0,20}") {
            let encoded = format!("%{:02x}{rest}", first.as_bytes()[0]);
            for form in [false, true] {
                prop_assert_eq!(decode(&format!("{first}{rest}"), form), decode(&encoded, form));
            }
        }

        #[test]
        fn no_input_panics(raw in ".{0,200}") {
            let _ = Path::parse(&raw);
            let _ = parse_query(&raw);
        }
    }
}
