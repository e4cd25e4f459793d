//! Conditional GET and HEAD requests (RFC 9110 §13).

use http::header::{
    HeaderMap, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE,
};

/// Validators of a content: its entity tag and modification time.
#[derive(Clone, Debug)]
pub struct Validators {
    /// Strong entity tag, with its quotes.
    pub etag: HeaderValue,
    /// Modification time in Unix seconds, if known.
    pub modified: Option<u64>,
}

/// Result of evaluating the preconditions of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PreconditionResult {
    /// The content must be sent.
    Send,
    /// The client's copy is current: status 304.
    NotModified,
    /// A precondition failed: status 412.
    Failed,
}

/// Evaluates the preconditions in the order of RFC 9110 §13.2.2.
pub fn judge(headers: &HeaderMap, validators: &Validators) -> PreconditionResult {
    if headers.contains_key(IF_MATCH) {
        if !names(headers, &IF_MATCH, &validators.etag, false) {
            return PreconditionResult::Failed;
        }
    } else if seconds(headers, &IF_UNMODIFIED_SINCE)
        .zip(validators.modified)
        .is_some_and(|(since, at)| at > since)
    {
        return PreconditionResult::Failed;
    }
    if headers.contains_key(IF_NONE_MATCH) {
        return if names(headers, &IF_NONE_MATCH, &validators.etag, true) {
            PreconditionResult::NotModified
        } else {
            PreconditionResult::Send
        };
    }
    match seconds(headers, &IF_MODIFIED_SINCE).zip(validators.modified) {
        Some((since, at)) if at <= since => PreconditionResult::NotModified,
        _ => PreconditionResult::Send,
    }
}

/// Returns whether the `Range` header applies: `If-Range` is missing or matches this content.
pub fn range_counts(headers: &HeaderMap, validators: &Validators) -> bool {
    match headers.get(IF_RANGE) {
        None => true,
        Some(tag) if tag.as_bytes().starts_with(b"\"") => tag == validators.etag,
        Some(_) => seconds(headers, &IF_RANGE).is_some_and(|since| validators.modified == Some(since)),
    }
}

/// Returns whether a list of tags contains this one. With `weak`, a weak tag matches too.
fn names(headers: &HeaderMap, field: &http::HeaderName, etag: &HeaderValue, weak: bool) -> bool {
    let etag = etag.as_bytes();
    headers.get_all(field).iter().any(|line| {
        // A tag may contain a comma, and the split then cuts it in two. This is harmless: each half
        // lacks a quote, so neither equals a tag of this server.
        line.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii).any(|tag| {
            tag == b"*" || tag == etag || (weak && tag.strip_prefix(b"W/").is_some_and(|tag| tag == etag))
        })
    })
}

fn seconds(headers: &HeaderMap, field: &http::HeaderName) -> Option<u64> {
    let time = httpdate::parse_http_date(headers.get(field)?.to_str().ok()?).ok()?;
    time.duration_since(std::time::UNIX_EPOCH).ok().map(|since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";

    fn validators() -> Validators {
        Validators { etag: HeaderValue::from_static("\"a\""), modified: Some(784_111_777) }
    }

    fn judged(fields: &[(http::HeaderName, &'static str)]) -> PreconditionResult {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(name, HeaderValue::from_static(value));
        }
        judge(&headers, &validators())
    }

    #[test]
    fn tags_and_times_are_judged_in_order() {
        for (fields, expected) in [
            (vec![], PreconditionResult::Send),
            (vec![(IF_NONE_MATCH, "\"a\"")], PreconditionResult::NotModified),
            (vec![(IF_NONE_MATCH, "\"b\", W/\"a\"")], PreconditionResult::NotModified),
            (vec![(IF_NONE_MATCH, "*")], PreconditionResult::NotModified),
            (vec![(IF_NONE_MATCH, "\"b\""), (IF_MODIFIED_SINCE, AT)], PreconditionResult::Send),
            (vec![(IF_MODIFIED_SINCE, AT)], PreconditionResult::NotModified),
            (vec![(IF_MODIFIED_SINCE, BEFORE)], PreconditionResult::Send),
            (vec![(IF_MODIFIED_SINCE, "yesterday")], PreconditionResult::Send),
            (vec![(IF_MATCH, "\"a\"")], PreconditionResult::Send),
            (vec![(IF_MATCH, "W/\"a\"")], PreconditionResult::Failed),
            (vec![(IF_MATCH, "\"b\"")], PreconditionResult::Failed),
            (vec![(IF_UNMODIFIED_SINCE, BEFORE)], PreconditionResult::Failed),
            (vec![(IF_UNMODIFIED_SINCE, AT)], PreconditionResult::Send),
        ] {
            assert_eq!(judged(&fields), expected, "{fields:?}");
        }
    }

    #[test]
    fn a_range_applies_only_to_the_same_content() {
        for (value, expected) in
            [("\"a\"", true), ("\"b\"", false), ("W/\"a\"", false), (AT, true), (BEFORE, false)]
        {
            let headers = HeaderMap::from_iter([(IF_RANGE, HeaderValue::from_static(value))]);
            assert_eq!(range_counts(&headers, &validators()), expected, "{value}");
        }
        assert!(range_counts(&HeaderMap::new(), &validators()));
    }
}
